-- Iterations of BenchmarkDotNet: of its EventPipe profiler, and of every recording with its engine's events. kind is workload or overhead (the
-- engine's loop around an empty method), stage is jitting, pilot, warmup or actual, operations how often the method was called.
-- needs: activity
CREATE OR REPLACE VIEW benchmark_iteration AS
WITH engine AS MATERIALIZED (
    SELECT trace_id, process_id, name, start_ts_ns, end_ts_ns, duration_ns, thread_id, start_fields
    FROM activity WHERE provider_name = 'BenchmarkDotNet.EngineEventSource'
), iteration AS (
    SELECT * EXCLUDE (name, start_fields), lower(regexp_extract(name, '^(Workload|Overhead)', 1)) AS kind,
           lower(regexp_replace(name, '^(Workload|Overhead)', '')) AS stage, (start_fields ->> '$.totalOperations')::BIGINT AS operations
    FROM engine WHERE name <> 'Benchmark'
)
SELECT i.trace_id, i.process_id, b.start_fields ->> '$.benchmarkName' AS benchmark, i.kind, i.stage,
       row_number() OVER (PARTITION BY i.trace_id, i.process_id, b.start_ts_ns, i.kind, i.stage ORDER BY i.start_ts_ns) AS iteration,
       i.operations, i.start_ts_ns, i.end_ts_ns, i.duration_ns, i.duration_ns / i.operations AS operation_ns, i.thread_id
FROM iteration i ASOF LEFT JOIN (FROM engine WHERE name = 'Benchmark') b
    ON b.trace_id = i.trace_id AND b.process_id = i.process_id AND b.start_ts_ns <= i.start_ts_ns;
