-- Where threads were blocked, and why: by the innermost frame outside of the kernel of the call stack with which they went on. Of .etl
-- files with context switches and their stacks.
-- needs: thread_time, callsite, frame
CREATE OR REPLACE VIEW blocked_by_site AS
WITH RECURSIVE waited AS (
    SELECT t.trace_id, t.process_id, t.wait_reason, t.duration_ns, t.thread_id, t.callsite_id AS place
    FROM thread_time t WHERE t.state = 'blocked'
    UNION ALL
    SELECT w.trace_id, w.process_id, w.wait_reason, w.duration_ns, w.thread_id, c.parent_callsite_id
    FROM waited w
    JOIN callsite c ON c.trace_id = w.trace_id AND c.callsite_id = w.place AND c.parent_callsite_id <> 0
    JOIN frame f ON f.trace_id = c.trace_id AND f.frame_id = c.frame_id AND f.kind = 'kernel'
)
SELECT w.trace_id, w.process_id, coalesce(f.name, '?') AS site, w.wait_reason, count(*) AS how_often,
       sum(w.duration_ns) / 1e6 AS total_ms, max(w.duration_ns) / 1e6 AS longest_ms, count(DISTINCT w.thread_id) AS threads
FROM waited w
LEFT JOIN callsite c ON c.trace_id = w.trace_id AND c.callsite_id = w.place
LEFT JOIN frame f ON f.trace_id = c.trace_id AND f.frame_id = c.frame_id
WHERE f.name IS NULL OR f.kind <> 'kernel' OR c.parent_callsite_id = 0
GROUP BY ALL;
