-- How much of each generation came through each collection of it: bytes at its start, bytes that survived, and their share.
-- Of collections that are complete and list ranges.
-- needs: gc, gc_generation_range, survival_by_generation
CREATE OR REPLACE VIEW survival_curve AS
SELECT g.trace_id, g.gc_id, g.gc_number, g.start_ts, b.generation, b.bytes_before,
       try_cast(coalesce(s.survived_bytes, 0) AS BIGINT) AS survived_bytes,
       round(100 * coalesce(s.survived_bytes, 0) / b.bytes_before, 2) AS survived_percent
FROM gc g
JOIN (SELECT trace_id, gc_id, generation, try_cast(sum(range_length) AS BIGINT) AS bytes_before
      FROM gc_generation_range WHERE phase = 'start' GROUP BY ALL) b ON b.trace_id = g.trace_id AND b.gc_id = g.gc_id
LEFT JOIN (SELECT trace_id, gc_id, generation_before AS generation, sum(survived_bytes) AS survived_bytes
           FROM survival_by_generation GROUP BY ALL) s
    ON s.trace_id = g.trace_id AND s.gc_id = g.gc_id AND s.generation = b.generation
WHERE g.complete AND g.surviving_range_count + g.moved_range_count > 0 AND b.bytes_before > 0
  AND (b.generation <= g.generation OR g.generation >= 2) AND b.generation < 5;
