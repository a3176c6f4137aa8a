-- What asynchronous work was blocked on: a row for each time a task waited for something that does not itself wait for another task, as far as
-- that is recorded (Task.Delay, a read of a socket, a TaskCompletionSource, a work item). awaited is its name, NULL when it has none. method is what
-- awaited it, root_method the outermost method of the chain that waited so, and chain all of them from the inside outwards. source and
-- request_start_ts_ns are those of the request (request_time) that the wait belongs to by its activity id; NULL when there is none.
-- needs: async_task, async_wait, thread_activity, requests, site
CREATE OR REPLACE VIEW blocked_on AS
WITH RECURSIVE task AS MATERIALIZED (
    SELECT trace_id, process_id, source, task_id, parent_task_id, method, created_ts_ns, end_ts_ns FROM async_task
), leaf AS MATERIALIZED (
    SELECT w.*, row_number() OVER () AS nth FROM async_wait w
    WHERE w.awaited_task_id IS NULL OR NOT EXISTS (
        FROM async_wait i WHERE i.trace_id = w.trace_id AND i.process_id = w.process_id AND i.source = w.source AND i.task_id = w.awaited_task_id)
), up AS (
    SELECT l.nth, l.trace_id, l.process_id, l.source, l.task_id, 0 AS step FROM leaf l WHERE l.task_id IS NOT NULL
    UNION ALL
    SELECT u.nth, u.trace_id, u.process_id, u.source, t.parent_task_id, u.step + 1
    FROM up u JOIN task t ON t.trace_id = u.trace_id AND t.process_id = u.process_id AND t.source = u.source AND t.task_id = u.task_id
    WHERE t.parent_task_id IS NOT NULL AND u.step < 100
), chain AS (
    SELECT u.nth, list(coalesce(t.method, '?') ORDER BY u.step) AS methods
    FROM up u LEFT JOIN task t ON t.trace_id = u.trace_id AND t.process_id = u.process_id AND t.source = u.source AND t.task_id = u.task_id
    GROUP BY u.nth
), request AS MATERIALIZED (
    SELECT r.trace_id, r.process_id, r.source, r.start_ts_ns, r.end_ts_ns, a.activity_path
    FROM requests r
    JOIN (SELECT DISTINCT trace_id, process_id, activity_id, activity_path FROM thread_activity WHERE activity_path IS NOT NULL) a
        ON a.trace_id = r.trace_id AND a.process_id = r.process_id AND a.activity_id = r.activity_id
    WHERE r.side = 'server' AND r.end_ts_ns IS NOT NULL
), of_request AS (
    SELECT l.nth, arg_max(r.source, (r.start_ts_ns, r.source)) AS source, max(r.start_ts_ns) AS start_ts_ns
    FROM leaf l JOIN request r
        ON r.trace_id = l.trace_id AND r.process_id = l.process_id AND l.start_ts_ns BETWEEN r.start_ts_ns AND r.end_ts_ns
        AND (l.activity_path = r.activity_path OR starts_with(l.activity_path, r.activity_path || '/'))
    GROUP BY l.nth
)
SELECT l.trace_id, l.process_id, l.source AS reported_by, l.kind, l.task_id, l.awaited_task_id, l.start_ts_ns, l.duration_ns / 1e6 AS duration_ms,
       a.method AS awaited, coalesce(c.methods[1], s.own_method, s.written_name) AS method, c.methods[-1] AS root_method, c.methods AS chain,
       r.source, r.start_ts_ns AS request_start_ts_ns, l.thread_id, l.end_thread_id, l.callsite_id, l.activity_path, l.touches_gap
FROM leaf l
LEFT JOIN task a ON a.trace_id = l.trace_id AND a.process_id = l.process_id AND a.source = l.source AND a.task_id = l.awaited_task_id
LEFT JOIN chain c ON c.nth = l.nth
LEFT JOIN of_request r ON r.nth = l.nth
LEFT JOIN site s ON s.trace_id = l.trace_id AND s.callsite_id = l.callsite_id;
