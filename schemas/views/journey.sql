-- What became of an object in a collection and in all later ones, as long as it is known where it is: alive (where it was), moved,
-- not_collected, never_collected, and then dead or unknown, with the address that it has then. As `tracequet survived --follow`.
-- FROM journey(12, '0x7f3b2c001020'), with several recordings FROM journey('app', 12, '0x7f3b2c001020').
-- An object is looked for in all later ranges at once, and behind each move again: a scan of the ranges for each move.
-- needs: gc, gc_generation_range, gc_surviving_range, gc_moved_range, survived
-- Addresses are compared as the columns have them: of `--address-type int64` the upper half is negative.
CREATE OR REPLACE MACRO stored_bits(address) AS
    address_bits(address) - CASE WHEN typeof((SELECT b.range_start FROM gc_generation_range b LIMIT 1)) = 'BIGINT'
        AND address_bits(address) >= 9223372036854775808 THEN 18446744073709551616 ELSE 0 END;
CREATE OR REPLACE MACRO journey_in(recording, gc, object) AS TABLE
WITH RECURSIVE leg AS (
    SELECT 0 AS number, c.gc_id::BIGINT - 1 AS gc_id, 'moved' AS fate, stored_bits(object)::HUGEINT AS address_before,
           stored_bits(object)::HUGEINT AS address, NULL::STRUCT(gc_id BIGINT, fate VARCHAR)[] AS passed,
           c.process_id, c.clr_instance_id
    FROM gc c WHERE c.trace_id = recording AND c.gc_id = gc
    UNION ALL
    (WITH here AS (
        SELECT * FROM leg WHERE fate = 'moved' AND address <= 18446744073709551615
    ), hit AS (
        SELECT gc_id, min(place).now AS now FROM (
            SELECT s.gc_id, {'kind': 0, 'start': s.range_start, 'now': h.address} AS place
            FROM gc_surviving_range s JOIN here h ON s.trace_id = recording AND s.gc_id > h.gc_id
                AND h.address >= s.range_start AND h.address < s.range_start::HUGEINT + s.range_length
            UNION ALL
            SELECT m.gc_id, {'kind': 1, 'start': m.old_range_start, 'now': m.new_range_start + (h.address - m.old_range_start)}
            FROM gc_moved_range m JOIN here h ON m.trace_id = recording AND m.gc_id > h.gc_id
                AND h.address >= m.old_range_start AND h.address < m.old_range_start::HUGEINT + m.range_length)
        GROUP BY gc_id
    ), lies AS (
        SELECT b.gc_id, CASE WHEN count(DISTINCT b.generation) = 1 THEN min(b.generation) END AS generation
        FROM gc_generation_range b JOIN here h ON b.trace_id = recording AND b.gc_id > h.gc_id AND b.phase = 'start'
            AND h.address >= b.range_start AND h.address < b.range_start::HUGEINT + b.range_length
        GROUP BY b.gc_id
    ), fates AS (
        SELECT c.gc_id, i.now, h.number, h.address, h.process_id, h.clr_instance_id,
               CASE WHEN i.now = h.address THEN 'alive'
                    WHEN i.now IS NOT NULL THEN 'moved'
                    WHEN l.generation = 5 THEN 'never_collected'
                    WHEN c.generation < 2 AND l.generation > c.generation THEN 'not_collected'
                    WHEN c.generation >= 2 AND l.generation < 2 AND c.kind <> 'blocking' THEN 'not_collected'
                    ELSE 'end' END AS fate
        FROM gc c
        JOIN here h ON c.trace_id = recording AND c.gc_id > h.gc_id AND c.process_id = h.process_id
            AND c.clr_instance_id IS NOT DISTINCT FROM h.clr_instance_id
        LEFT JOIN hit i ON i.gc_id = c.gc_id
        LEFT JOIN lies l ON l.gc_id = c.gc_id
    ), ended AS (
        SELECT min(gc_id) AS gc_id FROM fates WHERE fate IN ('moved', 'end')
    )
    SELECT any_value(f.number) + 1, any_value(e.gc_id)::BIGINT, coalesce(any_value(f.fate) FILTER (f.gc_id = e.gc_id), 'all'),
           any_value(f.address), coalesce(any_value(f.now) FILTER (f.gc_id = e.gc_id), any_value(f.address)),
           list({'gc_id': f.gc_id::BIGINT, 'fate': f.fate}) FILTER (e.gc_id IS NULL OR f.gc_id < e.gc_id),
           any_value(f.process_id), any_value(f.clr_instance_id)
    FROM fates f, ended e HAVING count(*) > 0)
)
SELECT step.gc_id, step.fate, printf('0x%x', unsigned_bits(address_before)::UBIGINT) AS address
FROM (SELECT address_before, unnest(passed) AS step FROM leg)
UNION ALL
SELECT gc_id, 'moved', printf('0x%x', try_cast(unsigned_bits(address) AS UBIGINT)) FROM leg WHERE fate = 'moved' AND number > 0
UNION ALL
SELECT gc_id, survived_in(recording, gc_id, address_before), NULL FROM leg WHERE fate = 'end'
ORDER BY gc_id;
CREATE OR REPLACE MACRO journey
    (gc, object) AS TABLE (FROM journey_in(only_trace(), gc, object)),
    (recording, gc, object) AS TABLE (FROM journey_in(recording, gc, object));
