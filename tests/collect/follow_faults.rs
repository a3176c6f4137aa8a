//! What `tracequet collect --follow` leaves when something goes wrong: what was published stays readable, and the loss
//! is reported.

use std::io::Write;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::support::dataset::Table;
use crate::support::fake_runtime::{Answers, start};
use crate::support::files::{files, names, sample};
use crate::support::killed::{NAMES, killed_at};
use crate::support::live::{Folder, ended, run, text, tracequet};
use crate::support::patience::{comes, wait_for};
use crate::support::skip::{MOUNTS, can_trace, skip};
use crate::support::writer::{Form, Kind, Row, Writer};

const KIND: Kind<'_> = Kind { id: 1, provider: "A", event_id: 1, version: 0, name: "One" };
/// By the columns of its payload, which has none.
const TABLE: &str = "event/A/One.e3b0c442";

/// A made-up recording that is sent piece by piece.
struct Sender {
    recording: Writer,
    sent: usize,
    /// The number of the next event.
    next: u32,
    stream: UnixStream,
}

impl Sender {
    fn new(stream: UnixStream) -> Sender {
        let mut recording = Writer::new(Form::V4);
        recording.metadata(&[KIND]);
        Sender { recording, sent: 0, next: 1, stream }
    }

    /// A block of events more.
    fn events(&mut self, count: u32) -> &mut Sender {
        let row = |n| Row {
            metadata_id: 1,
            sequence: n,
            capture_thread: 5,
            thread: 5,
            ticks: i64::from(n),
            // As runtimes mark the last event of a block.
            sorted: n + 1 == self.next + count,
            ..Row::default()
        };
        self.recording.events(&(self.next..self.next + count).map(row).collect::<Vec<_>>());
        self.next += count;
        self
    }

    /// Sends what was not sent yet, but for the last bytes. Returns whether it was read.
    fn send_but(&mut self, last: usize) -> bool {
        let until = self.recording.bytes.len() - last;
        let sent = self.stream.write_all(&self.recording.bytes[self.sent..until]).is_ok();
        self.sent = until;
        sent
    }

    fn send(&mut self) {
        assert!(self.send_but(0), "there is no reader");
    }
}

/// The files that recordings have of a table, without the one that has no rows.
fn parts(out: &Path, table: &str) -> Vec<PathBuf> {
    let recorded = names(&out.join(table)).into_iter().filter(|name| !name.starts_with("trace=none/"));
    recorded.map(|name| out.join(table).join(name)).collect()
}

fn rows(out: &Path, table: &str) -> usize {
    parts(out, table).iter().map(|part| Table::open(part).rows()).sum()
}

fn wait_for_parts(out: &Path, count: usize) {
    wait_for_parts_of("", out, count);
}

/// Waits until the recording whose key begins with `key` has this many parts.
fn wait_for_parts_of(key: &str, out: &Path, count: usize) {
    let own = format!("trace={key}");
    let is_own = |part: &PathBuf| part.to_string_lossy().contains(&own);
    wait_for("a part", || parts(out, TABLE).into_iter().filter(is_own).count() >= count);
}

/// Begins `collect --follow` of a made-up runtime.
fn begin(
    folder: &Folder,
    (port, out): (&str, &str),
    session: impl Fn(Sender) + Send + Sync + 'static,
) -> std::process::Child {
    let (at, keep) = (folder.text(port), folder.text(&format!("{port}.nettrace")));
    let arguments = ["collect", "--port", &at, "--follow=1s", "--keep", &keep, "-o", &folder.text(out)];
    let collect = tracequet(&arguments).spawn().expect("it starts");
    start(&folder.path(port), Answers::Right, Arc::new(move |stream, _| session(Sender::new(stream))));
    collect
}

fn verified(out: &Path) {
    let said = text(&run(&["dataset", "verify", &out.to_string_lossy()]));
    assert!(said.contains(" 0 wrong"), "{said}");
}

