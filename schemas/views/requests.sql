-- Activities whose name says that they are requests (Kestrel, HttpClient, or an EventSource of one's own): how long they took and what came of them.
-- A request is a row for each source that tells of it (Kestrel, ASP.NET Core, DiagnosticSource): group by provider_name.
-- needs: activity
CREATE OR REPLACE VIEW requests AS
SELECT trace_id, process_id, start_ts, start_ts_ns, provider_name, name, duration_ns / 1e6 AS duration_ms, outcome, start_fields,
       thread_id, callsite_id, activity_id, parent_activity_id
FROM activity WHERE contains(lower(name), 'request');
