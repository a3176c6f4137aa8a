//! Makes one pack of recordings and packs of a dataset.

use super::made::{Files, Made};
use super::merge::{Failed, Input, Part, merge};
use crate::files::{Lake, MergedTable, Workspace};
use crate::prelude::*;
use tracequet_dataset::format::{Entry, Format, Pack, PackedFile, Recorded, paths};
use tracequet_dataset::write::staging::Staging;
use tracequet_trace::parallel;

/// The recordings and packs that become one pack.
#[derive(Debug, Default)]
pub(super) struct Job {
    /// Recordings with an entry of their own.
    pub(super) singles: Vec<Entry>,
    /// Packs whose place the new one takes.
    pub(super) packs: Vec<Pack>,
    /// Labels that take the place of those that recordings of packs have, by their keys.
    pub(super) labels: BTreeMap<String, NewLabels>,
}

/// The labels of a recording in a file of their own.
#[derive(Debug, Default)]
pub(super) struct NewLabels {
    /// The file, and the directory that it is in; nothing if there is no label.
    pub(super) file: Option<(PathBuf, Arc<Staging>)>,
    pub(super) rows: u64,
    pub(super) bytes: u64,
}

/// Which recording or pack cannot be read, and why; or what else went wrong.
#[derive(Debug)]
pub(super) enum NotMade {
    Source(String, Error),
    Other(Error),
}

impl From<Error> for NotMade {
    fn from(error: Error) -> NotMade {
        NotMade::Other(error)
    }
}

/// A recording on its way into the pack.
struct Coming<'j> {
    recorded: Recorded,
    /// The names of its tables, and their rows.
    tables: BTreeMap<&'j str, u64>,
    from: Origin<'j>,
}

/// Where its rows lie.
#[derive(Clone, Copy)]
enum Origin<'j> {
    Single(&'j Entry),
    /// The place of a pack, and its own in that.
    Pack(usize, usize),
}

/// A table of the pack: its files, and for each recording its place and its rows.
struct TableJob<'j> {
    name: &'j str,
    inputs: Vec<Input>,
    parts: Vec<Part>,
    /// Files of this machine that inputs are, by their names.
    fresh: HashMap<String, PathBuf>,
    /// Whether it has the rows of a pack as they are.
    is_as_it_was: bool,
}

impl Job {
    /// Merges the tables of its recordings into files of a new pack, several at a time. `changes` says what becomes of
    /// a recording of a pack: nothing if it is left out, and else what its entry says from then on and which tables
    /// stay.
    pub(super) fn make(
        &self,
        lake: &Lake,
        schema_version: u32,
        threads: usize,
        changes: &dyn Fn(&Recorded) -> Change,
    ) -> std::result::Result<Option<Made>, NotMade> {
        let coming = self.coming(changes);
        if coming.is_empty() {
            return Ok(None);
        }
        let names: BTreeSet<&str> = coming.iter().flat_map(|one| one.tables.keys().copied()).collect();
        let names: Vec<&str> = names.into_iter().collect();
        let jobs: Vec<TableJob<'_>> = names.iter().map(|name| self.table_job(name, &coming)).collect();
        let workspace = Workspace::inside(lake.storage().folder())?;
        let files = parallel::each(threads, &jobs, |number, job| {
            let merged = merge_one(lake, job, workspace.path(), number, schema_version);
            merged.map_err(|failed| self.not_made(Some(job), failed))
        })?;
        let replaces = self.packs.iter().map(|pack| pack.name.clone()).collect();
        let members = coming.into_iter().map(|one| (one.recorded, one.tables));
        Ok(Some(Made::of(schema_version, replaces, &names, files, members, workspace)?))
    }

