-- Methods that were compiled while the program ran: how long it took, and how large the code is. Lookups of precompiled code are left out.
-- own_method is the nearest method outwards that is the user's own and that needed it.
-- needs: method_compilation, site
CREATE OR REPLACE VIEW jit AS
SELECT m.trace_id, m.process_id, m.start_ts, concat_ws('.', nullif(m.namespace, ''), m.name) AS method, s.own_method, m.kind, m.tier, m.duration_ns / 1e6 AS jit_ms,
       m.il_size_bytes, m.native_size_bytes, m.thread_id
FROM method_compilation m
LEFT JOIN site s ON s.trace_id = m.trace_id AND s.callsite_id = m.callsite_id
WHERE m.kind = 'jit';
