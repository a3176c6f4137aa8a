//! How a dataset of several recordings is written, by the head of its manifest, and whether others can be added.

use std::path::Path;

use tracequet_dataset::format::{AddressType, Format, Head, Layout, is_ours, paths};
use tracequet_dataset::write::read_manifest;
use tracequet_trace::error::{Difference, Error, Result};

use crate::request::Convert;

/// Refuses to add to something else than a dataset of several recordings of the same format. Nothing, and an empty
/// directory, are good. Returns the version of the tables that `manifest.json` says, if it is there.
pub(crate) fn check_head(request: &Convert) -> Result<Option<u32>> {
    let out = &request.output;
    let path = out.join(paths::MANIFEST);
    let bytes = match read_manifest(&path) {
        Ok(bytes) => bytes,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
            let mut entries = match std::fs::read_dir(out) {
                Ok(entries) => entries,
                Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
                Err(source) => return Err(Error::Io { path: out.clone(), source }),
            };
            // A killed first run left a dataset that has no summary yet. Looked for last: another first run may be making it.
            if entries.next().is_none() || out.join(paths::ENTRIES).is_dir() {
                return Ok(None);
            }
            let message =
                format!("{} holds something else than a dataset of tracequet, so nothing is added", out.display());
            return Err(Error::Usage(message));
        }
        Err(source) => return Err(Error::Io { path, source }),
    };
    if !is_ours(&bytes) {
        let what = "is not a dataset of tracequet (dataset repair mends one whose manifest.json is damaged)";
        return Err(Error::Usage(format!("{}: {what}, so nothing is added", out.display())));
    }
    let differs = |difference| Err(Error::Incompatible { path: out.to_owned(), difference });
    let head = Head::parse(&path, &bytes, None)?;
    if head.layout != Layout::Hive {
        return differs(Difference::OneRecording);
    }
    if head.format != request.format {
        return differs(Difference::Format(head.format.name()));
    }
    if let Some(address_type) = head.address_type.filter(|own| *own != request.address_type) {
        return differs(Difference::AddressType(address_type.name()));
    }
    Ok(head.schema_version)
}

/// How the tables of a dataset of several recordings are written.
pub(crate) fn head_of(root: &Path) -> Result<(Format, AddressType)> {
    let path = root.join(paths::MANIFEST);
    let bytes = read_manifest(&path).map_err(Error::io(&path))?;
    let head = Head::parse(&path, &bytes, None)?;
    if head.layout != Layout::Hive {
        return Err(Error::Usage(format!("{} is not a dataset of several recordings", root.display())));
    }
    Ok((head.format, head.address_type.unwrap_or_default()))
}
