-- How the heap changed between two walks, by type: FROM heap_diff(3, 9) with the collections of the walks, with several
-- recordings FROM heap_diff('app', 3, 9), between two recordings FROM heap_diff('before', 3, 'after', 9). A heap dump (.gcdump) has not
-- the number of type parameters of all types, so that types are one whose names differ in it alone.
-- needs: heap_by_type
CREATE OR REPLACE MACRO heap_diff_of(recording_before, before, recording_after, after) AS TABLE
WITH named AS (
    SELECT trace_id, gc_id, regexp_replace(type_name, '`[0-9]+', '', 'g') AS key, max(type_name) AS type_name,
           sum(object_count)::BIGINT AS object_count, try_cast(sum(size_bytes) AS BIGINT) AS size_bytes
    FROM heap_by_type
    WHERE trace_id = recording_before AND gc_id = before OR trace_id = recording_after AND gc_id = after
    GROUP BY ALL
)
SELECT recording_after AS trace_id,
       CASE WHEN length(b.type_name) > coalesce(length(a.type_name), 0) THEN b.type_name ELSE a.type_name END AS type_name,
       coalesce(b.object_count, 0) AS object_count_before, coalesce(a.object_count, 0) AS object_count_after,
       coalesce(a.object_count, 0) - coalesce(b.object_count, 0) AS object_count_change,
       coalesce(b.size_bytes, 0) AS size_bytes_before, coalesce(a.size_bytes, 0) AS size_bytes_after,
       coalesce(a.size_bytes, 0) - coalesce(b.size_bytes, 0) AS size_bytes_change
FROM (SELECT * FROM named h WHERE h.trace_id = recording_before AND h.gc_id = before) b
FULL JOIN (SELECT * FROM named h WHERE h.trace_id = recording_after AND h.gc_id = after) a ON a.key = b.key;
CREATE OR REPLACE MACRO heap_diff
    (before, after) AS TABLE (FROM heap_diff_of(only_trace(), before, only_trace(), after)),
    (recording, before, after) AS TABLE (FROM heap_diff_of(recording, before, recording, after)),
    (recording_before, before, recording_after, after) AS TABLE (FROM heap_diff_of(recording_before, before, recording_after, after));
