//! Layouts of the catalogue as plans: `schemas/events/*.toml` compiled for a pointer size.

use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use super::plan::{Count, Node, Plan, PlanField};
use crate::catalog::EventLayout;
use crate::catalog::syntax::{self, CountOf, FieldLayout, LayoutField, SimpleType};
use crate::map::Map;

/// Plans by the place of their layout, which is never given up, and whether pointers have 4 bytes. A recording can make
/// up a hundred thousand kinds of one event: all have one plan.
type Plans = Map<(usize, bool), Result<Arc<Plan>, String>>;

impl EventLayout {
    /// The layout compiled for processes with pointers of `pointer_size` bytes.
    pub fn plan(&'static self, pointer_size: u8) -> Result<Arc<Plan>, String> {
        static PLANS: LazyLock<Mutex<Plans>> = LazyLock::new(Mutex::default);
        let mut plans = PLANS.lock().unwrap_or_else(PoisonError::into_inner);
        let compiled = || compile(&self.fields, pointer_size).map(Arc::new);
        plans.entry((std::ptr::from_ref(self).addr(), pointer_size == 4)).or_insert_with(compiled).clone()
    }
}

/// Compiles the fields of one event for processes with pointers of `pointer_size` bytes.
pub fn compile(fields: &[String], pointer_size: u8) -> Result<Plan, String> {
    let mut compiler = Compiler { pointer_size, slots: 0, scopes: vec![Vec::new()] };
    for text in fields {
        compiler.field(&syntax::parse_field(text)?)?;
    }
    let fields = compiler.scopes.pop().unwrap_or_default();
    Ok(Plan { fields, slots: usize::from(compiler.slots), otherwise: Vec::new() })
}

/// The name of the value map behind a field, if it has one.
pub fn map_of(field: &str) -> Option<&str> {
    let (_, map) = field.rsplit_once('(')?;
    map.trim_end().strip_suffix(')')
}

struct Compiler {
    pointer_size: u8,
    slots: u8,
    /// The fields before the one being compiled: of the payload, of the struct in it, and so on inwards.
    scopes: Vec<Vec<PlanField>>,
}

impl Compiler {
    fn field(&mut self, field: &LayoutField<'_>) -> Result<(), String> {
        let node = self.node(&field.layout)?;
        if let Some(scope) = self.scopes.last_mut() {
            scope.push(PlanField { name: field.name.to_owned(), node, slot: None });
        }
        Ok(())
    }

    fn node(&mut self, layout: &FieldLayout<'_>) -> Result<Node, String> {
        Ok(match layout {
            FieldLayout::Simple(simple) => self.simple(*simple),
            FieldLayout::Bytes(count) => Node::Bytes(self.count(*count)?),
            FieldLayout::Struct { natural, fields } => {
                self.scopes.push(Vec::new());
                fields.iter().try_for_each(|field| self.field(field))?;
                let fields = self.scopes.pop().unwrap_or_default();
                Node::Struct(if *natural { pad(fields) } else { fields })
            }
            FieldLayout::List(count, element) => {
                let element = self.node(element)?;
                Node::List(self.count(*count)?, Box::new(element))
            }
        })
    }

    fn count(&mut self, count: CountOf<'_>) -> Result<Count, String> {
        Ok(match count {
            CountOf::U16 => Count::U16,
            CountOf::Rest => Count::Rest,
            CountOf::Fixed(number) => Count::Fixed(number),
            CountOf::Field(name) => {
                let slot = self.slot_of(name);
                Count::Slot(slot.ok_or_else(|| format!("'{name}': expected the name of an earlier number"))?)
            }
        })
    }

    /// The slot in which the nearest earlier field of this name leaves its value.
    fn slot_of(&mut self, name: &str) -> Option<u8> {
        let field = self.scopes.iter_mut().rev().find_map(|scope| scope.iter_mut().rev().find(|f| f.name == name))?;
        if !matches!(field.node, Node::U8 | Node::U16 | Node::U32 | Node::U64 | Node::Pointer32) {
            return None;
        }
        if field.slot.is_none() && usize::from(self.slots) < super::plan::MAX_SLOTS {
            field.slot = Some(self.slots);
            self.slots += 1;
        }
        field.slot
    }

