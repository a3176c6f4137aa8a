//! Real files against TraceEvent's own baselines: every event that it prints is ours at the same time, on the same
//! processor, with as many bytes; and it counts as many events of each provider as we do, but for those that it hides.
//!
//! What it hides or shows otherwise, and nothing else:
//! - Samples of the idle thread, unless they were taken in an interrupt or a deferred call.
//! - What it uses up by itself: stacks that are events of their own, the lists of threads and of names of files at the
//!   start and the end of a session, the lists of methods and their IL maps of the runtime.
//! - Three events that its test leaves out, see `LEFT_OUT`.
//! - Ids of processes and threads of kernel events come from payloads there: they are not compared here.

use std::collections::{BTreeMap, HashMap};
use std::io::{BufRead, BufReader};
use std::path::Path;

use tracequet::trace::reader::{EtwForm, Layout};

use super::expected::shared;
use crate::support::collect::{Recording, Seen};

/// Classes and opcodes of the kernel that TraceEvent uses up.
const USED_UP: [(&str, &[u32]); 3] = [
    // Lists of threads.
    ("3d6fa8d1-fe05-11d0-9dda-00c04fd7ba7c", &[3, 4]),
    // Names of files.
    ("90cbdc39-4a3e-11d1-84f4-0000f80464e3", &[0, 32, 35, 36]),
    // Stacks.
    ("def2fe46-7bd6-4b80-bd94-f57fe20d0ce3", &[32, 34, 35, 36, 37, 38]),
];
/// The same of the runtime's providers: stacks, IL maps; of the rundown methods and IL maps.
const USED_UP_OF_RUNTIME: [(&str, &[u32]); 2] =
    [("Microsoft-Windows-DotNETRuntime", &[82, 190]), ("Microsoft-Windows-DotNETRuntimeRundown", &[144, 150])];
/// Of the session, of the configuration, of the image.
const LEFT_OUT: [(&str, &[u32]); 3] = [
    ("68fdd900-4a3e-11d1-84f4-0000f80464e3", &[80]),
    ("01853a65-418f-4f36-aefc-dc0f1d2fd235", &[18, 28]),
    ("2cb15d1d-5fc1-11d2-abe1-00a0c911f518", &[34]),
];
const PERF_INFO: &str = "ce1dbfb4-137e-4da6-87b0-3f59aa102cbc";
const SAMPLE: u32 = 46;

/// Whether TraceEvent does not show an event.
fn is_hidden(recording: &Recording, seen: &Seen) -> bool {
    let info = recording.info_of(seen);
    let (guid, id) = (info.event_type.provider_guid.expect("a GUID").to_string(), info.event_type.event_id);
    let is_in = |list: &[(&str, &[u32])], name: &str| list.iter().any(|(n, ids)| *n == name && ids.contains(&id));
    if (guid.as_str(), id) == (PERF_INFO, SAMPLE) {
        // P instruction pointer, u32 thread, u16 count, u16 flags: 1 deferred call, 2 interrupt.
        let end = &seen.payload[seen.payload.len() - 8..];
        return end[..4] == [0; 4] && end[6] & 3 == 0;
    }
    is_in(&USED_UP, &guid) || is_in(&USED_UP_OF_RUNTIME, &info.provider) || is_in(&LEFT_OUT, &guid)
}

/// The provider's name there.
fn provider(recording: &Recording, seen: &Seen) -> String {
    let info = recording.info_of(seen);
    match info.event_type.provider_guid.expect("a GUID").to_string().as_str() {
        "b3e675d7-2554-4f18-830b-2762732560de" | "bbccf6c1-6cd1-48c4-80ff-839482e37671" => "KernelTraceControl".into(),
        // Volumes, written by the merge step, are of the kernel.
        "9b79ee91-b5fd-41c0-a243-4248e266e9d0" => "Windows Kernel".into(),
        _ if is_kernel(recording, seen) => "Windows Kernel".into(),
        _ => info.provider.clone(),
    }
}

fn is_kernel(recording: &Recording, seen: &Seen) -> bool {
    let etw = match &recording.info_of(seen).event_type.layout {
        Layout::Etw(etw) => etw,
        other => panic!("{other:?}"),
    };
    etw.form == EtwForm::Classic
}

