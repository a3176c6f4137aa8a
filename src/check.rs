//! `tracequet check`: holds runs against rules.

use std::io::{Read as _, Write as _};

use tracequet::analyze::check::{
    Against, Baseline, Finding, LabelTest, Since, Verdict, check, follow, latest, runs, steps,
};
use tracequet::analyze::kept::Kept;
use tracequet::analyze::rules;
use tracequet::report::{TABLES, page_of};

use super::check_history::Shown;
use super::check_report::{self, Checked, MAX_MARKDOWN};
use super::prelude::*;
use super::stats::open;
use super::terminal::ColorArg;
use super::text::clean;

pub const ABOUT: &str = "\
Checks the rules of a file on recordings. A rule may compare them with other recordings. Each recording is a run, and the runs \
are the samples: medians are compared, and differences that are not significant are ignored. See docs/CI.md.

Exit codes:
  0  every rule holds, or its severity is warn
  1  usage error, or nothing could be read
  2  a rule is undecided: events were lost, the figure was not recorded, or the runs cannot be compared or do not exist
  3  a rule is broken

Rules of severity warn set no exit code.";

pub const EXAMPLES: &str = "\
Examples:
  tracequet check lake --rules perf.toml
  tracequet check lake --rules perf.toml --baseline branch=main --junit out.xml --markdown summary.md
  tracequet check lake --rules perf.toml --baseline branch=main --report report.html
  tracequet check lake --rules perf.toml --baseline branch=main --last 20 --by commit --since 30d
  tracequet check lake --rules perf.toml --new commit=1a2b3c --baseline 'branch=main,commit!=1a2b3c'
  tracequet check lake --history branch=main --by commit";

/// Bytes that a file of rules may have.
const MAX_RULES: u64 = 1 << 20;

/// Letters in a line of the result on a page.
const PAGE_WIDTH: usize = 110;

#[derive(Debug, Args)]
pub struct CheckArgs {
    /// Dataset (a directory) or recording
    #[arg(value_name = "IN")]
    pub input: PathBuf,
    /// The rules
    #[arg(long, value_name = "FILE", required_unless_present = "history")]
    pub rules: Option<PathBuf>,
    /// Show in place of rules where metrics stepped: in all recordings, or in those with these labels; with --by, by its values
    #[arg(
        long, value_name = "LABELS", num_args = 0..=1, value_parser = labels,
        conflicts_with_all = ["rules", "new", "baseline", "last", "since", "pass_first", "junit", "markdown", "report"]
    )]
    pub history: Option<Option<Labels>>,
    /// Recordings to check, by their labels [default: the newest and those with the same labels]
    #[arg(long, value_name = "LABELS", value_parser = labels)]
    pub new: Option<Labels>,
    /// Recordings to compare with, by their labels: branch=main, or scenario=load,branch!=feature; without the checked
    /// recordings
    #[arg(long, value_name = "LABELS", value_parser = labels)]
    pub baseline: Option<Labels>,
    #[command(flatten)]
    pub limits: BaselineArgs,
    /// Pass rules about the baseline, with a note, when the checked recordings are its first: they have its labels, and no others have
    #[arg(long, requires = "baseline")]
    pub pass_first: bool,
    /// Write the result as JUnit XML
    #[arg(long, value_name = "FILE")]
    pub junit: Option<PathBuf>,
    /// Write the result as Markdown, also to $GITHUB_STEP_SUMMARY if that is set
    #[arg(long, value_name = "FILE")]
    pub markdown: Option<PathBuf>,
    /// Write a page of what was checked, with the result at its top: of the recording, or of all recordings of the dataset
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
    #[command(flatten)]
    pub format: FormatArgs,
    /// Colour the verdicts
    #[arg(long, value_enum, value_name = "WHEN", default_value_t = ColorArg::Auto)]
    pub color: ColorArg,
}

/// Which recordings of a baseline are taken.
#[derive(Clone, Debug, Args)]
pub struct BaselineArgs {
    /// Compare only with the newest N recordings of the baseline, or with --by, those of the newest N values of the label
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub last: Option<u32>,
    /// Compare only with recordings since a date (2026-11-22), since some days (14d) before the newest checked one, or since the first
    /// with a label (commit=1a2b3c)
    #[arg(long, value_name = "TIME", value_parser = since)]
    pub since: Option<Since>,
    /// Label whose recordings belong together, such as commit: each value counts as one run
    #[arg(long, value_name = "LABEL")]
    pub by: Option<String>,
}

impl BaselineArgs {
    fn wanted(&self) -> Baseline {
        let last = self.last.and_then(|last| usize::try_from(last).ok());
        Baseline { since: self.since.clone(), last, by: self.by.clone() }
    }
}

/// Reads `14d`, a date, which may go on with a time, or a label.
fn since(text: &str) -> Result<Since, String> {
    if text.contains('=') {
        return super::values::label(text).map(|(name, value)| Since::Label(name, value));
    }
    if let Some(days) = text.strip_suffix('d').and_then(|days| days.parse().ok()) {
        return Ok(Since::Days(days));
    }
    let fits = |(byte, form): (u8, u8)| if form == b'0' { byte.is_ascii_digit() } else { byte == form };
    if text.len() >= 10 && text.bytes().zip(*b"0000-00-00T").all(fits) {
        Ok(Since::Moment(text.to_owned()))
    } else {
        Err("expected days (14d), a date (2026-11-22) or a label (commit=1a2b3c)".into())
    }
}

