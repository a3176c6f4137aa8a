//! The options that say what is asked about: a recording of a dataset, processes, the user's own code.

use clap::Args;
use clap::builder::NonEmptyStringValueParser;

use tracequet::Convert;

use super::own::OwnArgs;

/// The recording and the processes of IN that are asked about.
#[derive(Clone, Debug, Default, Args)]
pub struct WhichArgs {
    /// Recording in a dataset of several: its trace_id
    #[arg(long, value_name = "KEY")]
    pub trace: Option<String>,
    /// Only these processes, by name or id, if IN is a recording [default: all]
    #[arg(long, value_name = "NAME|PID,...", value_delimiter = ',', value_parser = NonEmptyStringValueParser::new())]
    pub process: Vec<String>,
}

/// The part of IN that is asked about, and the user's own code.
#[derive(Clone, Debug, Default, Args)]
pub struct AskedArgs {
    #[command(flatten)]
    pub which: WhichArgs,
    #[command(flatten)]
    pub own: OwnArgs,
}

impl AskedArgs {
    /// The key of the recording.
    pub fn trace(&self) -> Option<&str> {
        self.which.trace.as_deref()
    }

    /// The conversion of a recording into what is asked about. No hash is taken: the dataset is not kept.
    pub fn request(&self) -> Convert {
        Convert::default().own(self.own.patterns()).processes(self.which.process.iter().cloned()).unhashed(true)
    }

    /// Whether it is more than a dataset can be asked for: which processes and whose code is said when it is made.
    pub fn is_for_recordings(&self) -> bool {
        !self.which.process.is_empty() || !self.own.own.is_empty() || !self.own.not_own.is_empty()
    }
}
