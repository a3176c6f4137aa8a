-- Which routes run a method: the own methods of the parts of requests (request_part), by route, with how many requests and what they used. So a lambda of a
-- minimal API, which has a number and no name, is known by the route that it answers.
-- needs: request_part, request_time
CREATE OR REPLACE VIEW routes_by_method AS
WITH part AS MATERIALIZED (
    SELECT trace_id, process_id, source, request_start_ts_ns, request_thread_id, own_method, kind, duration_ns, bytes
    FROM request_part WHERE own_method IS NOT NULL
), request AS MATERIALIZED (SELECT trace_id, source, start_ts_ns, thread_id, http_method, route FROM request_time)
SELECT p.trace_id, p.process_id, p.source, p.own_method, r.http_method, r.route,
       count(DISTINCT (p.request_start_ts_ns, p.request_thread_id)) AS requests,
       sum(p.duration_ns) FILTER (p.kind = 'cpu') / 1e6 AS cpu_ms, sum(p.duration_ns) FILTER (p.kind IN ('wait', 'lock')) / 1e6 AS wait_ms,
       sum(p.bytes)::BIGINT AS allocation_bytes
FROM part p JOIN request r ON r.trace_id = p.trace_id AND r.source = p.source AND r.start_ts_ns = p.request_start_ts_ns AND r.thread_id = p.request_thread_id
GROUP BY ALL;
