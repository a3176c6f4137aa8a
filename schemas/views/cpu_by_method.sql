-- CPU samples by method: those in its own code (exclusive), and those with what it called (inclusive), where recursion counts once.
-- Samples of an idle processor are left out. The runtime's sampler does not see whether a thread outside of managed code runs:
-- such samples are external_samples alone. managed_samples are those that it took within managed code.
-- needs: cpu_sample, callsite, frame
CREATE OR REPLACE VIEW cpu_by_method AS
WITH own AS (
    SELECT trace_id, callsite_id, sum(CASE WHEN kind IS DISTINCT FROM 'external' THEN sample_count END)::BIGINT AS samples,
           sum(CASE WHEN kind = 'managed' THEN sample_count END)::BIGINT AS managed,
           sum(CASE WHEN kind = 'external' THEN sample_count END)::BIGINT AS external
    FROM cpu_sample WHERE callsite_id <> 0 AND kind IS DISTINCT FROM 'idle' GROUP BY ALL),
-- What a call site called follows it in the walk of the tree.
walk AS (
    SELECT c.trace_id, c.process_id, c.is_recursive, c.frame_id, coalesce(o.samples, 0) AS samples, coalesce(o.managed, 0) AS managed,
           coalesce(o.external, 0) AS external,
           sum(coalesce(o.samples, 0)) OVER (PARTITION BY c.trace_id ORDER BY c.walk_first
               RANGE BETWEEN CURRENT ROW AND c.walk_last - c.walk_first FOLLOWING) AS with_called
    FROM callsite c LEFT JOIN own o ON o.trace_id = c.trace_id AND o.callsite_id = c.callsite_id)
SELECT w.trace_id, w.process_id, f.name AS method, any_value(f.assembly) AS assembly,
       (sum(w.with_called) FILTER (NOT w.is_recursive))::BIGINT AS inclusive_samples,
       sum(w.samples)::BIGINT AS exclusive_samples, sum(w.managed)::BIGINT AS managed_samples,
       sum(w.external)::BIGINT AS external_samples
FROM walk w
JOIN frame f ON f.trace_id = w.trace_id AND f.frame_id = w.frame_id
GROUP BY w.trace_id, w.process_id, f.name HAVING inclusive_samples > 0 OR external_samples > 0;
