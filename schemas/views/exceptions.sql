-- Exceptions by type and by the method that threw them: the innermost frame outside of the runtime's own code for throwing.
-- One that is thrown again after an `await` counts once more.
-- needs: exception, site_outside
CREATE OR REPLACE VIEW exceptions AS
SELECT e.trace_id, e.process_id, e.type_name, s.name AS thrown_in, count(*) AS how_often, min(e.ts) AS first_ts,
       arg_min(e.message, e.ts) AS for_example
FROM exception e
LEFT JOIN site_outside('^managed:System\.Runtime\.EH\.') s ON s.trace_id = e.trace_id AND s.callsite_id = e.callsite_id
GROUP BY ALL;
