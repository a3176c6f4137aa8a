-- Sampled allocations by type. Some kinds of samples tell only the id of the type: its name is in the table of types.
-- needs: allocation, type
CREATE OR REPLACE VIEW allocation_by_type AS
SELECT a.trace_id, a.process_id, coalesce(nullif(a.type_name, ''), nullif(t.name, ''), printf('type %x', a.type_id)) AS type_name,
       a.source, count(*) AS sample_count, try_cast(sum(a.allocation_bytes) AS BIGINT) AS allocation_bytes
FROM allocation a
LEFT JOIN (SELECT trace_id, process_id, type_id, max(name) AS name FROM type GROUP BY ALL) t
    ON t.trace_id = a.trace_id AND t.process_id = a.process_id AND t.type_id = a.type_id
GROUP BY ALL;
