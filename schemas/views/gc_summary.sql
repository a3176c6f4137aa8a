-- Collections with their pauses and what survived them (NULL when no range was recorded).
-- needs: gc
CREATE OR REPLACE VIEW gc_summary AS
SELECT trace_id, gc_id, gc_number, generation, kind, reason, start_ts, complete, pause_ns / 1e6 AS pause_ms,
       promoted_bytes, size_before_bytes, size_after_bytes,
       CASE WHEN surviving_range_count + moved_range_count > 0 THEN surviving_bytes + moved_bytes END AS survived_bytes,
       surviving_range_count + moved_range_count AS range_count
FROM gc;
