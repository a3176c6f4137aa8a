//! Finds the process to record, and its name.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use tracequet::trace::error::{Error, Named, Result};
use tracequet::trace::source::diagnostics::port::{
    Candidate, Error as PortError, Port, ProcessInfo, Target, candidates, find, process_info,
};

use super::args::LiveArgs;

/// Where the runtime is.
pub enum Place {
    /// In a process that runs.
    Process {
        /// The way to reach the runtime.
        target: Target,
        /// The process id.
        process: u32,
        /// Name of its program.
        name: String,
    },
    /// In one that connects to us.
    Port(PathBuf),
    /// In a program that is started.
    Program(Vec<OsString>),
}

impl Place {
    /// The one that the options name.
    pub fn of(args: &LiveArgs) -> Result<Place> {
        if let Some(process) = args.process_id {
            return Place::process(process);
        }
        if let Some(name) = &args.name {
            return Place::by_name(name);
        }
        if let Some(path) = &args.port {
            return Ok(Place::Port(path.clone()));
        }
        if !args.program.is_empty() {
            return Ok(Place::Program(args.program.clone()));
        }
        Err(Error::Usage("expected a process: -p PID, -n NAME, --port PATH, or a program behind --".into()))
    }

    fn process(process: u32) -> Result<Place> {
        let target = Target::Port(find(process)?);
        let info = match process_info(&target) {
            Ok(info) => info,
            // .NET Core 3.1 records, but does not say who it is, nor does a process whose arguments are longer than an
            // answer may be.
            Err(error) if error.is_refusal() => ProcessInfo::default(),
            Err(error) => return Err(error.into()),
        };
        let name = match program_name(&info) {
            name if name.is_empty() => program_of(process),
            name => name,
        };
        Ok(Place::Process { target, process, name })
    }

    fn by_name(name: &str) -> Result<Place> {
        let all = candidates()?;
        let found: Vec<u32> = all.iter().filter(|c| is_called(c, name)).map(|c| c.process).collect();
        match found.as_slice() {
            [process] => Place::process(*process),
            [] => Err(Error::NotFound { what: Named::Process, message: format!("no .NET process is called {name}") }),
            several => {
                let several: Vec<String> = several.iter().map(u32::to_string).collect();
                Err(Error::Usage(format!(
                    "{} processes are called {name}; choose one by -p: {}",
                    several.len(),
                    several.join(", ")
                )))
            }
        }
    }

    /// The name of the recording in the dataset.
    pub fn recording_name(&self) -> PathBuf {
        let name = match self {
            Place::Process { process, name, .. } if name.is_empty() => format!("process-{process}"),
            Place::Process { process, name, .. } => format!("{name}-{process}"),
            Place::Port(path) => stem(path),
            Place::Program(program) => program_in(program.iter().map(|word| word.to_string_lossy().into_owned())),
        };
        PathBuf::from(name)
    }
}

fn is_called(candidate: &Candidate, name: &str) -> bool {
    let same = |other: &str| other.eq_ignore_ascii_case(name) || other.eq_ignore_ascii_case(&format!("{name}.exe"));
    if same(&candidate.name) || same(&program_in(candidate.command_line.split(' ').map(str::to_owned))) {
        return true;
    }
    let asked = candidate.port.as_ref().ok().map(|port: &Port| process_info(&Target::Port(port.clone())));
    asked.is_some_and(|info| info.is_ok_and(|info| same(&program_name(&info))))
}

/// The name of a process for a person: its main assembly, else its program.
pub fn program_name(info: &ProcessInfo) -> String {
    if !info.entry_assembly.is_empty() {
        return info.entry_assembly.clone();
    }
    program_in(info.command_line.split(' ').map(str::to_owned))
}

/// The name in a command line: that of the assembly behind `dotnet`, else that of the program.
fn program_in(words: impl IntoIterator<Item = String>) -> String {
    let mut words = words.into_iter();
    let program = stem(Path::new(&words.next().unwrap_or_default()));
    if program.eq_ignore_ascii_case("dotnet") {
        let assembly = words.find(|word| word.to_ascii_lowercase().ends_with(".dll"));
        return assembly.map_or(program, |assembly| stem(Path::new(&assembly)));
    }
    program
}

fn stem(path: &Path) -> String {
    path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default()
}

/// The name of a process whose runtime does not say it.
fn program_of(process: u32) -> String {
    let line = std::fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
    program_in(line.split(|b| *b == 0).map(|word| String::from_utf8_lossy(word).into_owned()))
}

/// The trouble with a process that cannot be reached, in a few words.
pub fn trouble(error: &PortError) -> String {
    match error {
        PortError::Denied { owner: Some(owner), .. } => format!("belongs to {owner}"),
        PortError::Denied { owner: None, .. } => "may not be used".into(),
        PortError::Stale(_) => "no process listens at its socket".into(),
        PortError::Stranger { listener, .. } => format!("{listener} listens at its socket"),
        PortError::Link(_) => "a link stands for its socket".into(),
        PortError::NoPort { turned_off: true, .. } => "its diagnostics port is turned off".into(),
        PortError::NoPort { folder, .. } => format!("no port in {}", folder.display()),
        PortError::Silent { .. } => "does not answer".into(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_called_by_its_assembly() {
        let name = |line: &str| program_in(line.split(' ').map(str::to_owned));
        assert_eq!(name("/usr/bin/dotnet exec --x /srv/My.App.dll --port 80"), "My.App");
        assert_eq!(name("dotnet"), "dotnet");
        assert_eq!(name("/srv/app --dll a.dll"), "app");
        let info = ProcessInfo { command_line: "dotnet a.dll".into(), ..ProcessInfo::default() };
        assert_eq!(program_name(&info), "a");
        assert_eq!(program_name(&ProcessInfo { entry_assembly: "Web".into(), ..info }), "Web");
    }
}
