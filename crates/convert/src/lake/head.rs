//! The head of the manifest of a dataset of several recordings: how it is written, and whether others can be added.

use std::path::Path;

use tracequet_dataset::error::{Difference, Error, Result};
use tracequet_dataset::format::{AddressType, Format, Head, Layout, is_ours, paths};
use tracequet_dataset::write::{Holds, Lake};

use crate::request::Convert;

/// Refuses to add to something else than a dataset of several recordings of the same format. Nothing, and an empty
/// directory, are good. Returns the version of the tables that `manifest.json` says, if it is there.
pub(crate) fn check_head(request: &Convert, lake: &Lake) -> Result<Option<u32>> {
    let out = lake.storage().shown();
    let Some(manifest) = lake.storage().manifest()? else {
        if lake.storage().holds()? != Holds::SomethingElse {
            return Ok(None);
        }
        let message =
            format!("{} holds something else than a dataset of tracequet, so nothing is added", out.display());
        return Err(Error::Usage(message));
    };
    let bytes = manifest.text?;
    if !is_ours(&bytes) {
        let what = "is not a dataset of tracequet (dataset repair mends one whose manifest.json is damaged)";
        return Err(Error::Usage(format!("{}: {what}, so nothing is added", out.display())));
    }
    let differs = |difference| Err(Error::Incompatible { path: out.clone(), difference });
    let head = Head::parse(&out.join(paths::MANIFEST), &bytes, None)?;
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

/// The format and the type of addresses of a dataset of several recordings.
pub(crate) fn head_of(lake: &Lake) -> Result<(Format, AddressType)> {
    let path = lake.storage().shown().join(paths::MANIFEST);
    let Some(manifest) = lake.storage().manifest()? else {
        return Err(Error::Io { path, source: std::io::Error::new(std::io::ErrorKind::NotFound, "is not there") });
    };
    let head = Head::parse(&path, &manifest.text?, None)?;
    if head.layout != Layout::Hive {
        return Err(not_several(&lake.storage().shown()));
    }
    Ok((head.format, head.address_type.unwrap_or_default()))
}

/// The error of something else than a dataset of several recordings.
pub(super) fn not_several(shown: &Path) -> Error {
    Error::Usage(format!("{} is not a dataset of several recordings", shown.display()))
}
