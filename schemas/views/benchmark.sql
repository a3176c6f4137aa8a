-- What an operation of each benchmark costs (BenchmarkDotNet), by its actual iterations alone: without jitting, pilot, warm-up and overhead.
-- operation_ns is the median of the iterations without the median of the overhead. allocated_bytes is made of the samples that allocation_source
-- names. gen0, gen1 and gen2 are collections in 1000 operations, pause_ns is pauses in one. NULL where the recording has no such events at all.
-- needs: benchmark_iteration, allocation, allocation_source, gc
CREATE OR REPLACE VIEW benchmark AS
WITH actual AS MATERIALIZED (
    SELECT trace_id, process_id, benchmark, operations, start_ts_ns, end_ts_ns, operation_ns FROM benchmark_iteration
    WHERE stage = 'actual' AND kind = 'workload' AND end_ts_ns IS NOT NULL
), overhead AS (
    SELECT trace_id, process_id, benchmark, median(operation_ns) AS operation_ns FROM benchmark_iteration
    WHERE stage = 'actual' AND kind = 'overhead' GROUP BY ALL
), measured AS (
    SELECT trace_id, process_id, benchmark, count(*) AS iterations, sum(operations)::BIGINT AS operations, median(operation_ns) AS operation_ns,
           stddev_samp(operation_ns) AS deviation_ns
    FROM actual GROUP BY ALL
), allocated AS (
    SELECT b.trace_id, b.process_id, b.benchmark, sum(a.allocation_bytes) AS bytes
    FROM actual b JOIN allocation a ON a.trace_id = b.trace_id AND a.process_id = b.process_id AND a.ts_ns >= b.start_ts_ns AND a.ts_ns < b.end_ts_ns
    SEMI JOIN allocation_source u ON u.trace_id = a.trace_id AND u.source = a.source
    GROUP BY ALL
), collected AS (
    SELECT b.trace_id, b.process_id, b.benchmark, count(*) FILTER (g.generation = 0) AS gen0, count(*) FILTER (g.generation = 1) AS gen1,
           count(*) FILTER (g.generation = 2) AS gen2, sum(g.pause_ns) AS pause_ns
    FROM actual b JOIN gc g ON g.trace_id = b.trace_id AND g.process_id = b.process_id AND g.start_ts_ns >= b.start_ts_ns AND g.start_ts_ns < b.end_ts_ns
    GROUP BY ALL
), recorded AS (
    SELECT (SELECT list(DISTINCT trace_id) FROM allocation_source) AS allocations, (SELECT list(DISTINCT trace_id) FROM gc) AS gcs
)
SELECT m.trace_id, m.process_id, m.benchmark, m.iterations, m.operations, m.operation_ns - coalesce(o.operation_ns, 0) AS operation_ns, m.deviation_ns,
       CASE WHEN list_contains(r.allocations, m.trace_id) THEN coalesce(a.bytes, 0) / m.operations END AS allocated_bytes,
       CASE WHEN list_contains(r.gcs, m.trace_id) THEN 1000.0 * coalesce(c.gen0, 0) / m.operations END AS gen0,
       CASE WHEN list_contains(r.gcs, m.trace_id) THEN 1000.0 * coalesce(c.gen1, 0) / m.operations END AS gen1,
       CASE WHEN list_contains(r.gcs, m.trace_id) THEN 1000.0 * coalesce(c.gen2, 0) / m.operations END AS gen2,
       CASE WHEN list_contains(r.gcs, m.trace_id) THEN coalesce(c.pause_ns, 0) / m.operations END AS pause_ns
FROM measured m CROSS JOIN recorded r
LEFT JOIN overhead o ON o.trace_id = m.trace_id AND o.process_id = m.process_id AND o.benchmark IS NOT DISTINCT FROM m.benchmark
LEFT JOIN allocated a ON a.trace_id = m.trace_id AND a.process_id = m.process_id AND a.benchmark IS NOT DISTINCT FROM m.benchmark
LEFT JOIN collected c ON c.trace_id = m.trace_id AND c.process_id = m.process_id AND c.benchmark IS NOT DISTINCT FROM m.benchmark;
