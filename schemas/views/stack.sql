-- The frames of a call stack, innermost first: FROM stack(7), with several recordings FROM stack('app', 7).
-- needs: callsite
CREATE OR REPLACE MACRO stack_of(recording, id) AS TABLE
WITH RECURSIVE frames AS (
    SELECT * FROM callsite WHERE trace_id = recording AND callsite_id = id
    UNION ALL
    SELECT c.* FROM callsite c JOIN frames f ON c.trace_id = f.trace_id AND c.callsite_id = f.parent_callsite_id
)
SELECT trace_id, depth, address, callsite_id FROM frames ORDER BY depth DESC;
CREATE OR REPLACE MACRO stack
    (id) AS TABLE (FROM stack_of(only_trace(), id)),
    (recording, id) AS TABLE (FROM stack_of(recording, id));