    /// The recordings of the job, in the order of their keys.
    fn coming(&self, changes: &dyn Fn(&Recorded) -> Change) -> Vec<Coming<'_>> {
        let mut coming: Vec<Coming<'_>> = Vec::new();
        for entry in &self.singles {
            coming.push(Coming {
                recorded: entry.recorded.clone(),
                tables: entry.tables.iter().map(|table| (table.name.as_str(), table.rows)).collect(),
                from: Origin::Single(entry),
            });
        }
        for (number, pack) in self.packs.iter().enumerate() {
            for (place, member) in pack.members.iter().enumerate() {
                let Some((recorded, stay)) = changes(&member.recorded) else { continue };
                let mut tables: BTreeMap<&str, u64> = BTreeMap::new();
                for table in member.tables.iter().filter_map(|table| pack.table(*table)) {
                    tables.insert(&table.name, 0);
                }
                for (table, rows) in &member.rows {
                    tables.extend(pack.table(*table).map(|table| (table.name.as_str(), *rows)));
                }
                if let Some(new) = self.labels.get(member.key()) {
                    tables.insert(paths::LABELS, new.rows);
                }
                if let Some(stay) = stay {
                    tables.retain(|name, _| stay.contains(*name));
                }
                coming.push(Coming { recorded, tables, from: Origin::Pack(number, place) });
            }
        }
        coming.sort_by(|a, b| a.recorded.trace_id.cmp(&b.recorded.trace_id));
        coming
    }

    /// Where the rows of a table lie, in the order of the recordings.
    fn table_job<'j>(&'j self, name: &'j str, coming: &[Coming<'j>]) -> TableJob<'j> {
        let (mut inputs, mut parts, mut fresh) = (Vec::new(), Vec::new(), HashMap::new());
        // Of each pack: the place of its first file among the inputs, where each file begins, and where the rows of
        // each recording do.
        let mut packs: Vec<(usize, Vec<u64>, Vec<u64>)> = Vec::new();
        for pack in &self.packs {
            let place = pack.tables.binary_search_by(|table| table.name.as_str().cmp(name)).ok();
            let first = inputs.len();
            let mut files = vec![0u64];
            for (number, file) in
                (0u32..).zip(place.and_then(|place| pack.tables.get(place)).iter().flat_map(|t| &t.files))
            {
                let name = paths::packed(name, &pack.name, number);
                inputs.push(Input { name, rows: file.rows, bytes: file.bytes, is_shared: true });
                files.push(files.last().copied().unwrap_or_default().saturating_add(file.rows));
            }
            let mut begins = vec![0u64];
            for member in &pack.members {
                let rows = member.rows.iter().find(|(own, _)| usize::try_from(*own).ok() == place && place.is_some());
                let rows = rows.map_or(0, |(_, rows)| *rows);
                begins.push(begins.last().copied().unwrap_or_default().saturating_add(rows));
            }
            packs.push((first, files, begins));
        }
        for (member, one) in coming.iter().enumerate() {
            let rows = one.tables.get(name).copied().unwrap_or_default();
            match one.from {
                _ if rows == 0 => {}
                Origin::Pack(..) if name == paths::LABELS && self.labels.contains_key(&one.recorded.trace_id) => {
                    let Some(new) = self.labels.get(&one.recorded.trace_id) else { continue };
                    let file = paths::file(name, &one.recorded.trace_id, Format::Parquet);
                    fresh.extend(new.file.iter().map(|(path, _)| (file.clone(), path.clone())));
                    parts.push(Part { member, input: inputs.len(), rows: 0..rows });
                    inputs.push(Input { name: file, rows, bytes: new.bytes, is_shared: false });
                }
                Origin::Single(entry) => {
                    let bytes = entry.tables.iter().find(|table| table.name == name).map_or(0, |table| table.bytes);
                    let file = paths::file(name, &entry.recorded.trace_id, Format::Parquet);
                    parts.push(Part { member, input: inputs.len(), rows: 0..rows });
                    inputs.push(Input { name: file, rows, bytes, is_shared: false });
                }
                Origin::Pack(number, place) => {
                    let Some((first, files, begins)) = packs.get(number) else { continue };
                    let begin = begins.get(place).copied().unwrap_or_default();
                    let end = begin.saturating_add(rows);
                    for (number, pair) in files.windows(2).enumerate() {
                        let &[from, to] = pair else { continue };
                        let (a, b) = (begin.clamp(from, to), end.clamp(from, to));
                        if a < b {
                            parts.push(Part { member, input: first + number, rows: a - from..b - from });
                        }
                    }
                }
            }
        }
        if inputs.is_empty() && MergedTable::has_file_without_rows(name) {
            // The recording's columns are those of a file without rows.
            let single = coming.iter().find_map(|one| match one.from {
                Origin::Single(entry) => {
                    entry.tables.iter().find(|table| table.name == name).filter(|table| table.bytes > 0).map(|table| {
                        let name = paths::file(name, &entry.recorded.trace_id, Format::Parquet);
                        Input { name, rows: 0, bytes: table.bytes, is_shared: false }
                    })
                }
                Origin::Pack(..) => None,
            });
            inputs.extend(single);
        }
        let taken: u64 = parts.iter().map(|part| part.rows.end.saturating_sub(part.rows.start)).sum();
        let is_of_pack = self.packs.len() == 1 && inputs.iter().all(|input| input.is_shared);
        let is_as_it_was = is_of_pack && taken == inputs.iter().map(|input| input.rows).sum::<u64>();
        TableJob { name, inputs, parts, fresh, is_as_it_was }
    }

    fn not_made(&self, job: Option<&TableJob<'_>>, failed: Failed) -> NotMade {
        match failed {
            Failed::Other(error) => NotMade::Other(error),
            Failed::Input(input, error) => {
                let name = job.and_then(|job| job.inputs.get(input)).and_then(|input| paths::key_of(&input.name));
                match name {
                    Some(key) => NotMade::Source(key.to_owned(), error),
                    None => NotMade::Other(error),
                }
            }
        }
    }
}

