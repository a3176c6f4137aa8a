-- Requests of HTTP: those that came in (side = server) and those of HttpClient (client), with what came of them (result, status_code).
-- A request is a row for each source that reports it (ASP.NET Core's activity and EventSource, Kestrel): take one source.
-- needs: activity
CREATE OR REPLACE VIEW requests AS
WITH known(source, side) AS (VALUES
    ('Microsoft.AspNetCore/Microsoft.AspNetCore.Hosting.HttpRequestIn', 'server'),
    ('Microsoft.AspNetCore.Hosting/Request', 'server'),
    ('Microsoft-AspNetCore-Server-Kestrel/Request', 'server'),
    ('HttpHandlerDiagnosticListener/System.Net.Http.HttpRequestOut', 'client'),
    ('System.Net.Http/System.Net.Http.HttpRequestOut', 'client'),
    ('System.Net.Http/Request', 'client'))
SELECT a.trace_id, a.process_id, k.side, k.source, a.start_ts, a.start_ts_ns, a.duration_ns / 1e6 AS duration_ms, a.result,
       a.status_code, a.outcome, a.start_fields, a.thread_id, a.callsite_id, a.activity_id, a.parent_activity_id,
       a.end_ts_ns, a.end_thread_id, a.end_fields
FROM activity a JOIN known k ON k.source = concat_ws('/', a.provider_name, a.name);
