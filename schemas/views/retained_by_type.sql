-- What the objects of each type retain at each walk of the heap (convert --dominators). Within a type no object counts twice;
-- the sums of types overlap.
-- needs: heap_dominator, heap_object, type, gc
CREATE OR REPLACE VIEW retained_by_type AS
SELECT o.trace_id, g.process_id, o.gc_id, coalesce(nullif(t.name, ''), printf('type %x', o.type_id)) AS type_name,
       count(*) AS object_count, try_cast(sum(o.size_bytes) AS BIGINT) AS size_bytes,
       try_cast(coalesce(sum(d.retained_bytes) FILTER (d.is_outermost), 0) AS BIGINT) AS retained_bytes,
       coalesce(sum(d.retained_count) FILTER (d.is_outermost), 0)::BIGINT AS retained_count,
       count(*) FILTER (d.root_distance = 0) AS unreachable_count
FROM heap_dominator d
JOIN heap_object o ON o.trace_id = d.trace_id AND o.gc_id = d.gc_id AND o.object_id = d.object_id
LEFT JOIN gc g ON g.trace_id = o.trace_id AND g.gc_id = o.gc_id
LEFT JOIN (SELECT trace_id, process_id, type_id, max(name) AS name FROM type GROUP BY ALL) t
    ON t.trace_id = o.trace_id AND t.type_id = o.type_id AND t.process_id = g.process_id
GROUP BY ALL;
