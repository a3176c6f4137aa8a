-- What ran on a processor instead of a thread that was ready to run: other threads, interrupts and deferred procedure calls of the kernel, or nothing (`idle`: the
-- processor was free and the thread did not get it yet). A row for each time that a thread waited for a processor and each that had the processor meanwhile, on which the
-- thread ran next; ms adds up to ready_ms. Of a thread ms is its time without what interrupted it. Of .etl files with context switches.
-- needs: thread_time, interrupt, process, site
CREATE OR REPLACE VIEW ran_instead AS
WITH waiting AS MATERIALIZED (
    SELECT r.trace_id, r.process_id, r.thread_id, r.start_ts_ns, r.end_ts_ns, n.processor
    FROM thread_time r
    JOIN thread_time n ON n.trace_id = r.trace_id AND n.process_id = r.process_id AND n.thread_id = r.thread_id
        AND n.start_ts_ns = r.end_ts_ns AND n.state = 'running'
    WHERE r.state = 'ready' AND r.end_ts_ns > r.start_ts_ns
), routine AS MATERIALIZED (
    SELECT w.*, i.kind, i.callsite_id, i.process_id AS by_process_id, i.thread_id AS by_thread_id,
           least(i.exclusive_ns, least(i.ts_ns, w.end_ts_ns) - greatest(i.start_ts_ns, w.start_ts_ns)) AS ns
    FROM waiting w
    JOIN interrupt i ON i.trace_id = w.trace_id AND i.processor = w.processor AND i.start_ts_ns < w.end_ts_ns AND i.ts_ns > w.start_ts_ns
), taken AS (
    SELECT w.*, 'thread' AS kind, 0 AS callsite_id, t.process_id AS by_process_id, t.thread_id AS by_thread_id,
           least(t.end_ts_ns, w.end_ts_ns) - greatest(t.start_ts_ns, w.start_ts_ns) AS ns, 1 AS times
    FROM waiting w
    JOIN thread_time t ON t.trace_id = w.trace_id AND t.processor = w.processor AND t.start_ts_ns < w.end_ts_ns AND t.end_ts_ns > w.start_ts_ns
        AND t.state = 'running'
    UNION ALL
    -- What interrupted a thread is not its own time.
    SELECT r.* EXCLUDE (kind, callsite_id, by_process_id, by_thread_id, ns), 'thread', 0, by_process_id, by_thread_id, -ns, 0
    FROM routine r WHERE by_thread_id <> 0
    UNION ALL
    SELECT r.* EXCLUDE (by_process_id, by_thread_id, ns), NULL, NULL, ns, 1 FROM routine r
), summed AS MATERIALIZED (
    SELECT trace_id, process_id, thread_id, start_ts_ns, end_ts_ns, processor, kind, callsite_id, by_process_id, by_thread_id,
           sum(ns) AS ns, sum(times) AS times
    FROM taken GROUP BY ALL HAVING sum(times) > 0
), everything AS (
    FROM summed
    UNION ALL
    SELECT w.*, 'idle', 0, NULL, NULL, w.end_ts_ns - w.start_ts_ns - coalesce(s.ns, 0), 1
    FROM waiting w
    LEFT JOIN (SELECT trace_id, process_id, thread_id, start_ts_ns, sum(ns) AS ns FROM summed GROUP BY ALL) s
        ON s.trace_id = w.trace_id AND s.process_id = w.process_id AND s.thread_id = w.thread_id AND s.start_ts_ns = w.start_ts_ns
    WHERE w.end_ts_ns - w.start_ts_ns > coalesce(s.ns, 0)
)
SELECT e.trace_id, e.process_id, e.thread_id, e.start_ts_ns, (e.end_ts_ns - e.start_ts_ns) / 1e6 AS ready_ms, e.processor, e.kind,
       coalesce(p.name, s.name) AS what, e.by_process_id, e.by_thread_id, e.times::BIGINT AS times, e.ns / 1e6 AS ms
FROM everything e
LEFT JOIN (SELECT trace_id, process_id, max(name) AS name FROM process GROUP BY ALL) p ON p.trace_id = e.trace_id AND p.process_id = e.by_process_id
LEFT JOIN site s ON s.trace_id = e.trace_id AND s.callsite_id = e.callsite_id;
