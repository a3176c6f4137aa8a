//! `tracequet collect`: records from processes that run, straight into tables.

use std::time::Duration;

use tracequet::error::{Error, Result};
use tracequet::event::catalog;
use tracequet::guid::Guid;
use tracequet::pipeline::{self, Convert};
use tracequet::source::live::{Live, Provider, ProviderId, Request};

use super::Outcome;
use super::args::CollectArgs;
use super::convert::{output, print};
use super::live;
use super::number::number;
use super::progress::Bar;

/// The provider that `--keywords` is about.
const RUNTIME: &str = "Microsoft-Windows-DotNETRuntime";
/// Longer names of sessions are cut by what starts them.
const MAX_NAME: usize = 200;

/// A provider as typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProviderArg {
    id: ProviderId,
    keywords: Option<u64>,
    level: u8,
}

/// Records until the session ends, and prints the summary.
pub fn run(args: CollectArgs) -> anyhow::Result<Outcome> {
    if !args.etw {
        return live::run(args);
    }
    let session = session(&args)?;
    let (as_json, quiet) = (args.output.json, args.output.quiet);
    let request = Convert { processes: args.process, manifests: args.manifest, ..output(args.output)? };
    let mut bar = Bar::new(quiet);
    let mut show = |progress: pipeline::Progress| bar.show(&session.name, progress.position, None);
    let result = pipeline::collect(&request, || start(&session), &mut show);
    bar.clear();
    print(&result?, as_json, quiet)
}

fn session(args: &CollectArgs) -> Result<Request> {
    let runtime = || ProviderArg { id: provider_id(RUNTIME), keywords: None, level: 5 };
    let asked = match args.providers.as_deref() {
        None => vec![runtime()],
        Some(text) => text
            .split(',')
            .map(|one| provider(one).map_err(|why| Error::Usage(format!("--providers {one}: {why}"))))
            .collect::<Result<_>>()?,
    };
    let wanted = |arg: ProviderArg| {
        let all = if arg.id == provider_id(RUNTIME) { args.keywords } else { u64::MAX };
        Provider { keywords: arg.keywords.unwrap_or(all), level: arg.level, id: arg.id }
    };
    let duration = args.duration.map(|ns| Duration::from_nanos(u64::try_from(ns).unwrap_or_default()));
    Ok(Request { name: args.session.clone(), providers: asked.into_iter().map(wanted).collect(), duration })
}

#[cfg(windows)]
fn start(session: &Request) -> Result<Live> {
    let live = tracequet::source::etw::start(session)?;
    tracequet::source::etw::stop_on_interrupt(live.stop())?;
    Ok(live)
}

#[cfg(not(windows))]
fn start(_: &Request) -> Result<Live> {
    let message = "live ETW sessions are on Windows only; record an .etl there (PerfView, logman or xperf) and read it \
        anywhere: tracequet convert app.etl -o out";
    Err(Error::Usage(message.into()))
}

/// Reads `NAME|GUID[:KEYWORDS[:LEVEL]]`.
pub fn provider(text: &str) -> std::result::Result<ProviderArg, String> {
    let mut parts = text.split(':');
    let name = parts.next().filter(|name| !name.is_empty()).ok_or("expected the name or the GUID of a provider")?;
    let keywords = parts.next().map(number).transpose().map_err(|e| format!("keywords: {e}"))?;
    let level = match parts.next().map(str::parse) {
        None => 5,
        Some(Ok(level @ 1..=5)) => level,
        Some(_) => return Err("level: expected 1 to 5".into()),
    };
    if parts.next().is_some() {
        return Err("expected NAME:KEYWORDS:LEVEL".into());
    }
    Ok(ProviderArg { id: provider_id(name), keywords, level })
}

/// A GUID, a name that the catalogue knows the GUID of, or one for the system to look up.
fn provider_id(name: &str) -> ProviderId {
    match Guid::parse(name).or_else(|| catalog::guid_by_name(name)) {
        Some(guid) => ProviderId::Guid(guid),
        None => ProviderId::Name(name.to_owned()),
    }
}

/// Reads the name of a session.
pub fn session_name(text: &str) -> std::result::Result<String, String> {
    let fits = !text.is_empty() && text.encode_utf16().count() <= MAX_NAME && !text.contains(char::is_control);
    fits.then(|| text.to_owned()).ok_or_else(|| format!("expected 1 to {MAX_NAME} characters"))
}

#[cfg(test)]
mod tests {
    use super::super::args::{Cli, Command};
    use super::*;
    use clap::Parser;

    fn session_of(arguments: &[&str]) -> Request {
        let all = ["tracequet", "collect", "--etw", "-o", "out"].iter().chain(arguments);
        match Cli::try_parse_from(all).unwrap().command {
            Command::Collect(args) => session(&args).unwrap(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_runtime_is_recorded_unless_others_are_named() {
        let runtime = ProviderId::Guid(Guid::parse("e13c0d23-ccbc-4e12-931b-d9cc2eee27e4").unwrap());
        let request = session_of(&[]);
        assert_eq!((request.name.as_str(), request.duration), ("tracequet", None));
        assert_eq!(request.providers, [Provider { id: runtime.clone(), keywords: 0x40_0001, level: 5 }]);

        let names = "Microsoft-Windows-DotNETRuntimeRundown:0x58:4,{E13C0D23-CCBC-4E12-931B-D9CC2EEE27E4},Some-Name";
        let request = session_of(&["--providers", names, "--keywords", "2", "--duration", "1m30s"]);
        assert_eq!(request.duration, Some(Duration::from_secs(90)));
        let rundown = ProviderId::Guid(Guid::parse("a669021c-c450-4609-a035-5af59af4df18").unwrap());
        let name = ProviderId::Name("Some-Name".into());
        assert_eq!(
            request.providers,
            [
                Provider { id: rundown, keywords: 0x58, level: 4 },
                Provider { id: runtime, keywords: 2, level: 5 },
                Provider { id: name, keywords: u64::MAX, level: 5 },
            ]
        );
    }

    #[test]
    fn providers_and_names_that_mean_nothing_are_refused() {
        for wrong in ["", ":1", "A:x", "A:1:0", "A:1:6", "A:1:5:", "A::5"] {
            assert!(provider(wrong).is_err(), "{wrong}");
        }
        let long = "x".repeat(201);
        for wrong in ["", "a\nb", &long] {
            assert!(session_name(wrong).is_err(), "{wrong}");
        }
        assert!(session_name(&long[1..]).is_ok());
    }
}
