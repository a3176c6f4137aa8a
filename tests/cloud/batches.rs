//! Batches of recordings that a web server has: each is fetched when it is its turn, and one that cannot be reached
//! costs itself.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tracequet::dataset::error::Error;
use tracequet::{Convert, Summary, batches};

const SAMPLE: &str = "samples/gc-churn.nettrace";

/// Answers each request with the sample. Returns its address, and how many requests there were.
fn server() -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let count = Arc::new(AtomicUsize::new(0));
    let asked = count.clone();
    let sample = std::fs::read(SAMPLE).unwrap();
    std::thread::spawn(move || {
        for connection in listener.incoming() {
            let mut connection = connection.unwrap();
            let lines = BufReader::new(connection.try_clone().unwrap()).lines();
            let request: Vec<String> = lines.map_while(Result::ok).take_while(|line| !line.is_empty()).collect();
            asked.fetch_add(1, Ordering::AcqRel);
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", sample.len());
            // A client that goes away has what it wanted.
            connection.write_all(head.as_bytes()).ok();
            if request.first().is_some_and(|line| line.starts_with("GET ")) {
                connection.write_all(&sample).ok();
            }
        }
    });
    (address, count)
}

/// An address without a listener.
fn nobody() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    format!("http://{}/gone.nettrace", listener.local_addr().unwrap())
}

fn read(inputs: Vec<PathBuf>, mut at_rows: impl FnMut(usize)) -> Result<Summary, Error> {
    let request = Convert::default().inputs(inputs).tables(["gc"]);
    let mut receive = |rows: tracequet::Rows<'_>| {
        if rows.rows.num_rows() > 0 {
            at_rows(rows.input);
        }
        ControlFlow::Continue(())
    };
    batches(&request, &mut receive, &mut |_| true).map(Option::unwrap)
}

#[test]
fn a_recording_is_fetched_when_it_is_its_turn() {
    let (address, count) = server();
    let mut seen = Vec::new();
    let inputs = [SAMPLE.into(), format!("{address}/a.nettrace").into()];
    let summary = read(inputs.to_vec(), |input| seen.push((input, count.load(Ordering::Acquire)))).unwrap();
    assert_eq!((summary.inputs.len(), summary.failed.len()), (2, 0));
    let requests_at = |wanted: usize| seen.iter().find(|(input, _)| *input == wanted).unwrap().1;
    assert_eq!(requests_at(0), 0, "nothing is fetched while the first is read");
    assert!(requests_at(1) > 0);
}

#[test]
fn what_cannot_be_reached_costs_itself() {
    let (address, _) = server();
    let gone = nobody();
    let inputs = vec![gone.clone().into(), format!("{address}/a.nettrace").into(), SAMPLE.into()];
    let mut seen = Vec::new();
    let summary = read(inputs, |input| seen.push(input)).unwrap();
    seen.dedup();
    assert_eq!((summary.inputs.len(), seen), (2, vec![1, 2]));
    let failed: Vec<_> = summary.failed.iter().map(|failed| failed.path.to_string_lossy().into_owned()).collect();
    assert_eq!(failed, [gone.as_str()]);
    // Alone it is an error.
    let alone = read(vec![gone.clone().into()], |_| {}).unwrap_err();
    assert!(matches!(&alone, Error::Io { path, .. } if path.to_string_lossy() == gone), "{alone}");
}

/// A request that cannot be meant fails as a whole, before anything is read.
#[test]
fn an_address_that_is_none_fails_as_a_whole() {
    let mut count = 0;
    let refused = read(vec![SAMPLE.into(), "s3:///a.nettrace".into()], |_| count += 1).unwrap_err();
    assert!(matches!(refused, Error::Usage(_)) && count == 0, "{refused}");
}
