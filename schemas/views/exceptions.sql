-- Exceptions by type, by the method that threw them, and by the method whose handler caught them. thrown_in is the innermost frame outside
-- of the runtime's code for throwing: its own (`EH`, `ThrowHelpers`, `CastHelpers`), methods of the library that throw for their caller
-- (`ThrowHelper.*`, `ExceptionDispatchInfo.Throw`, `ArgumentNullException.ThrowIfNull`) and those that pass on what an `await` brings.
-- own_method is the nearest method outwards that is the user's own. caught_in is NULL when nobody caught it, or when that is not in the recording; the last handler counts.
-- One that is thrown again after an `await` counts once more.
-- needs: exception, site, site_outside
CREATE OR REPLACE VIEW exceptions AS
SELECT e.trace_id, e.process_id, e.type_name, s.name AS thrown_in, o.own_method, nullif(e.catch_method_name, '') AS caught_in, count(*) AS how_often,
       min(e.ts) AS first_ts, arg_min(e.message, e.ts) AS for_example
FROM exception e
LEFT JOIN site_outside('^managed:(System|Internal)\.(Runtime\.EH\.|([\w.]+\.)?(ThrowHelpers?|CastHelpers)\.|([\w.`+]+\.)?Throw\w*[(\[]|Runtime\.CompilerServices\.\w*Await[\w`+]*(\[[^(]*\])?\.(HandleNonSuccess\w*|ValidateEnd|GetResult)\()') s
    ON s.trace_id = e.trace_id AND s.callsite_id = e.callsite_id
LEFT JOIN site o ON o.trace_id = e.trace_id AND o.callsite_id = e.callsite_id
GROUP BY ALL;
