//! Source lines of frames: those that the recorded program found itself (`samples/src/Subjects.cs`), and where symbols
//! are found.

use std::io::Write;
use std::path::{Path, PathBuf};

use tracequet::Convert;

use crate::support::dataset::Dataset;

fn samples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("samples")
}

/// The recording with the symbols in a folder.
fn with_symbols(folder: &Path) -> Dataset {
    Dataset::with(Convert::default().inputs([samples().join("subjects.nettrace")]).symbols([folder]))
}

/// Method, file and line of each frame of a call site, innermost first; empty texts where there is none.
fn stack(dataset: &Dataset, callsite: u64) -> Vec<(String, String, u64)> {
    let (sites, frames) = (dataset.table("callsite"), dataset.table("frame"));
    let (parents, of_site) = (sites.numbers("parent_callsite_id"), sites.numbers("frame_id"));
    let (names, files, lines) = (frames.texts("name"), frames.texts("file"), frames.optional("line"));
    let mut found = Vec::new();
    let mut at = callsite as usize;
    while at != 0 {
        let frame = of_site[at - 1] as usize - 1;
        let name = names[frame].split('(').next().unwrap().to_owned();
        found.push((name, files[frame].clone(), lines[frame].unwrap_or_default()));
        at = parents[at - 1] as usize;
    }
    found
}

/// Every line that has one, as text.
fn all_lines(dataset: &Dataset) -> Vec<String> {
    let frames = dataset.table("frame");
    let (files, lines, kinds) = (frames.texts("file"), frames.optional("line"), frames.texts("line_kind"));
    let names = frames.texts("name");
    let rows = (0..frames.rows()).filter(|row| lines[*row].is_some());
    rows.map(|row| format!("{} {}:{} {}", names[row], files[row], lines[row].unwrap(), kinds[row])).collect()
}

#[test]
fn lines_are_those_that_the_runtime_finds() {
    let dataset = with_symbols(&samples());
    let exceptions = dataset.table("exception");
    let (messages, callsites) = (exceptions.texts("message"), exceptions.numbers("callsite_id"));
    let text = std::fs::read_to_string(samples().join("subjects.truth.txt")).unwrap();
    let mut compared = 0;
    for reported in text.lines().filter_map(|line| line.strip_prefix("line ")) {
        let mut parts = reported.split('|');
        let message = parts.next().unwrap();
        let reported: Vec<&str> = parts.collect();
        let row = messages.iter().position(|known| known == message).expect("the exception");
        let mut found = stack(&dataset, callsites[row]);
        // The runtime's own code that throws.
        found.retain(|(name, ..)| !name.starts_with("System.Runtime.EH."));
        assert_eq!(found.len(), reported.len() / 3, "{message}");
        for ((name, file, line), reported) in found.iter().zip(reported.chunks(3)) {
            let file = file.rsplit('/').next().unwrap();
            assert_eq!([name, file, &line.to_string()], reported, "{message}");
            compared += 1;
        }
    }
    assert_eq!(compared, 13);
    assert_eq!(dataset.summary.inputs[0].frames.with_line, all_lines(&dataset).len() as u64);
}

/// An assembly (PE32+) of nothing but a debug directory with these symbols embedded.
pub fn assembly(pdb: &[u8], id: &[u8]) -> Vec<u8> {
    let mut packed = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(pdb).unwrap();
    let mut embedded = b"MPDB".to_vec();
    embedded.extend((pdb.len() as u32).to_le_bytes());
    embedded.extend(packed.finish().unwrap());
    let code_view = [b"RSDS", id, &1u32.to_le_bytes(), b"/src/Churn.pdb\0"].concat();

    let mut file = vec![0; 0x400];
    let mut put = |at: usize, bytes: &[u8]| file[at..at + bytes.len()].copy_from_slice(bytes);
    let number = |value: usize| (value as u32).to_le_bytes();
    put(0, b"MZ");
    put(0x3C, &number(0x80));
    put(0x80, b"PE\0\0");
    put(0x86, &1u16.to_le_bytes()); // sections
    put(0x94, &240u16.to_le_bytes()); // bytes of the optional header
    put(0x98, &0x20Bu16.to_le_bytes());
    put(0x98 + 112 + 6 * 8, &[number(0x2000), number(56)].concat());
    let size = 56 + code_view.len() + embedded.len();
    put(0x98 + 240 + 8, &[number(size), number(0x2000), number(size), number(0x400)].concat());
    for (kind, content, at) in [(2, &code_view, 0x400 + 56), (17, &embedded, 0x400 + 56 + code_view.len())] {
        file.extend([0; 12]);
        file.extend([number(kind), number(content.len()), number(0), number(at)].concat());
    }
    [file, code_view, embedded].concat()
}

