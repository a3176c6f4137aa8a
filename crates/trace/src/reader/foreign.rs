//! Files that people give in place of a recording, by their first bytes: what they are, and what to give instead.

/// The name of a known kind of file that is not read, and what was expected in its place.
pub fn known(head: &[u8]) -> Option<(&'static str, &'static str)> {
    let contains = |text: &[u8]| head.windows(text.len()).any(|window| window == text);
    let word = |at: usize| head.get(at..).and_then(|rest| rest.first_chunk()).map(|bytes| u16::from_le_bytes(*bytes));
    let text = head.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(head).trim_ascii_start();
    Some(match head {
        // Of TraceEvent and PerfView: `Microsoft.Diagnostics.Tracing.Etlx.TraceLog`.
        _ if contains(b"!FastSerialization.1") && contains(b"TraceLog") => (
            "an .etlx, which PerfView and TraceEvent make of a recording for themselves",
            "the .etl or .nettrace that it was made of",
        ),
        _ if head.starts_with(b"version https://git-lfs.") => {
            ("a pointer of Git LFS, not the file itself", "the file: `git lfs pull` fetches it")
        }
        _ if [&b"PERFILE2"[..], b"2ELIFREP", b"PERFFILE"].iter().any(|magic| head.starts_with(magic)) => {
            ("a perf.data of Linux perf", "a recording of dotnet-trace or of record-trace (.nettrace)")
        }
        _ if head.starts_with(b"MDMP") => ("a crash dump of Windows (minidump)", DUMP),
        // ET_CORE; MH_CORE.
        _ if head.starts_with(b"\x7FELF") && word(16) == Some(4) => ("a core dump", DUMP),
        _ if head.starts_with(b"\xCF\xFA\xED\xFE") && word(12) == Some(4) => ("a core dump of macOS", DUMP),
        _ if head.starts_with(b"\x7FELF") || head.starts_with(b"MZ") => ("a program or a library", RECORDING),
        _ if head.starts_with(b"\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1") => {
            ("a .diagsession as Visual Studio wrote it before 2017 (a compound file of OLE)", OLD_SESSION)
        }
        _ if head.starts_with(b"PAR1") => ("a Parquet file", TABLE),
        _ if head.starts_with(b"ARROW1") => ("an Arrow file", TABLE),
        _ if text.starts_with(b"{") && contains(b"speedscope") => ("a profile of speedscope (JSON)", MADE_OF),
        _ if text.starts_with(b"{") && contains(b"traceEvents") => ("a trace of Chromium (JSON)", MADE_OF),
        _ if text.starts_with(b"{") || text.starts_with(b"[{") => ("JSON", RECORDING),
        _ => return None,
    })
}

const RECORDING: &str = "a recording: .nettrace, .netperf, .etl, .gcdump or .corprof";
const DUMP: &str = "a recording, or a heap dump of dotnet-gcdump (.gcdump); `dotnet-dump analyze` reads this";
const OLD_SESSION: &str = "a .diagsession that is a .zip, or the .etl in it: Visual Studio saves it anew";
const TABLE: &str = "a recording; of a dataset give its directory";
const MADE_OF: &str = "the .nettrace that it was made of";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_is_named() {
        let mut etlx = b"\x14\0\0\0!FastSerialization.1\x05\x05\x01\x4A\0\0\0\x4A\0\0\0\x2B\0\0\0".to_vec();
        etlx.extend(b"Microsoft.Diagnostics.Tracing.Etlx.TraceLog\x06");
        let elf = |kind: u8| [&b"\x7FELF\x02\x01\x01"[..], &[0; 9], &[kind, 0]].concat();
        let cases: [(&[u8], &str); 16] = [
            (&etlx, ".etlx"),
            (b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a", "Git LFS"),
            (b"PERFILE2h\0\0\0", "perf.data"),
            (b"MDMP\x93\xA7", "minidump"),
            (&elf(4), "core dump"),
            (&elf(3), "a program"),
            (b"\xCF\xFA\xED\xFE\x07\0\0\x01\x03\0\0\0\x04\0\0\0", "macOS"),
            (b"MZ\x90\0", "a program"),
            (b"\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1\0\0", ".diagsession"),
            (b"PAR1\x15", "Parquet"),
            (b"ARROW1\0\0", "Arrow"),
            (b"{\"exporter\": \"speedscope@1.3.2\", ", "speedscope"),
            (b"\xEF\xBB\xBF{\n \"$schema\":\"https://www.speedscope.app/file-format-schema.json\"", "speedscope"),
            (b"{ \"traceEvents\" : [", "Chromium"),
            (b"[{\"a\":1}]", "JSON"),
            (b"{}", "JSON"),
        ];
        for (head, expected) in cases {
            let what = known(head).map(|(what, _)| what).unwrap_or_default();
            assert!(what.contains(expected), "{expected}: {what}");
        }
        let recordings: [&[u8]; 5] = [b"", b"Nettrace\x14\0\0\0!FastSerialization.1", b"text", b".corprof", &[0; 128]];
        assert!(recordings.iter().all(|head| known(head).is_none()));
    }
}
