-- Exceptions by type and by the method that threw them: the innermost frame outside of the runtime's own code for throwing.
-- One that is thrown again after an `await` counts once more.
-- needs: exception, callsite, frame
CREATE OR REPLACE VIEW exceptions AS
WITH RECURSIVE thrown AS (
    SELECT e.trace_id, e.process_id, e.type_name, e.ts, e.message, e.callsite_id AS place FROM exception e
    UNION ALL
    SELECT t.trace_id, t.process_id, t.type_name, t.ts, t.message, c.parent_callsite_id
    FROM thrown t
    JOIN callsite c ON c.trace_id = t.trace_id AND c.callsite_id = t.place AND c.parent_callsite_id <> 0
    JOIN frame f ON f.trace_id = c.trace_id AND f.frame_id = c.frame_id AND starts_with(f.name, 'System.Runtime.EH.')
)
SELECT t.trace_id, t.process_id, t.type_name, f.name AS thrown_in, count(*) AS how_often, min(t.ts) AS first_ts,
       any_value(t.message) AS for_example
FROM thrown t
LEFT JOIN callsite c ON c.trace_id = t.trace_id AND c.callsite_id = t.place
LEFT JOIN frame f ON f.trace_id = c.trace_id AND f.frame_id = c.frame_id
WHERE f.name IS NULL OR NOT starts_with(f.name, 'System.Runtime.EH.') OR c.parent_callsite_id = 0
GROUP BY ALL;
