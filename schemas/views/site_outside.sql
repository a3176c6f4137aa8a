-- For each call site the innermost frame that is not what a pattern says of `kind:name`: the method that waited, not the one of the
-- runtime that made it wait. FROM site_outside('^managed:System\.Threading\.Monitor\.')
-- needs: site
CREATE OR REPLACE MACRO site_outside(pattern) AS TABLE
WITH RECURSIVE place AS (
    SELECT trace_id, callsite_id, parent_callsite_id, name, regexp_matches(concat(kind, ':', name), pattern) AS inside FROM site
    UNION ALL
    SELECT p.trace_id, p.callsite_id, s.parent_callsite_id, s.name, regexp_matches(concat(s.kind, ':', s.name), pattern)
    FROM place p JOIN site s ON s.trace_id = p.trace_id AND s.callsite_id = p.parent_callsite_id
    WHERE p.inside AND p.parent_callsite_id <> 0
)
SELECT trace_id, callsite_id, name FROM place WHERE NOT inside OR parent_callsite_id = 0;
