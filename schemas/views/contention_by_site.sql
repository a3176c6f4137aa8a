-- Time that threads waited for locks, by the method that waited: the innermost frame outside of Monitor and Lock,
-- and of the code that reports a wait for a Lock; and by own_method, the nearest method outwards that is the user's own.
-- needs: contention, site, site_outside
CREATE OR REPLACE VIEW contention_by_site AS
SELECT w.trace_id, w.process_id, s.name AS method, o.own_method, w.kind, count(*) AS how_often, sum(w.duration_ns) / 1e6 AS total_ms,
       max(w.duration_ns) / 1e6 AS longest_ms, count(DISTINCT w.thread_id) AS threads
FROM contention w
LEFT JOIN site_outside('^managed:System\.(Threading\.(Monitor|Lock)|Diagnostics\.Tracing\.NativeRuntimeEventSource)\.') s ON s.trace_id = w.trace_id AND s.callsite_id = w.callsite_id
LEFT JOIN site o ON o.trace_id = w.trace_id AND o.callsite_id = w.callsite_id
GROUP BY ALL;
