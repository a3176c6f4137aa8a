//! Source lines of frames: from native code to IL by the recording, from IL to a line by symbols on this machine.

use tracequet_trace::reader::symbols::{ManagedModule, NativeModule, NativePlace, Symbols};

use super::methods::Code;
use super::modules::{Modules, Pdb};
use super::paths::{Files, of_runtime};
use crate::fact::FactSink;
use crate::loader::managed_modules::ManagedModules;
use crate::prelude::*;

/// Names of modules in a message, at most.
const MAX_NAMES: usize = 5;

/// Where a frame is in the source.
#[derive(Clone, Copy, Debug)]
pub struct Line<'l> {
    /// File.
    pub file: &'l str,
    /// Line, from 1.
    pub line: u32,
    /// `line_kind` of the table `frame`.
    pub kind: &'static str,
}

/// A native function by the symbols of its file.
#[derive(Clone, Copy, Debug)]
pub struct Function<'l> {
    /// The name of the method.
    pub name: &'l str,
    /// Distance of the address from its beginning.
    pub offset: u64,
    /// Where it is in the source.
    pub line: Option<Line<'l>>,
}

/// Finds lines.
pub struct Lines<'k> {
    symbols: &'k mut Symbols,
    modules: &'k ManagedModules,
    /// Symbols that the kernel's log names.
    logged: Files<&'k Pdb>,
    frames: u64,
    found: u64,
    by_method: u64,
    /// Native frames with a line.
    native: u64,
}

impl<'k> Lines<'k> {
    /// With what is known at the end of a recording.
    pub fn new(symbols: &'k mut Symbols, (modules, native): (&'k ManagedModules, &'k Modules)) -> Self {
        let mut logged = Files::default();
        for (process, path, pdb) in native.of_il() {
            logged.add(process, path.to_ascii_lowercase(), pdb);
        }
        Lines { symbols, modules, logged, frames: 0, found: 0, by_method: 0, native: 0 }
    }

    /// The line of a method's code at an offset of its IL.
    pub fn line_at(&mut self, process: ProcessKey, code: &Code, il_offset: Option<u32>) -> Option<Line<'_>> {
        self.frames += 1;
        let mut module = self.modules.symbols_of((process, code.module_id))?;
        if module.pdb_guid.is_none() && !self.logged.is_empty() {
            let path = of_runtime(module.path);
            if let Some(pdb) = self.logged.find(process, &path, |file| file.ends_with(&path)) {
                module = ManagedModule { pdb_guid: pdb.guid, pdb_path: pdb.path.as_deref(), ..module };
            }
        }
        let (file, line) = self.symbols.line(module, code.token, il_offset)?;
        let kind = if il_offset.is_some() { "exact" } else { "method" };
        self.found += 1;
        self.by_method += u64::from(il_offset.is_none());
        Some(Line { file, line, kind })
    }

    /// The native function at an offset, as [`Symbols::native`] wants it.
    pub fn native(&mut self, module: NativeModule<'_>, offset: u64) -> Option<Function<'_>> {
        let NativePlace { name, offset, line } = self.symbols.native(module, offset)?;
        let line = line.map(|(file, line)| Line { file, line, kind: "exact" });
        self.native += u64::from(line.is_some());
        Some(Function { name, offset, line })
    }

    /// Finishes. Returns the number of frames with a line, and reports why others have none.
    pub fn finish(self, position: u64, sink: &mut impl FactSink) -> u64 {
        let Lines { symbols, frames, found, by_method, native, .. } = self;
        let mut message = String::new();
        if found < frames {
            message = format!("{} of {frames} managed frames have no source line", frames - found);
            let missing = symbols.missing();
            let named = missing.iter().take(MAX_NAMES).map(String::as_str).collect::<Vec<_>>().join(", ");
            match missing.len() {
                0 => {}
                few if few <= MAX_NAMES => message.push_str(&format!("; no symbols were found for {named}")),
                many => message.push_str(&format!("; no symbols were found for {many} modules, such as {named}")),
            }
        }
        if by_method > 0 {
            let comma = if message.is_empty() { "" } else { "; " };
            message.push_str(&format!(
                "{comma}{by_method} have the first line of their method, as the recording has no IL offsets"
            ));
        }
        if !message.is_empty() {
            let count = frames - found + by_method;
            sink.problem(&Problem::info("frames_without_line", position, message).count(count));
        }
        let too_large: Vec<&str> = symbols.too_large().collect();
        if !too_large.is_empty() {
            let message = format!("symbols of more than 128 MB are not read: {}", too_large.join(", "));
            let count = too_large.len() as u64;
            sink.problem(&Problem::info("large_symbols", position, message).count(count));
        }
        found + native
    }
}
