//! IL offsets of the native code of methods.

use crate::prelude::*;

/// Maps, and entries of all of them (8 bytes each), that are remembered.
const MAX_MAPS: usize = 1 << 19;
const MAX_ENTRIES: usize = 1 << 23;

/// Offsets without IL: code that the compiler added, the beginning of the method, its end. Source: `ICorDebugInfo` of
/// dotnet/runtime (NO_MAPPING, PROLOG, EPILOG).
const NO_MAPPING: u32 = u32::MAX;
const PROLOG: u32 = u32::MAX - 1;
const EPILOG: u32 = u32::MAX - 2;

/// A version of a method's code: process, MethodID, ReJITID.
pub type CodeKey = (ProcessKey, u64, u64);

#[derive(Clone, Copy, Debug)]
struct IlMap {
    from: usize,
    length: usize,
    /// Whether ReJITID numbers the versions of native code (since version 1 of the event, .NET 7). Before, it numbers
    /// those of the IL, and code that is compiled again has the same.
    is_exact: bool,
    /// Whether several maps have this key.
    is_ambiguous: bool,
}

/// The maps of a recording.
#[derive(Debug, Default)]
pub struct IlMaps {
    maps: Map<CodeKey, IlMap>,
    /// Native offset and IL offset, by native offset within a map.
    entries: Vec<(u32, u32)>,
    /// Maps that did not fit.
    pub lost: u64,
}

impl IlMaps {
    fn entries_of(&self, map: &IlMap) -> &[(u32, u32)] {
        self.entries.get(map.from..map.from + map.length).unwrap_or_default()
    }

    /// The IL offset at an offset of native code. `only` says whether no other code of the method has the same key.
    pub fn il_offset(&self, key: CodeKey, native: u64, only: impl FnOnce() -> bool) -> Option<u32> {
        let map = self.maps.get(&key)?;
        if map.is_ambiguous || !(map.is_exact || only()) {
            return None;
        }
        let entries = self.entries_of(map);
        let upto = entries.partition_point(|(start, _)| u64::from(*start) <= native);
        let mut before = entries.get(..upto)?.iter().rev().map(|(_, il)| *il);
        // Code that the compiler added belongs to the code before it.
        match before.find(|il| ![NO_MAPPING, EPILOG].contains(il))? {
            PROLOG => Some(0),
            il => Some(il),
        }
    }
}

impl Tracker for IlMaps {
    type Action = ();
    const EVENTS: Events<()> = &[
        (RUNTIME, "MethodILToNativeMap", ()),
        (RUNDOWN, "MethodDCStartILToNativeMap", ()),
        (RUNDOWN, "MethodDCEndILToNativeMap", ()),
    ];

    fn is_reference(_: ()) -> bool {
        true
    }

    fn event(&mut self, _: (), input: &Input<'_>, _: &mut Shared, _: &mut impl FactSink) {
        let key = (input.process(), input.number("MethodID"), input.number("ReJITID"));
        let (il, native) = (input.fields.get("ILOffsets").as_list(), input.fields.get("NativeOffsets").as_list());
        let length = il.len().min(native.len());
        if self.maps.len() >= MAX_MAPS || self.entries.len().saturating_add(length) > MAX_ENTRIES {
            self.lost += 1;
            return;
        }
        let offset = |value: &Value| value.as_u64().and_then(|value| u32::try_from(value).ok());
        let from = self.entries.len();
        self.entries.extend(native.iter().zip(il).filter_map(|(native, il)| Some((offset(native)?, offset(il)?))));
        if let Some(new) = self.entries.get_mut(from..) {
            new.sort_by_key(|(native, _)| *native);
        }
        let length = self.entries.len() - from;
        let is_exact = input.event.info.event_type.version >= 1;
        let mut map = IlMap { from, length, is_exact, is_ambiguous: false };
        if let Some(before) = self.maps.get(&key) {
            // The rundown repeats what was recorded when the method was compiled.
            if self.entries_of(before) == self.entries_of(&map) {
                self.entries.truncate(from);
                return;
            }
            map.is_ambiguous = true;
        }
        self.maps.insert(key, map);
    }
}
