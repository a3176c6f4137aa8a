//! Starts the program; everything else is in `cli` and in the library.

mod cli;

fn main() -> std::process::ExitCode {
    cli::code(std::env::args_os()).into()
}
