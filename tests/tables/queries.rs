//! Queries of databases as DiagnosticSource tells of them, and waits that never end: what the tables and views say.

use std::process::Command;

use crate::support::dataset::Dataset;
use crate::support::python::ask_views;
use crate::support::writer::{Form, Kind, Row, Writer};
use tracequet::trace::guid::Guid;

const SOURCE: &str = "Microsoft-Diagnostics-DiagnosticSource";
const RUNTIME: &str = "Microsoft-Windows-DotNETRuntime";
/// Activity1Start, Activity1Stop, Activity2Start, Activity2Stop; the beginning and the end of a wait.
const KINDS: [(&str, u32, u8, &str); 6] = [
    (SOURCE, 4, 1, "Activity1Start"),
    (SOURCE, 5, 1, "Activity1Stop"),
    (SOURCE, 6, 1, "Activity2Start"),
    (SOURCE, 7, 1, "Activity2Stop"),
    (RUNTIME, 301, 0, ""),
    (RUNTIME, 302, 0, ""),
];

/// The payload of a DiagnosticSource event.
fn payload(source: &str, name: &str, pairs: &[(&str, &str)]) -> Vec<u8> {
    let text = |out: &mut Vec<u8>, text: &str| out.extend(text.encode_utf16().chain([0]).flat_map(u16::to_le_bytes));
    let mut out = Vec::new();
    text(&mut out, source);
    text(&mut out, name);
    out.extend((pairs.len() as u16).to_le_bytes());
    for (key, value) in pairs {
        text(&mut out, key);
        text(&mut out, value);
    }
    out
}

fn dataset(events: &[(i64, u32, u8, Vec<u8>)]) -> Dataset {
    let kinds =
        KINDS.map(|(provider, event_id, version, name)| Kind { id: event_id, provider, event_id, version, name });
    let row = |(nth, (ticks, id, activity, payload)): (usize, &(i64, u32, u8, Vec<u8>))| Row {
        metadata_id: *id,
        sequence: nth as u32 + 1,
        capture_thread: 1,
        thread: 1,
        ticks: *ticks,
        activity: Guid([*activity; 16]),
        payload: payload.clone(),
        ..Row::default()
    };
    let rows: Vec<Row> = events.iter().enumerate().map(row).collect();
    let bytes = Writer::new(Form::V4).metadata(&kinds).events(&rows).end();
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), bytes).unwrap();
    Dataset::of(file.path())
}

/// Rows of a query on the views of a dataset, a line each.
pub fn asked(python: &std::path::Path, dataset: &Dataset, query: &str) -> String {
    let program = "for row in c.execute(sys.argv[1]).fetchall(): print(row)";
    let out = ask_views(python, &dataset.path(), program, query);
    format!("{}{}", String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr))
}

const LISTENER: &str = "SqlClientDiagnosticListener";
const EF: &str = "Microsoft.EntityFrameworkCore";

#[test]
fn commands_are_paired_and_keep_their_texts_and_tags() {
    let sql = "System.Data.SqlClient.WriteCommand";
    let command = "Microsoft.EntityFrameworkCore.Database.Command.Command";
    let tags = "[db.system, mssql],[db.query.text, SELECT [a], b FROM t],[http.response.status_code, 200]";
    let long = "SELECT ü, b ".repeat(80);
    let events = [
        (
            10,
            4,
            1,
            payload(
                LISTENER,
                &format!("{sql}Before"),
                &[("OperationId", "7"), ("CommandText", "SELECT 1"), ("Database", "shop")],
            ),
        ),
        (20, 4, 2, payload(LISTENER, &format!("{sql}Before"), &[("OperationId", "8"), ("CommandText", &long)])),
        (30, 5, 2, payload(LISTENER, &format!("{sql}Error"), &[("OperationId", "8")])),
        (45, 5, 1, payload(LISTENER, &format!("{sql}After"), &[("OperationId", "7")])),
        (50, 6, 3, payload(EF, &format!("{command}Executing"), &[("CommandId", "9"), ("CommandText", "DELETE")])),
        (57, 7, 3, payload(EF, &format!("{command}Executed"), &[("CommandId", "9")])),
        // What an activity did is known at its end.
        (60, 6, 4, payload("Shop", "Query", &[("Id", "00-a"), ("TagObjects", "[db.system, mssql]")])),
        (68, 7, 4, payload("Shop", "Query", &[("Id", "00-a"), ("TagObjects", tags)])),
        (70, 6, 5, payload("Shop", "Other", &[("Id", "00-b"), ("Tags", "System.Object[]")])),
        (71, 7, 5, payload("Shop", "Other", &[("Id", "00-b"), ("Tags", "System.Object[]")])),
    ];
    let dataset = dataset(&events);
    let activity = dataset.table("activity");
    assert_eq!(activity.signed("duration_ns"), [35, 10, 7, 8, 1].map(|ticks| Some(ticks * 100)));
    assert_eq!(activity.texts("name"), [sql, sql, command, "Query", "Other"]);
    let json = |column: &str| -> Vec<serde_json::Value> {
        activity.texts(column).iter().map(|text| serde_json::from_str(text).unwrap_or_default()).collect()
    };
    let (starts, ends) = (json("start_fields"), json("end_fields"));
    assert_eq!((&starts[0]["CommandText"], &starts[0]["Database"]), (&"SELECT 1".into(), &"shop".into()));
    assert_eq!(starts[1]["CommandText"], long.as_str(), "all of it");
    assert_eq!((&starts[3]["tags"]["db.system"], &starts[3]["tags"]["db.query.text"]), (&"mssql".into(), &().into()));
    assert_eq!(ends[3]["tags"]["db.query.text"], "SELECT [a], b FROM t");
    assert_eq!((&starts[4]["tags"], &ends[4]["tags"]), (&().into(), &().into()), "what is no list of tags is none");
    let test = "commands_are_paired_and_keep_their_texts_and_tags";
    let Some(python) = crate::support::python::python(test) else { return };
    let found =
        asked(&python, &dataset, "SELECT text[:20], database, duration_ms * 1e4 FROM queries ORDER BY start_ts_ns");
    let expected = format!(
        "('SELECT 1', 'shop', 35.0)\n('{}', None, 10.0)\n('DELETE', None, 7.0)\n('SELECT [a], b FROM t', None, 8.0)\n",
        long.chars().take(20).collect::<String>()
    );
    assert_eq!(found, expected);
}

