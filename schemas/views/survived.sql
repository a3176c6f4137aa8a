-- What became of the object at an address in a collection: alive, moved, dead, not_collected (its generation was not),
-- never_collected (it is in the non-GC heap), or unknown; and where it is after it (NULL when it is dead or that is not known).
-- An address is a number or a text such as '0x7f3b2c001020'; DuckDB has no numbers in hexadecimal.
-- survived(12, '0x7f3b2c001020'), with several recordings survived('app', 12, '0x7f3b2c001020').
-- needs: gc, gc_generation_range, gc_surviving_range, gc_moved_range
CREATE OR REPLACE MACRO unsigned_bits(number) AS number::HUGEINT + CASE WHEN number < 0 THEN 18446744073709551616 ELSE 0 END;
CREATE OR REPLACE MACRO address_bits(address) AS
    unsigned_bits(coalesce(try_cast(address AS HUGEINT), try_cast(address::VARCHAR AS UBIGINT)));
CREATE OR REPLACE MACRO holds(start, length, address) AS
    unsigned_bits(start) <= address_bits(address)
    AND address_bits(address) < unsigned_bits(start) + unsigned_bits(length);
CREATE OR REPLACE MACRO generation_at_start(recording, gc, address) AS (
    SELECT CASE WHEN count(DISTINCT b.generation) = 1 THEN min(b.generation) END FROM gc_generation_range b
    WHERE b.trace_id = recording AND b.gc_id = gc AND b.phase = 'start' AND holds(b.range_start, b.range_length, address));
-- Of several ranges that hold an address, one that survived where it was comes first, then the one that begins first.
CREATE OR REPLACE MACRO survivor_at(recording, gc, address) AS (
    SELECT arg_min(u.now, u.start) FROM (
        SELECT -1::HUGEINT AS start, address_bits(address) AS now FROM gc_surviving_range s
        WHERE s.trace_id = recording AND s.gc_id = gc AND holds(s.range_start, s.range_length, address)
        UNION ALL
        SELECT unsigned_bits(m.old_range_start),
               min(address_bits(address) - unsigned_bits(m.old_range_start) + unsigned_bits(m.new_range_start))
        FROM gc_moved_range m
        WHERE m.trace_id = recording AND m.gc_id = gc AND holds(m.old_range_start, m.range_length, address)
        GROUP BY m.old_range_start) u);
CREATE OR REPLACE MACRO behind_clamped(recording, gc, address) AS (
    SELECT coalesce(max(n.start) FILTER (WHERE n.kind = 'clamped') = max(n.start) AND max(n.start) >= (
        SELECT min(unsigned_bits(b.range_start)) FROM gc_generation_range b
        WHERE b.trace_id = recording AND b.gc_id = gc AND b.phase = 'start' AND holds(b.range_start, b.range_length, address)), false)
    FROM (SELECT unsigned_bits(s.range_start) AS start, s.length_kind AS kind FROM gc_surviving_range s
          WHERE s.trace_id = recording AND s.gc_id = gc AND unsigned_bits(s.range_start) <= address_bits(address)
          UNION ALL
          SELECT unsigned_bits(m.old_range_start), m.length_kind FROM gc_moved_range m
          WHERE m.trace_id = recording AND m.gc_id = gc AND unsigned_bits(m.old_range_start) <= address_bits(address)) n);
CREATE OR REPLACE MACRO survived_in(recording, gc, address) AS (
    SELECT CASE
        WHEN c.now = address_bits(address) THEN 'alive'
        WHEN c.now IS NOT NULL THEN 'moved'
        WHEN c.before = 5 THEN 'never_collected'
        WHEN c.before IS NULL OR c.generation IS NULL THEN 'unknown'
        WHEN c.generation < 2 AND c.before > c.generation THEN 'not_collected'
        WHEN c.generation >= 2 AND c.before < 2 AND c.kind <> 'blocking' THEN 'not_collected'
        WHEN c.generation >= 2 AND c.before < 2 AND c.kind IS NULL THEN 'unknown'
        WHEN NOT c.complete OR c.ranges = 0 OR c.behind THEN 'unknown'
        ELSE 'dead' END
    FROM (SELECT max(c.generation) AS generation, max(c.kind) AS kind, bool_and(c.complete) AS complete,
                 sum(c.surviving_range_count + c.moved_range_count) AS ranges, survivor_at(recording, gc, address) AS now,
                 generation_at_start(recording, gc, address) AS before, behind_clamped(recording, gc, address) AS behind
          FROM gc c WHERE c.trace_id = recording AND c.gc_id = gc) c);
CREATE OR REPLACE MACRO address_after_in(recording, gc, address) AS (
    CASE WHEN survived_in(recording, gc, address) IN ('not_collected', 'never_collected') THEN address_bits(address)::UBIGINT
         ELSE try_cast(survivor_at(recording, gc, address) AS UBIGINT) END);
CREATE OR REPLACE MACRO survived
    (gc, address) AS survived_in(only_trace(), gc, address),
    (recording, gc, address) AS survived_in(recording, gc, address);
CREATE OR REPLACE MACRO address_after
    (gc, address) AS address_after_in(only_trace(), gc, address),
    (recording, gc, address) AS address_after_in(recording, gc, address);
