-- Sampled allocations by type.
-- needs: allocation
CREATE OR REPLACE VIEW allocation_by_type AS
SELECT trace_id, coalesce(type_name, printf('type %x', type_id)) AS type_name, source, count(*) AS sample_count,
       sum(allocation_bytes) AS allocation_bytes
FROM allocation GROUP BY ALL;
