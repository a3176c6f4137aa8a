-- What became of what requests allocated, by route and type: columns as in lifetimes_by_type, of samples that request_part finds to belong to a
-- request. What a request leaves behind is alive, or died old, after it ended. The same requests of another source are counted again: take one.
-- Of a dataset made with `convert --lifetimes`.
-- needs: allocation_lifetime, type, request_part, request_time
CREATE OR REPLACE VIEW lifetimes_by_route AS
WITH request AS MATERIALIZED (
    SELECT trace_id, process_id, source, start_ts_ns, thread_id, http_method, route FROM request_time
), part AS MATERIALIZED (
    SELECT trace_id, process_id, source, request_start_ts_ns, request_thread_id, thread_id, start_ts_ns, callsite_id, bytes
    FROM request_part WHERE kind = 'allocation'
), routed AS MATERIALIZED (
    SELECT p.trace_id, p.process_id, p.source, r.http_method, r.route, p.thread_id, p.start_ts_ns, p.callsite_id, p.bytes
    FROM part p
    JOIN request r ON r.trace_id = p.trace_id AND r.process_id = p.process_id AND r.source = p.source
        AND r.start_ts_ns = p.request_start_ts_ns AND r.thread_id = p.request_thread_id
), life AS MATERIALIZED (
    SELECT l.* EXCLUDE (source), p.source, p.http_method, p.route
    FROM allocation_lifetime l
    JOIN routed p ON p.trace_id = l.trace_id AND p.process_id = l.process_id AND p.thread_id = l.thread_id AND p.start_ts_ns = l.ts_ns
        AND p.callsite_id = l.callsite_id AND (p.bytes * l.sample_weight) IS NOT DISTINCT FROM l.allocation_bytes
)
SELECT l.trace_id, l.process_id, l.source, l.http_method, l.route, coalesce(nullif(t.name, ''), printf('type %x', l.type_id)) AS type_name,
       sum(l.sample_weight)::BIGINT AS sample_count,
       try_cast(sum(l.allocation_bytes) AS BIGINT) AS allocation_bytes,
       try_cast(coalesce(sum(l.allocation_bytes) FILTER (l.survived_collections > 0 OR l.fate = 'dead'), 0) AS BIGINT) AS tested_bytes,
       try_cast(coalesce(sum(l.allocation_bytes) FILTER (l.survived_collections > 0), 0) AS BIGINT) AS survived_first_bytes,
       try_cast(coalesce(sum(l.allocation_bytes) FILTER (l.highest_generation = 2), 0) AS BIGINT) AS promoted_bytes,
       try_cast(coalesce(sum(l.allocation_bytes) FILTER (l.fate = 'dead' AND l.generation_at_end BETWEEN 2 AND 4), 0) AS BIGINT) AS died_old_bytes,
       try_cast(coalesce(sum(l.allocation_bytes) FILTER (l.fate = 'alive'), 0) AS BIGINT) AS alive_bytes,
       try_cast(coalesce(sum(l.allocation_bytes) FILTER (l.fate = 'unknown'), 0) AS BIGINT) AS unknown_bytes
FROM life l
LEFT JOIN (SELECT trace_id, process_id, type_id, max(name) AS name FROM type GROUP BY ALL) t
    ON t.trace_id = l.trace_id AND t.process_id = l.process_id AND t.type_id = l.type_id
GROUP BY ALL;
