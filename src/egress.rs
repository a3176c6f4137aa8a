//! `tracequet egress`: an egress extension of dotnet-monitor, which stores the tables of what it gets.
//!
//! dotnet-monitor starts `<extension> Egress Execute` and writes to its standard input: the version of the protocol (four
//! bytes, little-endian), the length of the settings (eight bytes), the settings as JSON, and then the artifact to its
//! end. The extension answers with one line of JSON, and exit code 0 or 1. Source: dotnet-monitor 8,
//! `Microsoft.Diagnostics.Monitoring.Extension.Common/EgressHelper.cs` and
//! `Egress/Extension/EgressArtifactResult.cs`.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;

use anyhow::{Context, ensure};
use serde::{Deserialize, Serialize};
use tracequet::{Convert, convert};

use super::interrupt;
use super::prelude::*;

/// The protocol of dotnet-monitor 8 and later.
const PROTOCOL: i32 = 1;
/// Settings have some hundred bytes.
const MAX_SETTINGS: u64 = 16 << 20;

#[derive(Debug, Args)]
pub struct EgressArgs {
    /// What dotnet-monitor asks for
    #[arg(value_enum, ignore_case = true)]
    step: Step,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Step {
    /// Store the tables of a recording
    Execute,
    /// Check the settings
    Validate,
}

/// The part of the settings that is read.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Payload {
    settings: Option<Artifact>,
    configuration: BTreeMap<String, Option<String>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Artifact {
    /// The name that dotnet-monitor gives it, as `20261127_101500_4711.nettrace`.
    name: Option<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Answer {
    succeeded: bool,
    failure_message: Option<String>,
    artifact_path: Option<String>,
}

/// Answers dotnet-monitor. A failure is in the answer, so that dotnet-monitor reports it.
pub fn run(args: &EgressArgs) -> anyhow::Result<Outcome> {
    interrupt::end_at_interrupt()?;
    let (answer, outcome) = match answer(args.step) {
        Ok(path) => (Answer { succeeded: true, failure_message: None, artifact_path: Some(path) }, Outcome::Whole),
        Err(error) => {
            let why = Some(format!("{error:#}"));
            (Answer { succeeded: false, failure_message: why, artifact_path: None }, Outcome::Nothing)
        }
    };
    outcome.printed(print_result(&format!("{}\n", serde_json::to_string(&answer)?)))
}

/// Where the tables of the artifact are.
fn answer(step: Step) -> anyhow::Result<String> {
    let mut input = std::io::stdin().lock();
    let payload = payload(&mut input)?;
    let request = request(&payload.configuration)?;
    if step == Step::Validate {
        return Ok(String::new());
    }
    let folder = tempfile::tempdir().context("the recording needs a temporary folder")?;
    // The name is a text of another program: only its last part names a file here.
    let asked = payload.settings.and_then(|artifact| artifact.name).unwrap_or_default();
    let name = Path::new(&asked).file_name().unwrap_or("recording".as_ref());
    let recording = folder.path().join(name);
    let copied = File::create(&recording).and_then(|mut file| std::io::copy(&mut input, &mut file));
    copied.with_context(|| format!("{} cannot be stored", recording.display()))?;
    let summary = convert(&request.inputs([&recording]), &mut |_| {})?;
    if let Some(failed) = summary.failed.first() {
        anyhow::bail!("{}", failed.error);
    }
    let mut found = summary.inputs.iter().map(|input| &input.trace_id);
    let trace_id = found.next().or(summary.skipped.first().map(|input| &input.trace_id));
    let trace_id = trace_id.context("the artifact has no recording")?;
    Ok(format!("{} ({trace_id})", summary.output.display()))
}

fn payload(input: &mut impl Read) -> anyhow::Result<Payload> {
    let (mut version, mut length) = ([0; 4], [0; 8]);
    input.read_exact(&mut version).context("standard input ends before the version of the protocol")?;
    let version = i32::from_le_bytes(version);
    ensure!(version == PROTOCOL, "dotnet-monitor uses version {version} of the protocol, expected {PROTOCOL}");
    input.read_exact(&mut length).context("standard input ends before the length of the settings")?;
    let length = u64::from_le_bytes(length);
    ensure!(length <= MAX_SETTINGS, "the settings have {length} bytes, expected {MAX_SETTINGS} at most");
    let mut settings = Vec::new();
    input.take(length).read_to_end(&mut settings).context("the settings cannot be read")?;
    ensure!(settings.len() as u64 == length, "the settings end after {} of {length} bytes", settings.len());
    serde_json::from_slice(&settings).context("the settings are not those of dotnet-monitor")
}

/// The conversion that the section of the provider in dotnet-monitor's configuration asks for. Its arrays and objects come
/// as `Tables:0` and `Labels:branch`, its names in any case.
fn request(configuration: &BTreeMap<String, Option<String>>) -> anyhow::Result<Convert> {
    let (mut output, mut tables, mut labels, mut pack) = (None, Vec::new(), Vec::new(), false);
    for (name, value) in configuration {
        let value = value.as_deref().unwrap_or_default();
        let (section, part) = name.split_once(':').unwrap_or((name, ""));
        match section.to_ascii_lowercase().as_str() {
            "output" => output = Some(value),
            "tables" => tables.push(value),
            "labels" => labels.push(values::label(&format!("{part}={value}")).map_err(anyhow::Error::msg)?),
            "pack" => pack = value.to_ascii_lowercase().parse().context("Pack is true or false")?,
            _ => anyhow::bail!("the setting {name} is not known, expected Output, Tables, Labels or Pack"),
        }
    }
    let output = output.filter(|output| !output.is_empty());
    let output = output.context("the setting Output is missing: the folder or the store of the tables")?;
    let labels = values::labels(&labels, "Labels")?;
    Ok(Convert::default().output(output).append(true).pack(pack).tables(tables).labels(labels))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(settings: &str) -> Vec<u8> {
        let length = (settings.len() as u64).to_le_bytes();
        [&PROTOCOL.to_le_bytes(), length.as_slice(), settings.as_bytes(), b"artifact"].concat()
    }

    #[test]
    fn settings_that_are_cut_are_refused_at_every_byte() {
        let whole = sent(r#"{"Settings":{"Name":"a.nettrace"},"Configuration":{"Output":"lake"},"LogLevel":"None"}"#);
        let settings = whole.len() - "artifact".len();
        let mut input = whole.as_slice();
        assert_eq!(payload(&mut input).unwrap().configuration["Output"].as_deref(), Some("lake"));
        assert_eq!(input, b"artifact", "the artifact is left");
        (0..settings).for_each(|cut| assert!(payload(&mut &whole[..cut]).is_err(), "{cut}"));
    }

    #[test]
    fn a_length_that_lies_takes_no_memory() {
        for length in [u64::MAX, MAX_SETTINGS + 1, MAX_SETTINGS] {
            let bytes = [PROTOCOL.to_le_bytes().as_slice(), &length.to_le_bytes(), b"{}"].concat();
            assert!(payload(&mut bytes.as_slice()).is_err(), "{length}");
        }
    }
}
