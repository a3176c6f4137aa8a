//! `manifest.json`: who wrote a dataset and how, and what is in it.

use crate::prelude::*;

use serde::{Deserialize, Serialize};

use super::entry::{Recorded, TableInfo};
use super::words::{AddressType, Format, Layout};

/// Larger manifests are neither read nor written: 300 bytes for each of 900,000 recordings that are in no pack.
pub const MOST_MANIFEST_BYTES: u64 = 256 << 20;
/// The program that writes datasets.
pub const TOOL: &str = "tracequet";
/// Version of this program, as manifests and entries have it.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The head of a manifest: who wrote it, and how the tables are written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Head {
    /// [`TOOL`].
    pub tool: String,
    /// The version of the program.
    #[serde(default)]
    pub version: String,
    /// The version of the tables.
    pub schema_version: Option<u32>,
    /// The layout of the files in the directory.
    pub layout: Layout,
    /// Format of the files.
    pub format: Format,
    /// The type of unsigned 64-bit columns, if it is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address_type: Option<AddressType>,
}

impl Head {
    /// Of tables of this version that this program writes.
    pub fn of_now(schema_version: u32, layout: Layout, format: Format, address_type: AddressType) -> Head {
        Head {
            tool: TOOL.to_owned(),
            version: VERSION.to_owned(),
            schema_version: Some(schema_version),
            layout,
            format,
            address_type: Some(address_type),
        }
    }

    /// Reads the head of the manifest at `path`. Fails if the manifest is of something else, or of another version of
    /// the tables than `schema_version`, if that is given.
    pub fn parse(path: &Path, bytes: &[u8], schema_version: Option<u32>) -> Result<Head> {
        #[derive(Deserialize)]
        struct Maker {
            tool: String,
            #[serde(default)]
            version: String,
            schema_version: Option<u32>,
        }
        let a_manifest = "a manifest of tracequet";
        let wrong = |what: String, expected: &str| Error::Dataset {
            path: path.to_owned(),
            what,
            expected: expected.to_owned(),
        };
        // The rest may look different in another version.
        let maker: Maker = serde_json::from_slice(bytes).map_err(|e| wrong(e.to_string(), a_manifest))?;
        if maker.tool != TOOL {
            return Err(wrong(format!("is of {:?}", maker.tool), a_manifest));
        }
        if let (Some(own), Some(wanted)) = (maker.schema_version, schema_version)
            && own != wanted
        {
            let what = format!("the tables are of version {own} (tracequet {})", maker.version);
            return Err(wrong(what, &format!("version {wanted}: convert the recording again")));
        }
        serde_json::from_slice(bytes).map_err(|e| wrong(e.to_string(), a_manifest))
    }
}

/// Recordings whose tables lie together, as a manifest has them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PackInfo {
    /// The name.
    pub name: String,
    /// The number of recordings; 0 of a pack whose place another one has taken.
    pub recordings: usize,
}

/// The lists of a manifest.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lists {
    /// The recordings, but for those of packs.
    pub inputs: Vec<Recorded>,
    /// Recordings of several that could not be read.
    #[serde(default)]
    pub failed: Vec<Recorded>,
    /// The packs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub packs: Vec<PackInfo>,
    /// The tables, with the rows and bytes of all recordings.
    pub tables: Vec<TableInfo>,
}

impl Lists {
    /// Reads the lists of the manifest at `path`.
    pub fn parse(path: &Path, bytes: &[u8]) -> Result<Lists> {
        serde_json::from_slice(bytes).map_err(|e| Error::Dataset {
            path: path.to_owned(),
            what: e.to_string(),
            expected: "a manifest of tracequet".into(),
        })
    }
}

/// The text of the manifest of a dataset of one recording.
pub fn flat(head: &Head, lists: &Lists) -> String {
    #[derive(Serialize)]
    struct Manifest<'m> {
        #[serde(flatten)]
        head: &'m Head,
        #[serde(flatten)]
        lists: &'m Lists,
    }
    let mut text = serde_json::to_string_pretty(&Manifest { head, lists }).unwrap_or_default();
    text.push('\n');
    text
}

/// Whether a manifest says that tracequet wrote it, in whatever version: `"tool": "tracequet…"`, or an object with such
/// a `"name"`.
pub fn is_ours(manifest: &[u8]) -> bool {
    #[derive(Deserialize)]
    struct Maker {
        tool: Tool,
    }
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Tool {
        Name(String),
        Object { name: String },
    }
    let maker: Option<Maker> = serde_json::from_slice(manifest).ok();
    maker.is_some_and(|Maker { tool: Tool::Name(name) | Tool::Object { name } }| {
        name.split([' ', '/']).next() == Some(TOOL)
    })
}

/// Refuses to write a manifest that readers would refuse.
pub fn check_size(path: &Path, bytes: usize) -> Result<()> {
    if bytes as u64 <= MOST_MANIFEST_BYTES {
        return Ok(());
    }
    let what = format!("the recordings are too many for one dataset: their manifest takes {} MB", bytes >> 20);
    let expected = format!("{} MB at most: put the next ones into another dataset", MOST_MANIFEST_BYTES >> 20);
    Err(Error::Dataset { path: path.to_owned(), what, expected })
}
