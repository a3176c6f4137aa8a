-- How the heap changed between two walks, by type: FROM heap_diff(3, 9) with the collections of the walks, with several
-- recordings FROM heap_diff('app', 3, 9), between two recordings FROM heap_diff('before', 3, 'after', 9).
-- needs: heap_by_type
CREATE OR REPLACE MACRO heap_diff_of(recording_before, before, recording_after, after) AS TABLE
SELECT recording_after AS trace_id, coalesce(a.type_name, b.type_name) AS type_name,
       coalesce(b.object_count, 0) AS object_count_before, coalesce(a.object_count, 0) AS object_count_after,
       coalesce(a.object_count, 0) - coalesce(b.object_count, 0) AS object_count_change,
       coalesce(b.size_bytes, 0) AS size_bytes_before, coalesce(a.size_bytes, 0) AS size_bytes_after,
       coalesce(a.size_bytes, 0) - coalesce(b.size_bytes, 0) AS size_bytes_change
FROM (SELECT * FROM heap_by_type h WHERE h.trace_id = recording_before AND h.gc_id = before) b
FULL JOIN (SELECT * FROM heap_by_type h WHERE h.trace_id = recording_after AND h.gc_id = after) a
    ON a.type_name = b.type_name;
CREATE OR REPLACE MACRO heap_diff
    (before, after) AS TABLE (FROM heap_diff_of(only_trace(), before, only_trace(), after)),
    (recording, before, after) AS TABLE (FROM heap_diff_of(recording, before, recording, after)),
    (recording_before, before, recording_after, after) AS TABLE (FROM heap_diff_of(recording_before, before, recording_after, after));
