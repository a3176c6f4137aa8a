-- Which old objects hold young ones: references from generation 2 and the large and pinned objects (generations 2 to 4) to generations 0 and 1, by the types of
-- both, in each walk of the heap. Each of them keeps what it holds alive in a collection of young generations. The young objects are counted once.
-- needs: heap_object, heap_reference, gc_generation_range, type, gc
CREATE OR REPLACE VIEW old_to_young AS
WITH bounds AS MATERIALIZED (
    SELECT trace_id, gc_id, generation, range_start, range_start::HUGEINT + range_length AS range_end
    FROM gc_generation_range QUALIFY phase = coalesce(max(CASE phase WHEN 'end' THEN 'end' END) OVER (PARTITION BY trace_id, gc_id), 'start')
), named AS (
    SELECT trace_id, process_id, type_id, max(name) AS name FROM type GROUP BY ALL
), placed AS MATERIALIZED (
    SELECT o.trace_id, o.gc_id, o.object_id, o.size_bytes, o.type_id, b.generation
    FROM heap_object o ASOF JOIN bounds b ON b.trace_id = o.trace_id AND b.gc_id = o.gc_id AND o.object_id >= b.range_start
    WHERE o.object_id < b.range_end
), held AS (
    SELECT r.trace_id, r.gc_id, h.object_id AS holder_id, h.generation, h.type_id AS holder_type_id, y.object_id AS young_id, y.type_id AS young_type_id,
           min(y.size_bytes) AS size_bytes
    FROM heap_reference r
    JOIN placed h ON h.trace_id = r.trace_id AND h.gc_id = r.gc_id AND h.object_id = r.object_id AND h.generation BETWEEN 2 AND 4
    JOIN placed y ON y.trace_id = r.trace_id AND y.gc_id = r.gc_id AND y.object_id = r.target_object_id AND y.generation < 2
    GROUP BY ALL
), counted AS (
    SELECT trace_id, gc_id, holder_type_id, young_type_id, count(DISTINCT holder_id) AS holders, count(*) AS held_references,
           count(DISTINCT young_id) AS young_objects, arg_max(holder_id, (per_holder, holder_id)) AS largest_holder_id, max(per_holder) AS held_by_largest
    FROM (SELECT *, count(*) OVER (PARTITION BY trace_id, gc_id, holder_id, young_type_id) AS per_holder FROM held)
    GROUP BY ALL
), bytes AS (
    SELECT trace_id, gc_id, holder_type_id, young_type_id, sum(size_bytes)::BIGINT AS young_bytes
    FROM (SELECT DISTINCT trace_id, gc_id, holder_type_id, young_type_id, young_id, size_bytes FROM held) GROUP BY ALL
), process AS (SELECT DISTINCT trace_id, gc_id, process_id FROM gc)
SELECT c.trace_id, c.gc_id, coalesce(nullif(h.name, ''), printf('type %x', c.holder_type_id)) AS holder_type,
       coalesce(nullif(y.name, ''), printf('type %x', c.young_type_id)) AS young_type, c.holders, c.held_references, c.young_objects, b.young_bytes,
       c.largest_holder_id, c.held_by_largest
FROM counted c
JOIN bytes b ON b.trace_id = c.trace_id AND b.gc_id = c.gc_id AND b.holder_type_id = c.holder_type_id AND b.young_type_id = c.young_type_id
JOIN process p ON p.trace_id = c.trace_id AND p.gc_id = c.gc_id
LEFT JOIN named h ON h.trace_id = c.trace_id AND h.process_id = p.process_id AND h.type_id = c.holder_type_id
LEFT JOIN named y ON y.trace_id = c.trace_id AND y.process_id = p.process_id AND y.type_id = c.young_type_id;
