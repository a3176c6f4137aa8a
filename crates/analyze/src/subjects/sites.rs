//! Call sites of a recording: their own code, and what their frames are.

use crate::prelude::*;

use arrow_array::RecordBatch;

use super::texts::Texts;

/// Call sites (12 bytes each), frames (8 bytes each) and bytes of names that are remembered.
const MOST_SITES: usize = 4 << 20;
const MOST_FRAMES: usize = 1 << 20;
const MOST_BYTES: usize = 32 << 20;

/// Frames of a stack that are looked at.
const MOST_DEPTH: usize = 1024;

/// What a method is, as far as rules ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Is {
    /// The outermost methods of a worker of the thread pool, which run what it is given. Who gives it something calls others of its methods.
    PoolWorker = 1,
    /// Blocks until a task is done.
    TaskWait = 2,
    /// Makes a string of others.
    MakesString = 4,
    /// Puts a value into an object.
    Boxes = 8,
    /// Takes a lock.
    Locks = 16,
    /// Reports what happens: activities, listeners and events.
    Reports = 32,
    /// Makes arrays for a pool, or as the shared pool does.
    Rents = 64,
    /// Runs when an object is finalized.
    Finalizes = 128,
    /// Works in native code, so that a thread that is outside of managed code does not wait.
    WorksInNative = 256,
    /// Sends a request of HTTP.
    CallsHttp = 512,
    /// Starts a thread and waits until it runs.
    StartsThread = 1024,
    /// Sleeps.
    Sleeps = 2048,
    /// Reads or writes a file or a socket.
    DoesIo = 4096,
    /// Waits until there is something to do: a worker without work, the thread of timers.
    Idles = 8192,
    /// Takes a lock that several readers share, which writes waits and no events of locks.
    SharesLock = 16384,
    /// Runs what a timer fires.
    Timers = 32768,
    /// Writes to a log.
    Logs = 65536,
    /// Sets up a host and its server.
    Hosts = 131_072,
}