/// The id of a portable PDB, in the stream `#Pdb`.
pub fn id_of(pdb: &[u8]) -> Vec<u8> {
    let stream = pdb.windows(5).position(|bytes| bytes == b"#Pdb\0").unwrap() - 8;
    let at = u32::from_le_bytes(pdb[stream..stream + 4].try_into().unwrap()) as usize;
    pdb[at..at + 16].to_vec()
}

#[test]
fn symbols_are_found_in_every_place_and_by_their_id_only() {
    let pdb = std::fs::read(samples().join("Churn.pdb")).unwrap();
    let id = id_of(&pdb);
    let at = pdb.windows(16).position(|bytes| bytes == id).unwrap();
    let id = id.as_slice();
    let expected = all_lines(&with_symbols(&samples()));
    assert!(expected.len() > 30 && expected.iter().any(|line| line.ends_with(":35 exact")), "{expected:?}");
    let folder = tempfile::tempdir().unwrap();
    let lines = |name: &str, bytes: &[u8]| {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, bytes).unwrap();
        let dataset = with_symbols(folder.path());
        std::fs::remove_file(&path).unwrap();
        (all_lines(&dataset), dataset)
    };
    assert_eq!(lines("Churn.dll", &assembly(&pdb, id)).0, expected, "embedded");
    let key =
        [&id[..4], &id[4..6], &id[6..8]].map(|part| part.iter().rev().map(|b| format!("{b:02x}")).collect::<String>());
    let key = key.concat() + &id[8..].iter().map(|b| format!("{b:02x}")).collect::<String>();
    assert_eq!(lines(&format!("Churn.pdb/{key}ffffffff/Churn.pdb"), &pdb).0, expected, "of a symbol server");
    // The same name and another id: of another build.
    let mut other = pdb.clone();
    other[at] ^= 1;
    for (name, bytes) in [
        ("Churn.pdb", other.clone()),
        ("Churn.dll", assembly(&other, id)),
        ("Churn.dll", assembly(&pdb, &[7; 16])),
        ("Churn.pdb", pdb[..pdb.len() / 3].to_vec()),
        ("Churn.dll", b"MZ".to_vec()),
    ] {
        std::fs::remove_dir_all(folder.path().join("Churn.pdb")).ok();
        let (found, dataset) = lines(name, &bytes);
        assert_eq!(found, [""; 0], "{name} of {} bytes", bytes.len());
        let problems = &dataset.summary.inputs[0].problems;
        let reported = problems.iter().find(|p| p.code == "frames_without_line").expect("why there are no lines");
        assert!(reported.message.contains("Churn.dll"), "{}", reported.message);
        assert!(!dataset.summary.has_losses());
    }
}

#[test]
fn without_il_offsets_there_is_the_first_line_of_the_method() {
    // As if the provider with the rundown of the maps had not been on.
    let request = Convert::default().inputs([samples().join("subjects.nettrace")]).symbols([samples()]);
    let dataset = Dataset::with(request.providers(["Microsoft-Windows-DotNETRuntime"]));
    let lines = all_lines(&dataset);
    assert!(!lines.iter().any(|line| line.ends_with(" exact")), "{lines:?}");
    // No module is known without the rundown, but those that were loaded while the session ran.
    let text = std::fs::read_to_string(samples().join("src/Subjects.cs")).unwrap();
    let beginning = 1 + text.lines().position(|line| line.contains("static void Exceptions()")).unwrap();
    for line in lines.iter().filter(|line| line.starts_with("Subjects.Exceptions(")) {
        let number: usize = line.split(':').nth(1).unwrap().split(' ').next().unwrap().parse().unwrap();
        assert!((beginning..beginning + 4).contains(&number), "{line}, the method begins at {beginning}");
    }
    assert!(lines.iter().any(|line| line.starts_with("Subjects.Exceptions(")), "{lines:?}");
}

#[test]
fn a_folder_that_is_not_there_is_an_error_of_use() {
    let folder = tempfile::tempdir().unwrap();
    let recording = samples().join("subjects.nettrace");
    let request = Convert::default().inputs([recording]).output(folder.path().join("out"));
    let error = tracequet::convert(&request.symbols([folder.path().join("none")]), &mut |_| {}).unwrap_err();
    assert!(error.to_string().contains("no such directory"), "{error}");
    assert!(!folder.path().join("out").exists());
}
