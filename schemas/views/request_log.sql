-- What was logged in each request, in the order of logging. basis says by what a message belongs to it: `span` (it has the trace of the request's span, and was
-- logged while it ran) or, where the request or the message has no span, `activity` (the event has the request's activity id). NULL times are not known.
-- needs: requests, log
CREATE OR REPLACE VIEW request_log AS
WITH request AS MATERIALIZED (
    SELECT trace_id, process_id, source, start_ts_ns, coalesce(end_ts_ns, 9223372036854775807) AS end_ts_ns, thread_id, activity_id, w3c_trace_id
    FROM requests WHERE side = 'server'
), found AS (
    SELECT r.trace_id, r.process_id, r.source, r.start_ts_ns AS request_start_ts_ns, r.thread_id AS request_thread_id, 'span' AS basis, l.* EXCLUDE (trace_id, process_id)
    FROM request r JOIN log l ON l.trace_id = r.trace_id AND l.process_id = r.process_id AND l.w3c_trace_id = r.w3c_trace_id
        AND l.ts_ns BETWEEN r.start_ts_ns AND r.end_ts_ns
    UNION ALL
    SELECT r.trace_id, r.process_id, r.source, r.start_ts_ns, r.thread_id, 'activity', l.* EXCLUDE (trace_id, process_id)
    FROM request r JOIN log l ON l.trace_id = r.trace_id AND l.process_id = r.process_id AND l.activity_id = r.activity_id
        AND l.ts_ns BETWEEN r.start_ts_ns AND r.end_ts_ns
    WHERE r.w3c_trace_id IS NULL OR l.w3c_trace_id IS NULL
)
SELECT trace_id, process_id, source, request_start_ts_ns, request_thread_id, basis, ts_ns, (ts_ns - request_start_ts_ns) / 1e6 AS after_ms, level, category,
       event_id, event_name, message, template, arguments, exception_type, exception_message, exception, w3c_trace_id, span_id, thread_id, callsite_id
FROM found;
