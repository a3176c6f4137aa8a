use crate::support::collect::Recording;
use crate::support::compare::event_differences;
use crate::support::expected::{shared_traces, traces_in};

#[test]
fn list() {
    let folder = shared_traces("x").unwrap();
    for sub in ["damaged", "v6-writer"] {
        let manifest = std::fs::read_to_string(folder.join(sub).join("MANIFEST.jsonl")).unwrap_or_default();
        for trace in traces_in(&folder.join(sub)) {
            let r = Recording::open(&trace.path);
            let ex = trace.events();
            let err = ex.as_ref().and_then(|e| e.first()).and_then(|e| e["error"].as_str().map(str::to_owned));
            let n = ex.as_ref().map(|e| if err.is_some() { 0 } else { e.len() });
            let m: Option<serde_json::Value> = manifest.lines().map(|l| serde_json::from_str::<serde_json::Value>(l).unwrap()).find(|v| v["file"] == trace.name.as_str());
            println!("{}: events {:?} vs {}; refused {:?} / {:?}; end {:?}; codes {:?}; {}", trace.name, n, r.events.len(), err, r.refused, (r.end.complete, r.end.trailing_bytes, r.end.dropped_events), r.codes(),
                m.map(|m| format!("exp events {} complete {} trailing {} dropped {} diags {}", m["events"], m["complete"], m["trailing_bytes"], m["dropped"], m["diag_counts"])).unwrap_or_default());
            if err.is_none() {
                let mut k = 0;
                for (i, (e, s)) in ex.iter().flatten().zip(&r.events).enumerate() {
                    for d in event_differences(e, s, &r) { if k < 6 { println!("      {i}: {d}"); k+=1; } }
                }
            }
        }
    }
}
