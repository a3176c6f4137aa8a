//! `tracequet collect`: records running processes into tables.

use std::time::Duration;

use tracequet::Result;
use tracequet::trace::source::diagnostics::{ProviderText, parse_provider_texts};
use tracequet::trace::source::live::{Live, Provider, Request};

use super::args::CollectArgs;
use super::convert::{output, print};
use super::live;
use super::prelude::*;
use super::progress::Bar;
use super::values::provider_id;

/// The provider that `--keywords` is about.
const RUNTIME: &str = "Microsoft-Windows-DotNETRuntime";
/// The level of a provider without one.
const VERBOSE: u8 = 5;

/// Records until the session ends, and prints the summary.
pub fn run(args: CollectArgs) -> anyhow::Result<Outcome> {
    if !args.etw {
        return live::run(args);
    }
    let session = session(&args)?;
    let (as_json, quiet) = (args.output.json, args.output.quiet);
    let request = output(args.output)?.processes(args.process).manifests(args.manifest);
    let mut bar = Bar::new(quiet);
    let mut show = |progress: tracequet::Progress| bar.show(&session.name, progress.position, None);
    let result = tracequet::collect_etw(&request, || start(&session), &mut show);
    bar.clear();
    print(&result?, as_json, quiet)
}

fn session(args: &CollectArgs) -> Result<Request> {
    let wanted = |ProviderText { name, keywords, level, arguments }: ProviderText| {
        let id = provider_id(&name);
        let all = if id == provider_id(RUNTIME) { args.keywords } else { u64::MAX };
        let level = u8::try_from(level).ok().filter(|level| (1..=VERBOSE).contains(level));
        match (level, arguments.is_empty()) {
            (Some(level), true) => Ok(Provider { id, keywords: keywords.unwrap_or(all), level }),
            (None, _) => Err(format!("{name}: a session of ETW has the levels 1 to 5")),
            (_, false) => Err(format!("{name}: arguments are for providers of a diagnostics port, not with --etw")),
        }
    };
    let providers = match args.providers.as_deref() {
        None => vec![Provider { id: provider_id(RUNTIME), keywords: args.keywords, level: VERBOSE }],
        Some(text) => parse_provider_texts(text)
            .and_then(|asked| asked.into_iter().map(wanted).collect())
            .map_err(|why| Error::Usage(format!("--providers {text}: {why}")))?,
    };
    let duration = args.duration.map(|ns| Duration::from_nanos(u64::try_from(ns).unwrap_or_default()));
    Ok(Request { name: args.session.clone(), providers, duration })
}

#[cfg(windows)]
fn start(session: &Request) -> Result<Live> {
    let live = tracequet::trace::source::etw::start(session)?;
    tracequet::trace::source::etw::stop_on_interrupt(live.stop())?;
    Ok(live)
}

#[cfg(not(windows))]
fn start(_: &Request) -> Result<Live> {
    let message = "live ETW sessions are on Windows only; record an .etl there (PerfView, logman or xperf) and read it \
        anywhere: tracequet convert app.etl -o out";
    Err(Error::Usage(message.into()))
}

#[cfg(test)]
mod tests {
    use super::super::args::{Cli, Command};
    use super::*;
    use clap::Parser;
    use tracequet::trace::guid::Guid;
    use tracequet::trace::source::live::ProviderId;

    fn try_session_of(arguments: &[&str]) -> Result<Request> {
        let all = ["tracequet", "collect", "--etw", "-o", "out"].iter().chain(arguments);
        match Cli::try_parse_from(all).unwrap().command {
            Command::Collect(args) => session(&args),
            other => panic!("{other:?}"),
        }
    }

    fn session_of(arguments: &[&str]) -> Request {
        try_session_of(arguments).unwrap()
    }

    /// Options that are typed for one way of recording mean the same for the other.
    #[test]
    fn providers_are_written_alike_for_a_port_and_for_etw() {
        let text = "A,B:10,C:0x10:Warning,D::5,E:1:verbose";
        let of_port = tracequet::trace::source::diagnostics::parse_providers(text).unwrap();
        let of_port: Vec<_> = of_port.into_iter().map(|p| (p.name, p.keywords, p.level)).collect();
        let name = |id| match id {
            ProviderId::Name(name) => name,
            ProviderId::Guid(guid) => guid.to_string(),
        };
        let of_etw = session_of(&["--providers", text]).providers;
        let of_etw: Vec<_> = of_etw.into_iter().map(|p| (name(p.id), p.keywords, u32::from(p.level))).collect();
        assert_eq!(of_etw, of_port);
        assert_eq!(of_etw[1..3], [("B".to_owned(), 0x10, 4), ("C".to_owned(), 0x10, 3)]);
        for wrong in ["", ":1", "A:x", "A:1:0", "A:1:loud", "A:1:4:X=1"] {
            let error = try_session_of(&["--providers", wrong]).unwrap_err().to_string();
            assert!(error.starts_with("--providers"), "{wrong}: {error}");
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
                Provider { id: runtime, keywords: 2, level: 4 },
                Provider { id: name, keywords: u64::MAX, level: 4 },
            ]
        );
    }
}
