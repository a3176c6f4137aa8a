//! The names of enumerated values, for queries over payload tables.

use super::fact::{EnumValue, FactSink};
use crate::catalog;

/// All enumerations of the catalogue: by provider, then by name and value.
pub fn report(sink: &mut impl FactSink) {
    for provider in catalog::provider_names() {
        let Some(Ok(provider)) = catalog::provider(provider) else { continue };
        let mut maps: Vec<_> = provider.maps.iter().collect();
        maps.sort_unstable_by_key(|(name, _)| *name);
        for (enum_name, map) in maps {
            let kind = if map.kind == "bits" { "bits" } else { "values" };
            let entries = map.entries();
            let rows = entries.iter().map(|(value, text)| EnumValue {
                enum_name,
                provider_name: &provider.provider,
                kind,
                value: *value,
                text,
            });
            let rows: Vec<EnumValue<'_>> = rows.collect();
            sink.add(rows.as_slice());
        }
    }
}
