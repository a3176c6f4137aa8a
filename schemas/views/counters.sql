-- Each counter with its tags: how many values it has, the least, the mean, the greatest and the last one (of what only grows, in a
-- second), and by how much it grew. A mean counts each interval by its measurements, or by its length.
-- needs: counter
CREATE OR REPLACE VIEW counters AS
WITH each_value AS (
    SELECT *, CASE WHEN kind = 'histogram' THEN value ELSE figure END AS v, coalesce(weight, 1) AS w FROM counter)
SELECT trace_id, process_id, provider_name, name, any_value(unit) AS unit, kind, tags, quantile, count(*) AS value_count,
       min(v) AS least, sum(v * w) / nullif(sum(w) FILTER (v IS NOT NULL), 0) AS mean, max(v) AS greatest, arg_max(v, ts_ns) AS last,
       sum(CASE WHEN kind IN ('increment', 'counter') THEN value END) AS increase
FROM each_value GROUP BY trace_id, process_id, provider_name, name, kind, tags, quantile;
