-- What became of sampled objects, by the method that allocates and by type: bytes allocated, of those that met a collection of their generation (tested_bytes) the ones
-- that survived it, promoted to generation 2, died in generation 2 or among large or pinned objects, alive at the end, unknown; and how
-- long the dead ones lived, in collections that they survived and in time. Of a dataset made with `convert --lifetimes`.
-- The method is the innermost frame of the stack, own_method the nearest one outwards that is the user's own; NULL without them.
-- needs: allocation_lifetime, site, type
CREATE OR REPLACE VIEW lifetimes_by_site AS
SELECT l.trace_id, l.process_id, s.name AS method, s.own_method, s.assembly,
       coalesce(nullif(t.name, ''), printf('type %x', l.type_id)) AS type_name, l.source,
       sum(l.sample_weight)::BIGINT AS sample_count,
       try_cast(sum(l.allocation_bytes) AS BIGINT) AS allocation_bytes,
       try_cast(coalesce(sum(l.allocation_bytes) FILTER (l.survived_collections > 0 OR l.fate = 'dead'), 0) AS BIGINT) AS tested_bytes,
       try_cast(coalesce(sum(l.allocation_bytes) FILTER (l.survived_collections > 0), 0) AS BIGINT) AS survived_first_bytes,
       try_cast(coalesce(sum(l.allocation_bytes) FILTER (l.highest_generation = 2), 0) AS BIGINT) AS promoted_bytes,
       try_cast(coalesce(sum(l.allocation_bytes) FILTER (l.fate = 'dead' AND l.generation_at_end BETWEEN 2 AND 4), 0) AS BIGINT) AS died_old_bytes,
       try_cast(coalesce(sum(l.allocation_bytes) FILTER (l.fate = 'dead'), 0) AS BIGINT) AS dead_bytes,
       try_cast(coalesce(sum(l.allocation_bytes) FILTER (l.fate = 'alive'), 0) AS BIGINT) AS alive_bytes,
       try_cast(coalesce(sum(l.allocation_bytes) FILTER (l.fate = 'unknown'), 0) AS BIGINT) AS unknown_bytes,
       quantile_disc(l.survived_collections, 0.5) FILTER (l.fate = 'dead') AS life_collections_median,
       quantile_disc(l.survived_collections, 0.9) FILTER (l.fate = 'dead') AS life_collections_p90,
       quantile_disc(l.dead_ts_ns - l.ts_ns, 0.5) FILTER (l.fate = 'dead') AS life_ns_median,
       quantile_disc(l.dead_ts_ns - l.ts_ns, 0.9) FILTER (l.fate = 'dead') AS life_ns_p90
FROM allocation_lifetime l
LEFT JOIN site s ON s.trace_id = l.trace_id AND s.callsite_id = l.callsite_id
LEFT JOIN (SELECT trace_id, process_id, type_id, max(name) AS name FROM type GROUP BY ALL) t
    ON t.trace_id = l.trace_id AND t.process_id = l.process_id AND t.type_id = l.type_id
GROUP BY ALL;