/// A line `EVENT 2,942.306: Name PID=1; TID=2; PName=x; ProceNum=2; DataLen=78; ...`: time, process, thread, processor,
/// bytes.
fn printed(line: &str) -> Option<[i64; 5]> {
    let line = line.strip_prefix("EVENT ")?;
    let (time, rest) = line.split_once(": ")?;
    let micros = time.replace([',', '.'], "").parse().ok()?;
    let value = |name: &str| {
        let text = rest.split_once(name)?.1.split_once(';')?.0.replace(',', "");
        text.parse::<i64>().ok()
    };
    Some([micros, value(" PID=")?, value(" TID=")?, value("ProceNum=")?, value("DataLen=")?])
}

fn lines(path: &Path) -> Option<Vec<String>> {
    let name = path.file_stem()?.to_string_lossy().into_owned();
    let file = std::fs::File::open(path.with_file_name(format!("{name}.traceevent-baseline.txt.gz"))).ok()?;
    Some(BufReader::new(flate2::read::MultiGzDecoder::new(file)).lines().map(|l| l.expect("a line")).collect())
}

#[test]
fn what_traceevent_counts_is_ours_but_for_what_it_hides() {
    let mut wrong = Vec::new();
    let mut files = 0;
    for file in shared("what_traceevent_counts_is_ours_but_for_what_it_hides") {
        let Some(lines) = lines(&file.path) else { continue };
        let mut theirs: BTreeMap<String, i64> = BTreeMap::new();
        for line in &lines {
            let Some((name, count)) = line.strip_prefix("COUNT ").and_then(|l| l.rsplit_once(':')) else { continue };
            let provider = name.split('/').next().unwrap_or_default().replace("MSNT_SystemTrace", "Windows Kernel");
            *theirs.entry(provider).or_default() += count.trim().parse::<i64>().expect("a count");
        }
        let recording = Recording::open(&file.path);
        let mut ours: BTreeMap<String, i64> = BTreeMap::new();
        for seen in recording.events.iter().filter(|seen| !is_hidden(&recording, seen)) {
            *ours.entry(provider(&recording, seen)).or_default() += 1;
        }
        if ours != theirs {
            wrong.push(format!("{}:\n theirs {theirs:?}\n ours   {ours:?}", file.name));
        }
        files += 1;
    }
    println!("{files} baselines");
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn what_traceevent_prints_is_ours_at_the_same_time() {
    let (mut wrong, mut all) = (Vec::new(), 0);
    for file in shared("what_traceevent_prints_is_ours_at_the_same_time") {
        let Some(lines) = lines(&file.path) else { continue };
        let recording = Recording::open(&file.path);
        let clock = recording.info.as_ref().expect("a header").clock;
        let mut ours: HashMap<[i64; 3], Vec<&Seen>> = HashMap::new();
        for seen in &recording.events {
            let ns = clock.since_start(seen.ticks).expect("a time");
            let processor = if seen.processor == u32::MAX { 0 } else { i64::from(seen.processor) };
            // Half a microsecond is rounded there up or down.
            for micros in [(ns + 499) / 1000, (ns + 500) / 1000] {
                let list = ours.entry([micros, processor, seen.payload.len() as i64]).or_default();
                if !list.last().is_some_and(|last| std::ptr::eq(*last, seen)) {
                    list.push(seen);
                }
            }
        }
        for line in &lines {
            let Some([micros, process, thread, processor, bytes]) = printed(line) else { continue };
            all += 1;
            let same_ids = |seen: &&&Seen| {
                let whose = &recording.threads[seen.thread as usize];
                is_kernel(&recording, seen) || (whose.process_id as i64, whose.thread_id as i64) == (process, thread)
            };
            let found = ours.get(&[micros, processor, bytes]).and_then(|list| list.iter().find(same_ids));
            if found.is_none() && wrong.len() < 20 {
                wrong.push(format!("{}: {}", file.name, line.chars().take(120).collect::<String>()));
            }
        }
    }
    println!("{all} events that are printed");
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}