/// Beginnings of the names of such methods.
const KINDS: &[(&str, Is)] = &[
    ("System.Diagnostics.", Is::Reports),
    ("System.Threading.TimerQueue", Is::Timers),
    ("Microsoft.Extensions.Logging.Logger.", Is::Logs),
    ("Microsoft.Extensions.Logging.Logger`1", Is::Logs),
    ("Microsoft.Extensions.Logging.LoggerMessage", Is::Logs),
    ("Microsoft.Extensions.Logging.LoggerExtensions.", Is::Logs),
    ("Microsoft.AspNetCore.", Is::Hosts),
    ("Microsoft.Extensions.", Is::Hosts),
    ("System.Threading.Thread.Sleep", Is::Sleeps),
    ("System.Threading.LowLevelLifoSemaphore.", Is::Idles),
    ("System.Threading.PortableThreadPool+GateThread.", Is::Idles),
    ("System.Threading.PortableThreadPool+IOCompletionPoller.", Is::Idles),
    ("System.Threading.TimerQueue.TimerThread", Is::Idles),
    ("System.Net.Sockets.", Is::DoesIo),
    ("System.IO.RandomAccess.", Is::DoesIo),
    ("System.IO.FileStream.", Is::DoesIo),
    ("System.IO.Pipes.", Is::DoesIo),
    ("System.IO.Strategies.", Is::DoesIo),
    ("Microsoft.Win32.SafeHandles.SafeFileHandle.", Is::DoesIo),
    ("System.ConsolePal", Is::DoesIo),
    ("System.Buffers.SharedArrayPool`1", Is::Rents),
    ("System.Buffers.ConfigurableArrayPool`1", Is::Rents),
    ("System.GC.<AllocateUninitializedArray>", Is::Rents),
    ("System.GC.AllocateUninitializedArray", Is::Rents),
    ("System.Threading.Thread.StartCore", Is::StartsThread),
    ("System.Threading.Thread.Start(", Is::StartsThread),
    ("System.Threading.Thread.UnsafeStart(", Is::StartsThread),
    ("System.Net.Http.HttpClient.", Is::CallsHttp),
    ("System.Net.Http.HttpMessageInvoker.", Is::CallsHttp),
    ("System.Net.Http.Json.", Is::CallsHttp),
    ("Interop+Crypto", Is::WorksInNative),
    ("Interop+AppleCrypto", Is::WorksInNative),
    ("Interop+BCrypt", Is::WorksInNative),
    ("Interop+ZLib", Is::WorksInNative),
    ("Interop+Zlib", Is::WorksInNative),
    ("Interop+Brotli", Is::WorksInNative),
    ("Interop+Globalization", Is::WorksInNative),
    ("System.Threading.PortableThreadPool+WorkerThread.WorkerThreadStart", Is::PoolWorker),
    ("System.Threading.ThreadPoolWorkQueue.Dispatch", Is::PoolWorker),
    ("System.Threading._ThreadPoolWaitCallback.", Is::PoolWorker),
    ("System.Threading.Tasks.Task.Wait", Is::TaskWait),
    ("System.Threading.Tasks.Task.InternalWait", Is::TaskWait),
    ("System.Threading.Tasks.Task.SpinThenBlockingWait", Is::TaskWait),
    ("System.Runtime.CompilerServices.TaskAwaiter.HandleNonSuccess", Is::TaskWait),
    ("System.Threading.Monitor.Enter", Is::Locks),
    ("System.Threading.Monitor.TryEnter", Is::Locks),
    ("System.Threading.Lock.", Is::Locks),
    ("System.Threading.ReaderWriterLock", Is::Locks),
    ("System.Threading.ReaderWriterLock", Is::SharesLock),
    ("System.String.Concat", Is::MakesString),
    ("System.String.Format", Is::MakesString),
    ("System.String.Join", Is::MakesString),
    ("System.String.Substring", Is::MakesString),
    ("System.String.Replace", Is::MakesString),
    ("System.String.Split", Is::MakesString),
    ("System.String.Insert", Is::MakesString),
    ("System.String.Remove", Is::MakesString),
    ("System.String.ToUpper", Is::MakesString),
    ("System.String.ToLower", Is::MakesString),
    ("System.String.Trim", Is::MakesString),
    ("System.String.Pad", Is::MakesString),
    // Not the constructor that repeats a character: no text goes into it.
    ("System.String.Ctor(wchar[", Is::MakesString),
    ("System.String.Ctor(wchar*", Is::MakesString),
    ("System.String.Ctor(value class System.ReadOnlySpan", Is::MakesString),
    ("System.String.CtorCharArray", Is::MakesString),
    ("System.String.CtorCharPtr", Is::MakesString),
    ("System.String.CtorReadOnlySpan", Is::MakesString),
    ("System.String.Create", Is::MakesString),
    ("System.Text.StringBuilder.", Is::MakesString),
    ("System.Runtime.CompilerServices.DefaultInterpolatedStringHandler.", Is::MakesString),
    ("System.Number.", Is::MakesString),
    ("System.Runtime.CompilerServices.BoxingHelpers.", Is::Boxes),
    ("System.Runtime.CompilerServices.CastHelpers.Box", Is::Boxes),
    ("System.Runtime.CompilerServices.RuntimeHelpers.Box", Is::Boxes),
];

row!(struct CallsiteRow of callsite { callsite_id, parent_callsite_id, frame_id, own_callsite_id });

row!(struct FrameRow of frame { frame_id, name, written_name, inlined_into, may_belong_to, file, line });

/// Beginnings of the names of methods of .NET.
const FRAMEWORK: [&str; 4] = ["System.", "Microsoft.", "Internal.", "Interop"];

/// Beginnings of the names of methods of other loggers.
const LOGGERS: [&str; 4] = ["Serilog.Core.", "Serilog.Log.", "NLog.Logger", "log4net.Core."];

/// Methods of collections that look for a key.
const LOOKUPS: [&str; 4] = ["].FindValue(", "].TryInsert(", "].FindItemIndex(", "].AddIfNotPresent("];

/// The first type argument of a collection that looks for a key; references of all types have one code, which does not say it.
fn key_of(name: &str) -> Option<&str> {
    let arguments = name.strip_prefix("System.Collections.Generic.")?.split_once('[')?.1;
    let key = arguments.split([',', ']']).next()?;
    let is_known = LOOKUPS.iter().any(|end| name.contains(end)) && !key.ends_with("__Canon") && !key.contains('[');
    is_known.then_some(key)
}

/// Whether a method is one of .NET, as far as its name says.
pub(crate) fn is_of_framework(method: &str) -> bool {
    FRAMEWORK.iter().any(|start| method.starts_with(start))
}

