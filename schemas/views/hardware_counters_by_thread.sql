-- What hardware counters counted while each thread ran: from each context switch to the next one on the same processor, where both have counters. A counter
-- that is lower at the end was set back, and this interval is left out. Of .etl files whose context switches have counters.
-- needs: context_switch, hardware_counter
CREATE OR REPLACE VIEW hardware_counters_by_thread AS
WITH slice AS (
    SELECT trace_id, process_id, thread_id, hardware_counters AS began,
           lead(hardware_counters) OVER (PARTITION BY trace_id, processor ORDER BY ts_ns) AS ended
    FROM context_switch WHERE processor IS NOT NULL
), counted AS (
    SELECT trace_id, process_id, thread_id, unnest(began) AS began, unnest(ended) AS ended, unnest(range(1, len(began) + 1)) AS counter_index
    FROM slice WHERE len(began) > 0 AND len(began) = len(ended)
)
SELECT c.trace_id, c.process_id, c.thread_id, c.counter_index, any_value(n.name) AS name, sum(c.ended - c.began)::UBIGINT AS counted, count(*) AS intervals
FROM counted c
LEFT JOIN (SELECT trace_id, counter_index, max(name) AS name FROM hardware_counter WHERE kind = 'counted' GROUP BY ALL) n
    ON n.trace_id = c.trace_id AND n.counter_index = c.counter_index
WHERE c.ended >= c.began
GROUP BY c.trace_id, c.process_id, c.thread_id, c.counter_index;
