-- Call sites with the names of their frames, for whatever has a callsite_id: ... JOIN site s ON s.trace_id = a.trace_id AND
-- s.callsite_id = a.callsite_id. Joined with callsite and frame in one step, DuckDB may begin with all pairs of a recording.
-- needs: callsite, frame
CREATE OR REPLACE VIEW site AS
WITH named AS MATERIALIZED (
    SELECT c.trace_id, c.process_id, c.callsite_id, c.parent_callsite_id, c.depth, c.walk_first, c.walk_last, c.is_recursive,
           c.frame_id, f.kind, f.name, f.assembly, f.file, f.line
    FROM callsite c JOIN frame f ON f.trace_id = c.trace_id AND f.frame_id = c.frame_id)
SELECT * FROM named;
