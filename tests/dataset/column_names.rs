//! Names of tables and columns can be typed without quotes in the systems that people read the files with.

use std::path::Path;

/// DuckDB 2: the words that `duckdb_keywords()` calls reserved, and those that only name types and functions.
const DUCKDB: &str = "all analyse analyze and any array as asc asymmetric both case cast check collate column constraint \
    create default deferrable desc describe distinct do else end except false fetch for foreign from group having in \
    initially intersect into lambda lateral leading limit not null offset on only or order pivot pivot_longer \
    pivot_wider placing primary qualify references returning select show some summarize symmetric table then to \
    trailing true union unique unpivot using variadic when where window with \
    anti asof at authorization binary by collation columns concurrently cross freeze full generated glob ilike inner is \
    isnull join left like map natural notnull outer overlaps positional right semi similar struct tablesample try_cast \
    tuple unpack verbose";

/// PostgreSQL 17, appendix C of its manual: reserved, also those that may be functions or types.
const POSTGRES: &str = "all analyse analyze and any array as asc asymmetric authorization binary both case cast check \
    collate collation column concurrently constraint create cross current_catalog current_date current_role \
    current_schema current_time current_timestamp current_user default deferrable desc distinct do else end except \
    false fetch for foreign freeze from full grant group having ilike in initially inner intersect into is isnull join \
    lateral leading left like limit localtime localtimestamp natural not notnull null offset on only or order outer \
    overlaps placing primary references returning right select session_user similar some symmetric system_user table \
    tablesample then to trailing true union unique user using variadic verbose when where window with";

/// Spark SQL in ANSI mode, and the words that its default mode does not take as an alias of a table.
const SPARK: &str = "all and any anti as authorization both case cast check collate column constraint create cross \
    current_date current_time current_timestamp current_user distinct else end escape except exists false fetch filter \
    for foreign from full grant group having in inner intersect into is join lateral leading left minus natural not \
    null offset on only or order outer overlaps primary references right select semi session_user some sql table then \
    time to trailing union unique unknown user using when where with within";

/// Names of all tables and columns, each with the file that declares it.
fn names() -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("schemas/tables");
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder).expect("schemas/tables") {
        let path = entry.expect("an entry").path();
        let text = std::fs::read_to_string(&path).expect("a schema");
        let declared = text.lines().filter_map(|line| line.strip_prefix("name = \"")?.strip_suffix('"'));
        names.extend(declared.map(|name| (path.file_stem().unwrap().to_string_lossy().into_owned(), name.to_owned())));
    }
    names
}

#[test]
fn no_table_or_column_is_a_reserved_word() {
    let names = names();
    assert!(names.len() > 200, "{}", names.len());
    for (system, words) in [("DuckDB", DUCKDB), ("PostgreSQL", POSTGRES), ("Spark SQL", SPARK)] {
        for (table, name) in &names {
            let is_reserved = words.split_whitespace().any(|word| word == name);
            assert!(!is_reserved, "{name} of the table {table} is a reserved word of {system}");
        }
    }
}

/// The lists above are typed in; DuckDB itself says which of our names it takes without quotes.
#[cfg(unix)]
#[test]
fn duckdb_takes_each_name_without_quotes() {
    let Some(python) = crate::support::python::python("duckdb_takes_each_name_without_quotes") else { return };
    let script = "import duckdb, sys\n\
        for name in sys.stdin.read().split():\n    \
        duckdb.execute(f'SELECT t.{name}, {name} FROM (SELECT 1 AS {name}) t WHERE t.{name} = 1').fetchall()\n\
        print('all')";
    let names: Vec<String> = names().into_iter().map(|(_, name)| name).collect();
    let folder = tempfile::tempdir().unwrap();
    let list = folder.path().join("names");
    std::fs::write(&list, names.join("\n")).unwrap();
    let input = std::fs::File::open(&list).unwrap();
    let output = std::process::Command::new(python).args(["-c", script]).stdin(input).output().expect("Python runs");
    let printed = String::from_utf8_lossy(&output.stdout);
    assert_eq!(printed.trim(), "all", "{}", String::from_utf8_lossy(&output.stderr));
}
