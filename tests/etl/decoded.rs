//! How the events of real files are decoded: what is described or in the catalogue fits to the last byte.

use std::collections::BTreeMap;

use super::expected::shared;
use crate::support::collect::Recording;

/// Payloads that have more bytes than their own description says.
const LONGER: [(&str, &str); 4] = [
    // Four bytes that the manifest in the recording does not have.
    ("DynamicEvents.etl", "PerfView/ClrEnableParameters"),
    ("net.4.5.2.x64.etl", "PerfView/ClrEnableParameters"),
    // Kernel events that a test program wrote again by itself, padding included.
    ("vista-x86-process_v3.etl", "Windows-Kernel-Process/"),
    ("win7-x86-image_v2.etl", "Windows-Kernel-Image/"),
];

#[derive(Default)]
struct Fits {
    exact: u64,
    longer: u64,
    shorter: u64,
    replaced: u64,
    raw: u64,
}

fn fits(recording: &Recording) -> BTreeMap<String, Fits> {
    let mut all: BTreeMap<String, Fits> = BTreeMap::new();
    for seen in &recording.events {
        let info = recording.info_of(seen);
        let name = format!("{}/{} v{}", info.provider, info.name, info.event_type.version);
        let fits = all.entry(name).or_default();
        recording.with_event(seen, |event| match event.fields() {
            Err(_) => fits.raw += 1,
            Ok((_, fit)) if fit.is_exact() => fits.exact += 1,
            Ok((_, fit)) => {
                fits.longer += u64::from(fit.surplus > 0);
                fits.shorter += u64::from(fit.short.is_some());
                fits.replaced += u64::from(fit.replaced);
            }
        });
    }
    all
}

#[test]
fn what_is_known_fits_to_the_last_byte() {
    let (mut exact, mut raw, mut all) = (0, 0, 0);
    let mut wrong = Vec::new();
    for file in shared("what_is_known_fits_to_the_last_byte") {
        for (name, fits) in fits(&Recording::open(&file.path)) {
            exact += fits.exact;
            raw += fits.raw;
            all += fits.exact + fits.raw + fits.longer.max(fits.shorter).max(fits.replaced);
            let known = LONGER.iter().any(|(file_name, event)| file.name == *file_name && name.starts_with(event));
            if fits.longer * u64::from(!known) + fits.shorter + fits.replaced > 0 {
                let Fits { longer, shorter, replaced, exact, .. } = fits;
                wrong.push(format!(
                    "{} {name}: exact {exact}, longer {longer}, shorter {shorter}, replaced {replaced}",
                    file.name
                ));
            }
        }
    }
    if all > 0 {
        assert!(exact >= 234_924 && raw <= 362, "{exact} of {all} exact, {raw} raw");
    }
    println!("{exact} of {all} events exact, {raw} raw");
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}
