//! `tracequet collect`: records running processes into tables.

use std::time::Duration;

use crate::trace::error::{Error, Result};
use crate::trace::source::live::{Live, Provider, Request};

use super::args::CollectArgs;
use super::convert::{output, print};
use super::live;
use super::output::Outcome;
use super::progress::Bar;
use super::values::{ProviderArg, provider, provider_id};

/// The provider that `--keywords` is about.
const RUNTIME: &str = "Microsoft-Windows-DotNETRuntime";
/// Records until the session ends, and prints the summary.
pub fn run(args: CollectArgs) -> anyhow::Result<Outcome> {
    if !args.etw {
        return live::run(args);
    }
    let session = session(&args)?;
    let (as_json, quiet) = (args.output.json, args.output.quiet);
    let request = output(args.output)?.processes(args.process).manifests(args.manifest);
    let mut bar = Bar::new(quiet);
    let mut show = |progress: crate::Progress| bar.show(&session.name, progress.position, None);
    let result = crate::collect(&request, || start(&session), &mut show);
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
    let live = crate::trace::source::etw::start(session)?;
    crate::trace::source::etw::stop_on_interrupt(live.stop())?;
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
    use crate::trace::guid::Guid;
    use crate::trace::source::live::ProviderId;
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
}
