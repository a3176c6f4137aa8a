-- The asynchronous methods that led to each task: callers has its own method and those of the tasks that await it, or in which it was
-- created, from the inside outwards; '?' where a task has no name. With async_callsite it leads a CPU sample, an allocation, an exception or a
-- wait of a thread to its logical callers, where the runtime itself does not say them (source tpl): there callsite_id is 0.
-- needs: async_task
CREATE OR REPLACE VIEW async_callers AS
WITH RECURSIVE task AS MATERIALIZED (
    SELECT trace_id, process_id, source, task_id, parent_task_id, method FROM async_task
), up AS (
    SELECT trace_id, process_id, source, task_id, parent_task_id, method, 0 AS step FROM task
    UNION ALL
    SELECT u.trace_id, u.process_id, u.source, u.task_id, t.parent_task_id, t.method, u.step + 1
    FROM up u JOIN task t ON t.trace_id = u.trace_id AND t.process_id = u.process_id AND t.source = u.source AND t.task_id = u.parent_task_id
    WHERE u.step < 100
)
SELECT trace_id, process_id, source, task_id, list(coalesce(method, '?') ORDER BY step) AS callers
FROM up GROUP BY trace_id, process_id, source, task_id;
