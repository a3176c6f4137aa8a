-- What was on the heap at each walk, by type. Ids of types count within a process.
-- needs: heap_object, type, gc
CREATE OR REPLACE VIEW heap_by_type AS
SELECT o.trace_id, g.process_id, o.gc_id, coalesce(nullif(t.name, ''), printf('type %x', o.type_id)) AS type_name,
       sum(o.object_count)::BIGINT AS object_count, try_cast(sum(o.size_bytes) AS BIGINT) AS size_bytes
FROM (SELECT trace_id, gc_id, type_id, count(*) AS object_count, sum(size_bytes) AS size_bytes
      FROM heap_object GROUP BY ALL) o
LEFT JOIN gc g ON g.trace_id = o.trace_id AND g.gc_id = o.gc_id
LEFT JOIN (SELECT trace_id, process_id, type_id, max(name) AS name FROM type GROUP BY ALL) t
    ON t.trace_id = o.trace_id AND t.type_id = o.type_id AND t.process_id = g.process_id
GROUP BY ALL;
