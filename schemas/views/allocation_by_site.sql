-- Allocations by the method that allocates, which is the innermost frame of the stack, and by type, by the samples that
-- allocation_source names. own_method is the nearest method outwards that is the user's own. Samples without a stack are left out.
-- needs: allocation, allocation_source, site, type
CREATE OR REPLACE VIEW allocation_by_site AS
SELECT a.trace_id, a.process_id, s.name AS method, s.own_method, s.assembly,
       coalesce(nullif(a.type_name, ''), nullif(t.name, ''), printf('type %x', a.type_id)) AS type_name,
       a.source, count(*) AS sample_count, sum(a.object_count) AS object_count,
       try_cast(sum(a.allocation_bytes) AS BIGINT) AS allocation_bytes
FROM allocation a
SEMI JOIN allocation_source u ON u.trace_id = a.trace_id AND u.source = a.source
JOIN site s ON s.trace_id = a.trace_id AND s.callsite_id = a.callsite_id
LEFT JOIN (SELECT trace_id, process_id, type_id, max(name) AS name FROM type GROUP BY ALL) t
    ON t.trace_id = a.trace_id AND t.process_id = a.process_id AND t.type_id = a.type_id
GROUP BY ALL;
