//! The last lines of `cargo test --workspace`: which tests were skipped, and what to install for them.

use tracequet_untested::{of_notes, summary};

fn main() {
    // `--list` finds no tests in this target.
    if std::env::args().any(|argument| argument == "--list") {
        return;
    }
    assert_eq!(of_notes(""), "No test of this run was skipped.\n");
    let found = of_notes("install b\tx::one\ninstall a\ty\ninstall a\tz\ninstall a\tz\n");
    let expected = "3 tests were SKIPPED, and cargo counts them as ok:\n    2  install a\n       (y, z)\n    1  install b\n       (x::one)\n";
    assert!(found.starts_with(expected), "{found}");
    print!("\n{}", summary());
}
