//! `tracequet generate`: completions and manual pages, for packages.

use clap::CommandFactory;
use clap_complete::Shell;

use super::args::{Cli, GenerateArgs, Generated};
use super::output::{Outcome, print_result};

/// Prints what was asked for.
pub fn run(args: &GenerateArgs) -> anyhow::Result<Outcome> {
    let mut bytes = Vec::new();
    let shell = match args.what {
        Generated::Man => None,
        Generated::Bash => Some(Shell::Bash),
        Generated::Zsh => Some(Shell::Zsh),
        Generated::Fish => Some(Shell::Fish),
        Generated::Powershell => Some(Shell::PowerShell),
        Generated::Elvish => Some(Shell::Elvish),
    };
    match shell {
        Some(shell) => clap_complete::generate(shell, &mut Cli::command(), "tracequet", &mut bytes),
        None => manual(args.command.as_deref())?.render(&mut bytes)?,
    }
    Outcome::Whole.printed(print_result(&String::from_utf8_lossy(&bytes)))
}

/// The page of the program, or `tracequet-<command>(1)`.
fn manual(name: Option<&str>) -> anyhow::Result<clap_mangen::Man> {
    let mut root = Cli::command();
    // Gives subcommands their full names.
    root.build();
    let Some(name) = name else { return Ok(clap_mangen::Man::new(root)) };
    let found = root.find_subcommand(name).ok_or_else(|| anyhow::anyhow!("no command '{name}'"))?;
    Ok(clap_mangen::Man::new(found.clone()))
}
