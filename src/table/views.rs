//! `views.sql`: every table as a DuckDB view, and the questions that are asked most.

use std::fmt::Write;

const GC_SUMMARY: &str = "-- Collections with their pauses and what survived them (NULL when no range was recorded).
CREATE OR REPLACE VIEW gc_summary AS
SELECT gc_id, gc_number, generation, kind, reason, start_ts, complete, pause_ns / 1e6 AS pause_ms,
       promoted_bytes, size_before_bytes, size_after_bytes,
       CASE WHEN surviving_range_count + moved_range_count > 0 THEN surviving_bytes + moved_bytes END AS survived_bytes,
       surviving_range_count + moved_range_count AS range_count
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

const LABELS: &str = "
-- The recordings with their labels: FROM labelled_trace WHERE labels['branch'] = 'main'.
CREATE OR REPLACE VIEW labelled_trace AS
SELECT t.*, coalesce(l.labels, MAP {}) AS labels
FROM trace t LEFT JOIN (SELECT trace_id, map_from_entries(list({'key': name, 'value': value} ORDER BY name)) AS labels
                        FROM trace_label GROUP BY trace_id) l USING (trace_id);
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

/// `@` before `gc` and before a column stands for the recording, where there are several.
const SURVIVED: &str = "-- What became of the object at an address in a collection: alive, moved, dead, not_collected (its generation was not),
-- never_collected (it is in the non-GC heap), or unknown; and where it is after it (NULL when it is dead or that is not known).
-- An address is a number or a text such as '0x7f3b2c001020'; DuckDB has no numbers in hexadecimal.
CREATE OR REPLACE MACRO unsigned_bits(number) AS number::HUGEINT + CASE WHEN number < 0 THEN 18446744073709551616 ELSE 0 END;
CREATE OR REPLACE MACRO address_bits(address) AS
    unsigned_bits(coalesce(try_cast(address AS HUGEINT), try_cast(address::VARCHAR AS UBIGINT)));
CREATE OR REPLACE MACRO holds(start, length, address) AS
    unsigned_bits(start) <= address_bits(address)
    AND address_bits(address) < unsigned_bits(start) + unsigned_bits(length);
CREATE OR REPLACE MACRO generation_at_start(@gc, address) AS (
    SELECT CASE WHEN count(DISTINCT b.generation) = 1 THEN min(b.generation) END FROM gc_generation_range b
    WHERE @b.gc_id = gc AND b.phase = 'start' AND holds(b.range_start, b.range_length, address));
CREATE OR REPLACE MACRO survivor_at(@gc, address) AS (
    SELECT min(u.now) FROM (
        SELECT address_bits(address) AS now FROM gc_surviving_range s
        WHERE @s.gc_id = gc AND holds(s.range_start, s.range_length, address)
        UNION ALL
        SELECT address_bits(address) - unsigned_bits(m.old_range_start) + unsigned_bits(m.new_range_start)
        FROM gc_moved_range m
        WHERE @m.gc_id = gc AND holds(m.old_range_start, m.range_length, address)) u);
CREATE OR REPLACE MACRO behind_clamped(@gc, address) AS (
    SELECT coalesce(max(n.start) FILTER (WHERE n.kind = 'clamped') = max(n.start) AND max(n.start) >= (
        SELECT min(unsigned_bits(b.range_start)) FROM gc_generation_range b
        WHERE @b.gc_id = gc AND b.phase = 'start' AND holds(b.range_start, b.range_length, address)), false)
    FROM (SELECT unsigned_bits(s.range_start) AS start, s.length_kind AS kind FROM gc_surviving_range s
          WHERE @s.gc_id = gc AND unsigned_bits(s.range_start) <= address_bits(address)
          UNION ALL
          SELECT unsigned_bits(m.old_range_start), m.length_kind FROM gc_moved_range m
          WHERE @m.gc_id = gc AND unsigned_bits(m.old_range_start) <= address_bits(address)) n);
CREATE OR REPLACE MACRO survived(@gc, address) AS (
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
                 sum(c.surviving_range_count + c.moved_range_count) AS ranges, survivor_at(@gc, address) AS now,
                 generation_at_start(@gc, address) AS before, behind_clamped(@gc, address) AS behind
          FROM gc c WHERE @c.gc_id = gc) c);
CREATE OR REPLACE MACRO address_after(@gc, address) AS (
    CASE WHEN survived(@gc, address) IN ('not_collected', 'never_collected') THEN address_bits(address)::UBIGINT
         ELSE try_cast(survivor_at(@gc, address) AS UBIGINT) END);
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
    for name in tables.iter().filter(|_| hive) {
        // The layout is a part of the name. Where there is only one, the name without it is good, too.
        let Some(event) = without_layout(name) else { continue };
        let layouts = tables.iter().filter(|other| without_layout(other) == Some(event) || **other == event).count();
        if layouts == 1 {
            let (view, of) = (event.replace('"', "\"\""), name.replace('"', "\"\""));
            writeln!(out, "CREATE OR REPLACE VIEW \"{view}\" AS SELECT * FROM \"{of}\";").ok();
        }
    }
    if hive && tables.contains(&"trace") && tables.contains(&"trace_label") {
        out.push_str(LABELS);
    }
    let have = |names: &[&str]| names.iter().all(|n| tables.contains(n));
    // Numbers of collections and call sites count within one recording only.
    for (needs, view) in [
        (&["gc"][..], GC_SUMMARY),
        (&["gc_surviving_range", "gc_moved_range"][..], SURVIVAL),
        (&["allocation"][..], ALLOCATION),
        (&["heap_object", "type"][..], HEAP),
        (&["callsite"][..], STACK),
    ] {
        if !hive && have(needs) {
            out.push('\n');
            out.push_str(view);
        }
    }
    if have(&["gc", "gc_generation_range", "gc_surviving_range", "gc_moved_range"]) {
        out.push('\n');
        out.push_str(&survived(hive));
    }
    out
}

/// The name of an event's table without the layout, if it has one.
fn without_layout(name: &str) -> Option<&str> {
    let (event, layout) = name.rsplit_once('.')?;
    let is_hash = layout.len() == 8 && layout.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    (is_hash && event.starts_with("event/")).then_some(event)
}

/// The macros about objects; with several recordings their first argument is a `trace_id`.
fn survived(hive: bool) -> String {
    if !hive {
        return SURVIVED.replace('@', "");
    }
    let mut text = SURVIVED.replace("@gc", "recording, gc");
    for table in ["b", "s", "m", "c"] {
        text = text.replace(&format!("@{table}."), &format!("{table}.trace_id = recording AND {table}."));
    }
    text
}
