-- Where threads waited in WaitHandle, Monitor.Wait, Thread.Join and the like: by the innermost frame outside of them, and by own_method,
-- the nearest method outwards that is the user's own. never_ended has
-- the waits without an end, open_ms how long these went on until the last event of the process, touch_gap those of which a loss
-- may hide the end (their time is not in open_ms).
-- needs: wait, process, site, site_outside
CREATE OR REPLACE VIEW waits_by_site AS
SELECT w.trace_id, w.process_id, coalesce(s.name, '?') AS method, o.own_method, w.source, count(*) AS how_often, sum(w.duration_ns) / 1e6 AS total_ms,
       max(w.duration_ns) / 1e6 AS longest_ms, count(*) FILTER (w.end_ts_ns IS NULL AND NOT w.touches_gap) AS never_ended,
       sum(p.last_ts_ns - w.start_ts_ns) FILTER (w.end_ts_ns IS NULL AND NOT w.touches_gap) / 1e6 AS open_ms,
       count(*) FILTER (w.touches_gap) AS touch_gap, count(DISTINCT w.thread_id) AS threads
FROM wait w
LEFT JOIN (SELECT trace_id, process_id, max(last_ts_ns) AS last_ts_ns FROM process GROUP BY ALL) p
    ON p.trace_id = w.trace_id AND p.process_id = w.process_id
LEFT JOIN site_outside('^managed:System\.Threading\.(Wait|Monitor|Thread|ManualReset|AutoReset|Semaphore|Lock|Low|Barrier|Countdown|Tasks\.Task\.)')
    s ON s.trace_id = w.trace_id AND s.callsite_id = w.callsite_id
LEFT JOIN site o ON o.trace_id = w.trace_id AND o.callsite_id = w.callsite_id
GROUP BY ALL;
