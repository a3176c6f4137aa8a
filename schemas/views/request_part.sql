-- What a request of HTTP did and waited for, a row for each part: `cpu` (a CPU sample), `wait`, `lock`, `pause` (the collector stopped
-- all threads), `query`, `call` (a request that it sent) and `allocation`. basis says by what a part belongs to the request: `activity` (its
-- event has the activity id of the request, or one that lies in it), `thread` (the thread worked on the request, by its other events; or began and
-- ended a request that has no activity id), `time` (it fell into the time of the request). Parts are cut off at the ends of the request; of a sample
-- duration_ns is all of the time that it stands for.
-- A query or call within another one is no part of its own. The same request of another source has the same parts again.
-- needs: requests, queries, thread_activity, cpu_sample, wait, contention, allocation, allocation_source, gc_pause, site, trace
CREATE OR REPLACE VIEW request_part AS
WITH request AS MATERIALIZED (
    SELECT trace_id, process_id, source, start_ts_ns, end_ts_ns, thread_id, activity_id,
           activity_id IS NULL AND thread_id = end_thread_id AS is_of_thread
    FROM requests WHERE side = 'server' AND end_ts_ns IS NOT NULL
), id AS MATERIALIZED (
    SELECT DISTINCT trace_id, process_id, activity_id, activity_path FROM thread_activity
), around AS MATERIALIZED (
    -- Each activity id with those that it lies in, itself among them.
    SELECT trace_id, process_id, activity_id, activity_id AS outer_id FROM id
    UNION ALL
    SELECT i.trace_id, i.process_id, i.activity_id, o.activity_id
    FROM (SELECT *, unnest(range(1, len(steps))) AS step
          FROM (SELECT *, regexp_extract_all(activity_path, '[/$][0-9*]+') AS steps FROM id WHERE activity_path IS NOT NULL)) i
    JOIN id o ON o.trace_id = i.trace_id AND o.process_id = i.process_id AND o.activity_path = '/' || array_to_string(i.steps[:i.step], '')
), within AS MATERIALIZED (
    SELECT a.trace_id, a.process_id, a.activity_id, r.source, a.outer_id
    FROM around a
    JOIN (SELECT DISTINCT trace_id, process_id, source, activity_id FROM request) r
        ON r.trace_id = a.trace_id AND r.process_id = a.process_id AND r.activity_id = a.outer_id
), interval_of AS MATERIALIZED (
    SELECT p.trace_id, p.process_id, t.intervals[list_position(t.recordings, p.trace_id)] AS sampling_ns
    FROM (SELECT DISTINCT trace_id, process_id FROM cpu_sample) p,
         (SELECT list(trace_id) AS recordings, list(nullif(sampling_ns, 0)::BIGINT) AS intervals FROM trace) t
), sample AS (
    -- A sample of the runtime's sampler stands for the time up to halfway to the thread's samples before and behind it: it comes round less often
    -- where the machine is busy. Others stand for the interval that the recording says.
    SELECT trace_id, process_id, thread_id, callsite_id, ts_ns, sample_count, ts_ns - before_ns AS start_ts_ns, ts_ns + after_ns AS end_ts_ns
    FROM (SELECT c.*, CASE WHEN c.is_of_runtime THEN coalesce((ts_ns - lag(ts_ns) OVER of_thread) // 2, 0) ELSE c.sample_count * t.sampling_ns // 2 END AS before_ns,
                 CASE WHEN c.is_of_runtime THEN coalesce((lead(ts_ns) OVER of_thread - ts_ns) // 2, 0) ELSE c.sample_count * t.sampling_ns // 2 END AS after_ns
          FROM (SELECT *, coalesce(kind IN ('managed', 'external', 'error'), false) AS is_of_runtime FROM cpu_sample) c
          JOIN interval_of t ON t.trace_id = c.trace_id AND t.process_id = c.process_id
          WINDOW of_thread AS (PARTITION BY c.trace_id, c.process_id, c.thread_id, c.is_of_runtime ORDER BY c.ts_ns))
    WHERE kind IS NULL OR kind IN ('managed', 'thread')
), sent AS MATERIALIZED (
    SELECT trace_id, process_id, thread_id, callsite_id, 'query' AS kind, start_ts_ns, start_ts_ns + round(duration_ms * 1e6)::BIGINT AS end_ts_ns,
           text AS what, activity_id
    FROM queries WHERE duration_ms IS NOT NULL
    UNION ALL
    SELECT trace_id, process_id, thread_id, callsite_id, 'call', start_ts_ns, end_ts_ns,
           coalesce(end_fields ->> '$.tags."url.full"',
                    concat(start_fields ->> '$.scheme', '://', start_fields ->> '$.host', ':', start_fields ->> '$.port', start_fields ->> '$.pathAndQuery')),
           activity_id
    FROM requests WHERE side = 'client' AND end_ts_ns IS NOT NULL
), nested AS (
    SELECT i.trace_id, i.process_id, i.kind, i.thread_id, i.start_ts_ns
    FROM (SELECT s.*, a.outer_id FROM sent s
          JOIN around a ON a.trace_id = s.trace_id AND a.process_id = s.process_id AND a.activity_id = s.activity_id AND a.outer_id <> s.activity_id) i
    ASOF JOIN sent o ON o.trace_id = i.trace_id AND o.process_id = i.process_id AND o.kind = i.kind AND o.activity_id = i.outer_id AND i.start_ts_ns >= o.start_ts_ns
    WHERE i.start_ts_ns <= o.end_ts_ns
), item AS (
    SELECT trace_id, process_id, thread_id, callsite_id, 'cpu' AS kind, ts_ns AS at_ns, start_ts_ns, end_ts_ns,
           end_ts_ns - start_ts_ns AS cpu_ns, sample_count::BIGINT AS how_many, NULL::BIGINT AS bytes, NULL::VARCHAR AS what
    FROM sample
    UNION ALL
    SELECT trace_id, process_id, thread_id, callsite_id, 'wait', start_ts_ns, start_ts_ns, end_ts_ns, NULL, 1, NULL, source
    FROM wait WHERE end_ts_ns IS NOT NULL
    UNION ALL
    SELECT trace_id, process_id, thread_id, callsite_id, 'lock', start_ts_ns, start_ts_ns, end_ts_ns, NULL, 1, NULL, kind
    FROM contention WHERE end_ts_ns IS NOT NULL
    UNION ALL
    SELECT a.trace_id, a.process_id, a.thread_id, a.callsite_id, 'allocation', a.ts_ns, a.ts_ns, a.ts_ns, NULL, 1,
           try_cast(a.allocation_bytes AS BIGINT), a.type_name
    FROM allocation a SEMI JOIN allocation_source u ON u.trace_id = a.trace_id AND u.source = a.source
    UNION ALL
    SELECT trace_id, process_id, thread_id, callsite_id, kind, start_ts_ns, start_ts_ns, end_ts_ns, NULL, 1, NULL, what
    FROM sent s ANTI JOIN nested n ON n.trace_id = s.trace_id AND n.process_id = s.process_id AND n.kind = s.kind
        AND n.thread_id = s.thread_id AND n.start_ts_ns = s.start_ts_ns
), worked AS (
    SELECT i.*, a.activity_id FROM item i
    ASOF JOIN thread_activity a
        ON a.trace_id = i.trace_id AND a.process_id = i.process_id AND a.thread_id = i.thread_id AND i.at_ns >= a.start_ts_ns
    WHERE i.at_ns < a.end_ts_ns
), found AS (
    SELECT i.* EXCLUDE (activity_id, source, outer_id), r.source, r.start_ts_ns AS request_start_ts_ns, r.end_ts_ns AS request_end_ts_ns,
           r.thread_id AS request_thread_id, CASE WHEN i.kind = 'cpu' THEN 'thread' ELSE 'activity' END AS basis
    FROM (SELECT i.*, w.source, w.outer_id FROM worked i
          JOIN within w ON w.trace_id = i.trace_id AND w.process_id = i.process_id AND w.activity_id = i.activity_id) i
    ASOF JOIN request r ON r.trace_id = i.trace_id AND r.process_id = i.process_id AND r.source = i.source AND r.activity_id = i.outer_id
        AND i.at_ns >= r.start_ts_ns
    WHERE i.at_ns <= r.end_ts_ns
    UNION ALL
    SELECT i.* EXCLUDE (source), r.source, r.start_ts_ns, r.end_ts_ns, r.thread_id, 'thread'
    FROM (SELECT i.*, w.source FROM item i
          JOIN (SELECT DISTINCT trace_id, process_id, source, thread_id FROM request WHERE is_of_thread) w
              ON w.trace_id = i.trace_id AND w.process_id = i.process_id AND w.thread_id = i.thread_id) i
    ASOF JOIN (FROM request WHERE is_of_thread) r
        ON r.trace_id = i.trace_id AND r.process_id = i.process_id AND r.source = i.source AND r.thread_id = i.thread_id AND i.at_ns >= r.start_ts_ns
    WHERE i.at_ns <= r.end_ts_ns
), pause AS MATERIALIZED (
    -- What pauses of several runtimes of a process have in common counts once. Those of a request have numbers that follow each other.
    SELECT *, row_number() OVER (PARTITION BY trace_id, process_id ORDER BY start_ts_ns) AS nth
    FROM (SELECT trace_id, process_id, gc_id, start_ts_ns + duration_ns AS end_ts_ns,
                 greatest(start_ts_ns, max(start_ts_ns + duration_ns) OVER (PARTITION BY trace_id, process_id
                          ORDER BY start_ts_ns, duration_ns, gc_id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)) AS start_ts_ns
          FROM gc_pause WHERE kind = 'gc')
    WHERE start_ts_ns < end_ts_ns
), paused AS (
    SELECT r.*, unnest(range(coalesce(before.nth, 0) + 1, coalesce(last.nth, 0) + 1)) AS nth
    FROM request r
    ASOF LEFT JOIN pause before ON before.trace_id = r.trace_id AND before.process_id = r.process_id AND r.start_ts_ns >= before.end_ts_ns
    ASOF LEFT JOIN pause last ON last.trace_id = r.trace_id AND last.process_id = r.process_id AND r.end_ts_ns > last.start_ts_ns
), part AS (
    SELECT trace_id, process_id, source, request_start_ts_ns, request_end_ts_ns, request_thread_id, kind, basis, thread_id, start_ts_ns, end_ts_ns,
           cpu_ns, how_many, bytes, what, callsite_id
    FROM found
    UNION ALL
    SELECT r.trace_id, r.process_id, r.source, r.start_ts_ns, r.end_ts_ns, r.thread_id, 'pause', 'time', NULL, p.start_ts_ns, p.end_ts_ns,
           NULL, 1, NULL, 'collection ' || p.gc_id, 0
    FROM paused r JOIN pause p ON p.trace_id = r.trace_id AND p.process_id = r.process_id AND p.nth = r.nth
)
SELECT p.trace_id, p.process_id, p.source, p.request_start_ts_ns, p.request_thread_id, p.kind, p.basis, p.thread_id,
       greatest(p.start_ts_ns, p.request_start_ts_ns) AS start_ts_ns, least(p.end_ts_ns, p.request_end_ts_ns) AS end_ts_ns,
       coalesce(p.cpu_ns, CASE WHEN p.kind NOT IN ('cpu', 'allocation')
                THEN least(p.end_ts_ns, p.request_end_ts_ns) - greatest(p.start_ts_ns, p.request_start_ts_ns) END) AS duration_ns,
       p.how_many, p.bytes, p.what, s.name AS method, s.own_method, p.callsite_id
FROM part p LEFT JOIN site s ON s.trace_id = p.trace_id AND s.callsite_id = p.callsite_id;
