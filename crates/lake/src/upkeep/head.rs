//! The head of the manifest of a dataset of several recordings: how it is written, and whether others can be added.

use std::path::Path;

use crate::files::{Holds, Lake};
use tracequet_dataset::error::{Difference, Error, Result};
use tracequet_dataset::format::{AddressType, Format, Head, Layout, is_ours, paths};

/// The format and the type of addresses of a dataset of several recordings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// The format of their files.
    pub format: Format,
    /// The type of columns with addresses.
    pub address_type: AddressType,
}

/// Refuses to add to something else than a dataset of several recordings of the same format. Nothing, and an empty
/// directory, are good. Returns the version of the tables that `manifest.json` says, if it is there.
pub fn check_head(lake: &Lake, wanted: Written) -> Result<Option<u32>> {
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
    if head.format != wanted.format {
        return differs(Difference::Format(head.format.name()));
    }
    if let Some(address_type) = head.address_type.filter(|own| *own != wanted.address_type) {
        return differs(Difference::AddressType(address_type.name()));
    }
    Ok(head.schema_version)
}

/// The format and the type of addresses of a dataset of several recordings.
pub(super) fn head_of(lake: &Lake) -> Result<Written> {
    let path = lake.storage().shown().join(paths::MANIFEST);
    let Some(manifest) = lake.storage().manifest()? else {
        return Err(Error::Io { path, source: std::io::Error::new(std::io::ErrorKind::NotFound, "is not there") });
    };
    let head = Head::parse(&path, &manifest.text?, None)?;
    if head.layout != Layout::Hive {
        return Err(not_several(&lake.storage().shown()));
    }
    Ok(Written { format: head.format, address_type: head.address_type.unwrap_or_default() })
}

/// The error of something else than a dataset of several recordings.
pub(super) fn not_several(shown: &Path) -> Error {
    Error::Usage(format!("{} is not a dataset of several recordings", shown.display()))
}
