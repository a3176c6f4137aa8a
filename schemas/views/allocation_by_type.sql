-- Allocations by type, by the samples that allocation_source names. Some kinds of samples have only the id of the type: its name is in
-- the table of types. object_count is NULL where a sample does not say how many objects it represents.
-- needs: allocation, allocation_source, type
CREATE OR REPLACE VIEW allocation_by_type AS
SELECT a.trace_id, a.process_id, coalesce(nullif(a.type_name, ''), nullif(t.name, ''), printf('type %x', a.type_id)) AS type_name,
       a.source, count(*) AS sample_count, sum(a.object_count) AS object_count,
       try_cast(sum(a.allocation_bytes) AS BIGINT) AS allocation_bytes
FROM allocation a
SEMI JOIN allocation_source s ON s.trace_id = a.trace_id AND s.source = a.source
LEFT JOIN (SELECT trace_id, process_id, type_id, max(name) AS name FROM type GROUP BY ALL) t
    ON t.trace_id = a.trace_id AND t.process_id = a.process_id AND t.type_id = a.type_id
GROUP BY ALL;
