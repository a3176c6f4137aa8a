//! The progress bar: on standard error, only when that is a terminal, measured in bytes read.

use std::fmt::Write;
use std::io::IsTerminal;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};

use super::text::size;

/// Work that is done sooner than this shows no bar.
const PATIENCE: Duration = Duration::from_millis(300);

/// A bar that appears when work takes long, and disappears at its end.
pub struct Bar {
    wanted: bool,
    since: Instant,
    bar: Option<ProgressBar>,
}

impl Bar {
    /// A bar, if there is a person to see it.
    pub fn new(quiet: bool) -> Bar {
        Bar { wanted: !quiet && std::io::stderr().is_terminal(), since: Instant::now(), bar: None }
    }

    /// Shows that `position` of `total` bytes of `name` are read.
    pub fn show(&mut self, name: &str, position: u64, total: Option<u64>) {
        if !self.wanted || self.bar.is_none() && self.since.elapsed() < PATIENCE {
            return;
        }
        let bar = self.bar.get_or_insert_with(|| {
            let bar = ProgressBar::with_draw_target(total, ProgressDrawTarget::stderr());
            bar.with_elapsed(self.since.elapsed())
        });
        if bar.message() != name || bar.length() != total {
            let template = match total {
                Some(_) => "{msg} [{bar:30}] {decimal_bytes}/{decimal_total_bytes} {rate} {left}",
                None => "{msg} {spinner} {decimal_bytes} {rate} {elapsed}",
            };
            if let Ok(style) = ProgressStyle::with_template(template) {
                let style = style.with_key("rate", |state: &ProgressState, out: &mut dyn Write| {
                    write!(out, "{}/s", size(rate(state) as u64)).ok();
                });
                let style = style.with_key("left", |state: &ProgressState, out: &mut dyn Write| {
                    let left = state.len().unwrap_or_default().saturating_sub(state.pos());
                    if state.pos() == 0 {
                        // The speed is not known.
                        return;
                    }
                    write!(out, "{:.0} s left", left as f64 / rate(state)).ok();
                });
                bar.set_style(style.progress_chars("=> "));
            }
            match total {
                Some(total) => bar.set_length(total),
                None => bar.unset_length(),
            }
            bar.set_message(name.to_owned());
        }
        bar.set_position(position);
    }

    /// Takes the bar away.
    pub fn clear(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// Bytes in a second since the start. The bar's own estimate takes what was read before it appeared for a burst.
fn rate(state: &ProgressState) -> f64 {
    (state.pos() as f64 / state.elapsed().as_secs_f64().max(1e-3)).max(1.0)
}