/// The rows of the kept recording, converted by itself.
fn rows_of_kept(folder: &Folder, port: &str, table: &str) -> usize {
    let again = folder.text("again");
    let output =
        run(&["convert", &folder.text(&format!("{port}.nettrace")), "--layout", "hive", "--overwrite", "-o", &again]);
    assert_eq!(output.status.code(), Some(2), "{}", text(&output));
    rows(&folder.path("again"), table)
}

#[test]
fn damage_between_parts_and_a_stream_that_is_cut_cost_only_themselves() {
    let folder = Folder::new();
    let out = folder.path("out");
    let has_gone_on = Arc::new(AtomicBool::new(false));
    let collect = begin(&folder, ("port", "out"), {
        let (out, has_gone_on) = (out.clone(), has_gone_on.clone());
        move |mut sender| {
            sender.events(30).send();
            wait_for_parts(&out, 1);
            // A hole, an end in mid-block, and garbage behind it.
            sender.recording.bytes.extend([0x55; 5000]);
            sender.events(40).send();
            wait_for_parts(&out, 2);
            has_gone_on.store(true, Ordering::Release);
            sender.events(500).send_but(300);
            sender.stream.write_all(&[0xAA; 1000]).ok();
        }
    });
    let output = ended(collect, "a damaged stream");
    let said = text(&output);
    assert!(has_gone_on.load(Ordering::Acquire), "nothing was published behind the hole: {said}");
    assert!(output.status.code() == Some(2) && said.contains("damaged"), "{said}");
    let found = (rows(&out, TABLE), rows(&out, "diagnostic"));
    assert!(found.0 >= 70 && found.1 > 0, "{found:?}");
    assert_eq!(found, (rows_of_kept(&folder, "port", TABLE), rows_of_kept(&folder, "port", "diagnostic")));
    assert_eq!(parts(&out, TABLE).len(), 1, "the whole took their place");
    verified(&out);
    let list = text(&run(&["dataset", "list", &out.to_string_lossy()]));
    assert!(list.contains("losses") && !list.contains("unfinished"), "{list}");
}

/// The directory is moved away, or something else takes its place, while parts are written. False where a part was
/// published in the moment between the two, so that there was nothing for it.
fn takes_away(replaced_by: Option<&'static str>) -> bool {
    let folder = Folder::new();
    let (out, moved, other) = (folder.path("out"), folder.path("moved"), folder.path("other"));
    let is_dataset = replaced_by == Some("a dataset");
    if is_dataset {
        let arguments = ["convert", "-q", "--layout", "hive", "-o"];
        let (input, other) = (sample("events.nettrace"), other.to_string_lossy());
        run(&[&arguments[..], &[&*other, &*input.to_string_lossy()]].concat());
    } else if replaced_by.is_some() {
        std::fs::create_dir(&other).expect("a directory");
    }
    let collect = begin(&folder, ("port", "out"), {
        let (out, moved) = (out.clone(), moved.clone());
        move |mut sender| {
            sender.events(30).send();
            wait_for_parts(&out, 1);
            std::fs::rename(&out, &moved).expect("a move");
            if replaced_by.is_some() {
                std::fs::rename(&other, &out).expect("a move");
            }
            // Until the recorder has closed the connection, or the other dataset has parts.
            let is_taken = || is_dataset && !parts(&out, TABLE).is_empty();
            wait_for("an end of the recording", || !sender.events(5).send_but(0) || is_taken());
        }
    });
    let output = ended(collect, "a dataset that is taken away");
    let said = text(&output);
    assert_eq!(rows(&moved, TABLE), 30, "{replaced_by:?}");
    let list = text(&run(&["dataset", "list", &moved.to_string_lossy()]));
    assert!(list.contains("unfinished"), "{replaced_by:?}: {list}");
    let kept = rows_of_kept(&folder, "port", TABLE);
    // What was recorded is in the file that was kept.
    assert!(kept >= 30, "{replaced_by:?}: {kept}");
    let is_told = said.contains("out") && said.contains("No such file or directory");
    if is_dataset && !is_told {
        // It is one more recording of that one, and whole. The stream was cut.
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert_eq!((rows(&out, TABLE), parts(&out, TABLE).len()), (kept, 1));
        verified(&out);
        return true;
    }
    assert!(output.status.code() == Some(1) && is_told, "{replaced_by:?}: {:?} {said}", output.status);
    !is_dataset
}

