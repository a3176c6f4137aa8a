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
        ] {
            if have(needs) {
                out.push('\n');
                out.push_str(view);
            }
        }
    }
    out
}