#[test]
fn waits_that_never_end_are_told_with_the_others() {
    let wait = || vec![1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    let events = [
        (10, 301, 0, wait()),
        (30, 302, 0, vec![0; 2]),
        (40, 301, 0, wait()),
        (90, 301, 0, wait()),
        (95, 302, 0, vec![0; 2]),
    ];
    let dataset = dataset(&events);
    assert_eq!(dataset.table("wait").signed("duration_ns"), [Some(2000), None, Some(500)]);
    let Some(python) = crate::support::python::python("waits_that_never_end_are_told_with_the_others") else { return };
    let query = "SELECT how_often, total_ms, never_ended, open_ms, touch_gap, threads FROM waits_by_site";
    assert_eq!(asked(&python, &dataset, query), "(3, 0.0025, 1, 0.0055, 0, 1)\n");
}

/// What the requests of a server did, by a search through the events one by one, and by what the server wrote down.
#[test]
fn the_time_of_requests_went_where_the_server_wrote_down() {
    let test = "the_time_of_requests_went_where_the_server_wrote_down";
    let Some(python) = crate::support::python::python(test) else { return };
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let samples = folder.join("samples/requests");
    let dataset = Dataset::of(&samples.join("orders.nettrace.zst"));
    let script = folder.join("tests/python/request_time.py");
    let truth = samples.join("orders.truth.csv");
    let out = Command::new(python).arg(script).arg(dataset.path()).arg(truth).output().unwrap();
    let said = format!("{}{}", String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
    assert!(out.status.success(), "{said}");
}

/// The server has a method for each kind of work, and a route for each.
#[test]
fn a_method_is_run_by_its_route() {
    let Some(python) = crate::support::python::python("a_method_is_run_by_its_route") else { return };
    let samples = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("samples/requests");
    let dataset = Dataset::of(&samples.join("orders.nettrace.zst"));
    for (method, route) in [("WaitForLock", "/lock/{id}"), ("Allocate", "/allocate/{id}"), ("Call", "/call/{id}")] {
        let query = format!(
            "SELECT string_agg(route), sum(requests) FROM routes_by_method \
             WHERE source = 'Microsoft.AspNetCore.Hosting/Request' AND own_method = 'Shop.Orders.{method}'"
        );
        assert_eq!(asked(&python, &dataset, &query), format!("('{route}', 8)\n"), "{method}");
    }
}

/// Of requests without anything else nothing else is known: it is null, not 0.
#[test]
fn what_was_not_recorded_of_requests_is_null() {
    let Some(python) = crate::support::python::python("what_was_not_recorded_of_requests_is_null") else { return };
    let samples = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("samples/figures/recordings");
    let dataset = Dataset::of(&samples.join("requests.nettrace.zst"));
    let query = "SELECT count(cpu_samples), count(cpu_ms), count(cpu_basis), count(waits), count(wait_ms), count(locks), count(lock_ms), \
                 count(pauses), count(pause_ms), count(queries), count(query_ms), count(allocation_bytes), count(allocation_basis), \
                 count(calls), count(unexplained_ms), count(*) \
                 FROM request_time WHERE source = 'Microsoft.AspNetCore.Hosting/Request'";
    assert_eq!(asked(&python, &dataset, query), "(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 64, 64, 64)\n");
}
