//! One process recorded twice at once: by the recorder's callbacks and by EventPipe.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;

use tracequet::error::Problem;
use tracequet::event::{Event, EventInfo};
use tracequet::normalize::Normalizer;
use tracequet::reader::{EventType, Order, RawEvent, Thread, TraceInfo, TypeId, Visitor, nettrace};
use tracequet::source::Input;

use super::callbacks::Facts;

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

/// The recorder's library: `TRACEQUET_RECORDER`, or built now.
pub fn recorder() -> Option<&'static Path> {
    static BUILT: OnceLock<Option<PathBuf>> = OnceLock::new();
    let found = BUILT.get_or_init(|| {
        if let Some(path) = std::env::var_os("TRACEQUET_RECORDER") {
            return Some(PathBuf::from(path));
        }
        let target = std::env::current_exe().ok()?.parent()?.parent()?.parent()?.to_owned();
        let mut build = Command::new(env!("CARGO"));
        build.args(["build", "--quiet", "--package", "tracequet-recorder", "--target-dir"]).arg(&target);
        build.current_dir(env!("CARGO_MANIFEST_DIR")).status().ok().filter(|status| status.success())?;
        let (prefix, suffix) = (std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX);
        Some(target.join(format!("debug/{prefix}tracequet_recorder{suffix}")))
    });
    found.as_deref().filter(|path| path.is_file())
}

/// A process that is recorded, and where.
pub struct Dual {
    pub folder: tempfile::TempDir,
    pub child: Child,
}

impl Runtime {
    /// Starts the sample program under both recorders. `settings` of the runtime are without `DOTNET_`.
    pub fn start(&self, settings: &[(&str, &str)], environment: &[(&str, &str)], arguments: &[&str]) -> Option<Dual> {
        let recorder = recorder()?;
        let folder = tempfile::tempdir().ok()?;
        let old = self.name.starts_with("3.");
        let prefix = if old { "COMPlus_" } else { "DOTNET_" };
        let events = folder.path().join(if old { "events" } else { "events.nettrace" });
        if old {
            std::fs::create_dir(&events).ok()?;
        }
        let mut command = Command::new(&self.dotnet);
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
        command
            .env("CORECLR_ENABLE_PROFILING", "1")
            .env("CORECLR_PROFILER", "{6c1a7a1c-53a1-4b4b-9f2a-7c6f8f0f7c01}")
            .env("CORECLR_PROFILER_PATH", recorder)
            .env("DOTNET_SYSTEM_GLOBALIZATION_INVARIANT", "1")
            .env("TRACEQUET_OUTPUT", folder.path().join("app.corprof"))
            .envs(environment.iter().copied());
        Some(Dual { folder, child: command.spawn().ok()? })
    }
}

impl Dual {
    /// What the callbacks say.
    pub fn callbacks(&self) -> Facts {
        let bytes = std::fs::read(self.folder.path().join("app.corprof")).expect("the recorder wrote a file");
        super::callbacks::facts(&bytes).expect("a readable recording")
    }

    /// What the events say.
    pub fn events(&self) -> Facts {
        let path = self.folder.path().join("events.nettrace");
        let path = if path.is_file() {
            path
        } else {
            let folder = std::fs::read_dir(self.folder.path().join("events")).expect("EventPipe's folder");
            folder.flatten().map(|e| e.path()).next().expect("EventPipe wrote a file")
        };
        let mut reading = Reading::default();
        let end = nettrace::read(Input::open(&path).expect("EventPipe's file"), Order::Time, &mut reading);
        reading.facts.end = end.expect("a readable recording");
        reading.normalizer.finish(0, &mut reading.facts);
        reading.facts
    }
}

#[derive(Default)]
struct Reading {
    info: Option<TraceInfo>,
    types: Vec<EventInfo>,
    threads: Vec<Thread>,
    normalizer: Normalizer,
    facts: Facts,
}

impl Visitor for Reading {
    fn trace(&mut self, info: &TraceInfo) {
        self.info = Some(info.clone());
    }

    fn event_type(&mut self, id: TypeId, event_type: &EventType) -> bool {
        let info = EventInfo::resolve(event_type, self.info.as_ref().map_or(8, |i| i.pointer_size));
        let wanted = self.normalizer.event_type(id, &info);
        self.types.push(info);
        wanted
    }

    fn thread(&mut self, _: u32, thread: &Thread) {
        self.threads.push(thread.clone());
    }

    fn event(&mut self, raw: &RawEvent<'_>) -> ControlFlow<()> {
        let ts_ns = self.info.as_ref().and_then(|i| i.clock.since_start(raw.ticks)).unwrap_or_default();
        let (info, thread) = (&self.types[raw.event_type.0 as usize], &self.threads[raw.thread as usize]);
        self.normalizer.event(&Event { raw, info, thread, ts_ns }, 0, &mut self.facts);
        ControlFlow::Continue(())
    }

    fn problem(&mut self, problem: Problem) {
        self.facts.problems.push(problem);
    }
}
