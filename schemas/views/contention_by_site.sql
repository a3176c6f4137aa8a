-- Time that threads waited for locks, by the method that waited: the innermost frame outside of Monitor and Lock.
-- needs: contention, callsite, frame
CREATE OR REPLACE VIEW contention_by_site AS
WITH RECURSIVE waited AS (
    SELECT w.trace_id, w.process_id, w.kind, w.duration_ns, w.thread_id, w.callsite_id AS place FROM contention w
    UNION ALL
    SELECT w.trace_id, w.process_id, w.kind, w.duration_ns, w.thread_id, c.parent_callsite_id
    FROM waited w
    JOIN callsite c ON c.trace_id = w.trace_id AND c.callsite_id = w.place AND c.parent_callsite_id <> 0
    JOIN frame f ON f.trace_id = c.trace_id AND f.frame_id = c.frame_id
        AND regexp_matches(f.name, '^System\.Threading\.(Monitor|Lock)\.')
)
SELECT w.trace_id, w.process_id, f.name AS method, w.kind, count(*) AS how_often, sum(w.duration_ns) / 1e6 AS total_ms,
       max(w.duration_ns) / 1e6 AS longest_ms, count(DISTINCT w.thread_id) AS threads
FROM waited w
LEFT JOIN callsite c ON c.trace_id = w.trace_id AND c.callsite_id = w.place
LEFT JOIN frame f ON f.trace_id = c.trace_id AND f.frame_id = c.frame_id
WHERE f.name IS NULL OR NOT regexp_matches(f.name, '^System\.Threading\.(Monitor|Lock)\.') OR c.parent_callsite_id = 0
GROUP BY ALL;
