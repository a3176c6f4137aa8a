-- Interrupts and deferred procedure calls by their routines: how often each ran, how long in all (total_ms, without what interrupted it), and
-- how long at most. `what` is the module, and the routine's name where symbols are known. Of .etl files.
-- needs: interrupt, site
CREATE OR REPLACE VIEW interrupt_by_routine AS
SELECT i.trace_id, i.kind, coalesce(s.name, '?') AS what, printf('%x', i.routine_address) AS routine, count(*) AS how_often,
       sum(i.exclusive_ns) / 1e6 AS total_ms, max(i.duration_ns) / 1e3 AS longest_us, count(DISTINCT i.processor) AS processors
FROM interrupt i
LEFT JOIN site s ON s.trace_id = i.trace_id AND s.callsite_id = i.callsite_id
GROUP BY ALL;
