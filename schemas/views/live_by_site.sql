-- What is alive at the end of the recording, by the method that allocated it and by type: a leak's place without a heap dump. Bytes of each
-- fifth of the time in which objects were sampled say whether it grows: a leak has about as many bytes of each, a cache most of the first or of the last.
-- own_method is the nearest method outwards that is the user's own.
-- needs: allocation_lifetime, site, type
CREATE OR REPLACE VIEW live_by_site AS
SELECT l.trace_id, l.process_id, s.name AS method, s.own_method, s.assembly,
       coalesce(nullif(t.name, ''), printf('type %x', l.type_id)) AS type_name, l.source,
       sum(l.sample_weight)::BIGINT AS sample_count, try_cast(sum(l.allocation_bytes) AS BIGINT) AS alive_bytes,
       try_cast(coalesce(sum(l.allocation_bytes) FILTER (l.part = 0), 0) AS BIGINT) AS first_fifth_bytes,
       try_cast(coalesce(sum(l.allocation_bytes) FILTER (l.part = 1), 0) AS BIGINT) AS second_fifth_bytes,
       try_cast(coalesce(sum(l.allocation_bytes) FILTER (l.part = 2), 0) AS BIGINT) AS third_fifth_bytes,
       try_cast(coalesce(sum(l.allocation_bytes) FILTER (l.part = 3), 0) AS BIGINT) AS fourth_fifth_bytes,
       try_cast(coalesce(sum(l.allocation_bytes) FILTER (l.part >= 4), 0) AS BIGINT) AS last_fifth_bytes
FROM (SELECT *, least(4, greatest(0, ts_ns * 5 // greatest(max(ts_ns) OVER (PARTITION BY trace_id), 1))) AS part
      FROM allocation_lifetime QUALIFY fate = 'alive') l
LEFT JOIN site s ON s.trace_id = l.trace_id AND s.callsite_id = l.callsite_id
LEFT JOIN (SELECT trace_id, process_id, type_id, max(name) AS name FROM type GROUP BY ALL) t
    ON t.trace_id = l.trace_id AND t.process_id = l.process_id AND t.type_id = l.type_id
GROUP BY ALL;
