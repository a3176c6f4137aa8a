//! Call stacks have frames without a name.

use crate::findings::prelude::*;

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
    query: "SELECT kind, name, count(*) AS frames FROM frame WHERE {recording} AND NOT is_named GROUP BY ALL ORDER BY frames DESC LIMIT 20",
    example: Example { unrecorded: None, ..Example::of("habits/unnamed", "habits/unnamed-clean", Verdict::Warning) },
    #[cfg(test)]
    story: story::make,
    judge,
    ..Rule::DEFAULT
};

fn judge(look: &Look<'_>) -> Judged {
    let (frames, named) = (look.picture.frames, look.picture.named_frames);
    if frames < 100 {
        return Judged::too_few(frames, 100, "frames of call stacks");
    }
    let value = 1.0 - named as f64 / frames as f64;
    let sentence = format!("{} of {frames} frames of call stacks have no name.", words::percent(value));
    Figure { value, rows: frames, sentence, ..Figure::default() }.into()
}

#[cfg(test)]
mod story {
    use crate::findings::tests::story::Made;

    pub(crate) fn make(made: &mut Made, x: f64) {
        made.trace.frame_count = 1000;
        made.trace.named_frame_count = 1000 - (x * 900.0) as u64;
    }
}
