-- CPU samples by method: those in its own code (exclusive), and those with what it called (inclusive), where recursion counts once.
-- Samples of an idle processor are left out; managed_samples are those that the runtime took within managed code.
-- needs: cpu_sample, callsite, frame
CREATE OR REPLACE VIEW cpu_by_method AS
WITH own AS (
    SELECT trace_id, callsite_id, sum(sample_count)::BIGINT AS samples,
           sum(CASE WHEN kind = 'managed' THEN sample_count END)::BIGINT AS managed
    FROM cpu_sample WHERE callsite_id <> 0 AND kind IS DISTINCT FROM 'idle' GROUP BY ALL),
walk AS (
    SELECT c.trace_id, c.process_id, c.walk_first, c.walk_last, c.is_recursive, c.frame_id,
           coalesce(o.samples, 0) AS samples, coalesce(o.managed, 0) AS managed,
           sum(coalesce(o.samples, 0)) OVER (PARTITION BY c.trace_id ORDER BY c.walk_first) AS so_far
    FROM callsite c LEFT JOIN own o ON o.trace_id = c.trace_id AND o.callsite_id = c.callsite_id),
-- By itself: joined with frames in one step, DuckDB may begin with all pairs of a recording.
place AS MATERIALIZED (
    SELECT w.trace_id, w.process_id, w.frame_id, w.samples, w.managed,
           CASE WHEN NOT w.is_recursive THEN below.so_far - w.so_far + w.samples END AS with_called
    FROM walk w JOIN walk below ON below.trace_id = w.trace_id AND below.walk_first = w.walk_last)
SELECT p.trace_id, p.process_id, f.name AS method, any_value(f.assembly) AS assembly,
       sum(p.with_called)::BIGINT AS inclusive_samples,
       sum(p.samples)::BIGINT AS exclusive_samples, sum(p.managed)::BIGINT AS managed_samples
FROM place p
JOIN frame f ON f.trace_id = p.trace_id AND f.frame_id = p.frame_id
GROUP BY p.trace_id, p.process_id, f.name HAVING inclusive_samples > 0;
