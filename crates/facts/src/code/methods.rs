//! Methods, each once per process and address, and the place of their code over time.

use super::code_map::{CodeMap, Span};
use super::il_maps::CodeKey;
use super::written;
use crate::fact::Method;
use crate::prelude::*;

/// Methods remembered; past it the memory starts again and one may appear twice.
const MAX_SEEN: usize = 1 << 20;

/// Methods whose code is remembered for the frames of call stacks (80 bytes each), and bytes of their names.
const MAX_CODE: usize = 1 << 19;
const MAX_TEXT: usize = 64 << 20;

/// The meaning of an event about a method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MethodsAction {
    /// The method was loaded or compiled now.
    Loaded,
    /// The method is there, at the start or at the end of the recording.
    Listed,
    /// The code of the method is thrown away.
    Unloaded,
}

/// The bit of MethodFlagsMap of code that was compiled while the program ran.
const JITTED: u64 = 8;

/// A method as the frames of call stacks need it.
#[derive(Debug)]
pub struct Code {
    /// MethodID.
    pub method_id: u64,
    /// ModuleID.
    pub module_id: u64,
    /// Address of the first byte.
    pub start_address: u64,
    /// Token in the metadata of the module.
    pub token: u32,
    /// ReJITID: number of the version of the code.
    pub version_id: u64,
    /// The tier of optimisation.
    pub tier: Option<&'static str>,
    process: ProcessKey,
    size: u64,
    from_ns: i64,
    until_ns: i64,
    /// Where its text begins, and the lengths of namespace, name and signature.
    text: (usize, [u32; 3]),
}

impl Code {
    /// Whether it was made while it was recorded.
    pub fn is_new(&self) -> bool {
        self.from_ns != i64::MIN
    }
}

/// Which methods are known.
#[derive(Debug, Default)]
pub struct Methods {
    /// The method at an address of a process: a method is compiled more than once, and an address used again. Methods
    /// without code have their id in the third place. With it the index in `code`.
    seen: Map<(ProcessKey, u64, u64), (u64, usize)>,
    code: Vec<Code>,
    text: String,
    /// Methods whose code is not remembered.
    pub lost: u64,
    /// Whether there was a rundown.
    pub has_rundown: bool,
}

impl Methods {
    /// The code of a method, until it is unloaded.
    fn remember(&mut self, action: MethodsAction, input: &Input<'_>, row: &Method<'_>) {
        let texts = [row.namespace, row.name, row.signature];
        let length = texts.iter().map(|text| text.len()).sum::<usize>();
        if row.start_address == 0 {
            return;
        }
        if self.code.len() >= MAX_CODE || self.text.len().saturating_add(length) > MAX_TEXT {
            self.lost += 1;
            return;
        }
        let text = (self.text.len(), texts.map(|text| u32::try_from(text.len()).unwrap_or(u32::MAX)));
        texts.iter().for_each(|text| self.text.push_str(text));
        self.code.push(Code {
            method_id: row.method_id,
            module_id: row.module_id,
            start_address: row.start_address,
            token: row.method_token,
            version_id: row.version_id,
            tier: row.tier,
            process: input.process(),
            size: row.size_bytes,
            from_ns: if is_new(action, row) { input.ts_ns() } else { i64::MIN },
            until_ns: i64::MAX,
            text,
        });
    }

    /// The code `index`, if it is that at an address, was there until now.
    fn ends(&mut self, index: usize, process: ProcessKey, start_address: u64, ts_ns: i64) {
        let code = self.code.get_mut(index);
        if let Some(code) = code.filter(|code| code.process == process && code.start_address == start_address) {
            code.until_ns = code.until_ns.min(ts_ns);
        }
    }

    /// Where the code of all methods lies.
    pub fn map(&self) -> CodeMap {
        let spans = self.code.iter().enumerate().filter_map(|(index, code)| {
            let span = Span::new(code.start_address, code.size, index)?;
            Some((code.process, Span { from_ns: code.from_ns, until_ns: code.until_ns, ..span }))
        });
        CodeMap::new(spans)
    }

