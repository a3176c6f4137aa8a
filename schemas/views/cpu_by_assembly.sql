-- CPU samples by the assembly, or the file of native code, of the innermost frame. Samples of an idle processor are left out.
-- needs: cpu_sample, callsite, frame
CREATE OR REPLACE VIEW cpu_by_assembly AS
SELECT s.trace_id, s.process_id, coalesce(f.assembly, CASE WHEN contains(f.name, '!') THEN split_part(f.name, '!', 1) END) AS assembly,
       f.kind, sum(s.sample_count)::BIGINT AS samples
FROM cpu_sample s
JOIN callsite c ON c.trace_id = s.trace_id AND c.callsite_id = s.callsite_id
JOIN frame f ON f.trace_id = c.trace_id AND f.frame_id = c.frame_id
WHERE s.kind IS DISTINCT FROM 'idle' GROUP BY ALL;