/// The words for code that may be that of other methods, which the compiler put into it: the recording does not say whose it is.
fn or_others(others: &str) -> String {
    format!("or {others}, inlined into it")
}

/// A method whose code may be that of others.
pub(crate) fn unsure(method: &str, others: &str) -> String {
    format!("{method} ({})", or_others(others))
}

#[derive(Clone, Copy, Debug, Default)]
struct OfFrame {
    written: u32,
    /// The method that it was put into.
    host: u32,
    /// Other methods that it may be instead.
    others: u32,
    /// The line of a lambda, which has no name of its own.
    line: u32,
    /// The type of the key that a collection looks for.
    key: u32,
    kinds: u32,
}

#[derive(Clone, Copy, Debug, Default)]
struct Site {
    parent: u32,
    frame: u32,
    own: u32,
}

/// The own method with most of something.
#[derive(Debug, PartialEq)]
pub(crate) struct Most {
    pub(crate) method: String,
    pub(crate) amount: f64,
    /// Into which method the compiler put it, which others it may be, and the line of a lambda, as a part of a sentence; empty where the name
    /// says all.
    pub(crate) inlined: String,
    /// Whether it may be another one.
    pub(crate) is_unsure: bool,
}

/// The call sites of a recording. The tables may come in any order.
#[derive(Debug)]
pub(crate) struct Sites {
    sites: Vec<Site>,
    frames: Vec<OfFrame>,
    texts: Texts,
}

impl Default for Sites {
    fn default() -> Sites {
        Sites { sites: Vec::new(), frames: Vec::new(), texts: Texts::new(MOST_BYTES) }
    }
}

