-- Call sites with the names of their frames, for whatever has a callsite_id: ... JOIN site s ON s.trace_id = a.trace_id AND
-- s.callsite_id = a.callsite_id. own_method is the nearest method outwards that is the user's own, NULL when there is none.
-- may_belong_to names other own methods that it may be instead: the compiler put them into its code, and the recording does not say which it is.
-- Call sites are numbered from 1, so that 0 finds none; DuckDB 2.0.1 fails on a condition that says so.
-- Joined with callsite and frame in one step, DuckDB may begin with all pairs of a recording.
-- needs: callsite, frame
CREATE OR REPLACE VIEW site AS
WITH named AS MATERIALIZED (
    SELECT c.trace_id, c.process_id, c.callsite_id, c.parent_callsite_id, c.depth, c.walk_first, c.walk_last, c.is_recursive,
           c.frame_id, c.own_callsite_id, f.kind, f.name, f.assembly, f.file, f.line, f.written_name, f.is_framework, f.may_belong_to
    FROM callsite c JOIN frame f ON f.trace_id = c.trace_id AND f.frame_id = c.frame_id)
SELECT n.* EXCLUDE (may_belong_to), o.written_name AS own_method, o.may_belong_to
FROM named n LEFT JOIN named o ON o.trace_id = n.trace_id AND o.callsite_id = n.own_callsite_id;
