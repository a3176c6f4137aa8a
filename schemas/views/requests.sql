-- Requests: those of HTTP that came in (side = server) and those of HttpClient (client), with what came of them (result, status_code).
-- A request is a row for each source that reports it (ASP.NET Core's activity and EventSource, Kestrel): take one source.
-- Work that is no request of HTTP is one that came in, too, where it is a span that lies in no other span of the recording and is no query: the job of a
-- worker, a message of a queue.
-- needs: activity, queries
CREATE OR REPLACE VIEW requests AS
WITH known(source, side) AS (VALUES
    ('Microsoft.AspNetCore/Microsoft.AspNetCore.Hosting.HttpRequestIn', 'server'),
    ('Microsoft.AspNetCore.Hosting/Request', 'server'),
    ('Microsoft-AspNetCore-Server-Kestrel/Request', 'server'),
    ('HttpHandlerDiagnosticListener/System.Net.Http.HttpRequestOut', 'client'),
    ('System.Net.Http/System.Net.Http.HttpRequestOut', 'client'),
    ('System.Net.Http/Request', 'client')),
work AS (SELECT *, concat_ws('/', provider_name, name) AS source FROM activity),
root AS (
    SELECT w.trace_id, w.process_id, w.w3c_trace_id, w.span_id, w.start_ts_ns
    FROM work w
    ANTI JOIN known k ON k.source = w.source
    ANTI JOIN (SELECT DISTINCT trace_id, process_id, w3c_trace_id, span_id FROM activity WHERE span_id IS NOT NULL) o
        ON o.trace_id = w.trace_id AND o.process_id = w.process_id AND o.w3c_trace_id = w.w3c_trace_id AND o.span_id = w.parent_span_id
    ANTI JOIN (SELECT DISTINCT trace_id, process_id, start_ts_ns, thread_id FROM queries) q
        ON q.trace_id = w.trace_id AND q.process_id = w.process_id AND q.start_ts_ns = w.start_ts_ns AND q.thread_id = w.thread_id
    WHERE w.w3c_trace_id IS NOT NULL AND w.span_id IS NOT NULL
), sided AS (
    SELECT w.*, k.side FROM work w JOIN known k ON k.source = w.source
    UNION ALL
    SELECT w.*, 'server' FROM work w SEMI JOIN root r ON r.trace_id = w.trace_id AND r.process_id = w.process_id AND r.w3c_trace_id = w.w3c_trace_id
        AND r.span_id = w.span_id AND r.start_ts_ns = w.start_ts_ns
)
SELECT a.trace_id, a.process_id, a.side, a.source, a.start_ts, a.start_ts_ns, a.duration_ns / 1e6 AS duration_ms, a.result,
       a.status_code, a.outcome, a.start_fields, a.thread_id, a.callsite_id, a.activity_id, a.parent_activity_id,
       a.end_ts_ns, a.end_thread_id, a.end_fields, a.w3c_trace_id, a.span_id, a.parent_span_id
FROM sided a;
