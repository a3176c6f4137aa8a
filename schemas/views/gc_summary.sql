-- Collections with their pauses, what was allocated before them, and what survived them (NULL when no range was recorded).
-- pause_percent: pause time as a share of the time since the collection before it ended.
-- needs: gc
CREATE OR REPLACE VIEW gc_summary AS
WITH ordered AS (
    SELECT *, greatest(0, start_ts_ns - max(end_ts_ns) OVER (
        PARTITION BY trace_id, process_id, clr_instance_id ORDER BY gc_id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
    )) AS since_last_ns
    FROM gc
)
SELECT trace_id, process_id, gc_id, gc_number, generation, kind, reason, trigger_reason, mechanisms_text, start_ts, complete,
       pause_ns / 1e6 AS pause_ms, since_last_ns / 1e6 AS since_last_ms,
       100.0 * pause_ns / nullif(pause_ns + since_last_ns, 0) AS pause_percent,
       allocated_bytes, promoted_bytes, size_before_bytes, size_after_bytes,
       CASE WHEN surviving_range_count + moved_range_count > 0
            THEN try_cast(surviving_bytes::HUGEINT + moved_bytes AS BIGINT) END AS survived_bytes,
       surviving_range_count + moved_range_count AS range_count
FROM ordered;
