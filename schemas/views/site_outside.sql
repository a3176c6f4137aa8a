-- For each call site the innermost frame that is not what a pattern says of `kind:name`: the method that waited, not the one of the
-- runtime that made it wait. FROM site_outside('^managed:System\.Threading\.Monitor\.')
-- needs: site
CREATE OR REPLACE MACRO site_outside(pattern) AS TABLE
WITH RECURSIVE named AS MATERIALIZED (
    SELECT trace_id, callsite_id, parent_callsite_id, name, regexp_matches(concat(kind, ':', name), pattern) AS is_inside FROM site
), way AS (
    SELECT trace_id, callsite_id, callsite_id AS inside, parent_callsite_id AS place FROM named WHERE is_inside
    UNION ALL
    SELECT w.trace_id, w.callsite_id, n.callsite_id, n.parent_callsite_id
    FROM way w JOIN named n ON n.trace_id = w.trace_id AND n.callsite_id = w.place AND n.is_inside
)
SELECT trace_id, callsite_id, name FROM named WHERE NOT is_inside
UNION ALL
SELECT w.trace_id, w.callsite_id, n.name FROM way w JOIN named n ON n.trace_id = w.trace_id
    AND n.callsite_id = CASE WHEN w.place = 0 THEN w.inside ELSE w.place END
WHERE w.place = 0 OR NOT n.is_inside;