    /// A method by its index in the map, with its namespace, name and signature.
    pub fn code(&self, index: usize) -> Option<(&Code, [&str; 3])> {
        let code = self.code.get(index)?;
        let (mut at, lengths) = code.text;
        let texts = lengths.map(|length| {
            let from = at;
            at += length as usize;
            self.text.get(from..at).unwrap_or_default()
        });
        Some((code, texts))
    }

    /// The number of pieces of code of each version of a method.
    pub fn versions(&self) -> Map<CodeKey, u32> {
        let mut versions = Map::default();
        for code in &self.code {
            *versions.entry((code.process, code.method_id, code.version_id)).or_insert(0) += 1;
        }
        versions
    }
}

tracequet_trace::worded! {
    /// The way in which the method of a frame of a logical call stack was found.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum FoundBy {
        /// By an address in its code.
        Address = "address",
        /// By its id.
        MethodId = "method_id",
    }
    /// The word for it.
    pub fn word;
}

/// Methods by address and by id, for frames of which it is not known which of both they are. No id of a method is an
/// address in code: it is that of a description in data.
pub struct Names<'m> {
    methods: &'m Methods,
    map: CodeMap,
    by_id: Map<(ProcessKey, u64), usize>,
}

impl<'m> Names<'m> {
    /// Of all methods that are known by now.
    pub fn of(methods: &'m Methods) -> Names<'m> {
        let by_id = methods.code.iter().enumerate().map(|(index, code)| ((code.process, code.method_id), index));
        Names { methods, map: methods.map(), by_id: by_id.collect() }
    }

    /// The index of a method, and how it was found.
    pub fn find(&self, process: ProcessKey, frame: u64, ts_ns: i64) -> Option<(usize, FoundBy)> {
        let by_address =
            || self.map.find(process, frame, ts_ns).or_else(|| self.map.find_return(process, frame, ts_ns));
        let by_id = || self.by_id.get(&(process, frame)).map(|index| (*index, FoundBy::MethodId));
        by_address().map(|index| (index, FoundBy::Address)).or_else(by_id)
    }

    /// Appends the name of a method as it was written; false when it is not known.
    pub fn push(&self, text: &mut String, process: ProcessKey, frame: u64, ts_ns: i64) -> bool {
        let found = self.find(process, frame, ts_ns).and_then(|(index, _)| self.methods.code(index));
        let Some((_, [namespace, name, _])) = found.filter(|(_, [_, name, _])| !name.is_empty()) else { return false };
        written::push(text, namespace, name);
        true
    }
}

impl Tracker for Methods {
    type Action = MethodsAction;
    const EVENTS: Events<MethodsAction> = &[
        (RUNTIME, "MethodLoad", MethodsAction::Loaded),
        (RUNTIME, "MethodLoadVerbose", MethodsAction::Loaded),
        (RUNTIME, "MethodUnload", MethodsAction::Unloaded),
        (RUNTIME, "MethodUnloadVerbose", MethodsAction::Unloaded),
        (RUNTIME, "MethodDCStartV2", MethodsAction::Listed),
        (RUNTIME, "MethodDCStartVerboseV2", MethodsAction::Listed),
        (RUNTIME, "MethodDCEndV2", MethodsAction::Listed),
        (RUNTIME, "MethodDCEndVerboseV2", MethodsAction::Listed),
        (RUNDOWN, "MethodDCStart", MethodsAction::Listed),
        (RUNDOWN, "MethodDCStartVerbose", MethodsAction::Listed),
        (RUNDOWN, "MethodDCEnd", MethodsAction::Listed),
        (RUNDOWN, "MethodDCEndVerbose", MethodsAction::Listed),
    ];

    fn is_reference(_: MethodsAction) -> bool {
        true
    }

