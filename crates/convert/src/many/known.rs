//! The recordings that a dataset has when others are added.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use tracequet_dataset::error::{Error, Result};
use tracequet_dataset::format::{DamagedEntry, Line, OtherVersion, Recorded, Summed, VERSION, paths};
use tracequet_dataset::table::schema::SCHEMA_VERSION;
use tracequet_lake::Lake;
use tracequet_trace::source::FileIdentity;
use tracequet_trace::source::store::shown;

use crate::entries::labels;
use crate::hashed::{HashKind, trace_key};
use crate::request::Convert;
use crate::summary::SkippedInput;

/// The recordings that a dataset has.
#[derive(Debug)]
pub(crate) struct Known {
    summed: Summed,
    /// The first bytes of hashes, in their order, and places in the sum.
    by_hash: Vec<(u64, usize)>,
    /// Recordings whose store gave a tag, by their address. Made when the first is asked for.
    tagged: OnceLock<HashMap<PathBuf, Recorded>>,
    /// Places in the sum of those that could not be read, by where their files are and by their hashes.
    failed_at: HashMap<PathBuf, Vec<usize>>,
    failed_as: HashMap<String, Vec<usize>>,
    /// Keys of entries that cannot be read.
    damaged: HashSet<String>,
    /// Whether the SHA-256 of one is the only hash that is known.
    is_known_by_sha256: bool,
}

/// The next step for a recording.
#[derive(Debug)]
pub(crate) enum Plan {
    /// The recording is in the dataset.
    Skip(SkippedInput),
    /// Convert it; these entries go.
    Convert(Vec<String>),
}

impl Known {
    /// By the entries of a dataset. Fails when tables of this version cannot be added to the existing ones.
    pub(crate) fn of(request: &Convert, summed: Summed) -> Result<Known> {
        if let Some(OtherVersion { key, version, schema_version }) = summed.other_version()
            && !request.refresh
        {
            return Err(Error::OtherVersion {
                path: shown(&request.output).join(paths::entry(key)),
                what: format!("its tables are of version {schema_version} (tracequet {version})"),
                expected: format!("version {SCHEMA_VERSION}"),
            });
        }
        let hashes = summed.recordings().iter().enumerate().map(|(place, line)| (begin(line.hash()), place));
        let mut by_hash: Vec<_> = hashes.collect();
        by_hash.sort_unstable();
        let (mut failed_at, mut failed_as) = (HashMap::<_, Vec<_>>::new(), HashMap::<_, Vec<_>>::new());
        for (place, line) in summed.failed().iter().enumerate() {
            failed_at
                .entry(line.recorded().map(|one| PathBuf::from(one.path)).unwrap_or_default())
                .or_default()
                .push(place);
            if !line.hash().is_empty() {
                failed_as.entry(line.hash().to_owned()).or_default().push(place);
            }
        }
        let damaged = summed.damaged().iter().map(|damaged| damaged.key.clone()).collect();
        let is_known_by_sha256 = summed.recordings().iter().chain(summed.failed()).any(Line::is_known_by_sha256)
            || summed.packs().iter().any(|head| head.index.is_known_by_sha256());
        Ok(Known { summed, by_hash, tagged: OnceLock::new(), failed_at, failed_as, damaged, is_known_by_sha256 })
    }

    /// The hashes to take of recordings that come: those by which it knows the ones that it has.
    pub(crate) fn hash_kind(&self, request: &Convert) -> HashKind {
        if self.is_known_by_sha256 { HashKind::Sha256 } else { request.hash_kind() }
    }

    /// The entries that cannot be read.
    pub(crate) fn damaged(&self) -> &[DamagedEntry] {
        self.summed.damaged()
    }

    /// The tag that the object at an address had when it was converted.
    pub(crate) fn tag(&self, lake: &Lake, address: &Path) -> Option<String> {
        self.at(lake, address)?.etag.clone()
    }

    /// The outcome for an object with an unchanged tag, if it is not to be converted again.
    pub(crate) fn unchanged(&self, lake: &Lake, request: &Convert, address: &Path) -> Option<SkippedInput> {
        self.at(lake, address).and_then(|recorded| skipped(recorded, request, address))
    }

    fn at(&self, lake: &Lake, address: &Path) -> Option<&Recorded> {
        let tagged = self.tagged.get_or_init(|| {
            let lines = self.summed.recordings().iter().filter(|line| line.text().contains("\"etag\""));
            let mut all: Vec<Recorded> = lines.filter_map(Line::recorded).collect();
            let packs: Vec<_> = self.summed.packs().iter().filter(|head| head.index.has_etags).cloned().collect();
            // A pack that cannot be read now is no obstacle: its recordings are fetched, and then known by their
            // hashes.
            let _ = lake.each_pack(&packs, |pack| all.extend(pack.members.iter().map(|one| one.recorded.clone())));
            let with_tag = all.into_iter().filter(|one| one.etag.is_some());
            with_tag.map(|one| (PathBuf::from(&one.path), one)).collect()
        });
        tagged.get(address)
    }

