-- The frames of a call stack, innermost first: FROM stack(7), with several recordings FROM stack('app', 7).
-- needs: callsite, frame
CREATE OR REPLACE MACRO stack_of(recording, id) AS TABLE
WITH RECURSIVE frames AS (
    SELECT * FROM callsite WHERE trace_id = recording AND callsite_id = id
    UNION ALL
    SELECT c.* FROM callsite c JOIN frames s ON c.trace_id = s.trace_id AND c.callsite_id = s.parent_callsite_id
)
SELECT s.trace_id, s.depth, f.name, f.assembly, f.kind, f.file, f.line, s.address, s.callsite_id
FROM frames s LEFT JOIN frame f ON f.trace_id = s.trace_id AND f.frame_id = s.frame_id ORDER BY s.depth DESC;
CREATE OR REPLACE MACRO stack
    (id) AS TABLE (FROM stack_of(only_trace(), id)),
    (recording, id) AS TABLE (FROM stack_of(recording, id));
