-- How long the requests of each route took, and where the time went: sums of request_time, of which NULL is what was not recorded. A route is what the
-- recording says (http.route), or the path with {id} for numbers and GUIDs. The same requests of another source are counted again: take one.
-- needs: request_time
CREATE OR REPLACE VIEW requests_by_route AS
SELECT trace_id, process_id, source, http_method, route, count(*) AS requests, count(*) FILTER (result = 'failure') AS failures,
       quantile_cont(duration_ms, 0.5) AS median_ms, quantile_cont(duration_ms, 0.95) AS p95_ms, quantile_cont(duration_ms, 0.99) AS p99_ms,
       max(duration_ms) AS longest_ms, sum(duration_ms) AS total_ms, sum(cpu_ms) AS cpu_ms, sum(wait_ms) AS wait_ms, sum(lock_ms) AS lock_ms,
       sum(pause_ms) AS pause_ms, sum(query_ms) AS query_ms, sum(queries)::BIGINT AS queries, sum(call_ms) AS call_ms, sum(calls)::BIGINT AS calls,
       sum(allocation_bytes)::BIGINT AS allocation_bytes, sum(unexplained_ms) AS unexplained_ms
FROM request_time GROUP BY ALL;
