//! Makes a session request from the options about providers.

use tracequet::trace::source::diagnostics::port::{EventFilter, Provider, Rundown, SessionRequest, WhenFull};
use tracequet::trace::source::diagnostics::{Presets, Wanted, merge, parse_clr_events, parse_providers};
use tracequet::{Error, Result};

use super::args::{LiveArgs, RundownArg};
use super::fields::RUNTIME;
use super::stop_on::StopOn;

/// The preset that is recorded by default.
const DEFAULT: &str = "gc";
/// A heap comes in one burst, and what does not fit into the buffer is lost: about 110 bytes an object. The runtime
/// takes memory for the buffer only as it fills.
const HEAP_BUFFER_MB: u32 = 4096;
/// The keywords of the runtime that list the heap in a collection which another session asks for: GC, Type, GCHeapDump,
/// GCHeapAndTypeNames.
const HEAP_AT_END: u64 = 0x118_0001;
/// The default buffer.
const BUFFER_MB: u32 = 256;

/// The session that is asked for.
pub fn request(args: &LiveArgs, providers: Option<&str>) -> Result<SessionRequest> {
    let presets = Presets::shipped().map_err(Error::Internal)?;
    let mut wanted = Wanted::default();
    let mut names: Vec<&str> = args.wanted.iter().map(String::as_str).collect();
    names.extend(args.heap.then_some("heap"));
    names.extend(args.counters.then_some("counters"));
    let by_name = !names.is_empty();
    if !by_name && providers.is_none() && args.clrevents.is_none() {
        names.push(DEFAULT);
    }
    for name in names {
        let preset = presets.get(name).ok_or_else(|| Error::Usage(format!("--for {name}: there is no such preset")))?;
        wanted.add(preset).map_err(Error::Internal)?;
    }
    if let Some(names) = &args.clrevents {
        let more =
            parse_clr_events(names, args.clreventlevel).map_err(|why| Error::Usage(format!("--clrevents: {why}")))?;
        merge(&mut wanted.providers, vec![more]);
        wanted.stacks = true;
        wanted.rundown |= !by_name;
    }
    if let Some(text) = providers {
        let more = parse_providers(text).map_err(|why| Error::Usage(format!("--providers {text}: {why}")))?;
        merge(&mut wanted.providers, more);
        // As dotnet-trace does: only the user knows what these need.
        wanted.stacks = true;
        wanted.rundown |= !by_name;
    }
    if args.heap_at_end {
        let (name, arguments, events) = (RUNTIME.into(), String::new(), EventFilter::All);
        let provider = Provider { name, keywords: HEAP_AT_END, level: 5, arguments, events };
        merge(&mut wanted.providers, vec![provider]);
    }
    if let Some(stop_on) = &args.stop_on {
        merge(&mut wanted.providers, vec![stop_on.provider()]);
    }
    choose_events(args, &mut wanted.providers)?;
    let rundown = match args.rundown {
        Some(RundownArg::Switch(true)) => Rundown::Default,
        Some(RundownArg::Switch(false)) => Rundown::Off,
        Some(RundownArg::Keywords(keywords)) => Rundown::Keywords(keywords),
        None if wanted.rundown => Rundown::Default,
        None => Rundown::Runtime,
    };
    // A dump that lacks objects is of little use, and the program stands still meanwhile anyway.
    let has_heap = args.heap || args.heap_at_end;
    let unasked = if has_heap { WhenFull::BlockIfItCan } else { WhenFull::Drop };
    let when_full = args.when_full.map_or(unasked, WhenFull::from);
    Ok(SessionRequest {
        buffer_mb: args.buffer_size.unwrap_or(if has_heap { HEAP_BUFFER_MB } else { BUFFER_MB }),
        when_full,
        rundown,
        stacks: if args.stack || args.no_stack { args.stack } else { wanted.stacks },
        providers: wanted.providers,
    })
}

/// Sets which events of a provider are wanted.
fn choose_events(args: &LiveArgs, providers: &mut [Provider]) -> Result<()> {
    let only = args.only_events.iter().map(|(name, ids)| (name, EventFilter::Only(ids.clone())));
    let except = args.except_events.iter().map(|(name, ids)| (name, EventFilter::Except(ids.clone())));
    for (name, filter) in only.chain(except) {
        let refuse = |why: &str| Err(Error::Usage(format!("events of {name} are chosen, {why}")));
        let Some(provider) = providers.iter_mut().find(|provider| provider.name.eq_ignore_ascii_case(name)) else {
            return refuse("but it is not recorded; add it with --providers");
        };
        match (&mut provider.events, filter) {
            (events @ EventFilter::All, filter) => *events = filter,
            (EventFilter::Only(ids), EventFilter::Only(more))
            | (EventFilter::Except(ids), EventFilter::Except(more)) => {
                ids.extend(more);
            }
            _ => return refuse("by --only-events and by --except-events; use one of them"),
        }
    }
    let needed = args.stop_on.as_ref().map_or(&[][..], StopOn::event_ids);
    for provider in providers.iter_mut().filter(|provider| provider.name == RUNTIME) {
        match &mut provider.events {
            EventFilter::All => {}
            EventFilter::Only(ids) => ids.extend(needed),
            EventFilter::Except(ids) => ids.retain(|id| !needed.contains(id)),
        }
    }
    Ok(())
}

/// The session as text, with providers as `--providers` takes them.
pub fn dry_run(request: &SessionRequest) -> String {
    let mut text = String::new();
    for Provider { name, keywords, level, arguments, events } in &request.providers {
        let arguments = if arguments.is_empty() { String::new() } else { format!(":{arguments}") };
        let events = match events {
            EventFilter::All => String::new(),
            EventFilter::Only(ids) => format!(", only events {ids:?}"),
            EventFilter::Except(ids) => format!(", all events but {ids:?}"),
        };
        text.push_str(&format!("{name}:{keywords:#x}:{level}{arguments}{events}\n"));
    }
    let rundown = match request.rundown {
        Rundown::Default => "on".to_owned(),
        Rundown::Off => "off".to_owned(),
        Rundown::Runtime => "of the runtime alone".to_owned(),
        Rundown::Keywords(keywords) => format!("{keywords:#x}"),
    };
    let stacks = if request.stacks { "on" } else { "off" };
    let full = match request.when_full {
        WhenFull::Drop => "",
        WhenFull::Block => ", blocks when it is full",
        WhenFull::BlockIfItCan => ", blocks when it is full if the runtime can",
    };
    text.push_str(&format!("rundown {rundown}, stacks {stacks}, buffer {} MB{full}\n", request.buffer_mb));
    text
}
