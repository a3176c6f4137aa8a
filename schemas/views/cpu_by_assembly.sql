-- CPU samples by the assembly, or the file of native code, of the innermost frame. Samples of an idle processor are left out, and those
-- of threads outside of managed code, of which the runtime's sampler does not see whether they run.
-- needs: cpu_sample, site
CREATE OR REPLACE VIEW cpu_by_assembly AS
SELECT c.trace_id, c.process_id, coalesce(s.assembly, CASE WHEN contains(s.name, '!') THEN split_part(s.name, '!', 1) END) AS assembly,
       s.kind, sum(c.sample_count)::BIGINT AS samples
FROM cpu_sample c
JOIN site s ON s.trace_id = c.trace_id AND s.callsite_id = c.callsite_id
WHERE c.kind IS DISTINCT FROM 'idle' AND c.kind IS DISTINCT FROM 'external' GROUP BY ALL;