/// The fate of a recording of a pack: nothing if it is left out, else its entry from then on, and the tables that stay
/// (`None`: all).
pub(super) type Change = Option<(Recorded, Option<BTreeSet<String>>)>;

fn merge_one(
    lake: &Lake,
    job: &TableJob<'_>,
    folder: &Path,
    number: usize,
    schema_version: u32,
) -> std::result::Result<Files, Failed> {
    // Copies of files that lie elsewhere; they go with the folder.
    let copies = folder.join(format!("copies-{number}"));
    let fetch = |name: &str| match job.fresh.get(name) {
        Some(path) => Ok(path.clone()),
        None => lake.storage().fetched(name, &copies),
    };
    let stem = folder.join(format!("table-{number}"));
    let merged = match job.is_as_it_was {
        true => linked(job, &stem, &fetch),
        false => merge(job.name, &job.inputs, &job.parts, &stem, schema_version, &fetch),
    };
    match std::fs::remove_dir_all(&copies) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(Failed::Other(Error::Io { path: copies, source: e })),
        _ => merged,
    }
}

/// The files of a table that stays as it is, under other names: the same bytes, where the file system gives a file
/// several names, and else a copy.
fn linked(
    job: &TableJob<'_>,
    stem: &Path,
    fetch: &dyn Fn(&str) -> Result<PathBuf>,
) -> std::result::Result<Files, Failed> {
    let mut files = Files::with_capacity(job.inputs.len());
    for (number, input) in job.inputs.iter().enumerate() {
        let of_input = |error| Failed::Input(number, error);
        let from = fetch(&input.name).map_err(of_input)?;
        let to = PathBuf::from(format!("{}-as-it-was-{number}", stem.display()));
        if std::fs::hard_link(&from, &to).is_err() {
            std::fs::copy(&from, &to).map_err(|error| of_input(Error::io(&from)(error)))?;
        }
        let bytes = std::fs::metadata(&to).map_err(|error| of_input(Error::io(&from)(error)))?.len();
        if bytes != input.bytes {
            let what = format!("has {bytes} bytes");
            let expected = format!("{} bytes", input.bytes);
            return Err(of_input(Error::Dataset { path: from, what, expected }));
        }
        files.push((to, PackedFile { rows: input.rows, bytes }));
    }
    Ok(files)
}

/// The change of a recording of a pack in compaction: it keeps all.
pub(super) fn all(recorded: &Recorded) -> Change {
    Some((recorded.clone(), None))
}

/// A result whose error is that of a pack that could not be made, whatever it was of.
pub(super) fn whole<T>(made: std::result::Result<T, NotMade>) -> Result<T> {
    made.map_err(|(NotMade::Source(_, error) | NotMade::Other(error))| error)
}
