//! Starts the program; the rest is in the library.

mod huge_pages;

#[global_allocator]
static ALLOCATOR: huge_pages::HugePages = huge_pages::HugePages;

fn main() -> std::process::ExitCode {
    tracequet_cli::code(std::env::args_os()).into()
}
