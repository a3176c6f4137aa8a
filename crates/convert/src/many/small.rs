//! The rows of a recording: in memory as long as they are few, where it may come into a pack; else, and from then on, in files of its
//! own.

use arrow_array::RecordBatch;
use tracequet_dataset::error::Result;
use tracequet_dataset::write::{DatasetWriter, TableId, TableSink, TableSpec, WrittenTable};
use tracequet_lake::HeldTables;

/// With more bytes of rows the files of a recording are large enough by themselves.
const MOST_BYTES: u64 = 32 << 20;

/// A sink for a recording of which only its rows show whether it is small. Its files are begun with the first table at the earliest: it
/// may turn out to have none.
pub(crate) struct Small<'m> {
    make: &'m dyn Fn() -> Result<DatasetWriter>,
    /// Whether rows are held in memory.
    holds: bool,
    held: HeldTables,
    bytes: u64,
    apart: Option<DatasetWriter>,
}

/// The tables of a recording, small or large.
pub(crate) enum Grown {
    /// Tables in memory, and their bytes there.
    Small(HeldTables, u64),
    /// Files of a recording that has become large.
    Large(DatasetWriter),
}

impl<'m> Small<'m> {
    /// One for whose files `make` is called when they are needed. Few rows are held in memory if it `holds` them.
    pub(crate) fn new(make: &'m dyn Fn() -> Result<DatasetWriter>, holds: bool) -> Small<'m> {
        Small { make, holds, held: HeldTables::default(), bytes: 0, apart: None }
    }

    pub(crate) fn into_grown(self) -> Result<Grown> {
        Ok(match self.apart {
            Some(apart) => Grown::Large(apart),
            None if self.holds => Grown::Small(self.held, self.bytes),
            None => Grown::Large((self.make)()?),
        })
    }

    /// Where rows go now. What is in memory is written into files when it becomes too much; there its tables have the same ids.
    fn sink(&mut self) -> Result<&mut dyn TableSink> {
        if self.apart.is_none() && (!self.holds || self.bytes > MOST_BYTES) {
            let mut apart = (self.make)()?;
            for table in std::mem::take(&mut self.held).tables {
                let id = apart.table(table.spec)?;
                for batch in table.batches {
                    apart.write(id, batch)?;
                }
            }
            self.apart = Some(apart);
        }
        Ok(if let Some(apart) = &mut self.apart { apart } else { &mut self.held })
    }
}

impl TableSink for Small<'_> {
    fn table(&mut self, spec: TableSpec) -> Result<TableId> {
        self.sink()?.table(spec)
    }

    fn write(&mut self, table: TableId, batch: RecordBatch) -> Result<()> {
        if self.apart.is_none() {
            self.bytes = self.bytes.saturating_add(batch.get_array_memory_size() as u64);
        }
        self.sink()?.write(table, batch)
    }

    fn close_tables(&mut self, metadata: &[(String, String)]) -> Result<Vec<WrittenTable>> {
        self.sink()?.close_tables(metadata)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::UInt64Array;
    use tracequet_dataset::write::{DatasetOptions, Encoders, Encoding};

    use super::*;

    fn written(batches: usize) -> (bool, Vec<(String, u64)>) {
        let folder = tempfile::tempdir().unwrap();
        let encoders = Encoders::start(1);
        let make = || DatasetWriter::part_of(folder.path(), encoders.clone(), DatasetOptions::default());
        let mut sink = Small::new(&make, true);
        let rows = Arc::new(UInt64Array::from(vec![7; 1 << 20])) as _;
        let batch = RecordBatch::try_from_iter([("n", rows)]).unwrap();
        let spec = |name: &str| TableSpec {
            name: name.into(),
            schema: batch.schema(),
            encodings: vec![Encoding::Plain],
            sorted_by: Vec::new(),
        };
        let (first, second) = (sink.table(spec("a")).unwrap(), sink.table(spec("b")).unwrap());
        sink.write(second, batch.slice(0, 3)).unwrap();
        for _ in 0..batches {
            sink.write(first, batch.clone()).unwrap();
        }
        // One that comes when the others are in files already.
        let third = sink.table(spec("c")).unwrap();
        sink.write(third, batch.slice(0, 1)).unwrap();
        let closed = sink.close_tables(&[]).unwrap();
        let rows = closed.into_iter().map(|table| (table.name, table.rows)).collect();
        (matches!(sink.into_grown().unwrap(), Grown::Large(_)), rows)
    }

    /// Each batch has 8 MB.
    #[test]
    fn many_rows_are_written_apart_with_those_before() {
        let rows = |n: u64| [("a", n << 20), ("b", 3), ("c", 1)].map(|(name, rows)| (name.to_owned(), rows)).to_vec();
        assert_eq!(written(1), (false, rows(1)));
        assert_eq!(written(5), (true, rows(5)));
    }
}
