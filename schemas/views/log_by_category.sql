-- How much is logged: messages by category and level, how many in a second of the recording, with how many exceptions, and the template that is logged most.
-- needs: log, trace
CREATE OR REPLACE VIEW log_by_category AS
WITH by_template AS (
    SELECT trace_id, process_id, category, level, template, count(*) AS messages, count(exception_type) AS exceptions
    FROM log GROUP BY ALL
)
SELECT l.trace_id, l.process_id, l.category, l.level, sum(l.messages)::BIGINT AS messages,
       sum(l.messages) / nullif(any_value(t.lengths[list_position(t.recordings, l.trace_id)]) / 1e9, 0) AS per_second,
       sum(l.exceptions)::BIGINT AS exceptions,
       arg_max(l.template, (l.messages, l.template)) FILTER (l.template IS NOT NULL) AS most_frequent
FROM by_template l, (SELECT list(trace_id) AS recordings, list(duration_ns) AS lengths FROM trace) t
GROUP BY l.trace_id, l.process_id, l.category, l.level;