#[test]
fn a_dataset_that_is_taken_away_ends_the_recording_and_stays_readable() {
    assert!(takes_away(None));
    assert!(takes_away(Some("an empty directory")));
    assert!((0..5).any(|_| takes_away(Some("a dataset"))));
}

#[test]
fn several_writers_of_one_dataset_lose_nothing_of_each_other() {
    let folder = Folder::new();
    let out = folder.path("out");
    let session = |out: PathBuf, port: String| {
        move |mut sender: Sender| {
            for part in 1..=3 {
                sender.events(10).send();
                wait_for_parts_of(&port, &out, part);
            }
            let end = sender.recording.end();
            sender.recording.bytes = end;
            sender.send();
        }
    };
    let children = ["one", "other"].map(|port| begin(&folder, (port, "out"), session(out.clone(), port.to_owned())));
    wait_for_parts(&out, 1);
    let refused =
        run(&["convert", &sample("events.nettrace").to_string_lossy(), "--overwrite", "-o", &folder.text("out")]);
    let said = text(&refused);
    assert!(refused.status.code() == Some(1) && said.contains("which tracequet did not write"), "{said}");
    let arguments = ["convert", "-q", "--append", "--tables", "gc", "-o", &folder.text("out")];
    let added = run(&[&arguments[..], &[&*sample("gc-churn.nettrace").to_string_lossy()]].concat());
    assert_eq!(added.status.code(), Some(0), "{}", text(&added));
    for child in children {
        let output = ended(child, "one of two recordings");
        assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    }
    assert_eq!((rows(&out, TABLE), parts(&out, TABLE).len()), (60, 2));
    assert_eq!(files(&out.join("manifest")).keys().filter(|name| name.ends_with(".json")).count(), 3);
    verified(&out);
}

#[test]
fn a_full_disk_under_parts_is_told_and_what_was_published_stays() {
    let folder = Folder::new();
    let (small, copy) = (folder.path("small"), folder.path("copy"));
    std::fs::create_dir(&small).expect("a directory");
    let script = "mount -t tmpfs -o size=140k none \"$SMALL\" 2>/dev/null || exit 77
        \"$TRACEQUET\" collect --port \"$PORT\" --follow=1s --tables gc,event/A -o \"$SMALL/out\"; echo \"code $?\"; cp -r \"$SMALL/out\" \"$COPY\"";
    let mut collect = Command::new("unshare");
    collect.args(["--map-root-user", "--mount", "sh", "-c", script]).env("SMALL", &small).env("COPY", &copy);
    // The recording is kept there, as its tables cannot be written.
    let kept = folder.path("kept");
    std::fs::create_dir(&kept).expect("a directory");
    collect.env("TMPDIR", &kept);
    collect.env("TRACEQUET", env!("CARGO_BIN_EXE_tracequet")).env("PORT", folder.path("port"));
    let collect = collect.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let Ok(collect) = collect else {
        return skip("a_full_disk_under_parts", "no unshare", "`apt-get install util-linux`");
    };
    // The small disk is seen from here through the root of the process.
    let seen = PathBuf::from(format!("/proc/{}/root{}/out", collect.id(), small.display()));
    let session = move |stream: UnixStream, _| {
        let mut sender = Sender::new(stream);
        sender.events(2000).send();
        wait_for_parts(&seen, 1);
        wait_for("an end of the recording", || !sender.events(2000).send_but(0));
    };
    let ports = start(&folder.path("port"), Answers::Right, Arc::new(session));
    let output = ended(collect, "a full disk under parts");
    let said = text(&output);
    if output.status.code() == Some(77) {
        drop(ports);
        return skip("a_full_disk_under_parts", "mounting is not allowed here", MOUNTS);
    }
    assert!(said.contains("code 1") && said.contains("No space left on device"), "{said}");
    let kept: Vec<String> = files(&kept).into_keys().collect();
    assert!(kept.len() == 1 && said.contains(&kept[0]) && kept[0].ends_with(".nettrace"), "{kept:?} {said}");
    let published = rows(&copy, TABLE);
    assert!(published >= 2000, "{published} {said}");
    assert!(!files(&copy).keys().any(|name| name.starts_with(".recording")), "{:?}", files(&copy).keys());
    let list = text(&run(&["dataset", "list", &copy.to_string_lossy()]));
    assert!(list.contains("unfinished"), "{list}");
    verified(&copy);
}

