//! Puts recordings whose rows are in memory into a dataset: as packs, which compaction would have made of their files.

use std::collections::hash_map::Entry as Slot;
use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;

use arrow_schema::SchemaRef;
use tracequet_dataset::error::{Error, Result};

use super::made::{Files, Made};
use super::take_out::remove_recordings;
use crate::files::{HeldTable, HeldTables, Lake, MergedTable, Put, Workspace, merged_schema};
use tracequet_dataset::format::{Recorded, TableInfo};
use tracequet_dataset::write::Compression;
use tracequet_trace::parallel;

/// The number of times that a pack is made again because other writers have put recordings of it meanwhile.
const ATTEMPTS: usize = 10;

/// A recording whose rows are in memory.
#[derive(Debug)]
pub struct HeldRecording {
    /// The entry of the recording.
    pub recorded: Recorded,
    /// The tables of the recording.
    pub tables: HeldTables,
    /// Recordings that go when it comes.
    pub replaced: Vec<String>,
}

/// The options of packs.
#[derive(Clone, Copy, Debug)]
pub struct PackOptions {
    /// The version of the tables.
    pub schema_version: u32,
    /// Their compression.
    pub compression: Compression,
    /// Threads that write tables.
    pub threads: usize,
}

/// Puts recordings into a dataset, as one pack; recordings whose tables have other columns than those before them, as
/// another one. Their order does not matter. Returns what became of each, and the tables that were written.
pub fn put_held(lake: &Lake, recordings: &[HeldRecording], options: PackOptions) -> Result<(Vec<Put>, Vec<TableInfo>)> {
    let replaced: Vec<String> = recordings.iter().flat_map(|one| &one.replaced).cloned().collect();
    if !replaced.is_empty() {
        remove_recordings(lake, &replaced, options.threads)?;
    }
    let mut ordered: Vec<(usize, &HeldRecording)> = recordings.iter().enumerate().collect();
    ordered.sort_by_key(|(_, one)| &one.recorded.trace_id);
    let mut puts = vec![Put::Done; recordings.len()];
    let mut written: BTreeMap<String, TableInfo> = BTreeMap::new();
    for mut coming in by_columns(ordered) {
        let mut attempts = 0;
        while !coming.is_empty() {
            let made = make(lake, &coming, options)?;
            let there = lake.add_pack(&made.pack, &made.files)?;
            if there.is_empty() {
                for table in &made.pack.tables {
                    let sum = written.entry(table.name.clone()).or_insert_with(|| TableInfo::new(&table.name, 0, 0));
                    sum.rows = sum.rows.saturating_add(table.rows());
                    sum.bytes = sum.bytes.saturating_add(table.bytes());
                }
                break;
            }
            coming.retain(|(place, one)| {
                let Some(hash) = there.get(&one.recorded.trace_id) else { return true };
                if let Some(put) = puts.get_mut(*place) {
                    *put = Put::beside(hash.as_deref(), Some(one.recorded.hash()));
                }
                false
            });
            attempts += 1;
            if attempts == ATTEMPTS {
                let source = std::io::Error::other("other programs keep adding the same recordings");
                return Err(Error::Io { path: lake.storage().shown(), source });
            }
        }
    }
    Ok((puts, written.into_values().collect()))
}

/// Recordings, each with its place among those that are put.
type Coming<'r> = Vec<(usize, &'r HeldRecording)>;

