-- Where asynchronous work spends its time, by method: how many tasks of it there were, how long they had a thread (running_ms) and how long they had
-- none (waiting_ms: they awaited something, or waited for a worker), the longest from creation to end, how often they went on on another thread, and
-- how many had not ended. Of the async profiler a task is a chain of methods, named by its outermost one, or by the innermost where that is not
-- known. The time before a method first waits is in neither. Times of what never ran are NULL.
-- needs: async_task, site
CREATE OR REPLACE VIEW async_by_method AS
SELECT t.trace_id, t.process_id, t.source, t.kind,
       coalesce(t.method, CASE WHEN t.source = 'async_profiler' THEN s.written_name END, '?') AS method, count(*) AS tasks,
       sum(t.running_ns) / 1e6 AS running_ms, sum(t.waiting_ns) / 1e6 AS waiting_ms,
       max(t.end_ts_ns - t.created_ts_ns) / 1e6 AS longest_ms, sum(t.thread_switch_count)::BIGINT AS thread_switches,
       count(*) FILTER (t.end_ts_ns IS NULL) AS not_ended, count(*) FILTER (t.outcome = 'failed') AS failed,
       count(*) FILTER (t.touches_gap) AS touch_gap
FROM async_task t
LEFT JOIN site s ON s.trace_id = t.trace_id AND s.callsite_id = t.callsite_id
GROUP BY ALL;
