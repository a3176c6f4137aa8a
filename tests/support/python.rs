//! A Python with the readers of our files.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;

use super::skip;

const HOW: &str = "`python3 -m venv target/venv && target/venv/bin/pip install duckdb pyarrow polars pandas pytz`, or set TRACEQUET_PYTHON";

/// A Python with the readers: `$TRACEQUET_PYTHON` or the one in `target/venv`. Without one the test is skipped with a
/// note, but not where `CI=true` says that nothing may be (on Windows it may).
pub fn python(test: &str) -> Option<PathBuf> {
    let python = match std::env::var_os("TRACEQUET_PYTHON") {
        Some(path) => PathBuf::from(path),
        None => Path::new(env!("CARGO_MANIFEST_DIR")).join("target/venv/bin/python"),
    };
    // Asked once: to import all of them takes a second.
    static HAS_READERS: OnceLock<bool> = OnceLock::new();
    let has_readers = HAS_READERS.get_or_init(|| {
        let modules = "import duckdb, pandas, polars, pyarrow, pytz";
        let quiet = Command::new(&python).args(["-c", modules]).stdout(Stdio::null()).stderr(Stdio::null()).status();
        quiet.is_ok_and(|status| status.success())
    });
    if *has_readers {
        return Some(python);
    }
    if cfg!(windows) {
        // Wine has no Python, and the files are the same bytes as on other systems.
        skip::note(test, "no Python with the readers", "run them on another system");
        return None;
    }
    let missing = format!("{} has not all of duckdb, pandas, polars, pyarrow, pytz", python.display());
    skip::skip(test, &missing, HOW);
    None
}

/// Asks the views of the dataset in a folder by a program, which has the connection `c` and the query in
/// `sys.argv[1]`. DuckDB draws no bar between the rows of a query that takes longer than two seconds.
pub fn ask_views(python: &Path, folder: &Path, program: &str, query: &str) -> Output {
    let start = "import duckdb, sys\nc = duckdb.connect()\nc.execute('SET enable_progress_bar = false')\n\
                 c.execute(open('views.sql').read())\n";
    Command::new(python).args(["-c", &format!("{start}{program}"), query]).current_dir(folder).output().unwrap()
}
