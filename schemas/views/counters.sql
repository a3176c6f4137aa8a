-- Each counter with its tags: how many values it has, the least, the mean, the greatest and the last one.
-- needs: counter
CREATE OR REPLACE VIEW counters AS
SELECT trace_id, process_id, provider_name, name, any_value(unit) AS unit, kind, tags, quantile, count(*) AS value_count,
       min(value) AS least, avg(value) AS mean, max(value) AS greatest, arg_max(value, ts_ns) AS last
FROM counter GROUP BY trace_id, process_id, provider_name, name, kind, tags, quantile;
