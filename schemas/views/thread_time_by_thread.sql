-- What each thread did with its time: how long it ran, was ready (it waited for a processor), and was blocked (it waited for
-- anything else). Of recordings with context switches: .etl files, and those of
-- collect-linux --profile thread-time, which know no `ready`.
-- needs: thread_time, thread
CREATE OR REPLACE VIEW thread_time_by_thread AS
SELECT t.trace_id, t.process_id, t.thread_id, any_value(n.name) AS thread_name,
       coalesce(sum(t.duration_ns) FILTER (t.state = 'running'), 0) / 1e6 AS running_ms,
       coalesce(sum(t.duration_ns) FILTER (t.state = 'ready'), 0) / 1e6 AS ready_ms,
       coalesce(sum(t.duration_ns) FILTER (t.state = 'blocked'), 0) / 1e6 AS blocked_ms,
       coalesce(max(t.duration_ns) FILTER (t.state = 'ready'), 0) / 1e6 AS longest_ready_ms,
       coalesce(max(t.duration_ns) FILTER (t.state = 'blocked'), 0) / 1e6 AS longest_blocked_ms,
       count(*) FILTER (t.state = 'running') AS times_running
FROM thread_time t
LEFT JOIN (SELECT trace_id, process_id, thread_id, max(name) AS name FROM thread GROUP BY ALL) n
    ON n.trace_id = t.trace_id AND n.process_id = t.process_id AND n.thread_id = t.thread_id
GROUP BY t.trace_id, t.process_id, t.thread_id;
