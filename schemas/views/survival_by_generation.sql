-- Bytes that survived each collection, by the generation they came from and the one they went to.
-- needs: gc_surviving_range, gc_moved_range
CREATE OR REPLACE VIEW survival_by_generation AS
SELECT trace_id, gc_id, generation_before, generation_after, count(*) AS range_count, try_cast(sum(range_length) AS BIGINT) AS survived_bytes
FROM (SELECT trace_id, gc_id, generation_before, generation_after, range_length FROM gc_surviving_range
      UNION ALL
      SELECT trace_id, gc_id, generation_before, generation_after, range_length FROM gc_moved_range)
GROUP BY ALL;
