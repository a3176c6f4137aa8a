-- Sampled allocations by the method that allocates, which is the innermost frame of the stack, and by type.
-- needs: allocation, callsite, frame
CREATE OR REPLACE VIEW allocation_by_site AS
SELECT a.trace_id, a.process_id, f.name AS method, f.assembly, coalesce(a.type_name, printf('type %x', a.type_id)) AS type_name,
       a.source, count(*) AS sample_count, sum(a.allocation_bytes)::BIGINT AS allocation_bytes
FROM allocation a
JOIN callsite c ON c.trace_id = a.trace_id AND c.callsite_id = a.callsite_id
JOIN frame f ON f.trace_id = c.trace_id AND f.frame_id = c.frame_id
GROUP BY ALL;
