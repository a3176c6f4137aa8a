//! One process recorded twice at once: by the recorder's callbacks and by EventPipe.

use std::collections::{BTreeMap, HashMap};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

use tracequet::trace::error::Problem;
use tracequet::trace::reader::TraceInfo;
use tracequet::trace::reader::callback::format::{Header, kind_name};
use tracequet::trace::reader::callback::{self, Body, Record};
use tracequet::trace::source::Input;

use super::callbacks::Facts;
use super::patience::comes;

/// A runtime and the project's sample program, compiled for it.
#[derive(Clone, Debug)]
pub struct Runtime {
    pub name: String,
    pub dotnet: PathBuf,
    pub program: PathBuf,
}

fn home() -> PathBuf {
    PathBuf::from(std::env::var_os("HOME").unwrap_or_default())
}

/// Settings with an allocation budget four times as large, so that there are a quarter of the collections: for
/// recordings that list all objects of each.
pub const FEWER: [(&str, &str); 1] = [("GCgen0size", "600000")];

/// The runtimes of this machine: `DOTNET_ROOT`, .NET Core 3.1 from PyPI and a .NET 10 kit, where they are there.
pub fn runtimes() -> &'static [Runtime] {
    static FOUND: OnceLock<Vec<Runtime>> = OnceLock::new();
    FOUND.get_or_init(|| {
        let cache = std::env::var_os("XDG_CACHE_HOME").map_or_else(|| home().join(".cache"), PathBuf::from);
        let mut folders = vec![
            cache.join("tracequet/dotnetcore2-3.1.23/dotnetcore2/bin"),
            std::env::var_os("TRACEQUET_DOTNET10").map_or_else(|| cache.join("tracequet-dotnet10"), PathBuf::from),
        ];
        folders.extend(std::env::var_os("DOTNET_ROOT").map(PathBuf::from));
        folders.dedup();
        folders.iter().filter(|folder| folder.join("dotnet").is_file()).filter_map(|folder| runtime(folder)).collect()
    })
}

/// The runtimes to test with. Without one, it prints a line; in CI there is one.
pub fn each_runtime(test: &str) -> &'static [Runtime] {
    let found = if recorder().is_some() { runtimes() } else { &[] };
    if found.is_empty() {
        super::skip::skip(test, "there is no .NET runtime", super::skip::RUNTIME);
    }
    found
}

fn runtime(folder: &Path) -> Option<Runtime> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("samples/record.sh");
    let output = Command::new(script).args(["--no-install", "--program", "--runtime"]).arg(folder).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let mut lines = text.lines();
    let (dotnet, program) = (PathBuf::from(lines.next()?), PathBuf::from(lines.next()?));
    let shared = std::fs::read_dir(folder.join("shared/Microsoft.NETCore.App")).ok()?;
    let name = shared.flatten().map(|e| e.file_name().to_string_lossy().into_owned()).max()?;
    Some(Runtime { name, dotnet, program })
}

/// A file that is built with the recorder.
pub fn built(name: &str) -> Option<PathBuf> {
    recorder()?.parent().map(|folder| folder.join(name)).filter(|path| path.is_file())
}

/// The recorder's library: `TRACEQUET_RECORDER`, or built now.
pub fn recorder() -> Option<&'static Path> {
    static BUILT: OnceLock<Option<PathBuf>> = OnceLock::new();
    let found = BUILT.get_or_init(|| {
        if let Some(path) = std::env::var_os("TRACEQUET_RECORDER") {
            return Some(PathBuf::from(path));
        }
        let target = std::env::current_exe().ok()?.parent()?.parent()?.parent()?.to_owned();
        let mut build = Command::new(env!("CARGO"));
        build.args(["build", "--quiet", "--locked", "--package", "tracequet-recorder", "--target-dir"]).arg(&target);
        build.current_dir(env!("CARGO_MANIFEST_DIR")).status().ok().filter(|status| status.success())?;
        let (prefix, suffix) = (std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX);
        Some(target.join(format!("debug/{prefix}tracequet_recorder{suffix}")))
    });
    found.as_deref().filter(|path| path.is_file())
}

/// Takes the settings out of a program's environment that this process has: those of the tests are not for the
/// recorder, which says so of every name that it does not know.
pub fn without_settings(command: &mut Command) -> &mut Command {
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("TRACEQUET_")) {
        command.env_remove(name);
    }
    command
}

/// A process that is recorded, and where.
pub struct Dual {
    pub folder: tempfile::TempDir,
    pub child: Child,
    /// The collector's library that the settings name.
    collector: Option<String>,
}

impl Runtime {
    /// Whether this is a runtime of the 3.1 generation: no regions, no heap that is never collected.
    pub fn is_old(&self) -> bool {
        self.name.starts_with("3.")
    }