impl Sites {
    /// The columns of a table that are read.
    pub(crate) fn columns(table: &str) -> &'static [&'static str] {
        match table {
            "callsite" => CallsiteRow::COLUMNS,
            "frame" => FrameRow::COLUMNS,
            _ => &[],
        }
    }

    /// Sees rows of a table.
    pub(crate) fn add(&mut self, table: &str, batch: &RecordBatch) -> Result<()> {
        match table {
            "callsite" => rows_of::<CallsiteRow<'_>>(batch)?.for_each(|row| {
                let site = Site { parent: row.parent_callsite_id, frame: row.frame_id, own: row.own_callsite_id };
                set(&mut self.sites, row.callsite_id, site, MOST_SITES);
            }),
            "frame" => rows_of::<FrameRow<'_>>(batch)?.for_each(|row| self.frame_row(&row)),
            _ => {}
        }
        Ok(())
    }

    fn frame_row(&mut self, row: &FrameRow<'_>) {
        let mut kinds = 0;
        if row.name.contains(".Finalize(") {
            kinds |= Is::Finalizes as u32;
        }
        if is_of_framework(row.name) {
            let of_it = KINDS.iter().filter(|(start, _)| row.name.starts_with(start));
            kinds = of_it.fold(kinds, |kinds, (_, is)| kinds | *is as u32);
            // Task<T> has its type arguments before the method.
            if row.name.starts_with("System.Threading.Tasks.Task`1") && row.name.contains(".GetResultCore(") {
                kinds |= Is::TaskWait as u32;
            }
        } else if LOGGERS.iter().any(|start| row.name.starts_with(start)) {
            kinds |= Is::Logs as u32;
        }
        let written = self.texts.place(row.written_name);
        let mut place = |text: Option<&str>| text.map_or(0, |text| self.texts.place(text));
        let (host, others) = (place(row.inlined_into), place(row.may_belong_to));
        let file = row.file.filter(|_| row.written_name.contains("<lambda"));
        let line = file
            .zip(row.line)
            .map(|(file, line)| format!("{}:{line}", file.rsplit(['/', '\\']).next().unwrap_or(file)));
        let (line, key) = (place(line.as_deref()), place(key_of(row.name)));
        set(&mut self.frames, row.frame_id, OfFrame { written, host, others, line, key, kinds }, MOST_FRAMES);
    }

    fn site(&self, site: u32) -> Option<Site> {
        self.sites.get((site as usize).checked_sub(1)?).copied()
    }

    fn frame(&self, site: u32) -> Option<OfFrame> {
        self.frames.get((self.site(site)?.frame as usize).checked_sub(1)?).copied()
    }

    /// The nearest own method of a call site.
    pub(crate) fn own_method(&self, site: u32) -> Option<&str> {
        let own = self.site(site)?.own;
        self.texts.get(self.frame(own)?.written)
    }

    /// The ids of all call sites.
    pub(crate) fn ids(&self) -> impl Iterator<Item = u32> {
        1..=self.sites.len() as u32
    }

    /// The call sites and frames of a recording.
    pub(crate) fn read(recording: &Recording<'_>) -> Result<Sites> {
        let mut sites = Sites::default();
        for name in [CallsiteRow::TABLE, FrameRow::TABLE] {
            let Ok(table) = recording.table(name) else { continue };
            for batch in table.scan().columns(Sites::columns(name).iter().copied()).batches()? {
                sites.add(name, &batch?)?;
            }
        }
        Ok(sites)
    }

    /// The innermost method of a call site.
    pub(crate) fn leaf(&self, site: u32) -> Option<&str> {
        self.texts.get(self.frame(site)?.written)
    }

    /// The first one of [`ranked`](Sites::ranked).
    pub(crate) fn most(&self, amounts: impl IntoIterator<Item = (u32, f64)>) -> Option<Most> {
        self.ranked(amounts).into_iter().next()
    }

    /// Own methods, the one with most first, by how much there is at each call site, and what is said of one at most of its call sites:
    /// ` (inlined into Shop.Orders.Load)` where the compiler put it into another one, ` (or Shop.Orders.Sum, inlined into it)` where the
    /// recording does not say which of both it is, ` (Program.cs:12)` of a lambda.
    pub(crate) fn ranked(&self, amounts: impl IntoIterator<Item = (u32, f64)>) -> Vec<Most> {
        let mut methods: BTreeMap<&str, (f64, BTreeMap<[u32; 3], f64>)> = BTreeMap::new();
        for (site, amount) in amounts {
            let Some(own) = self.site(site).and_then(|site| self.frame(site.own)) else { continue };
            let Some(method) = self.texts.get(own.written) else { continue };
            let (sum, hosts) = methods.entry(method).or_default();
            *sum += amount;
            *hosts.entry([own.host, own.others, own.line]).or_default() += amount;
        }
        let of = |(method, (amount, hosts)): (&str, (f64, BTreeMap<[u32; 3], f64>))| {
            let most = hosts.into_iter().max_by(|a, b| a.1.total_cmp(&b.1)).map_or([0; 3], |(most, _)| most);
            let [host, others, line] = most.map(|place| self.texts.get(place));
            let said =
                [host.map(|host| format!("inlined into {host}")), others.map(or_others), line.map(str::to_owned)];
            let said: Vec<String> = said.into_iter().flatten().collect();
            let inlined = if said.is_empty() { String::new() } else { format!(" ({})", said.join("; ")) };
            Most { method: method.to_owned(), amount, inlined, is_unsure: others.is_some() }
        };
        let mut all: Vec<Most> = methods.into_iter().map(of).collect();
        // Of several with as much the first one by name.
        all.sort_by(|a, b| b.amount.total_cmp(&a.amount));
        all
    }

    /// The own methods on the stack of a call site, the innermost first; one that calls itself stands once.
    pub(crate) fn own_path(&self, site: u32) -> Vec<&str> {
        let mut path: Vec<&str> = Vec::new();
        let mut at = site;
        for _ in 0..MOST_DEPTH {
            let Some(own) = self.site(at).map(|site| site.own) else { break };
            let Some(of_own) = self.site(own) else { break };
            let frame = self.frame(own).unwrap_or_default();
            let host = self.texts.get(frame.host).filter(|host| !is_of_framework(host));
            for name in self.texts.get(frame.written).into_iter().chain(host) {
                if path.last() != Some(&name) {
                    path.push(name);
                }
            }
            at = of_own.parent;
        }
        path
    }

    /// The nearest own method of a call site that is no constructor.
    pub(crate) fn maker(&self, site: u32) -> Option<&str> {
        let is_constructor = |method: &str| method.ends_with("..ctor") || method.ends_with("..cctor");
        self.own_path(site).into_iter().find(|method| !is_constructor(method))
    }

    /// Whether the nearest own method of a call site itself says what it does: nothing but what reports it lies inside of it.
    pub(crate) fn is_reported_by_itself(&self, site: u32) -> bool {
        let mut inside = self.inside(site).peekable();
        inside.peek().is_some() && inside.all(|frame| frame.kinds & Is::Reports as u32 != 0)
    }

    /// Whether the nearest own method of a call site called such a method.
    pub(crate) fn calls(&self, site: u32, is: Is) -> bool {
        self.inside(site).any(|frame| frame.kinds & is as u32 != 0)
    }

    /// The type of the key that a collection looks for which the nearest own method of a call site called.
    pub(crate) fn looks_for(&self, site: u32) -> Option<&str> {
        self.inside(site).find_map(|frame| self.texts.get(frame.key))
    }

    /// The frames inside of the nearest own method of a call site, the innermost first; none without such a method.
    fn inside(&self, site: u32) -> impl Iterator<Item = OfFrame> {
        let own = self.site(site).map_or(site, |of| if of.own == 0 { site } else { of.own });
        self.stack(site).take_while(move |at| *at != own).map(|at| self.frame(at).unwrap_or_default())
    }

    /// A call site and those that enclose it, the innermost first.
    fn stack(&self, site: u32) -> impl Iterator<Item = u32> {
        let parent = |at: &u32| self.site(*at).map(|site| site.parent);
        let some = Some(site).filter(|site| self.site(*site).is_some());
        std::iter::successors(some, move |at| parent(at).filter(|parent| self.site(*parent).is_some())).take(MOST_DEPTH)
    }

    /// The call site of the outermost own method.
    pub(crate) fn outermost_own(&self, site: u32) -> Option<u32> {
        let is_own = |at: &u32| self.site(*at).is_some_and(|of| of.own == *at);
        self.stack(site).filter(is_own).last()
    }

    /// Whether a static constructor of the user's own is on the stack of a call site.
    pub(crate) fn is_in_static_constructor(&self, site: u32) -> bool {
        self.own_path(site).iter().any(|method| method.ends_with("..cctor"))
    }

    /// The call site of the nearest own method that called the outermost of such methods.
    pub(crate) fn caller_of(&self, site: u32, is: Is) -> Option<u32> {
        let outermost =
            self.stack(site).filter(|at| self.frame(*at).is_some_and(|of| of.kinds & is as u32 != 0)).last()?;
        let own = self.site(outermost)?.own;
        (own > 0).then_some(own)
    }

    /// The innermost own method that two call sites have in common, with its depth: where they part, or what called both.
    pub(crate) fn common_own(&self, a: u32, b: u32) -> Option<(usize, &str)> {
        let [a, b] = [a, b].map(|site| self.nodes(site));
        let equal = a.iter().zip(&b).take_while(|(a, b)| a == b).count();
        let part = a.get(equal).zip(b.get(equal));
        let method = |node: u32| self.frame(node).filter(|_| self.site(node).is_some_and(|site| site.own == node));
        // Two lines of one method.
        let of_part = part.and_then(|(a, b)| Some((method(*a)?, method(*b)?))).filter(|(a, b)| a.written == b.written);
        let written = match of_part {
            Some((method, _)) => method.written,
            None => {
                let node = a.get(equal.checked_sub(1)?)?;
                self.frame(self.site(*node)?.own)?.written
            }
        };
        self.texts.get(written).map(|name| (equal, name))
    }

    /// The call sites that enclose one, the outermost first, with itself.
    fn nodes(&self, site: u32) -> Vec<u32> {
        let mut nodes: Vec<u32> = self.stack(site).collect();
        nodes.reverse();
        nodes
    }

    /// What of [`Is`] is on the stack of a call site.
    fn kinds(&self, site: u32) -> u32 {
        self.stack(site).fold(0, |kinds, at| kinds | self.frame(at).map_or(0, |frame| frame.kinds))
    }

    /// Whether such methods are all on the stack of a call site.
    pub(crate) fn has(&self, site: u32, all: &[Is]) -> bool {
        let kinds = self.kinds(site);
        all.iter().all(|is| kinds & *is as u32 != 0)
    }
}

/// Sets what belongs to a number, from 1; numbers beyond `most` have nothing.
pub(crate) fn set<T: Copy + Default>(list: &mut Vec<T>, number: u32, value: T, most: usize) {
    let Some(place) = (number as usize).checked_sub(1).filter(|place| *place < most) else { return };
    if list.len() <= place {
        list.resize(place + 1, T::default());
    }
    if let Some(known) = list.get_mut(place) {
        *known = value;
    }
}
