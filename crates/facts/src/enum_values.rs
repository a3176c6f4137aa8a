//! The names of enumerated values, for queries over payload tables.

use tracequet_trace::catalog::Provider;

use super::fact::{EnumValue, FactSink};

/// All enumerations of these providers, by their names and values.
pub fn report(providers: &[&'static Provider], sink: &mut impl FactSink) {
    for provider in providers {
        let mut maps: Vec<_> = provider.maps.iter().collect();
        maps.sort_unstable_by_key(|(name, _)| *name);
        for (enum_name, map) in maps {
            let kind = if map.kind == "bits" { "bits" } else { "values" };
            let rows = map.entries().map(|(value, text)| EnumValue {
                enum_name,
                provider_name: &provider.provider,
                kind,
                value,
                text,
            });
            let rows: Vec<EnumValue<'_>> = rows.collect();
            sink.add(rows.as_slice());
        }
    }
}
