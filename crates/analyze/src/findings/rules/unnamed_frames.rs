//! Call stacks have frames without a name.

use crate::findings::closer;
use crate::findings::rule::{Evidence, Example, Figure, Judged, Look, Rule};
use crate::findings::verdict::Verdict;
use crate::findings::words;

pub(super) const RULE: Rule = Rule {
    name: "unnamed_frames",
    title: "Call stacks have frames without names",
    about: "Call stacks have frames without a name, so that your code is not found.",
    measure: "Frames without a name, divided by all. At least 100.",
    unit: "share",
    info: 0.20,
    warning: 0.50,
    needs: &[],
    record: "cpu",
    advice: "Let the recording end by itself, so that it lists the methods (the rundown), and give symbols of native code \
        with `--symbols`.",
    closer: closer::INSPECT_FRAMES,
    of_recording: true,
    evidence: Evidence { sections: &["stacks", "modules"], sort: None },
    example: Example { unrecorded: None, ..Example::of("habits/unnamed", "habits/unnamed-clean", Verdict::Warning) },
    #[cfg(test)]
    story,
    judge,
    ..Rule::DEFAULT
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

/// The defect in a made recording: `x` is how much of it, from 0 (none) to 1 (more than the limit of a warning).
#[cfg(test)]
fn story(made: &mut crate::findings::story::Made, x: f64) {
    made.trace.frame_count = 1000;
    made.trace.named_frame_count = 1000 - (x * 900.0) as u64;
}
