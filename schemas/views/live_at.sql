-- What is alive at a time of the recording, by the method that allocated it and by type, as `tracequet lifetimes --at`: it had survived a
-- collection that had started, and none that was finished had found it dead. unknown_bytes: no collection had collected them so far, or
-- the recording does not say. FROM live_at(12.5), in seconds. Garbage that no collection of generation 2 has found counts as alive, so that
-- times compare, and those behind such a collection are nearest to what the program holds.
-- needs: allocation_lifetime, gc, site, type
CREATE OR REPLACE MACRO live_at(seconds) AS TABLE
SELECT l.trace_id, l.process_id, s.name AS method, s.own_method, s.assembly,
       coalesce(nullif(t.name, ''), printf('type %x', l.type_id)) AS type_name, l.source,
       coalesce(sum(l.sample_weight) FILTER (l.is_alive), 0)::BIGINT AS sample_count,
       try_cast(coalesce(sum(l.allocation_bytes) FILTER (l.is_alive), 0) AS BIGINT) AS alive_bytes,
       try_cast(coalesce(sum(l.allocation_bytes) FILTER (NOT l.is_alive), 0) AS BIGINT) AS unknown_bytes
FROM (SELECT a.*, CASE
          WHEN a.fate = 'unknown' AND a.end_gc_id <> 0 AND e.start_ts_ns <= seconds * 1e9 THEN false
          WHEN a.fate = 'unknown' AND a.end_gc_id = 0 AND a.survived_collections > 0 AND a.last_alive_ts_ns < seconds * 1e9 THEN false
          WHEN a.survived_collections > 0 THEN coalesce(f.start_ts_ns <= seconds * 1e9, false)
          ELSE a.fate = 'alive' END AS is_alive
      FROM allocation_lifetime a
      LEFT JOIN gc f ON f.trace_id = a.trace_id AND f.gc_id = a.first_gc_id
      LEFT JOIN gc e ON e.trace_id = a.trace_id AND e.gc_id = a.end_gc_id
      WHERE a.ts_ns <= seconds * 1e9 AND (a.dead_ts_ns IS NULL OR a.dead_ts_ns > seconds * 1e9)) l
LEFT JOIN site s ON s.trace_id = l.trace_id AND s.callsite_id = l.callsite_id
LEFT JOIN (SELECT trace_id, process_id, type_id, max(name) AS name FROM type GROUP BY ALL) t
    ON t.trace_id = l.trace_id AND t.process_id = l.process_id AND t.type_id = l.type_id
GROUP BY ALL;