/// What a recorder leaves that is killed at its `nth` step, and how it ended.
fn left_by_kill(folder: &Folder, nth: usize) -> Output {
    let (port, out) = (folder.path("port"), folder.path("out"));
    let mut collect = killed_at(NAMES, nth);
    collect.args(["collect", "--tables", "gc,event/A", "--follow=1s"]);
    let collect = collect
        .arg("--port")
        .arg(&port)
        .arg("-o")
        .arg(&out)
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("strace");
    let session = move |stream: UnixStream, _| {
        let mut sender = Sender::new(stream);
        for part in 1..3 {
            if !sender.events(10).send_but(0) {
                return;
            }
            comes(Duration::from_secs(4), || parts(&out, TABLE).len() >= part);
        }
        let end = sender.recording.end();
        sender.recording.bytes = end;
        sender.send_but(0);
    };
    start(&port, Answers::Right, Arc::new(session));
    ended(collect, "a recorder that is killed")
}

#[test]
fn a_kill_at_any_step_of_a_part_leaves_what_was_published() {
    if !can_trace("a_kill_at_any_step_of_a_part_leaves_what_was_published") {
        return;
    }
    // Each waits for its parts most of the time.
    const AT_ONCE: usize = 12;
    let (mut kills, mut begun) = (0, 0);
    while kills == begun {
        let one = |nth: usize| {
            let folder = Folder::new();
            let output = left_by_kill(&folder, nth);
            let out = folder.path("out");
            if out.join("manifest.json").is_file() {
                let list = run(&["dataset", "list", &out.to_string_lossy()]);
                assert_eq!(list.status.code(), Some(0), "kill {nth}: {}", text(&list));
            }
            for part in parts(&out, TABLE) {
                assert_eq!(Table::open(&part).rows() % 10, 0, "kill {nth}");
            }
            let published = rows(&out, TABLE);
            // The next run takes away what was not published, and nothing else.
            let arguments = ["convert", "-q", "--append", "--tables", "gc", "-o", &folder.text("out")];
            let added = run(&[&arguments[..], &[&*sample("gc-churn.nettrace").to_string_lossy()]].concat());
            assert_eq!(added.status.code(), Some(0), "kill {nth}: {}", text(&added));
            assert_eq!(rows(&out, TABLE), published, "kill {nth}");
            assert!(!files(&out).keys().any(|name| name.starts_with('.')), "kill {nth}: {:?}", files(&out).keys());
            verified(&out);
            output.status.code() != Some(0)
        };
        let killed = std::thread::scope(|scope| {
            let steps = (begun..begun + AT_ONCE).map(|step| scope.spawn(move || one(step * 3 + 1)));
            let steps: Vec<_> = steps.collect();
            steps.into_iter().map(|step| step.join().expect("a step")).filter(|killed| *killed).count()
        });
        (kills, begun) = (kills + killed, begun + AT_ONCE);
        assert!(begun < 300, "it does not end");
    }
    assert!(kills > 5, "{kills}");
}
