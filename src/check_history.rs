//! `tracequet check --history`: where metrics stepped.

use tracequet::analyze::check::{FALSE_STEPS, History};
use tracequet::analyze::diff::color_of;
use tracequet::analyze::metrics::Names;
use tracequet::analyze::present::units::counted;
use tracequet::analyze::present::{Amount, Answer, Cell, Document, Table, Unit, numbers, table, words};

use super::stats::cell_of;

/// The steps, and whether points are values of a label.
pub struct Shown {
    pub history: History,
    pub is_by: bool,
}

impl Answer for Shown {
    fn document(&self) -> Document {
        let History { steps, metrics, points, .. } = &self.history;
        let (one, many) = if self.is_by { ("value", "values of the label") } else { ("run", "runs") };
        let mut out = Document::default();
        out.line(format!(
            "{} in {} of {}",
            counted(steps.len() as u64, "step", "steps"),
            counted(*metrics as u64, "metric", "metrics"),
            counted(*points as u64, one, many),
        ));
        out.table(self.rows());
        let chance = Amount::new(FALSE_STEPS, Unit::Share);
        out.note(format!("A metric that did not step is listed with a probability of {chance} at most."));
        out
    }

    fn rows(&self) -> Table {
        let steps = &self.history.steps;
        let names = Names::of(steps.iter().map(|step| step.metric.as_str()));
        table!("history", steps, |step| color color_of(step.toward), {
            words("from", "The first value of the label, or recording, behind the step").key("at") => Cell::text(&step.at),
            words("start", "When its first recording began").key("start") => Cell::text(&step.start),
            words("metric", "").key("metric") => Cell::text(&names.shown(&step.metric)),
            numbers("before", "The median before").key("before") => cell_of(&step.metric, step.before),
            numbers("after", "The median from there to the next step").key("after") => cell_of(&step.metric, step.after),
            numbers("change", "") => Cell::change_from(step.before, step.after),
            words("", "Whether the metric became worse or better").key("direction") =>
                Cell::optional(Some(step.toward).filter(|toward| *toward != "other")),
            numbers("runs", "The numbers of runs that the medians are of") =>
                Cell::words(format!("{} / {}", step.runs[0], step.runs[1])),
            numbers("p", "At most the probability of such a step by chance").key("chance") => Cell::chance(step.chance),
            words("note", "").key("incomparable") => Cell::optional(step.incomparable.as_deref()),
        })
    }
}