    /// The recording with this content.
    fn with_hash(&self, lake: &Lake, hash: &str) -> Result<Option<Recorded>> {
        if hash.is_empty() {
            return Ok(None);
        }
        let own = begin(hash);
        let first = self.by_hash.partition_point(|(begin, _)| *begin < own);
        let alike = self.by_hash.iter().skip(first).take_while(|(begin, _)| *begin == own);
        let is_it = |place: &usize| self.summed.recordings().get(*place).is_some_and(|line| line.hash() == hash);
        let own = alike.map(|(_, place)| *place).find(is_it).and_then(|place| self.summed.recordings().get(place));
        match own.and_then(Line::recorded) {
            Some(recorded) => Ok(Some(recorded)),
            None => lake.packed_with_hash(self.summed.packs(), hash),
        }
    }

    /// Whether a recording with other content has this key.
    pub(crate) fn is_taken(&self, lake: &Lake, key: &str, hash: &str) -> Result<bool> {
        let find = |lines: &'_ [Line]| lines.binary_search_by(|line| line.key().cmp(key)).ok();
        let is_other = |lines: &[Line]| find(lines).and_then(|at| lines.get(at)).is_some_and(|l| l.hash() != hash);
        if is_other(self.summed.recordings()) || is_other(self.summed.failed()) {
            return Ok(true);
        }
        let packed = lake.packed_with_key(self.summed.packs(), key)?;
        Ok(packed.is_some_and(|one| one.hash() != hash))
    }

    /// Decides what is to be done with a recording. One that failed before is tried again: its file may have been
    /// repaired, or was still being written. One whose entry is damaged gets another.
    pub(crate) fn plan(&self, lake: &Lake, request: &Convert, path: &Path, identity: &FileIdentity) -> Result<Plan> {
        let same_file = self.failed_at.get(path).into_iter().chain(self.failed_as.get(identity.hash())).flatten();
        let same_file: BTreeSet<usize> = same_file.copied().collect();
        let failed = same_file.iter().filter_map(|place| self.summed.failed().get(*place));
        let mut replaced: Vec<String> = failed.map(|line| line.key().to_owned()).collect();
        if let Some(recorded) = self.with_hash(lake, identity.hash())? {
            if let Some(skipped) = skipped(&recorded, request, path) {
                return Ok(Plan::Skip(skipped));
            }
            replaced.push(recorded.trace_id);
        }
        let key = trace_key(path, identity.hash());
        if self.damaged.contains(&key) {
            replaced.push(key);
        }
        Ok(Plan::Convert(replaced))
    }

    /// The recording that could not be read with this key and this content.
    pub(crate) fn failed(&self, key: &str, hash: &str) -> Option<Recorded> {
        let failed = self.summed.failed();
        let line = failed.get(failed.binary_search_by(|line| line.key().cmp(key)).ok()?)?;
        if line.hash() == hash { line.recorded() } else { None }
    }

    /// The request with the labels that a recording was given when it came: one that is converted again, or that cannot
    /// be read again, keeps them. `key` is that of the recording.
    pub(crate) fn with_own_labels<'r>(
        &self,
        lake: &Lake,
        request: &'r Convert,
        key: &str,
        identity: &FileIdentity,
    ) -> Result<Cow<'r, Convert>> {
        let recorded = self.with_hash(lake, identity.hash())?.or_else(|| self.failed(key, identity.hash()));
        Ok(match recorded.map(|recorded| recorded.labels).filter(|own| *own != labels(request)) {
            Some(own) => Cow::Owned(Convert { labels: own.into_iter().collect(), ..request.clone() }),
            None => Cow::Borrowed(request),
        })
    }
}

/// The first bytes of a hash.
fn begin(hash: &str) -> u64 {
    hash.bytes().take(8).fold(0, |number, byte| number << 8 | u64::from(byte))
}

/// The outcome for the recording at `path` with the content of one that is there, unless it is to be converted again.
fn skipped(recorded: &Recorded, request: &Convert, path: &Path) -> Option<SkippedInput> {
    let differs = recorded.options != Some(request.options());
    let is_old = recorded.version != VERSION || recorded.schema_version != Some(SCHEMA_VERSION);
    if request.refresh && (differs || is_old) {
        return None;
    }
    let other_labels = !request.labels.is_empty() && recorded.labels != labels(request);
    Some(SkippedInput { path: path.to_owned(), trace_id: recorded.trace_id.clone(), differs, other_labels })
}
