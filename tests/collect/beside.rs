//! A process that is recorded by dotnet-trace and by us at the same time: both recordings have the same facts.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::support::collect::{Recording, Seen};
use crate::support::dual::Runtime;
use crate::support::live::{Folder, Program, each_runtime, ended, run, text, wait_for_bytes, with_time};

const PROVIDER: &str = "Microsoft-Windows-DotNETRuntime";

/// The official client, where the .NET 10 kit is.
fn dotnet_trace(runtimes: &[Runtime]) -> Option<Command> {
    let newest = runtimes.iter().find(|runtime| !runtime.is_old())?;
    let root = newest.dotnet.parent()?;
    let client = root.join("apps/dotnet-trace/dotnet-trace.dll");
    let mut command = Command::new(&newest.dotnet);
    command.arg(&client).env("DOTNET_ROOT", root).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    client.is_file().then_some(command)
}

/// One event of the runtime's provider: what both recordings have of it.
type Same = (u32, u32, Vec<u8>, Vec<u8>);

/// The events of each thread, in its order. The times differ by what lies between writing the one and the other.
fn by_thread(path: &Path) -> HashMap<u64, Vec<Same>> {
    let recording = Recording::open(path);
    assert!(recording.end.complete && recording.end.dropped_events == 0, "{}", path.display());
    let mut threads = HashMap::<u64, Vec<Same>>::new();
    let same = |event: &Seen| {
        let kind = &recording.info_of(event).event_type;
        (kind.event_id, kind.version, event.payload.clone(), event.stack.clone())
    };
    for event in recording.events.iter().filter(|event| recording.info_of(event).provider == PROVIDER) {
        threads.entry(recording.threads[event.capture_thread as usize].thread_id).or_default().push(same(event));
    }
    threads
}

#[test]
fn dotnet_trace_and_we_record_the_same() {
    let runtimes = each_runtime("dotnet-trace beside us");
    if dotnet_trace(runtimes).is_none() {
        println!("dotnet-trace beside us: skipped, there is no .NET 10 kit with dotnet-trace");
        return;
    }
    for runtime in runtimes {
        let program = Program::start(runtime, &["steps", "60000", "10"]);
        let pid = program.id().to_string();
        // Theirs has to last until ours has ended, which is up to the machine.
        with_time(&[5, 20, 60], |seconds| {
            let folder = Folder::new();
            let (theirs, ours): (PathBuf, PathBuf) = (folder.path("theirs.nettrace"), folder.path("ours.nettrace"));
            // Collections with their ranges, exceptions with stacks: nothing that the runtime reports once for all
            // sessions.
            let providers = format!("{PROVIDER}:0x408001:5");
            let mut command = dotnet_trace(runtimes).expect("the client");
            command
                .args(["collect", "-p", &pid, "--duration", &format!("00:00:00:{seconds:0>2}")])
                .args(["--providers", &providers, "-o"])
                .arg(&theirs);
            let client = command.spawn().expect("the client starts");
            wait_for_bytes(&theirs, 10_000, "dotnet-trace");
            let (out, keep) = (folder.text("out"), ours.to_string_lossy().into_owned());
            let arguments =
                ["collect", "-p", &pid, "--providers", &providers, "--duration", "2", "--keep", &keep, "-o", &out];
            let output = run(&arguments);
            assert_eq!(output.status.code(), Some(0), "{}: {}", runtime.name, text(&output));
            let output = ended(client, "dotnet-trace");
            assert!(output.status.success(), "{}: {}", runtime.name, text(&output));

            let (theirs, ours) = (by_thread(&theirs), by_thread(&ours));
            let mut compared = HashMap::<u32, usize>::new();
            for (thread, events) in &ours {
                // All but the ends: ours began and ended while theirs went on.
                let all =
                    theirs.get(thread).ok_or_else(|| format!("{}: thread {thread} is ours alone", runtime.name))?;
                if !all.windows(events.len()).any(|window| window == events) {
                    return Err(format!(
                        "{}: {} events of {thread} are not theirs in a row",
                        runtime.name,
                        events.len()
                    ));
                }
                for (id, ..) in events {
                    *compared.entry(*id).or_default() += 1;
                }
            }
            // Starts of collections, surviving and moved ranges.
            let enough = [1, 21, 22].iter().all(|id| compared.get(id).is_some_and(|count| *count > 3));
            if enough { Ok(()) } else { Err(format!("{}: {compared:?}", runtime.name)) }
        });
    }
}
