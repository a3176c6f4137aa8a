//! Lists of recordings (`--files-from`) as they come: from other systems, with invalid names, without end.

use std::path::Path;

use crate::support::program::run;

fn failed_and_converted(folder: &Path, list: &[u8]) -> (Option<i32>, usize, String) {
    let (path, out) = (folder.join("list"), folder.join("out"));
    std::fs::write(&path, list).unwrap();
    let said = run(&["convert", "--quiet", "--files-from", path.to_str().unwrap(), "-o", out.to_str().unwrap()]);
    let converted = std::fs::read_dir(out.join("trace")).map_or(0, |entries| {
        entries.flatten().filter(|entry| !entry.file_name().to_string_lossy().ends_with("=none")).count()
    });
    (said.code, converted, said.err)
}

#[test]
fn one_name_of_a_list_costs_only_itself() {
    let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join("samples/events.nettrace");
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("copy.nettrace");
    std::fs::copy(&sample, &copy).unwrap();
    // A mark and line ends of Windows, a blank line, a name that is no UTF-8, and one with a NUL.
    let mut list = b"\xEF\xBB\xBF".to_vec();
    list.extend(copy.to_str().unwrap().bytes());
    list.extend(b"\r\n\r\nno-\xFF-text.nettrace\r\nno-\0-name.nettrace\n \n");
    let (code, traces, stderr) = failed_and_converted(folder.path(), &list);
    assert_eq!((code, traces), (Some(2), 3), "one that was converted, and the rows of two that failed: {stderr}");
    assert!(stderr.contains("-name.nettrace") && stderr.contains("-text.nettrace"), "{stderr}");
}

#[test]
fn a_list_without_end_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (code, traces, stderr) = failed_and_converted(folder.path(), &b"a\n".repeat(1_000_001));
    assert!(code == Some(1) && traces == 0 && stderr.contains("a million names at most"), "{stderr}");
    if cfg!(target_os = "linux") {
        let out = folder.path().join("other");
        let said = run(&["convert", "--files-from", "/dev/zero", "-o", out.to_str().unwrap()]);
        assert!(said.code == Some(1) && said.err.contains("256 MB"), "{}", said.err);
    }
}