    fn event(&mut self, action: MethodsAction, input: &Input<'_>, shared: &mut Shared, sink: &mut impl FactSink) {
        let callsites = &mut shared.callsites;
        let process = input.process();
        let (method_id, start_address) = (input.number("MethodID"), input.number("MethodStartAddress"));
        let size = input.number("MethodSize");
        if self.seen.len() >= MAX_SEEN {
            self.seen.clear();
        }
        self.has_rundown |= action == MethodsAction::Listed;
        let key = (process, start_address, if start_address == 0 { method_id } else { 0 });
        let known = self.seen.get(&key).copied().filter(|(id, index)| {
            // The rundown lists once more what was unloaded just before, at the end of a process.
            let has_ended = || self.code.get(*index).is_some_and(|code| code.until_ns != i64::MAX);
            *id == method_id && !(action == MethodsAction::Loaded && has_ended())
        });
        if known.is_none() {
            let row = method(input);
            sink.add(&row);
            self.remember(action, input, &row);
            let before = self.seen.insert(key, (method_id, self.code.len().wrapping_sub(1)));
            if let Some((_, before)) = before {
                // The unloading of what was there was lost.
                self.ends(before, process, start_address, input.ts_ns());
            }
            if before.is_some() || is_new(action, &row) {
                callsites.code_changed(process, start_address, size);
            }
        }
        if action == MethodsAction::Unloaded {
            let index = known.map_or(self.code.len().wrapping_sub(1), |(_, index)| index);
            self.ends(index, process, start_address, input.ts_ns());
            callsites.code_changed(process, start_address, size);
        }
    }
}

/// Whether the code was not there before. What was compiled ahead of time lies in a file that was there before the
/// runtime looked at the method.
fn is_new(action: MethodsAction, row: &Method<'_>) -> bool {
    action == MethodsAction::Loaded && u64::from(row.method_flags) & JITTED != 0
}

fn method<'a>(input: &Input<'a>) -> Method<'a> {
    let flags = input.number("MethodFlags");
    let start_address = input.number("MethodStartAddress");
    let tier = match (flags & JITTED, start_address) {
        (0, 1..) => Some("ReadyToRun"),
        _ => input.name_in("OptimizationTier", u64::from(enum_names::optimization_tier(flags))),
    };
    Method {
        process_id: input.process_id(),
        method_id: input.number("MethodID"),
        namespace: input.text("MethodNamespace"),
        name: input.text("MethodName"),
        signature: input.text("MethodSignature"),
        start_address,
        size_bytes: input.number("MethodSize"),
        module_id: input.number("ModuleID"),
        method_token: input.number("MethodToken") as u32,
        method_flags: input.number("MethodFlags") as u32,
        tier: tier.filter(|_| input.fields.number("MethodFlags").is_some()),
        version_id: input.number("ReJITID"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fact::Fact;
    use crate::tests::made_up::{Each, Given, event};

    fn load(methods: &mut Methods, start_address: u64) {
        let fields = [
            ("MethodID", Given::Number(start_address)),
            ("MethodStartAddress", Given::Number(start_address)),
            ("MethodNamespace", Given::Text("N")),
            ("MethodName", Given::Text("Run")),
            ("MethodSignature", Given::Text("void ()")),
        ];
        event(MethodsAction::Listed, 1, &fields, |input| {
            methods.event(MethodsAction::Listed, input, &mut Shared::default(), &mut Each(|_: &Fact<'_>| {}));
        });
    }

    #[test]
    fn methods_and_their_names_have_a_bound() {
        let mut methods = Methods { text: "x".repeat((64 << 20) - 11), ..Methods::default() };
        load(&mut methods, 0x1000);
        assert_eq!(methods.code(0).map(|(_, texts)| texts), Some(["N", "Run", "void ()"]), "64 MB of names");
        load(&mut methods, 0x2000);
        assert_eq!((methods.code.len(), methods.lost), (1, 1));

        let mut methods = Methods::default();
        let code = || Code {
            method_id: 0,
            module_id: 0,
            start_address: 1,
            token: 0,
            version_id: 0,
            tier: None,
            process: ProcessKey::default(),
            size: 0,
            from_ns: 0,
            until_ns: 0,
            text: (0, [0; 3]),
        };
        methods.code.extend((1..1 << 19).map(|_| code()));
        load(&mut methods, 0x1000);
        load(&mut methods, 0x2000);
        assert_eq!((methods.code.len(), methods.lost), (1 << 19, 1));
    }
}
