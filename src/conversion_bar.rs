//! The progress bar of a conversion of one or several recordings.

use std::collections::HashMap;

use tracequet::trace::source::store::shown;
use tracequet::{Convert, Done, Progress};

use super::progress::Bar;
use super::text::clean;

/// The recordings of a request on their way.
pub struct ConversionBar {
    bar: Bar,
    names: Vec<String>,
    /// Bytes of each input; 0 when unknown. Packed files count as they are packed.
    sizes: Vec<u64>,
    total: u64,
    /// Several recordings, or one among others that come later.
    is_of_several: bool,
    /// Bytes that are read, by input, of those that are being read.
    reading: HashMap<usize, u64>,
    finished: usize,
    failed: usize,
    finished_bytes: u64,
}

impl ConversionBar {
    /// For the inputs of a request.
    pub fn of(request: &Convert, quiet: bool) -> ConversionBar {
        let name = |path: &std::path::PathBuf| {
            let path = shown(path);
            clean(&path.file_name().unwrap_or(path.as_os_str()).to_string_lossy())
        };
        let size = |path: &std::path::PathBuf| std::fs::metadata(path).map_or(0, |found| found.len());
        let sizes: Vec<u64> = request.input_paths().iter().map(size).collect();
        ConversionBar {
            bar: Bar::new(quiet),
            names: request.input_paths().iter().map(name).collect(),
            total: sizes.iter().sum(),
            sizes,
            is_of_several: request.is_of_several(),
            reading: HashMap::new(),
            finished: 0,
            failed: 0,
            finished_bytes: 0,
        }
    }

    /// Whether the recordings become a dataset of several.
    pub fn is_of_several(&self) -> bool {
        self.is_of_several
    }

    /// A recording is being read.
    pub fn progress(&mut self, now: &Progress) {
        let name = self.names.get(now.input).map_or("", String::as_str);
        if !self.is_of_several {
            return self.bar.show(name, now.position, now.total);
        }
        let size = self.sizes.get(now.input).copied().unwrap_or_default();
        self.reading.insert(now.input, now.position.min(size));
        let line = format!("{}{} {name}", self.count(), self.failures());
        self.show(&line);
    }

    /// A recording is done.
    pub fn done(&mut self, input: usize, done: &Done) {
        self.failed += usize::from(matches!(done, Done::Failed(_)));
        self.finished += 1;
        self.finished_bytes += self.sizes.get(input).copied().unwrap_or_default();
        self.reading.remove(&input);
        let line = format!("{}{}", self.count(), self.failures());
        self.show(&line);
    }

    /// Takes the bar away.
    pub fn clear(&self) {
        self.bar.clear();
    }

    fn count(&self) -> String {
        format!("{}/{}", self.finished, self.names.len().max(self.finished))
    }

    fn failures(&self) -> String {
        if self.failed > 0 { format!(" ({} failed)", self.failed) } else { String::new() }
    }

    fn show(&mut self, line: &str) {
        let reading: u64 = self.reading.values().sum();
        self.bar.show(line, (self.finished_bytes + reading).min(self.total), Some(self.total));
    }
}
