-- Collections with their pauses, what was allocated before them, and what survived them (NULL when no range was recorded).
-- since_last_ms: time from the end of the pause before to the beginning of the first one of this collection; NULL for the first
-- collection of a recording, and where events are lost.
-- pause_percent: its pauses as a share of the time from the end of the pause before to the end of its last one.
-- needs: gc, gc_pause
CREATE OR REPLACE VIEW gc_summary AS
WITH paused AS (
    SELECT p.trace_id, p.gc_id, g.process_id, g.clr_instance_id, p.start_ts_ns AS pause_start_ns, p.start_ts_ns + p.duration_ns AS pause_end_ns
    FROM gc_pause p JOIN gc g ON g.trace_id = p.trace_id AND g.gc_id = p.gc_id
    WHERE p.kind = 'gc'
), spans AS (
    SELECT trace_id, gc_id, process_id, clr_instance_id, min(pause_start_ns) AS first_ns, max(pause_end_ns) AS last_ns
    FROM paused GROUP BY ALL
), gaps AS (
    SELECT s.trace_id, s.gc_id, s.first_ns - b.pause_end_ns AS since_last_ns, s.last_ns - b.pause_end_ns AS whole_ns
    FROM spans s ASOF JOIN paused b
        ON b.trace_id = s.trace_id AND b.process_id = s.process_id AND b.clr_instance_id = s.clr_instance_id AND b.pause_start_ns < s.first_ns
    WHERE b.pause_end_ns <= s.first_ns
)
SELECT g.trace_id, g.process_id, g.gc_id, g.gc_number, g.generation, g.kind, g.reason, g.trigger_reason, g.mechanisms_text, g.start_ts,
       g.complete, CASE WHEN g.pause_count > 0 THEN g.pause_ns / 1e6 END AS pause_ms, p.since_last_ns / 1e6 AS since_last_ms,
       100.0 * CASE WHEN g.pause_count > 0 THEN g.pause_ns END / nullif(p.whole_ns, 0) AS pause_percent,
       g.allocated_bytes, g.promoted_bytes, g.size_before_bytes, g.size_after_bytes,
       CASE WHEN g.surviving_range_count + g.moved_range_count > 0
            THEN try_cast(g.surviving_bytes::HUGEINT + g.moved_bytes AS BIGINT) END AS survived_bytes,
       g.surviving_range_count + g.moved_range_count AS range_count
FROM gc g LEFT JOIN gaps p ON p.trace_id = g.trace_id AND p.gc_id = g.gc_id AND NOT g.touches_gap;
