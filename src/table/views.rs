//! `views.sql`: every table as a DuckDB view, and the questions that are asked most.

use std::fmt::Write;

const GC_SUMMARY: &str = "-- Collections with their pauses and what survived them.
CREATE OR REPLACE VIEW gc_summary AS
SELECT gc_id, gc_number, generation, kind, reason, start_ts, pause_ns / 1e6 AS pause_ms,
       promoted_bytes, size_before_bytes, size_after_bytes,
       surviving_bytes + moved_bytes AS survived_bytes, surviving_range_count + moved_range_count AS range_count
FROM gc;
";

const SURVIVAL: &str =
    "-- Bytes that survived each collection, by the generation they came from and the one they went to.
CREATE OR REPLACE VIEW survival_by_generation AS
SELECT gc_id, generation_before, generation_after, count(*) AS range_count, sum(range_length) AS survived_bytes
FROM (SELECT gc_id, generation_before, generation_after, range_length FROM gc_surviving_range
      UNION ALL
      SELECT gc_id, generation_before, generation_after, range_length FROM gc_moved_range)
GROUP BY ALL;
";

const ALLOCATION: &str = "-- Sampled allocations by type.
CREATE OR REPLACE VIEW allocation_by_type AS
SELECT coalesce(type_name, printf('type %x', type_id)) AS type_name, source, count(*) AS sample_count,
       sum(allocation_bytes) AS allocation_bytes
FROM allocation GROUP BY ALL;
";

const HEAP: &str = "-- What was on the heap at each walk, by type.
CREATE OR REPLACE VIEW heap_by_type AS
SELECT o.gc_id, coalesce(nullif(t.name, ''), printf('type %x', o.type_id)) AS type_name,
       count(*) AS object_count, sum(o.size_bytes) AS size_bytes
FROM heap_object o LEFT JOIN type t USING (type_id) GROUP BY ALL;
";

const STACK: &str = "-- The frames of a call stack, innermost first: FROM stack(callsite_id).
CREATE OR REPLACE MACRO stack(id) AS TABLE
WITH RECURSIVE frames AS (
    SELECT * FROM callsite WHERE callsite_id = id
    UNION ALL
    SELECT c.* FROM callsite c JOIN frames f ON c.callsite_id = f.parent_callsite_id
)
SELECT depth, address, callsite_id FROM frames ORDER BY depth DESC;
";

const SURVIVED: &str = "-- What became of the object at an address in a collection: alive, moved, dead, not_collected (its generation was not),
-- or unknown; and where it is after it (NULL when it is dead or that is not known).
CREATE OR REPLACE MACRO generation_at_start(gc, address) AS (
    SELECT CASE WHEN count(DISTINCT b.generation) = 1 THEN min(b.generation) END FROM gc_generation_range b
    WHERE b.gc_id = gc AND b.\"at\" = 'start' AND b.range_start <= address
      AND address < b.range_start::HUGEINT + b.range_length);
CREATE OR REPLACE MACRO survivor_at(gc, address) AS (
    SELECT min(u.now) FROM (
        SELECT address::HUGEINT AS now FROM gc_surviving_range s
        WHERE s.gc_id = gc AND s.range_start <= address AND address < s.range_start::HUGEINT + s.range_length
        UNION ALL
        SELECT address::HUGEINT - m.old_range_start + m.new_range_start FROM gc_moved_range m
        WHERE m.gc_id = gc AND m.old_range_start <= address AND address < m.old_range_start::HUGEINT + m.range_length) u);
CREATE OR REPLACE MACRO survived(gc, address) AS (
    SELECT CASE
        WHEN survivor_at(gc, address) = address THEN 'alive'
        WHEN survivor_at(gc, address) IS NOT NULL THEN 'moved'
        WHEN generation_at_start(gc, address) IS NULL OR c.generation IS NULL THEN 'unknown'
        WHEN c.generation < 2 AND generation_at_start(gc, address) > c.generation THEN 'not_collected'
        WHEN c.generation >= 2 AND generation_at_start(gc, address) < 2 AND c.kind <> 'blocking' THEN 'not_collected'
        WHEN c.generation >= 2 AND generation_at_start(gc, address) < 2 AND c.kind IS NULL THEN 'unknown'
        WHEN NOT c.complete OR c.surviving_range_count + c.moved_range_count = 0 THEN 'unknown'
        WHEN (SELECT arg_max(n.kind, n.start) FROM (
                SELECT s.range_start AS start, s.length_kind AS kind FROM gc_surviving_range s
                WHERE s.gc_id = gc AND s.range_start <= address
                UNION ALL
                SELECT m.old_range_start, m.length_kind FROM gc_moved_range m
                WHERE m.gc_id = gc AND m.old_range_start <= address) n) = 'clamped' THEN 'unknown'
        ELSE 'dead' END
    FROM (SELECT 1) one LEFT JOIN gc c ON c.gc_id = gc);
CREATE OR REPLACE MACRO address_after(gc, address) AS (
    CASE survived(gc, address) WHEN 'not_collected' THEN address::UBIGINT ELSE survivor_at(gc, address)::UBIGINT END);
";

/// The script for a dataset with these tables; `hive` as in `OUT/<table>/trace=<key>/`.
pub fn sql(tables: &[&str], hive: bool) -> String {
    let mut out = String::from(
        "-- Views over this dataset. In its directory: duckdb -init views.sql\n\
         -- Payload tables of events are views in double quotes: SELECT * FROM \"event/<provider>/<event>\"\n\n",
    );
    for name in tables {
        let view = name.replace('"', "\"\"");
        let path = name.replace('\'', "''");
        let files = if hive { format!("{path}/*/*.parquet") } else { format!("{path}.parquet") };
        writeln!(out, "CREATE OR REPLACE VIEW \"{view}\" AS SELECT * FROM read_parquet('{files}');").ok();
    }
    let have = |names: &[&str]| names.iter().all(|n| tables.contains(n));
    // Numbers of collections and call sites count within one recording only.
    if !hive {
        for (needs, view) in [
            (&["gc"][..], GC_SUMMARY),
            (&["gc_surviving_range", "gc_moved_range"][..], SURVIVAL),
            (&["allocation"][..], ALLOCATION),
            (&["heap_object", "type"][..], HEAP),
            (&["callsite"][..], STACK),
            (&["gc", "gc_generation_range", "gc_surviving_range", "gc_moved_range"], SURVIVED),
        ] {
            if have(needs) {
                out.push('\n');
                out.push_str(view);
            }
        }
    }
    out
}