/// Groups of recordings whose tables have the same columns, each in the order of keys. A recording joins the first
/// group with whose columns those of its tables agree.
fn by_columns(mut rest: Coming<'_>) -> Vec<Coming<'_>> {
    let mut groups = Vec::new();
    while !rest.is_empty() {
        let mut columns: HashMap<&str, SchemaRef> = HashMap::new();
        let (mut group, mut others) = (Vec::new(), Vec::new());
        for (place, one) in rest {
            let own = || one.tables.iter().filter(|table| !table.batches.is_empty());
            let agrees = own().all(|table| {
                let known = columns.get(table.spec.name.as_str());
                known.is_none_or(|known| *known == merged_schema(&table.spec.schema))
            });
            if !agrees {
                others.push((place, one));
                continue;
            }
            for table in own() {
                if let Slot::Vacant(free) = columns.entry(&table.spec.name) {
                    free.insert(merged_schema(&table.spec.schema));
                }
            }
            group.push((place, one));
        }
        groups.push(group);
        rest = others;
    }
    groups
}

/// A table of a pack: its name, and what each recording has of it.
type Table<'r> = (&'r str, Vec<&'r HeldTable>);

/// Makes a pack of recordings, which are in the order of their keys.
fn make(lake: &Lake, coming: &[(usize, &HeldRecording)], options: PackOptions) -> Result<Made> {
    let mut tables: BTreeMap<&str, Vec<&HeldTable>> = BTreeMap::new();
    for table in coming.iter().flat_map(|(_, one)| one.tables.iter()) {
        tables.entry(&table.spec.name).or_default().push(table);
    }
    let tables: Vec<Table<'_>> = tables.into_iter().collect();
    let names: Vec<&str> = tables.iter().map(|(name, _)| *name).collect();
    let workspace = Workspace::inside(lake.storage().folder())?;
    let files = parallel::each(options.threads, &tables, |number, (_, parts)| {
        write(parts, workspace.path().join(format!("table-{number}")), options)
    })?;
    let members = coming.iter().map(|(_, one)| {
        let own = one.tables.iter().map(|table| (table.spec.name.as_str(), table.rows()));
        (one.recorded.clone(), own.collect())
    });
    Made::of(options.schema_version, Vec::new(), &names, files, members, workspace)
}

/// Writes a table of several recordings, one after the other.
fn write(parts: &[&HeldTable], stem: PathBuf, options: PackOptions) -> Result<Files> {
    let with_rows = || parts.iter().filter(|table| !table.batches.is_empty());
    let Some(first) = with_rows().next() else {
        return match parts.first().filter(|table| MergedTable::has_file_without_rows(&table.spec.name)) {
            Some(HeldTable { spec, .. }) => {
                MergedTable::without_rows(&spec.name, stem, &spec.schema, options.schema_version)
            }
            None => Ok(Files::new()),
        };
    };
    let rows = with_rows().map(|table| table.batches.as_slice());
    let mut merged = MergedTable::of_rows(&first.spec, stem, rows, options.compression, options.schema_version)?;
    for table in with_rows() {
        for batch in &table.batches {
            merged.add(batch.clone())?;
        }
        merged.end_of_recording()?;
    }
    merged.finish()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::types::Int32Type;
    use arrow_array::{ArrayRef, DictionaryArray, RecordBatch, StringArray, UInt64Array};

    use super::super::take_out;
    use super::*;
    use crate::files::Directory;
    use tracequet_dataset::table_spec::{Encoding, TableSpec};
    use tracequet_dataset::write::TableSink;

    const OPTIONS: PackOptions = PackOptions { schema_version: 7, compression: Compression::Zstd(1), threads: 2 };

    fn batch(key: &str, column: ArrayRef) -> RecordBatch {
        let keys: DictionaryArray<Int32Type> = (0..column.len()).map(|_| Some(key)).collect();
        RecordBatch::try_from_iter([("trace_id", Arc::new(keys) as ArrayRef), ("n", column)]).unwrap()
    }

    fn held(key: &str, tables: &[(&str, ArrayRef)]) -> HeldRecording {
        let mut sink = HeldTables::default();
        for (name, column) in tables {
            let rows = batch(key, column.clone());
            let spec = TableSpec {
                name: (*name).into(),
                schema: rows.schema(),
                encodings: vec![Encoding::Dictionary, Encoding::Plain],
                sorted_by: Vec::new(),
            };
            let table = sink.table(spec).unwrap();
            sink.write(table, rows).unwrap();
        }
        sink.close_tables(&[]).unwrap();
        let recorded = Recorded {
            trace_id: key.into(),
            sha256: format!("hash of {key}"),
            events: Some(1),
            dropped_events: Some(0),
            complete: Some(true),
            schema_version: Some(7),
            ..Recorded::default()
        };
        HeldRecording { recorded, tables: sink, replaced: Vec::new() }
    }

    fn numbers(values: &[u64]) -> ArrayRef {
        Arc::new(UInt64Array::from(values.to_vec()))
    }

    fn lake(folder: &std::path::Path) -> Lake {
        let lake = Lake::of(Directory::new(folder, false), 7);
        lake.storage().open().unwrap();
        lake
    }

    /// For each pack, its recordings and their rows of a table.
    fn packs(lake: &Lake, table: &str) -> Vec<Vec<(String, u64)>> {
        let names = lake.storage().packs().unwrap();
        let packs = names.iter().map(|name| lake.pack(name).unwrap().unwrap().unwrap());
        let mut all: Vec<Vec<(String, u64)>> = packs
            .map(|pack| {
                let rows = |member: &tracequet_dataset::format::Member| {
                    let own = member.rows.iter().find(|(place, _)| pack.table(*place).unwrap().name == table);
                    (member.key().to_owned(), own.map_or(0, |(_, rows)| *rows))
                };
                pack.members.iter().map(rows).collect()
            })
            .collect();
        all.sort();
        all
    }

    #[test]
    fn recordings_become_a_pack_and_those_with_other_columns_another() {
        let folder = tempfile::tempdir().unwrap();
        let lake = lake(folder.path());
        let texts: ArrayRef = Arc::new(StringArray::from(vec!["x", "y"]));
        let recordings = [
            held("c-1", &[("gc", numbers(&[5]))]),
            held("a-1", &[("gc", numbers(&[1, 2, 3])), ("event/P/E", numbers(&[1]))]),
            held("b-1", &[("gc", texts)]),
            held("d-1", &[("gc", numbers(&[])), ("event/P/E", numbers(&[7, 8]))]),
        ];
        let (puts, written) = put_held(&lake, &recordings, OPTIONS).unwrap();
        assert_eq!(puts, [Put::Done; 4]);
        let rows: Vec<(&str, u64)> = written.iter().map(|table| (table.name.as_str(), table.rows)).collect();
        assert_eq!(rows, [("event/P/E", 3), ("gc", 6)]);
        let expected = |keys: &[(&str, u64)]| keys.iter().map(|(key, rows)| ((*key).to_owned(), *rows)).collect();
        let expected: [Vec<(String, u64)>; 2] =
            [expected(&[("a-1", 3), ("c-1", 1), ("d-1", 0)]), expected(&[("b-1", 2)])];
        assert_eq!(packs(&lake, "gc"), expected);
        // Nothing is left of the way there.
        let left = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name());
        let left: Vec<_> = left.filter(|name| name.to_string_lossy().starts_with('.')).collect();
        assert!(left.is_empty(), "{left:?}");
    }

    #[test]
    fn what_another_writer_has_put_stays_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let lake = lake(folder.path());
        put_held(&lake, &[held("a-1", &[("gc", numbers(&[1]))])], OPTIONS).unwrap();
        let mut other = held("a-1", &[("gc", numbers(&[2]))]);
        other.recorded.sha256 = "of something else".into();
        let both = [held("b-1", &[("gc", numbers(&[3]))]), held("a-1", &[("gc", numbers(&[4, 5]))])];
        assert_eq!(put_held(&lake, &both, OPTIONS).unwrap().0, [Put::Done, Put::WasThere]);
        assert_eq!(put_held(&lake, &[other], OPTIONS).unwrap().0, [Put::IsTaken]);
        let expected = [vec![("a-1".to_owned(), 1)], vec![("b-1".to_owned(), 1)]];
        assert_eq!(packs(&lake, "gc"), expected);
        // One that replaces it takes its place, in whatever pack that is.
        let mut again = held("a-1", &[("gc", numbers(&[6, 7, 8]))]);
        again.replaced = vec!["a-1".into()];
        assert_eq!(put_held(&lake, &[again], OPTIONS).unwrap().0, [Put::Done]);
        assert_eq!(packs(&lake, "gc"), [vec![("a-1".to_owned(), 3)], vec![("b-1".to_owned(), 1)]]);
    }

    #[test]
    fn the_order_in_which_recordings_come_changes_nothing() {
        let recordings = || vec![held("a-1", &[("gc", numbers(&[1]))]), held("b-1", &[("gc", numbers(&[2, 3]))])];
        let bytes = |recordings: &[HeldRecording]| {
            let folder = tempfile::tempdir().unwrap();
            let lake = lake(folder.path());
            put_held(&lake, recordings, OPTIONS).unwrap();
            let [name] = &lake.storage().packs().unwrap()[..] else { panic!("one pack") };
            std::fs::read(lake.storage().copy(&tracequet_dataset::format::paths::packed("gc", name, 0)).unwrap())
                .unwrap()
        };
        let there = bytes(&recordings());
        assert_eq!(bytes(&recordings().into_iter().rev().collect::<Vec<_>>()), there);
    }

    /// A program that adds a pack moves its files when the entry is there. One that takes a recording out of the pack
    /// just then, or when the other was killed, reads no file that is about to move.
    #[test]
    fn a_pack_is_in_its_place_before_it_is_rewritten() {
        let folder = tempfile::tempdir().unwrap();
        let lake = lake(folder.path());
        let recordings = [held("a-1", &[("gc", numbers(&[1]))]), held("b-1", &[("gc", numbers(&[2, 3]))])];
        put_held(&lake, &recordings, OPTIONS).unwrap();
        let [name] = &lake.storage().packs().unwrap()[..] else { panic!("one pack") };
        let place = tracequet_dataset::format::paths::folder("gc", name);
        let waiting = folder.path().join(tracequet_dataset::format::paths::hidden(name)).join("new").join(&place);
        std::fs::create_dir_all(waiting.parent().unwrap()).unwrap();
        std::fs::rename(folder.path().join(&place), &waiting).unwrap();
        lake.settled().unwrap();
        assert!(folder.path().join(&place).is_dir() && !waiting.exists());
        take_out(&lake, &["a-1".to_owned()], 1).unwrap();
        assert_eq!(packs(&lake, "gc"), [vec![("b-1".to_owned(), 2)]]);
    }
}
