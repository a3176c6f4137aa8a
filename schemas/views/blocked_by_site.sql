-- Where threads were blocked, and why: by the innermost frame outside of the kernel of the call stack with which they went on. Of
-- recordings with context switches and their stacks: .etl files, and those of collect-linux --profile thread-time.
-- needs: thread_time, site, site_outside
CREATE OR REPLACE VIEW blocked_by_site AS
SELECT t.trace_id, t.process_id, coalesce(s.name, '?') AS site, o.own_method, t.wait_reason, count(*) AS how_often,
       sum(t.duration_ns) / 1e6 AS total_ms, max(t.duration_ns) / 1e6 AS longest_ms, count(DISTINCT t.thread_id) AS threads
FROM thread_time t
LEFT JOIN site_outside('^kernel:') s ON s.trace_id = t.trace_id AND s.callsite_id = t.callsite_id
LEFT JOIN site o ON o.trace_id = t.trace_id AND o.callsite_id = t.callsite_id
WHERE t.state = 'blocked'
GROUP BY ALL;
