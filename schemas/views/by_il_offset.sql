-- Where in the IL it was: CPU samples and allocations by assembly, method_token and il_offset, as compilers, disassemblers and System.Reflection.Metadata
-- name places. The place is that of the nearest own method outwards, or of the innermost frame where there is none. il_offset is NULL where the
-- recording has no map of the code. Allocations are those of the samples that allocation_source names.
-- needs: callsite, frame, cpu_sample, allocation, allocation_source
CREATE OR REPLACE VIEW by_il_offset AS
WITH frames AS MATERIALIZED (
    SELECT c.trace_id, c.process_id, c.callsite_id, f.assembly, f.method_token, f.il_offset, f.name, f.is_framework
    FROM callsite c JOIN frame f ON f.trace_id = c.trace_id AND f.frame_id = c.frame_id
), counted AS MATERIALIZED (
    SELECT trace_id, callsite_id, sum(sample_count)::BIGINT AS samples, NULL::BIGINT AS allocations, NULL::BIGINT AS bytes
    FROM cpu_sample WHERE kind IS NULL OR kind NOT IN ('external', 'idle') GROUP BY ALL
    UNION ALL
    SELECT a.trace_id, a.callsite_id, NULL, count(*), try_cast(sum(a.allocation_bytes) AS BIGINT)
    FROM allocation a SEMI JOIN allocation_source u ON u.trace_id = a.trace_id AND u.source = a.source GROUP BY ALL
), placed AS MATERIALIZED (
    SELECT n.*, CASE WHEN c.own_callsite_id = 0 THEN c.callsite_id ELSE c.own_callsite_id END AS at
    FROM counted n JOIN callsite c ON c.trace_id = n.trace_id AND c.callsite_id = n.callsite_id
)
SELECT f.trace_id, f.process_id, f.assembly, f.method_token, f.il_offset, min(f.name) AS method, f.is_framework,
       coalesce(sum(p.samples), 0)::BIGINT AS samples, coalesce(sum(p.allocations), 0)::BIGINT AS allocations,
       coalesce(sum(p.bytes), 0)::BIGINT AS allocation_bytes
FROM placed p JOIN frames f ON f.trace_id = p.trace_id AND f.callsite_id = p.at
WHERE f.method_token <> 0
GROUP BY f.trace_id, f.process_id, f.assembly, f.method_token, f.il_offset, f.is_framework;