    /// Starts the sample program under both recorders. `settings` of the runtime are without `DOTNET_`; `{folder}` in
    /// an argument is where the recordings lie.
    pub fn start(&self, settings: &[(&str, &str)], environment: &[(&str, &str)], arguments: &[&str]) -> Dual {
        let recorder = recorder().expect("the recorder");
        let folder = tempfile::tempdir().expect("a folder");
        let old = self.is_old();
        let prefix = if old { "COMPlus_" } else { "DOTNET_" };
        let events = folder.path().join(if old { "events" } else { "events.nettrace" });
        if old {
            std::fs::create_dir(&events).expect("a folder");
        }
        let mut command = Command::new(&self.dotnet);
        let arguments = arguments.iter().map(|a| a.replace("{folder}", &folder.path().to_string_lossy()));
        command.arg(&self.program).args(arguments).stdout(Stdio::null()).stderr(Stdio::null());
        let events = events.to_string_lossy();
        let pipe = [
            ("EnableEventPipe", "1"),
            ("EventPipeOutputPath", &*events),
            ("EventPipeConfig", "Microsoft-Windows-DotNETRuntime:0x400001:5"),
            ("EventPipeCircularMB", "256"),
            ("GCgen0size", "180000"),
            ("DbgEnableMiniDump", "0"),
        ];
        for (name, value) in pipe.iter().chain(settings) {
            command.env(format!("{prefix}{name}"), value);
        }
        without_settings(&mut command)
            .env("CORECLR_ENABLE_PROFILING", "1")
            .env("CORECLR_PROFILER", "{6c1a7a1c-53a1-4b4b-9f2a-7c6f8f0f7c01}")
            .env("CORECLR_PROFILER_PATH", recorder)
            .env("DOTNET_SYSTEM_GLOBALIZATION_INVARIANT", "1")
            .env("TRACEQUET_OUTPUT", folder.path().join("app.corprof"))
            .envs(environment.iter().copied());
        let collector = settings.iter().find(|(name, _)| *name == "GCName").map(|(_, library)| (*library).to_owned());
        Dual { folder, child: command.spawn().expect("a program that starts"), collector }
    }
}

impl Dual {
    /// Waits until the program ended by itself. It has loaded the collector that the settings name.
    pub fn ended(mut self) -> Dual {
        let maps = format!("/proc/{}/maps", self.child.id());
        let has_loaded = |library: &String| std::fs::read_to_string(&maps).is_ok_and(|maps| maps.contains(library));
        let mut is_loaded = false;
        let has_ended = comes(Duration::from_secs(120), || {
            is_loaded |= self.collector.as_ref().is_some_and(has_loaded);
            self.child.try_wait().expect("a child").is_some()
        });
        if !has_ended {
            self.child.kill().ok();
            panic!("the program does not end");
        }
        if let Some(library) = &self.collector {
            assert!(is_loaded, "the program did not load {library}");
        }
        self
    }

    /// Where the recorder writes.
    pub fn recording(&self) -> PathBuf {
        self.folder.path().join("app.corprof")
    }

    /// What the callbacks say.
    pub fn callbacks(&self) -> Facts {
        let bytes = std::fs::read(self.recording()).expect("the recorder wrote a file");
        super::callbacks::facts(&bytes).expect("a readable recording")
    }

    /// Where EventPipe writes.
    pub fn events_path(&self) -> PathBuf {
        let path = self.folder.path().join("events.nettrace");
        if path.is_file() {
            return path;
        }
        let folder = std::fs::read_dir(self.folder.path().join("events")).expect("EventPipe's folder");
        folder.flatten().map(|e| e.path()).next().expect("EventPipe wrote a file")
    }

    /// What the events say that are written so far, where they are written while they come.
    pub fn events_so_far(&self) -> Option<Facts> {
        let input = Input::open(&self.folder.path().join("events.nettrace")).ok()?;
        super::events::facts(input).ok()
    }

    /// What the events say.
    pub fn events(&self) -> Facts {
        events(&self.events_path())
    }
}

/// What the events in a file say.
pub fn events(path: &Path) -> Facts {
    super::events::facts(Input::open(path).expect("EventPipe's file")).expect("a readable recording")
}

/// The bounds at the end of a collection: of all generations (generation, start, length, reserved), and of the heap
/// that is never collected (start, length, reserved).
pub type Ends = (Vec<[u64; 4]>, Vec<[u64; 3]>);

/// A recording of callbacks as it is, before anyone makes sense of it.
#[derive(Default)]
pub struct Raw {
    pub header: Header,
    /// Records of each kind.
    pub kinds: BTreeMap<&'static str, usize>,
    /// Ranges in all.
    pub ranges: usize,
    /// For each collection that ended.
    pub ends: Vec<Ends>,
    /// Names of the classes that were unloaded, and of functions.
    pub unloaded: Vec<String>,
    names: HashMap<u64, String>,
    pub problems: Vec<Problem>,
}

impl Raw {
    pub fn count(&self, kind: &str) -> usize {
        self.kinds.get(kind).copied().unwrap_or_default()
    }
}

impl callback::Visitor for Raw {
    fn trace(&mut self, header: &Header, _: &TraceInfo) {
        self.header = header.clone();
    }

    fn record(&mut self, record: &Record<'_>) -> ControlFlow<()> {
        *self.kinds.entry(kind_name(record.kind).unwrap_or("unknown")).or_default() += 1;
        match record.body {
            Body::Surviving { rows, .. } => self.ranges += rows.len(),
            Body::Moved { rows, .. } => self.ranges += rows.len(),
            Body::Finished { bounds } => self.ends.push((bounds.rows.to_vec(), bounds.non_gc.to_vec())),
            Body::Class { class_id: id, name, .. } | Body::Function { function_id: id, name, .. } => {
                self.names.insert(id, name.to_owned());
            }
            Body::ClassUnloaded { class_id: id } | Body::FunctionUnloaded { function_id: id } => {
                self.unloaded.extend(self.names.remove(&id));
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }

    fn problem(&mut self, problem: Problem) {
        self.problems.push(problem);
    }
}

/// What a recording of callbacks holds.
pub fn raw(path: &Path) -> Raw {
    let mut raw = Raw::default();
    callback::read(Input::open(path).expect("a recording"), &mut raw).expect("a readable recording");
    raw
}