/// Labels that recordings have to have, or not to have.
#[derive(Clone, Debug, Default)]
pub struct Labels(Vec<LabelTest>);

impl Labels {
    /// Each as the library takes it.
    pub fn tests(&self) -> &[LabelTest] {
        &self.0
    }
}

/// Reads `NAME=VALUE,NAME!=VALUE`.
pub fn labels(text: &str) -> Result<Labels, String> {
    let one = |part: &str| match (part.split_once("!="), part.split_once('=')) {
        (Some((name, value)), _) => Ok((name.trim().to_owned(), false, value.trim().to_owned())),
        (None, Some((name, value))) => Ok((name.trim().to_owned(), true, value.trim().to_owned())),
        (None, None) => Err("expected NAME=VALUE or NAME!=VALUE, separated by commas".to_owned()),
    };
    text.split(',').map(one).collect::<Result<_, _>>().map(Labels)
}

/// Checks the rules, and writes the result in every requested form.
pub fn run(args: &CheckArgs) -> anyhow::Result<Outcome> {
    let Some(path) = &args.rules else {
        return history(args, args.history.as_ref().and_then(Option::as_ref));
    };
    let rules = rules::read(&path.to_string_lossy(), &read_rules(path)?)?;
    let of_page = if args.report.is_some() { &TABLES[..] } else { &[] };
    let dataset = &open(&args.input, of_page, &AskedArgs::default())?.dataset;
    let mut new = match &args.new {
        Some(labels) => runs(dataset, &labels.0, None)?,
        None => runs(dataset, &[], Some(&latest(dataset)))?,
    };
    let (mut base, notes) = match &args.baseline {
        Some(labels) => args.limits.wanted().read(dataset, &labels.0, &new)?,
        None => Default::default(),
    };
    for note in notes {
        print_note(&format!("tracequet: {}\n", clean(&note)))?;
    }
    let begins = |labels: &Labels| Baseline::is_begun_by(dataset, &labels.0, &new);
    let is_first = args.pass_first && args.baseline.as_ref().is_some_and(begins);
    if is_first {
        print_note("tracequet: these are the first recordings of the baseline: later ones are compared with them\n")?;
    }
    for runs in [&mut new, &mut base] {
        follow(dataset, &rules, runs)?;
    }
    let findings = check(&rules, &new, &Against { base: &base, by: args.limits.by.as_deref(), is_first })?;
    let checked = Checked { findings, new: new.len(), base: base.len() };
    // The result first: a file that cannot be written hides no verdict.
    let outcome = args.format.print_colored(&checked, args.color, outcome(&checked.findings));
    if let Some(path) = &args.junit {
        std::fs::write(path, check_report::junit(&checked.findings)).map_err(Error::io(path))?;
    }
    if let Some(path) = &args.markdown {
        let text = check_report::markdown(&checked, MAX_MARKDOWN);
        std::fs::write(path, text).map_err(Error::io(path))?;
    }
    if let Some(path) = &args.report {
        let verdict = checked.document().text(PAGE_WIDTH.into());
        let html = page_of(dataset, &args.input, None, &verdict, Kept::default())?;
        std::fs::write(path, html).map_err(Error::io(path))?;
    }
    if let Some(path) = std::env::var_os("GITHUB_STEP_SUMMARY").filter(|path| !path.is_empty()).map(PathBuf::from) {
        append_summary(&path, &checked).map_err(Error::io(&path))?;
    }
    outcome
}

/// Shows where the metrics of runs with these labels stepped. Exit code 2 when one of them could not be read.
fn history(args: &CheckArgs, labels: Option<&Labels>) -> anyhow::Result<Outcome> {
    let opened = open(&args.input, &[], &AskedArgs::default())?;
    let runs = runs(&opened.dataset, labels.map_or(&[], Labels::tests), None)?;
    let history = steps(&runs, args.limits.by.as_deref())?;
    let outcome = Outcome::with_losses(runs.iter().any(|run| run.is_failed));
    args.format.print_colored(&Shown { history, is_by: args.limits.by.is_some() }, args.color, outcome)
}

/// The text of a file of rules, or of a pipe, which may be without end.
fn read_rules(path: &Path) -> anyhow::Result<String> {
    let mut text = String::new();
    let file = std::fs::File::open(path).map_err(Error::io(path))?;
    file.take(MAX_RULES + 1).read_to_string(&mut text).map_err(Error::io(path))?;
    if text.len() as u64 > MAX_RULES {
        return Err(Error::Usage(format!("{}: expected rules of at most 1 MiB", path.display())).into());
    }
    Ok(text)
}

/// Appends to what the steps before have written: GitHub refuses a summary that is too large as a whole.
fn append_summary(path: &Path, checked: &Checked) -> std::io::Result<()> {
    let mut file = std::fs::OpenOptions::new().create(true).append(true).open(path)?;
    let used = usize::try_from(file.metadata()?.len()).unwrap_or(usize::MAX);
    file.write_all(check_report::markdown(checked, MAX_MARKDOWN.saturating_sub(used)).as_bytes())
}

fn outcome(findings: &[Finding]) -> Outcome {
    let counted = findings.iter().filter(|finding| !finding.is_warning);
    match counted.map(|finding| finding.verdict).max() {
        Some(Verdict::Failed) => Outcome::RuleBroken,
        Some(Verdict::Undecided) => Outcome::Losses,
        Some(Verdict::Passed) | None => Outcome::Whole,
    }
}
