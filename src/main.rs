//! Starts the program; the rest is in the library.

fn main() -> std::process::ExitCode {
    tracequet::cli::code(std::env::args_os()).into()
}
