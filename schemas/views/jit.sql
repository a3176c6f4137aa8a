-- Methods that were compiled while the program ran: how long it took, and how large the code is. Lookups of precompiled code are left out.
-- needs: method_compilation
CREATE OR REPLACE VIEW jit AS
SELECT trace_id, process_id, start_ts, concat_ws('.', nullif(namespace, ''), name) AS method, kind, tier, duration_ns / 1e6 AS jit_ms,
       il_size_bytes, native_size_bytes, thread_id
FROM method_compilation WHERE kind = 'jit';
