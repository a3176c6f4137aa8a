-- Which samples allocations are counted by. Several kinds may stand for the same bytes, so that only one is counted: the first of
-- `object`, `sampled`, `object_high` with `object_low`, and `tick` that the recording has.
-- needs: allocation
CREATE OR REPLACE VIEW allocation_source AS
WITH found AS (
    SELECT DISTINCT trace_id, source,
           CASE source WHEN 'object' THEN 1 WHEN 'sampled' THEN 2 WHEN 'object_high' THEN 3 WHEN 'object_low' THEN 3 WHEN 'tick' THEN 4 END AS place
    FROM allocation
)
SELECT trace_id, source FROM found WHERE place IS NOT NULL QUALIFY place = min(place) OVER (PARTITION BY trace_id);