    fn simple(&self, simple: SimpleType) -> Node {
        match simple {
            SimpleType::U8 => Node::U8,
            SimpleType::U16 => Node::U16,
            SimpleType::U16Be => Node::U16Be,
            SimpleType::U32 => Node::U32,
            SimpleType::U64 => Node::U64,
            SimpleType::I8 => Node::I8,
            SimpleType::I32 => Node::I32,
            SimpleType::I64 => Node::I64,
            SimpleType::F32 => Node::F32,
            SimpleType::F64 => Node::F64,
            SimpleType::Bool32 => Node::Bool32,
            SimpleType::Pointer if self.pointer_size == 4 => Node::Pointer32,
            SimpleType::Pointer => Node::U64,
            SimpleType::Guid => Node::Guid,
            SimpleType::FileTime => Node::FileTime,
            SimpleType::TokenSid => Node::TokenSid(self.pointer_size),
            SimpleType::Utf16Z => Node::Utf16Z,
            SimpleType::Utf16Tail => Node::Utf16Tail,
            SimpleType::AnsiZ => Node::AnsiZ,
        }
    }
}

/// Puts padding between fields as a C compiler does, and behind the last one.
fn pad(fields: Vec<PlanField>) -> Vec<PlanField> {
    let padding = |bytes: usize| PlanField { name: String::new(), node: Node::Padding(bytes as u8), slot: None };
    let mut out = Vec::new();
    let (mut at, mut widest) = (0usize, 1usize);
    for field in fields {
        let size = field.node.fixed_size().unwrap_or(1).max(1);
        widest = widest.max(size);
        let over = at % size;
        if over != 0 {
            out.push(padding(size - over));
            at += size - over;
        }
        at += size;
        out.push(field);
    }
    if at % widest != 0 {
        out.push(padding(widest - at % widest));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog;

    fn plan(fields: &[&str], pointer_size: u8) -> Plan {
        compile(&fields.iter().map(|s| (*s).to_owned()).collect::<Vec<_>>(), pointer_size).unwrap()
    }

    #[test]
    fn natural_structs_are_padded_by_pointer_size() {
        let rows = ["Count: u16", "Values: natural { Index: u16, Count: u32, Size: pointer }[Count]"];
        let size = |plan: Plan| match &plan.fields[1].node {
            Node::List(Count::Slot(0), element) => element.fixed_size(),
            other => panic!("{other:?}"),
        };
        assert_eq!(size(plan(&rows, 8)), Some(16));
        assert_eq!(size(plan(&rows, 4)), Some(12));
        let plan = plan(&rows, 8);
        assert_eq!(plan.fields[0].slot, Some(0));
        assert_eq!(plan.slots, 1, "neither the Count in a row nor the padding is a count of the list");
    }

    #[test]
    fn a_count_is_the_nearest_earlier_field_of_its_name() {
        let plan = plan(&["Count: u32", "Rows: { N: u16, Inner: u8[N], Count: u8, Same: u8[Count] }[Count]"], 8);
        assert_eq!((plan.slots, plan.fields[0].slot), (3, Some(2)));
        let Node::List(Count::Slot(2), row) = &plan.fields[1].node else { panic!("{plan:?}") };
        let Node::Struct(row) = row.as_ref() else { panic!("{row:?}") };
        assert_eq!(row.iter().map(|f| f.slot).collect::<Vec<_>>(), [Some(0), None, Some(1), None]);
    }

    #[test]
    fn counts_must_name_an_earlier_field() {
        let fields = vec!["Values: u32[Missing]".to_owned()];
        assert!(compile(&fields, 8).is_err());
        assert!(compile(&["X: nothing".to_owned()], 8).is_err());
        assert!(compile(&["X: u32 u32".to_owned()], 8).is_err());
        assert_eq!(map_of("Reason: u32 (GCReasonMap)"), Some("GCReasonMap"));
    }

    #[test]
    fn every_layout_of_the_catalogue_compiles_for_both_pointer_sizes() {
        for name in catalog::provider_names() {
            let provider = catalog::provider(name).unwrap().as_ref().unwrap();
            for event in &provider.events {
                for pointer_size in [4, 8] {
                    let plan = event.plan(pointer_size);
                    assert!(plan.is_ok(), "{name} {} v{}: {plan:?}", event.id, event.version);
                }
            }
        }
    }

    #[test]
    fn sizes_choose_among_layouts_of_one_version() {
        let private = catalog::provider("Microsoft-Windows-DotNETRuntimePrivate").unwrap().as_ref().unwrap();
        let sized: Vec<_> = private.versions(4).filter(|e| !e.payload_sizes.is_empty()).collect();
        assert!(!sized.is_empty());
        for event in sized {
            for (size, pointer_size) in event.payload_sizes.iter().zip([4, 8]) {
                let plan = event.plan(pointer_size).unwrap();
                let total: usize = plan.fields.iter().map(|f| f.node.fixed_size().unwrap()).sum();
                assert_eq!(total, *size, "version {} with pointers of {pointer_size}", event.version);
            }
        }
    }
}
