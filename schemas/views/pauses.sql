-- Times in which all managed threads were stopped, each with its collection.
-- needs: gc_pause, gc
CREATE OR REPLACE VIEW pauses AS
SELECT p.trace_id, p.process_id, p.start_ts, p.start_ts_ns, p.duration_ns / 1e6 AS pause_ms, p.suspend_ns / 1e6 AS suspend_ms,
       p.kind, p.reason AS pause_reason, p.gc_id, g.gc_number, g.generation, g.kind AS gc_kind, g.reason AS gc_reason,
       p.touches_gap
FROM gc_pause p LEFT JOIN gc g ON g.trace_id = p.trace_id AND g.gc_id = p.gc_id;
