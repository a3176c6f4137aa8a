-- Which of your own methods the actual iterations of each benchmark run (BenchmarkDotNet), by samples of the processor. share is the part of all
-- samples of threads that ran meanwhile.
-- needs: benchmark_iteration, cpu_sample, site
CREATE OR REPLACE VIEW benchmark_by_method AS
WITH sampled AS (
    SELECT b.trace_id, b.process_id, b.benchmark, s.own_method, sum(c.sample_count)::BIGINT AS samples
    FROM benchmark_iteration b
    JOIN cpu_sample c ON c.trace_id = b.trace_id AND c.process_id = b.process_id AND c.ts_ns >= b.start_ts_ns AND c.ts_ns < b.end_ts_ns
    JOIN site s ON s.trace_id = c.trace_id AND s.callsite_id = c.callsite_id
    WHERE b.stage = 'actual' AND b.kind = 'workload' AND c.kind IS DISTINCT FROM 'external' AND c.kind IS DISTINCT FROM 'idle'
    GROUP BY ALL
)
SELECT *, samples / sum(samples) OVER (PARTITION BY trace_id, process_id, benchmark) AS share FROM sampled;
