//! Call stacks have frames without a name.

use crate::findings::rule::{Figure, Judged, Look, Rule};
use crate::findings::words;

pub(super) const RULE: Rule = Rule {
    name: "unnamed_frames",
    unit: "share",
    info: 0.20,
    warning: 0.50,
    needs: &[],
    record: "cpu",
    next: "tracequet inspect IN --frames",
    causes: &[],
    of_recording: true,
    judge,
};

fn judge(look: &Look<'_>) -> Judged {
    let (frames, named) = (look.picture.frames, look.picture.named_frames);
    if frames < 100 {
        return Judged::too_little(format!("{frames} frames of call stacks are too few."));
    }
    let value = 1.0 - named as f64 / frames as f64;
    let sentence = format!("{} of {frames} frames of call stacks have no name.", words::percent(value));
    let evidence = format!(
        "SELECT kind, name, count(*) AS frames FROM frame WHERE {} AND NOT is_named GROUP BY ALL ORDER BY frames DESC LIMIT 20",
        look.of_trace
    );
    Figure { value, rows: frames, sentence, evidence, ..Figure::default() }.into()
}
