-- Spans: activities with ids of W3C Trace Context, with the names from the first one of this process down to it (path), how many it lies in (depth), and whether
-- the span that it is within is not in the recording (is_root): it is the first one, or came from another process.
-- needs: activity
CREATE OR REPLACE VIEW spans AS
WITH RECURSIVE span AS MATERIALIZED (
    SELECT trace_id, process_id, w3c_trace_id, span_id, parent_span_id, provider_name, name, start_ts, start_ts_ns, end_ts_ns, duration_ns, result,
           thread_id, end_thread_id, callsite_id, activity_id
    FROM activity WHERE span_id IS NOT NULL
), known AS MATERIALIZED (SELECT DISTINCT trace_id, process_id, w3c_trace_id, span_id FROM span),
nested AS (
    SELECT s.*, true AS is_root, 0 AS depth, s.name AS path
    FROM span s ANTI JOIN known k ON k.trace_id = s.trace_id AND k.process_id = s.process_id AND k.w3c_trace_id IS NOT DISTINCT FROM s.w3c_trace_id
        AND k.span_id = s.parent_span_id
    UNION ALL
    SELECT s.*, false, n.depth + 1, concat(n.path, '/', s.name)
    FROM span s JOIN nested n ON n.trace_id = s.trace_id AND n.process_id = s.process_id AND n.w3c_trace_id IS NOT DISTINCT FROM s.w3c_trace_id
        AND n.span_id = s.parent_span_id
    WHERE n.depth < 64
)
SELECT * FROM nested;
