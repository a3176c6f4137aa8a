-- Where the time of each request of HTTP went (request_part has its parts one by one): its samples of the processor, its waits and waits for locks with
-- the own method in which it waited longest, the pauses of the collector, its queries and calls, and the bytes that it allocated. NULL is what was not recorded, or
-- cannot be distinguished from other work: the request has no activity id, and went on on another thread. Each share has its basis, as request_part. Shares overlap:
-- a pause may fall into a query. await_ms is what its async methods were blocked on (blocked_on), with the method that
-- awaited longest; it is no share, and does not make unexplained_ms less: that is the time that no share covers. A request is a row for each source: take one.
-- needs: requests, queries, request_part, thread_activity, metric, session_provider, blocked_on, async_wait
CREATE OR REPLACE VIEW request_time AS
WITH part AS MATERIALIZED (FROM request_part),
recorded AS MATERIALIZED (
    -- Whether there would be events, if there were something.
    SELECT r.trace_id, r.process_id, list_contains(m.cpu, r.trace_id) AS cpu, list_contains(m.wait, r.trace_id) AS wait,
           list_contains(m.lock, r.trace_id) AS lock, list_contains(m.pause, r.trace_id) AS pause, list_contains(m.call, r.trace_id) AS call,
           list_contains(m.allocation, r.trace_id) AS allocation, list_contains(q.queries, r.trace_id) AS queries,
           list_contains(w.awaits, r.trace_id) AS awaits
    FROM (SELECT DISTINCT trace_id, process_id FROM requests) r,
         (SELECT list(trace_id) FILTER (name = 'cpu.samples') AS cpu, list(trace_id) FILTER (name = 'wait.count') AS wait,
                 list(trace_id) FILTER (name = 'contention.count') AS lock, list(trace_id) FILTER (name = 'gc.pause.total') AS pause,
                 list(trace_id) FILTER (name = 'request.client.count') AS call, list(trace_id) FILTER (name = 'allocation.bytes') AS allocation
          FROM metric WHERE value IS NOT NULL OR missing = 'empty') m,
         (SELECT list(DISTINCT trace_id) AS queries
          FROM (SELECT trace_id FROM queries
                UNION ALL
                SELECT trace_id FROM session_provider
                WHERE provider_name = 'Microsoft-Diagnostics-DiagnosticSource'
                  AND regexp_matches(arguments, 'SqlClient|EntityFrameworkCore|\[AS\]'))) q,
         (SELECT list(DISTINCT trace_id) AS awaits FROM async_wait) w
), awaiting AS MATERIALIZED (
    SELECT row_number() OVER () AS nth, trace_id, process_id, start_ts_ns, duration_ms, method, activity_path
    FROM blocked_on WHERE kind = 'async' AND source IS NOT NULL
), outer_request AS MATERIALIZED (
    SELECT r.trace_id, r.process_id, r.source, r.start_ts_ns, r.end_ts_ns, a.activity_path
    FROM requests r
    JOIN (SELECT DISTINCT trace_id, process_id, activity_id, activity_path FROM thread_activity WHERE activity_path IS NOT NULL) a
        ON a.trace_id = r.trace_id AND a.process_id = r.process_id AND a.activity_id = r.activity_id
    WHERE r.side = 'server' AND r.end_ts_ns IS NOT NULL
), awaited AS (
    -- Of each source the request that began last, of those in which the wait lies.
    SELECT trace_id, source, request_start_ts_ns, sum(duration_ms) AS await_ms, arg_max(method, (duration_ms, method)) AS method
    FROM (SELECT w.nth, w.trace_id, w.duration_ms, w.method, r.source, max(r.start_ts_ns) AS request_start_ts_ns
          FROM awaiting w JOIN outer_request r
              ON r.trace_id = w.trace_id AND r.process_id = w.process_id AND w.start_ts_ns BETWEEN r.start_ts_ns AND r.end_ts_ns
              AND (w.activity_path = r.activity_path OR starts_with(w.activity_path, r.activity_path || '/'))
          GROUP BY ALL)
    GROUP BY ALL
), covered AS (
    SELECT trace_id, source, request_start_ts_ns, request_thread_id,
           sum(greatest(0, end_ts_ns - greatest(start_ts_ns, coalesce(before_ns, start_ts_ns)))) AS explained_ns
    FROM (SELECT *, max(end_ts_ns) OVER (PARTITION BY trace_id, source, request_start_ts_ns, request_thread_id
                                         ORDER BY start_ts_ns, end_ts_ns ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before_ns
          FROM part WHERE kind <> 'allocation' AND end_ts_ns > start_ts_ns)
    GROUP BY ALL
), place AS (
    SELECT trace_id, source, request_start_ts_ns, request_thread_id, kind, arg_max(own_method, (ns, own_method)) AS own_method
    FROM (SELECT trace_id, source, request_start_ts_ns, request_thread_id, kind, own_method, sum(duration_ns) AS ns
          FROM part WHERE kind IN ('wait', 'lock') AND own_method IS NOT NULL GROUP BY ALL)
    GROUP BY ALL
), total AS (
    SELECT trace_id, source, request_start_ts_ns, request_thread_id,
           sum(how_many) FILTER (kind = 'cpu') AS cpu_samples, sum(duration_ns) FILTER (kind = 'cpu') AS cpu_ns,
           count(*) FILTER (kind = 'cpu' AND duration_ns IS NULL) > 0 AS has_no_rate,
           count(*) FILTER (kind = 'wait') AS waits, sum(duration_ns) FILTER (kind = 'wait') AS wait_ns,
           count(*) FILTER (kind = 'lock') AS locks, sum(duration_ns) FILTER (kind = 'lock') AS lock_ns,
           count(*) FILTER (kind = 'pause') AS pauses, sum(duration_ns) FILTER (kind = 'pause') AS pause_ns,
           count(*) FILTER (kind = 'query') AS queries, sum(duration_ns) FILTER (kind = 'query') AS query_ns,
           count(*) FILTER (kind = 'call') AS calls, sum(duration_ns) FILTER (kind = 'call') AS call_ns,
           coalesce(sum(bytes) FILTER (kind = 'allocation'), 0) AS allocation_bytes
    FROM part GROUP BY ALL
), request AS (
    SELECT r.trace_id, r.process_id, r.source, r.start_ts, r.start_ts_ns, r.end_ts_ns - r.start_ts_ns AS duration_ns, r.result, r.status_code,
           r.thread_id, r.activity_id,
           CASE WHEN r.activity_id IS NOT NULL THEN 'activity' WHEN r.thread_id = r.end_thread_id THEN 'thread' END AS known_by,
           coalesce(r.end_fields ->> '$.tags."http.request.method"', r.start_fields ->> '$.method') AS http_method,
           coalesce(r.end_fields ->> '$.tags."url.path"', r.start_fields ->> '$.path', r.start_fields ->> '$.Path') AS path,
           r.end_fields ->> '$.tags."http.route"' AS recorded_route
    FROM requests r WHERE r.side = 'server' AND r.end_ts_ns IS NOT NULL
), share AS (
    SELECT r.*, CASE WHEN d.cpu AND r.known_by IS NOT NULL THEN 'thread' END AS cpu_basis,
           CASE WHEN d.wait THEN r.known_by END AS wait_basis, CASE WHEN d.lock THEN r.known_by END AS lock_basis,
           CASE WHEN d.pause THEN 'time' END AS pause_basis,
           CASE WHEN d.queries THEN r.known_by END AS query_basis,
           CASE WHEN d.awaits AND r.known_by = 'activity' THEN 'activity' END AS await_basis,
           CASE WHEN d.call THEN r.known_by END AS call_basis, CASE WHEN d.allocation THEN r.known_by END AS allocation_basis
    FROM request r LEFT JOIN recorded d ON d.trace_id = r.trace_id AND d.process_id = r.process_id
)
SELECT r.trace_id, r.process_id, r.source, r.start_ts, r.start_ts_ns, r.http_method, r.path,
       coalesce(r.recorded_route, array_to_string(
           [CASE WHEN regexp_full_match(step, '[0-9]+|[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}') THEN '{id}' ELSE step END
            FOR step IN string_split(r.path, '/')], '/')) AS route,
       r.result, r.status_code, r.duration_ns / 1e6 AS duration_ms,
       CASE WHEN r.cpu_basis IS NOT NULL THEN coalesce(t.cpu_samples, 0)::BIGINT END AS cpu_samples,
       CASE WHEN r.cpu_basis IS NOT NULL AND NOT coalesce(t.has_no_rate, false) THEN coalesce(t.cpu_ns, 0) / 1e6 END AS cpu_ms, r.cpu_basis,
       CASE WHEN r.wait_basis IS NOT NULL THEN coalesce(t.waits, 0) END AS waits,
       CASE WHEN r.wait_basis IS NOT NULL THEN coalesce(t.wait_ns, 0) / 1e6 END AS wait_ms, w.own_method AS wait_method, r.wait_basis,
       CASE WHEN r.lock_basis IS NOT NULL THEN coalesce(t.locks, 0) END AS locks,
       CASE WHEN r.lock_basis IS NOT NULL THEN coalesce(t.lock_ns, 0) / 1e6 END AS lock_ms, l.own_method AS lock_method, r.lock_basis,
       CASE WHEN r.pause_basis IS NOT NULL THEN coalesce(t.pauses, 0) END AS pauses,
       CASE WHEN r.pause_basis IS NOT NULL THEN coalesce(t.pause_ns, 0) / 1e6 END AS pause_ms, r.pause_basis,
       CASE WHEN r.query_basis IS NOT NULL THEN coalesce(t.queries, 0) END AS queries,
       CASE WHEN r.query_basis IS NOT NULL THEN coalesce(t.query_ns, 0) / 1e6 END AS query_ms, r.query_basis,
       CASE WHEN r.call_basis IS NOT NULL THEN coalesce(t.calls, 0) END AS calls,
       CASE WHEN r.call_basis IS NOT NULL THEN coalesce(t.call_ns, 0) / 1e6 END AS call_ms, r.call_basis,
       CASE WHEN r.allocation_basis IS NOT NULL THEN coalesce(t.allocation_bytes, 0)::BIGINT END AS allocation_bytes, r.allocation_basis,
       CASE WHEN coalesce(r.cpu_basis, r.wait_basis, r.lock_basis, r.pause_basis, r.query_basis, r.call_basis) IS NOT NULL
            THEN (r.duration_ns - coalesce(c.explained_ns, 0)) / 1e6 END AS unexplained_ms,
       CASE WHEN r.await_basis IS NOT NULL THEN coalesce(b.await_ms, 0) END AS await_ms, b.method AS await_method, r.await_basis,
       r.thread_id, r.activity_id
FROM share r
LEFT JOIN total t ON t.trace_id = r.trace_id AND t.source = r.source AND t.request_start_ts_ns = r.start_ts_ns AND t.request_thread_id = r.thread_id
LEFT JOIN covered c ON c.trace_id = r.trace_id AND c.source = r.source AND c.request_start_ts_ns = r.start_ts_ns AND c.request_thread_id = r.thread_id
LEFT JOIN awaited b ON b.trace_id = r.trace_id AND b.source = r.source AND b.request_start_ts_ns = r.start_ts_ns
LEFT JOIN place w ON w.trace_id = r.trace_id AND w.source = r.source AND w.request_start_ts_ns = r.start_ts_ns AND w.request_thread_id = r.thread_id AND w.kind = 'wait'
LEFT JOIN place l ON l.trace_id = r.trace_id AND l.source = r.source AND l.request_start_ts_ns = r.start_ts_ns AND l.request_thread_id = r.thread_id AND l.kind = 'lock';
