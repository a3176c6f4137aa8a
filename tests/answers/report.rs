//! `tracequet report`: the figures of a page are those of the tables, texts of a recording stay texts, and a page needs nothing.

use std::collections::{BTreeMap, HashMap};
use std::io::Read;
use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array, RecordBatch, StringArray, UInt64Array};
use parquet::arrow::ArrowWriter;
use tracequet::analyze::collection::RANGE_TABLES;
use tracequet::dataset::read::Dataset;
use tracequet::report::{MAX_HEAP, TABLES, page, page_with};
use tracequet::{Convert, Keep, LIFETIMES, TemporaryDataset, convert};

use crate::etl::profiler::Reports;
use crate::support::dataset::rows;
use crate::support::files::sample;
use crate::support::program::run;
use crate::support::writer::{FREQUENCY, Form, Kind, Row, Writer};
use crate::tables::async_tasks::stated;

/// The dataset of a recording, and its page.
fn made(input: std::path::PathBuf) -> (tempfile::TempDir, Dataset, String) {
    let folder = tempfile::tempdir().unwrap();
    let request = Convert::new([input], folder.path().join("set")).tables(TABLES);
    convert(&request, &mut |_| {}).unwrap();
    let dataset = Dataset::open(folder.path().join("set")).unwrap();
    let html = page(&dataset.recording(None).unwrap()).unwrap();
    (folder, dataset, html)
}

/// A cell: what it is sorted by, and what it shows.
pub type Cell = (Option<String>, String);

/// The rows of a table of the page, without its head.
pub fn table(html: &str, id: &str) -> Vec<Vec<Cell>> {
    let (_, rest) = html.split_once(&format!("<table id=\"{id}\">")).unwrap_or_else(|| panic!("no table {id}"));
    let (_, body) = rest.split_once("<tbody>").unwrap();
    let (body, _) = body.split_once("</tbody>").unwrap();
    let plain = |text: &str| {
        let pairs = [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&#39;", "'"), ("&amp;", "&")];
        pairs.iter().fold(text.to_owned(), |text, (coded, plain)| text.replace(coded, plain))
    };
    let cell = |text: &str| {
        let (head, text) = text.split_once('>').unwrap();
        let raw = head.split_once("data-v=\"").map(|(_, rest)| rest.trim_end_matches('"').to_owned());
        (raw, plain(text.strip_suffix("</td>").unwrap()))
    };
    body.split("<tr")
        .skip(1)
        .map(|row| row.split_once("</tr>").unwrap().0.split("<td").skip(1).map(cell).collect())
        .collect()
}

/// The raw values of a column.
fn raw(rows: &[Vec<Cell>], column: usize) -> Vec<String> {
    rows.iter().map(|row| row[column].0.clone().unwrap_or_else(|| row[column].1.clone())).collect()
}

/// The data of a flame graph or of the map, as the script gets them.
fn data(html: &str, id: &str) -> Vec<u8> {
    let (_, rest) = html.split_once(&format!("<script type=\"application/octet-stream\" id=\"{id}\">")).unwrap();
    let (text, _) = rest.split_once("</script>").unwrap();
    let letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let values: Vec<u32> = text.chars().filter(|c| *c != '=').map(|c| letters.find(c).unwrap() as u32).collect();
    let packed: Vec<u8> = values
        .chunks(4)
        .flat_map(|part| {
            let bits = part.iter().fold(0, |bits, value| bits << 6 | value) << (6 * (4 - part.len()));
            bits.to_be_bytes()[1..part.len()].to_vec()
        })
        .collect();
    let mut plain = Vec::new();
    flate2::read::GzDecoder::new(packed.as_slice()).read_to_end(&mut plain).unwrap();
    plain
}

/// A flame graph: name, own and total of each node.
pub fn nodes(html: &str, id: &str) -> Vec<(String, f64, f64)> {
    let data = data(html, id);
    let u32_at = |at: usize| u32::from_le_bytes(data[at..at + 4].try_into().unwrap()) as usize;
    let f64_at = |at: usize| f64::from_le_bytes(data[at..at + 8].try_into().unwrap());
    let (count, names) = (u32_at(0), u32_at(4));
    let lengths = 8 + count * 24;
    let mut at = lengths + names * 5;
    let texts: Vec<String> = (0..names)
        .map(|name| {
            let from = at;
            at += u32_at(lengths + name * 4);
            String::from_utf8(data[from..at].to_vec()).unwrap()
        })
        .collect();
    assert_eq!(at, data.len());
    let node =
        |n: usize| (texts[u32_at(8 + count * 20 + n * 4)].clone(), f64_at(8 + n * 8), f64_at(8 + count * 8 + n * 8));
    (0..count).map(node).collect()
}

fn number(text: &str) -> u64 {
    text.parse().unwrap()
}

/// The heads of a table.
pub fn heads(html: &str, id: &str) -> Vec<String> {
    let (_, table) = html.split_once(&format!("<table id=\"{id}\">")).unwrap();
    let (head, _) = table.split_once("</thead>").unwrap();
    head.split("</th>")
        .filter_map(|cell| cell.rsplit_once('>'))
        .map(|(_, name)| name.to_owned())
        .filter(|n| !n.is_empty())
        .collect()
}

/// Sums by the first column; without a second one how many rows there are.
fn sums(rows: Vec<[String; 2]>, are_values: bool) -> BTreeMap<String, u64> {
    let mut sums = BTreeMap::new();
    for [key, value] in rows {
        *sums.entry(key).or_default() += if are_values { number(&value) } else { 1 };
    }
    sums
}

#[test]
fn collections_of_the_page_are_those_of_the_tables() {
    for name in ["gc-churn.nettrace", "server-gc.nettrace", "callbacks.corprof"] {
        let (_folder, dataset, html) = made(sample(name));
        let recording = dataset.recording(None).unwrap();
        let shown = table(&html, "collections-table");
        let columns =
            ["gc_id", "gc_number", "start_ts_ns", "generation", "pause_ns", "size_after_bytes", "promoted_bytes"];
        let mut expected = rows(&recording, "gc", columns);
        expected.sort_by_key(|row| number(&row[2]));
        assert!(expected.len() > 10 && shown.len() == expected.len(), "{name}");
        let heads = heads(&html, "collections-table");
        let place = |head: &str| heads.iter().position(|known| known == head);
        for (column, head) in [(0, "gc_id"), (2, "start s"), (4, "pause")] {
            let expected: Vec<String> = expected.iter().map(|row| row[column].clone()).collect();
            assert_eq!(raw(&shown, place(head).unwrap()), expected, "{name}: {}", columns[column]);
        }
        // What callbacks do not carry has no column, and no 0.
        for (column, head) in [(1, "number"), (5, "after"), (6, "promoted")] {
            if name == "callbacks.corprof" {
                assert_eq!(place(head), None);
                assert!(html.contains("Not recorded of any: number, ") && html.contains(head));
                continue;
            }
            let expected: Vec<String> = expected.iter().map(|row| row[column].clone()).collect();
            assert_eq!(raw(&shown, place(head).unwrap()), expected, "{name}: {}", columns[column]);
        }
        // Sizes by generation.
        let sizes: HashMap<(String, String), String> =
            rows(&recording, "gc_heap_stats", ["gc_id", "generation", "size_bytes"])
                .into_iter()
                .map(|[gc, generation, bytes]| ((gc, generation), bytes))
                .collect();
        assert_eq!(sizes.is_empty(), name == "callbacks.corprof");
        for row in &shown {
            for generation in 0..5usize {
                let key = (row[0].0.clone().unwrap(), generation.to_string());
                let head = ["gen 0", "gen 1", "gen 2", "large", "pinned"][generation];
                let shown = place(head).and_then(|place| row[place].0.as_ref());
                assert_eq!(shown, sizes.get(&key), "{name}: {key:?}");
            }
        }
        // What survived.
        let fates = table(&html, "heap-map-table");
        let expected = rows(&recording, "gc", ["gc_id", "surviving_bytes", "moved_bytes", "start_ts_ns"]);
        let expected: HashMap<&String, [&String; 2]> =
            expected.iter().map(|[gc, stayed, moved, _]| (gc, [stayed, moved])).collect();
        assert!(fates.len() > 5, "{name}");
        for row in &fates {
            let [gc, stayed, moved] = [0, 2, 3].map(|place| row[place].0.clone().unwrap());
            assert_eq!([&stayed, &moved], expected[&gc], "{name}: collection {gc}");
        }
    }
}

#[test]
fn an_opened_collection_has_the_sums_of_its_heaps() {
    let (_folder, dataset, html) = made(sample("server-gc.nettrace"));
    let recording = dataset.recording(None).unwrap();
    let mut longest = rows(&recording, "gc", ["gc_id", "pause_ns"]);
    longest.sort_by_key(|row| (std::cmp::Reverse(number(&row[1])), number(&row[0])));
    let generations = rows(
        &recording,
        "gc_heap_generation",
        ["gc_id", "generation", "size_after_bytes", "free_list_after_bytes", "free_object_after_bytes"],
    );
    let marks = rows(&recording, "gc_mark", ["gc_id", "root_kind", "promoted_bytes"]);
    let joins = rows(&recording, "gc_join", ["gc_id", "kind", "join_id", "duration_ns"]);
    let heads_of = heads;
    let (mut opened, mut kinds, mut phases) = (0, 0, 0);
    for [gc_id, _] in longest.iter().take(20) {
        let of = |generation: &str, columns: &[usize]| {
            let of = generations.iter().filter(|row| row[0] == *gc_id && row[1] == generation);
            of.flat_map(|row| columns.iter().map(|column| number(&row[*column]))).sum::<u64>().to_string()
        };
        let (id, name) = (format!("opened-{gc_id}-generations"), ["0", "1", "2", "large", "pinned"]);
        let heads = heads(&html, &id);
        let place = |head: &str| heads.iter().position(|known| known == head).unwrap();
        for row in table(&html, &id) {
            let generation = name.iter().position(|name| *name == row[0].1).unwrap().to_string();
            assert_eq!(row[place("after")].0, Some(of(&generation, &[2])), "{gc_id}");
            assert_eq!(row[place("free")].0, Some(of(&generation, &[3, 4])), "{gc_id}");
            opened += 1;
        }
        for row in table(&html, &format!("opened-{gc_id}-marks")) {
            let of_kind = marks.iter().filter(|mark| mark[0] == *gc_id && mark[1].replace('_', " ") == row[0].1);
            assert_eq!(row[1].0, Some(of_kind.map(|mark| number(&mark[2])).sum::<u64>().to_string()), "{gc_id}");
            kinds += 1;
        }
        assert!(table(&html, &format!("opened-{gc_id}-heaps")).len() > 1, "{gc_id}");
        // Each join has its waits and their time, and phases follow each other.
        let id = format!("opened-{gc_id}-joins");
        let (mut waits, mut waited, mut alone, mut reached) = (0, 0, 0, 0);
        for row in table(&html, &id) {
            let cell = |head: &str| {
                let place = heads_of(&html, &id).iter().position(|known| known == head);
                place.and_then(|place| row[place].0.as_deref()).map_or(0, number)
            };
            assert!(cell("reached") >= reached && cell("phase") <= cell("reached"), "{gc_id}: {row:?}");
            reached = cell("reached");
            (waits, waited, alone) = (waits + cell("waits"), waited + cell("waited"), alone + cell("alone"));
            phases += 1;
        }
        let of = |kind: &str| -> (u64, u64) {
            let of = joins.iter().filter(|row| row[0] == *gc_id && row[1] == kind && row[2] != "0");
            of.fold((0, 0), |(rows, ns), row| (rows + 1, ns + number(&row[3])))
        };
        assert_eq!((waits, waited), of("wait"), "{gc_id}");
        assert_eq!(alone, of("alone").1, "{gc_id}");
    }
    assert!(opened > 20 && kinds > 20 && phases > 60, "{opened} generations, {kinds} kinds of roots, {phases} phases");
}

/// A collection in the background leaves the two youngest generations alone: what lies there is not freed by it.
#[test]
fn what_a_collection_leaves_alone_is_not_freed_on_the_page() {
    let (_folder, dataset, html) = made(sample("gc-churn.nettrace"));
    let recording = dataset.recording(None).unwrap();
    let kinds: HashMap<String, String> =
        rows(&recording, "gc", ["gc_id", "kind"]).into_iter().map(|[gc, kind]| (gc, kind)).collect();
    let mut background = 0;
    for row in table(&html, "heap-map-table").iter().filter(|row| kinds[row[0].0.as_ref().unwrap()] == "background") {
        let gc = row[0].0.as_ref().unwrap();
        let [mut collected, mut left] = [0, 0];
        for [of, phase, generation, bytes] in
            rows(&recording, "gc_generation_range", ["gc_id", "phase", "generation", "range_length"])
        {
            let sum = if matches!(generation.as_str(), "2" | "3" | "4") { &mut collected } else { &mut left };
            *sum += if of == *gc && phase == "start" { number(&bytes) } else { 0 };
        }
        let [stayed, moved, freed, kept] = [2, 3, 4, 5].map(|place| number(row[place].0.as_ref().unwrap()));
        assert!(left > 0 && kept == left, "collection {gc}: {kept} of {left}");
        assert_eq!(freed, collected.saturating_sub(stayed + moved), "collection {gc}");
        background += 1;
    }
    assert_eq!(background, 2);
}

#[test]
fn allocations_and_exceptions_of_the_page_are_those_of_the_tables() {
    let (_folder, dataset, html) = made(sample("known.nettrace"));
    let recording = dataset.recording(None).unwrap();
    let sampled = rows(&recording, "allocation", ["source", "type_name", "allocation_bytes"]);
    let sampled: Vec<_> =
        sampled.into_iter().filter(|[source, ..]| source == "sampled").map(|[_, name, bytes]| [name, bytes]).collect();
    let expected = sums(sampled, true);
    let shown = table(&html, "allocations-table");
    assert!(expected.len() > 4);
    assert_eq!(shown.len(), expected.len().min(100));
    for row in &shown {
        assert_eq!(number(row[1].0.as_ref().unwrap()), expected[&row[0].1], "{}", row[0].1);
    }
    // Only one kind of samples counts in the flame graph, too.
    let with_stack = rows(&recording, "allocation", ["source", "callsite_id", "allocation_bytes"]);
    let with_stack = with_stack.iter().filter(|[source, site, _]| source == "sampled" && site != "0");
    let all: u64 = with_stack.map(|[_, _, bytes]| number(bytes)).sum();
    assert!(all > 0);
    assert_eq!(nodes(&html, "flame-allocations")[0].2, all as f64);

    let expected = sums(rows(&recording, "exception", ["type_name", "type_name"]), false);
    let mut shown: BTreeMap<String, u64> = BTreeMap::new();
    for row in table(&html, "exceptions-table") {
        *shown.entry(row[0].1.clone()).or_default() += number(row[1].0.as_ref().unwrap());
    }
    assert!(!expected.is_empty());
    assert_eq!(shown, expected);
    let waits = rows(&recording, "contention", ["duration_ns", "callsite_id"]);
    assert!(!waits.is_empty());
    let shown = table(&html, "locks-table");
    assert_eq!(raw(&shown, 2).iter().map(|n| number(n)).sum::<u64>(), waits.len() as u64);
    assert_eq!(
        raw(&shown, 3).iter().map(|n| number(n)).sum::<u64>(),
        waits.iter().map(|[ns, _]| number(ns)).sum::<u64>()
    );
}

#[test]
fn asynchronous_work_of_the_page_is_what_the_program_says() {
    let (_folder, dataset, html) = made(sample("awaits.nettrace.zst"));
    let recording = dataset.recording(None).unwrap();
    let shown = table(&html, "tasks-table");
    let of = |method: &str, column: usize| {
        let row = shown.iter().find(|row| row[0].1 == method).unwrap_or_else(|| panic!("no {method} in {shown:?}"));
        number(row[column].0.as_ref().unwrap())
    };
    // Five orders and one that fails, by the program (samples/awaits.truth.txt).
    assert_eq!([of("Order", 3), of("Order", 8), of("Order", 9)], [5, 0, 0]);
    assert_eq!([of("Fails", 3), of("Fails", 8), of("Fails", 9)], [1, 0, 1]);
    let tasks = rows(&recording, "async_task", ["method", "waiting_ns"]);
    let waited: u64 = tasks.iter().filter(|[method, _]| method == "Order").map(|[_, ns]| number(ns)).sum();
    assert!(waited > 0);
    assert_eq!(of("Order", 4), waited);
    // What waits for Task.Delay and not for another method: the program says how long each of these waits was.
    let stated = stated("awaits.truth.txt", "blocked");
    assert!(stated.len() > 5, "{stated:?}");
    let shown = table(&html, "awaits-table");
    for method in ["Stock", "Pay"] {
        let of_method: Vec<_> = stated.iter().filter(|words| words[0] == method).collect();
        let found: Vec<_> = shown.iter().filter(|row| row[0].1 == method && row[2].1 == "async").collect();
        let times: u64 = found.iter().map(|row| number(row[3].0.as_ref().unwrap())).sum();
        // And one of the order with which the program warms up.
        assert_eq!(times, of_method.len() as u64 + 1, "{shown:?}");
        let ms = found.iter().map(|row| number(row[5].0.as_ref().unwrap()) as f64 / 1e6).fold(0.0, f64::max);
        let stated = of_method.iter().map(|words| words[2].parse::<f64>().unwrap()).fold(0.0, f64::max);
        assert!((stated - 5.0..stated + 0.1).contains(&ms), "{method}: {ms} of {stated}");
    }
    // The outer method waits for others that wait themselves.
    assert!(!shown.iter().any(|row| row[0].1 == "Order" && row[2].1 == "async"), "{shown:?}");
}

#[test]
fn of_three_hundred_processes_the_one_with_most_collections_is_shown() {
    const CHOSEN: u32 = 1000 + 150;
    let mut reports = Reports::new();
    for process_id in 1000..1300 {
        reports.of(process_id, 19);
        for number in 1..=if process_id == CHOSEN { 5 } else { 2 } {
            let start = 0x7F_0000_0000 + u64::from(process_id) * 0x1_0000;
            reports.started(number, 0, false).survived(&[[start, u64::from(process_id)]]).finished(number);
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("machine.etl");
    std::fs::write(&path, reports.bytes()).unwrap();
    let (_folder, dataset, html) = made(path);
    let recording = dataset.recording(None).unwrap();
    let processes = rows(&recording, "gc", ["process_id", "process_id"]);
    assert_eq!(processes.len(), 299 * 2 + 5);
    // The head names eight of them, by their events; what is drawn is of one, and says so.
    assert!(html.contains("<dd>292 more, with fewer events</dd>"), "{}", html.split("</dl>").next().unwrap());
    assert!(
        html.contains(&format!("process {CHOSEN}, which has most collections; 299 other processes have some, too"))
    );
    assert_eq!(table(&html, "collections-table").len(), 5);
    let survived: u64 = raw(&table(&html, "survival-table"), 3).iter().map(|bytes| number(bytes)).sum();
    assert_eq!(survived, 5 * u64::from(CHOSEN));
}

/// A text as a page shows it.
fn cut(text: &str) -> String {
    let kept: String = text.chars().take(240).collect();
    if kept.len() < text.len() { kept + "…" } else { kept }
}

#[test]
fn a_flame_graph_has_the_weights_of_the_samples() {
    let (_folder, dataset, html) = made(sample("stacks.nettrace"));
    let recording = dataset.recording(None).unwrap();
    let profile = tracequet::analyze::profile::read(&recording, tracequet::analyze::profile::What::Cpu).unwrap();
    let (mut own, mut total): (BTreeMap<String, u64>, BTreeMap<String, u64>) = Default::default();
    let mut all = 0;
    for (site, weight) in profile.by_callsite() {
        let names: Vec<String> =
            profile.stack(site).iter().map(|f| cut(&profile.functions[*f as usize].name)).collect();
        *own.entry(names.last().unwrap().clone()).or_default() += weight;
        let distinct: std::collections::BTreeSet<&String> = names.iter().collect();
        distinct.into_iter().for_each(|name| *total.entry(name.clone()).or_default() += weight);
        all += weight;
    }
    let nodes = nodes(&html, "flame-cpu");
    assert_eq!(nodes[0].2, all as f64);
    let mut of_nodes: BTreeMap<String, u64> = BTreeMap::new();
    for (name, self_weight, _) in nodes.iter().filter(|(_, own, _)| *own > 0.0) {
        *of_nodes.entry(name.split('\n').next().unwrap().to_owned()).or_default() += *self_weight as u64;
    }
    assert_eq!(of_nodes, own);
    let shown = table(&html, "stacks-cpu-table");
    assert!(shown.len() > 5);
    for row in &shown {
        let [own_shown, total_shown] = [2, 4].map(|place| number(row[place].0.as_ref().unwrap()));
        assert_eq!(
            (own_shown, total_shown),
            (own.get(&row[0].1).copied().unwrap_or_default(), total[&row[0].1]),
            "{}",
            row[0].1
        );
    }
}

/// A recording with exceptions, each thrown in a method, with texts from an enemy.
fn hostile(texts: &[&str]) -> Vec<u8> {
    let runtime = "Microsoft-Windows-DotNETRuntime";
    let kind = |id, event_id, version| Kind { id, provider: runtime, event_id, version, name: "" };
    let wide = |out: &mut Vec<u8>, text: &str| out.extend(text.encode_utf16().chain([0]).flat_map(u16::to_le_bytes));
    let mut writer = Writer::new(Form::V4);
    writer.metadata(&[kind(1, 80, 1), kind(2, 143, 1)]);
    let stacks: Vec<Vec<u64>> = (0..texts.len() as u64).map(|n| vec![0x1000 * (n + 1) + 8]).collect();
    writer.stacks(1, &stacks);
    let mut events = Vec::new();
    for (n, text) in texts.iter().enumerate() {
        let mut method = Vec::new();
        for word in [7 + n as u64, 1, 0x1000 * (n as u64 + 1)] {
            method.extend(word.to_le_bytes());
        }
        for word in [0x100u32, 0x0600_0001, 0] {
            method.extend(word.to_le_bytes());
        }
        [*text, "Method", "void ()"].into_iter().for_each(|text| wide(&mut method, text));
        method.extend([0, 0]);
        let mut thrown = Vec::new();
        wide(&mut thrown, text);
        wide(&mut thrown, text);
        thrown.extend([0; 8 + 4 + 2 + 2]);
        let sequence = 2 * n as u32 + 1;
        let row = Row { thread: 5, capture_thread: 5, ..Row::default() };
        events.push(Row { metadata_id: 2, sequence, ticks: 10 + n as i64, payload: method, ..row.clone() });
        let stack_id = n as u32 + 1;
        events.push(Row {
            metadata_id: 1,
            sequence: sequence + 1,
            ticks: 100 + n as i64,
            stack_id,
            payload: thrown,
            ..row
        });
    }
    writer.events(&events);
    writer.end()
}

#[test]
fn texts_of_a_recording_stay_texts() {
    let texts = [
        "</script><script>alert(1)</script>",
        "\"><img src=x onerror=alert(1)>",
        "' onmouseover='alert(1)",
        "<!--<script>",
        "]]></style></title></table>",
        "&lt;b&gt;",
        "turned\u{202e}around\u{2028}",
    ];
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("<b>&\"hostile'.nettrace");
    std::fs::write(&path, hostile(&texts)).unwrap();
    let (_folder, dataset, html) = made(path);
    assert_eq!(rows(&dataset.recording(None).unwrap(), "exception", ["type_name"]).len(), texts.len());
    let shown = table(&html, "exceptions-table");
    let mut types: Vec<String> = shown.iter().map(|row| row[0].1.clone()).collect();
    types.sort();
    let mut expected: Vec<String> =
        texts.iter().map(|text| text.replace('\u{202e}', "\\u{202e}").replace('\u{2028}', "\\u{2028}")).collect();
    expected.sort();
    assert_eq!(types, expected);
    assert!(shown.iter().all(|row| row[0].1 == row[3].1), "messages");
    // Names of methods are in the data of the flame graph, which is base64, and in a table.
    let nodes = nodes(&html, "flame-exceptions");
    assert_eq!(nodes.len(), texts.len() + 1);
    assert!(nodes.iter().any(|(name, ..)| name.contains("</script>")), "{nodes:?}");
    // Elements are those of the page: no text made one, or an attribute.
    let lower = html.to_lowercase();
    assert_eq!(lower.matches("<script").count(), lower.matches("</script>").count());
    let of_data = |id| format!("<script type=\"application/octet-stream\" id=\"{id}\">");
    let data = ["flame-exceptions", "rows-exceptions", "selection"];
    let opened: Vec<String> = data.map(of_data).into_iter().chain(["<script>".to_owned()]).collect();
    assert_eq!(lower.matches("<script").count(), opened.len());
    assert!(opened.iter().all(|element| lower.contains(element.as_str())));
    assert!(!lower.contains("<img") && !lower.contains("<!--") && !html.contains('\u{202e}'));
    assert!(html.contains("<title>&lt;b&gt;&amp;&quot;hostile&#39;.nettrace</title>"));
    assert_eq!(lower.matches("</style>").count(), 1);
}

#[test]
fn a_page_needs_nothing_and_is_the_same_each_time() {
    let mut pages = 0;
    for name in
        ["gc-churn.nettrace", "heap-10.gcdump", "known.nettrace", "clr.etl", "exit-early.nettrace", "events.nettrace"]
    {
        let (folder, dataset, html) = made(sample(name));
        let again = page(&dataset.recording(None).unwrap()).unwrap();
        assert!(html == again, "{name}: two pages of one dataset differ");
        drop(folder);
        let (_folder, _, again) = made(sample(name));
        assert!(html == again, "{name}: the pages of two conversions differ");
        assert!(html.len() < 1_500_000, "{name}: {} bytes", html.len());
        // The style refers to patterns of the page itself.
        let html = html.replace("url(#etch-", "(");
        for outside in
            ["http:", "https:", " src=", "url(", "@import", "<link", "fetch(", "XMLHttpRequest", "innerHTML", " style="]
        {
            assert!(!html.contains(outside), "{name}: {outside}");
        }
        assert!(html.contains("default-src 'none'"));
        pages += 1;
    }
    assert_eq!(pages, 6);
}

#[test]
fn a_part_without_data_says_how_to_record_it() {
    let (_folder, _, html) = made(sample("events.nettrace"));
    let missing = html.matches("<p class=\"none\" id=").count();
    assert!(missing >= 5, "{missing}");
    assert!(
        html.contains("No collections are recorded. <code>tracequet collect --for gc</code> records them."),
        "{html}"
    );
    // A dataset that has few of the tables is a page, too.
    let folder = tempfile::tempdir().unwrap();
    let request = Convert::new([sample("gc-churn.nettrace")], folder.path().join("set")).tables(["trace", "gc"]);
    convert(&request, &mut |_| {}).unwrap();
    let dataset = Dataset::open(folder.path().join("set")).unwrap();
    let html = page(&dataset.recording(None).unwrap()).unwrap();
    assert_eq!(table(&html, "collections-table").len(), 19);
}

#[test]
fn the_command_writes_a_page_of_a_recording_or_a_dataset() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (recording, first, second, set) = ("samples/gc-churn.nettrace", path("a.html"), path("b.html"), path("set"));
    let made = run(&["report", recording, "-o", &first]);
    assert_eq!((made.code, made.out.as_str()), (Some(0), ""), "{}", made.err);
    let again = run(&["report", recording, "-o", &first]);
    assert_eq!(again.code, Some(1), "a file that exists is kept");
    assert!(again.err.contains("a.html is there already: use --overwrite to replace it"), "{}", again.err);
    // What cannot be written is said before anything is read.
    for command in ["report", "export"] {
        let nowhere = run(&[command, "no-such-recording.nettrace", "-o", &path("no/such/folder.html")]);
        assert!(nowhere.code == Some(1) && nowhere.err.contains("there is no directory"), "{}", nowhere.err);
    }
    assert_eq!(run(&["report", recording, "-o", &first, "--overwrite"]).code, Some(0));
    assert_eq!(run(&["convert", "--quiet", "--lifetimes", recording, "-o", &set]).code, Some(0));
    assert_eq!(run(&["report", &set, "-o", &second]).code, Some(0));
    let [first, second] = [first, second].map(|path| std::fs::read_to_string(path).unwrap());
    assert!(first.starts_with("<!DOCTYPE html>") && first == second);
    assert_eq!(run(&["report", &set]).out, first, "standard output");
    // What is cut off has a page, and the exit code of losses.
    let cut = path("cut.nettrace");
    let bytes = std::fs::read(sample("gc-churn.nettrace")).unwrap();
    std::fs::write(&cut, &bytes[..bytes.len() / 2]).unwrap();
    let run = run(&["report", &cut]);
    assert_eq!(run.code, Some(2), "{}", run.err);
    assert!(run.out.contains("The recording is cut off, or its end is missing."));
    let losses = table(&run.out, "losses-table");
    assert!(losses.iter().any(|row| row[0].1 == "error" && row[1].1 == "truncated"), "{losses:?}");
}

/// The page of a recording is made of Arrow files, that of its dataset here of Parquet files.
#[test]
fn a_page_of_a_recording_is_that_of_its_dataset() {
    let folder = tempfile::tempdir().unwrap();
    let set = folder.path().join("set").to_str().unwrap().to_owned();
    for name in ["heap-10.nettrace", "lifetimes.nettrace", "stacks.nettrace", "subjects.nettrace", "callbacks.corprof"]
    {
        let recording = format!("samples/{name}");
        let made = run(&["convert", "--quiet", "--overwrite", "--lifetimes", "--dominators", &recording, "-o", &set]);
        assert_eq!(made.code, Some(0), "{name}: {}", made.err);
        let [of_recording, of_dataset] = [&recording, &set].map(|input| run(&["report", input]).out);
        assert!(of_recording.len() > 50_000 && of_recording == of_dataset, "{name}: {} bytes", of_recording.len());
    }
}

#[test]
fn ranges_that_are_kept_for_a_page_are_no_rows_of_its_dataset() {
    let page_of = |keep: Keep| {
        let request = Convert::default().inputs([sample("gc-churn.nettrace")]).keep(keep.clone());
        let folder = tempfile::tempdir().unwrap();
        let made = TemporaryDataset::convert(folder, request.tables_to_read(&TABLES), &mut |_| {}).unwrap();
        let recording = made.dataset.recording(None).unwrap();
        let html = page_with(&recording, "", keep.take()).unwrap();
        (recording.tables().filter(|table| RANGE_TABLES.contains(&table.name.as_str())).count(), html)
    };
    let (without, of_kept) = page_of(Keep::walk(MAX_HEAP, None).with_ranges(LIFETIMES));
    let (with, of_tables) = page_of(Keep::walk(MAX_HEAP, None));
    assert_eq!((without, with), (0, 2));
    assert!(table(&of_kept, "survival-table").len() > 2 && of_kept == of_tables);
}

/// A dataset with a table of findings, as rules write them.
fn with_findings(path: &std::path::Path) {
    let texts = |values: [Option<&str>; 4]| -> ArrayRef { Arc::new(StringArray::from(values.to_vec())) };
    let reals = |values: [Option<f64>; 4]| -> ArrayRef { Arc::new(Float64Array::from(values.to_vec())) };
    let export = Some("tracequet export IN --what contention");
    let columns = [
        ("rule", texts([Some("fine_rule"), Some("lock_convoy"), Some("long_pause"), Some("starved")])),
        ("verdict", texts([Some("fine"), Some("info"), Some("warning"), Some("not_recorded")])),
        ("score", reals([Some(3.0), Some(40.0), Some(88.5), None])),
        ("figure", reals([Some(0.0), Some(0.25), Some(250e6), None])),
        ("unit", texts([Some("count"), Some("share"), Some("ns"), Some("count")])),
        ("subject", texts([None, Some("<b>lock</b>"), None, None])),
        ("sentence", texts([Some("All is well."), Some("Threads wait."), Some("It is long."), Some("Not there.")])),
        ("next_step", texts([Some(""), export, Some(""), Some("tracequet collect --for pool")])),
        ("own_method", texts([None, None, Some("\"><i>Shop"), None])),
        ("cause_rule", texts([None; 4])),
        ("evidence_sql", texts([None; 4])),
        ("doc", texts([Some("docs/FINDINGS.md"); 4])),
        ("process_id", Arc::new(UInt64Array::from(vec![1; 4]))),
        ("info_limit", reals([Some(1.0); 4])),
        ("warning_limit", reals([Some(2.0); 4])),
    ];
    let batch = RecordBatch::try_from_iter_with_nullable(columns.map(|(name, array)| (name, array, true))).unwrap();
    let file = std::fs::File::create(path.join("finding.parquet")).unwrap();
    let mut writer = ArrowWriter::try_new(file, batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    let manifest = path.join("manifest.json");
    let mut json: serde_json::Value = serde_json::from_slice(&std::fs::read(&manifest).unwrap()).unwrap();
    let tables = json["tables"].as_array_mut().unwrap();
    tables.retain(|table| table["name"] != "finding");
    tables.push(serde_json::json!({ "name": "finding", "rows": 4, "bytes": 1 }));
    std::fs::write(&manifest, json.to_string()).unwrap();
}

#[test]
fn findings_stand_first_the_worst_before_the_others() {
    let (folder, ..) = made(sample("events.nettrace"));
    with_findings(&folder.path().join("set"));
    let dataset = Dataset::open(folder.path().join("set")).unwrap();
    let html = page(&dataset.recording(None).unwrap()).unwrap();
    let order = [
        "<section id=\"findings\">",
        "A GC paused the program for long",
        "250\u{a0}ms",
        "Threads wait for one lock",
        "2 rules without a finding",
        "fine_rule",
        "starved",
        "<section id=\"figures\">",
    ];
    let places: Vec<usize> = order.iter().map(|text| html.find(text).unwrap_or_else(|| panic!("{text}"))).collect();
    assert!(places.is_sorted(), "{places:?}");
    assert!(html.contains("<code>&lt;b&gt;lock&lt;/b&gt;</code> <span class=\"figure\">25.0\u{a0}%</span>"));
}

#[test]
fn a_page_stays_small_whatever_the_names() {
    // Names that cannot be packed well, more than a graph has room for.
    let mut state = 1u64;
    let mut letter = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        char::from(b'a' + ((state >> 33) % 26) as u8)
    };
    let names: Vec<String> = (0..9000).map(|_| (0..230).map(|_| letter()).collect()).collect();
    let texts: Vec<&str> = names.iter().map(String::as_str).collect();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("names.nettrace");
    std::fs::write(&path, hostile(&texts)).unwrap();
    let (_folder, _, html) = made(path);
    assert!(html.len() < 5_000_000, "{} bytes", html.len());
    let kept = nodes(&html, "flame-exceptions");
    assert_eq!(kept[0].2, 9000.0, "nothing is lost by merging");
    assert!((1001..9000).contains(&kept.len()), "{}", kept.len());
    let nodes = kept.len() - 1;
    let said = format!(
        "the {},{:03} largest of 9,000 calls; the others, of at most 0.01\u{a0}% each",
        nodes / 1000,
        nodes % 1000
    );
    assert!(html.contains(&said), "{said}");
    assert_eq!(table(&html, "exceptions-table").len(), 100);
}

#[test]
fn a_hundred_thousand_methods_have_a_page() {
    let names: Vec<String> = (0..100_000).map(|n| format!("App.Part{}.Class{n}", n / 100)).collect();
    let texts: Vec<&str> = names.iter().map(String::as_str).collect();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("methods.nettrace");
    std::fs::write(&path, hostile(&texts)).unwrap();
    let (_folder, dataset, html) = made(path);
    assert_eq!(rows(&dataset.recording(None).unwrap(), "method", ["method_id"]).len(), 100_000);
    assert!(html.len() < 5_000_000, "{} bytes", html.len());
    // Each call is too small to be drawn, and none is lost.
    let kept = nodes(&html, "flame-exceptions");
    assert!(kept[0].2 == 100_000.0 && kept.len() <= 8000, "{} of {}", kept.len(), kept[0].2);
    assert!(
        html.contains(" of 100,000 calls; the others, of less than 0.01\u{a0}% each, are merged into their callers.")
    );
    assert_eq!(table(&html, "exceptions-table").len(), 100);
}

#[test]
fn one_event_and_one_of_hours_have_an_axis() {
    let cases: [(&[i64], &str); 2] =
        [(&[0], ">1\u{a0}ns</text></svg>"), (&[0, 5 * 3600 * FREQUENCY], ">5\u{a0}h</text></svg>")];
    for (ticks, last) in cases {
        let mut writer = Writer::new(Form::V4);
        let runtime = "Microsoft-Windows-DotNETRuntime";
        writer.metadata(&[Kind { id: 1, provider: runtime, event_id: 80, version: 1, name: "" }]);
        let wide: Vec<u8> = "Failed\0Why\0".encode_utf16().flat_map(u16::to_le_bytes).collect();
        let payload = [wide, vec![0; 8 + 4 + 2 + 2]].concat();
        let events: Vec<Row> = (1..)
            .zip(ticks)
            .map(|(sequence, &ticks)| Row {
                metadata_id: 1,
                sequence,
                thread: 5,
                capture_thread: 5,
                ticks,
                payload: payload.clone(),
                ..Row::default()
            })
            .collect();
        writer.events(&events);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("one.nettrace");
        std::fs::write(&path, writer.end()).unwrap();
        let (_folder, _, html) = made(path);
        assert_eq!(table(&html, "exceptions-table").len(), 1);
        let (_, axis) = html.split_once("<svg class=\"axis\"").unwrap();
        let (labels, _) = axis.split_once("\n").unwrap();
        assert!(labels.contains(">0</text>") && labels.contains(last), "{labels}");
        let charts = html.split("<svg").skip(1).map(|svg| svg.split_once("</svg>").unwrap().0);
        let charts: Vec<&str> = charts.collect();
        assert!(
            !charts.is_empty() && charts.iter().all(|svg| !svg.contains("NaN") && !svg.contains("inf")),
            "{charts:?}"
        );
    }
}

#[test]
fn a_chart_of_few_values_has_a_dot_for_each() {
    let (_folder, dataset, html) = made(sample("measures.nettrace"));
    assert!(!rows(&dataset.recording(None).unwrap(), "counter", ["name"]).is_empty());
    let (_, counters) = html.split_once("<section id=\"counters\">").unwrap();
    let (counters, _) = counters.split_once("</section>").unwrap();
    let mut charts = 0;
    for svg in counters.split("<svg").skip(1) {
        let path = |class: &str| {
            let (_, rest) = svg.split_once(&format!("<path class=\"{class} c0\" d=\"")).unwrap();
            rest.split_once('"').unwrap().0.to_owned()
        };
        let (line, dots) = (path("line"), path("dots"));
        assert_eq!(dots.matches("h0").count(), line.matches(['M', 'L']).count(), "{svg}");
        charts += 1;
    }
    assert!(charts > 0);
}

/// Rows of a panel that are exact: time, place of the thread, place in the flame graph, amount.
fn exact_rows(html: &str, id: &str) -> Vec<(i64, u16, u32, f64)> {
    let data = data(html, id);
    let u32_at = |at: usize| u32::from_le_bytes(data[at..at + 4].try_into().unwrap());
    let (count, parts) = (u32_at(0) as usize, u32_at(4));
    assert_eq!(parts, 0, "{id} has sums of parts of the time");
    let (low, high) = (16, 16 + 4 * count);
    let threads = high + 4 * count;
    // Behind each other: thread (2 bytes), route, line, node (4), things (4), amount (8).
    let (nodes, amounts) = (threads + 4 * count, threads + 12 * count);
    let mut at = 0;
    (0..count)
        .map(|n| {
            at += i64::from(u32_at(low + 4 * n)) | i64::from(u32_at(high + 4 * n)) << 32;
            let thread = u16::from_le_bytes(data[threads + 2 * n..threads + 2 * n + 2].try_into().unwrap());
            let amount = f64::from_le_bytes(data[amounts + 8 * n..amounts + 8 * n + 8].try_into().unwrap());
            (at, thread, u32_at(nodes + 4 * n), amount)
        })
        .collect()
}

/// What is drawn as alive at a moment is what `lifetimes --at` finds.
#[test]
fn what_the_page_has_alive_at_a_moment_is_what_lifetimes_has() {
    use tracequet::analyze::lifetime::{By, live_at};

    let folder = tempfile::tempdir().unwrap();
    let request = Convert::new([sample("lifetimes.nettrace")], folder.path().join("set")).lifetimes(1 << 28);
    convert(&request, &mut |_| {}).unwrap();
    let dataset = Dataset::open(folder.path().join("set")).unwrap();
    let recording = dataset.recording(None).unwrap();
    let html = page(&recording).unwrap();
    let data = data(&html, "rows-live");
    let count = u32::from_le_bytes(data[..4].try_into().unwrap()) as usize;
    let until = |n: usize| {
        let at = data.len() - 8 * (count - n);
        f64::from_le_bytes(data[at..at + 8].try_into().unwrap())
    };
    let rows = exact_rows(&html, "rows-live");
    let end: i64 = rows.iter().map(|(at, ..)| *at).max().unwrap();
    let mut sums = std::collections::BTreeSet::new();
    for part in 1..=20 {
        let ns = end * part / 18;
        let alive = rows.iter().enumerate().filter(|(n, (from, ..))| *from <= ns && until(*n) > ns as f64);
        let shown: f64 = alive.map(|(_, (.., amount))| amount).sum();
        let expected = live_at(&recording, By::Type, ns, |_| true).unwrap();
        let expected: u64 = expected.rows.iter().map(|row| row.alive).sum();
        assert_eq!(shown, expected as f64, "{ns}");
        sums.insert(expected);
    }
    assert!(sums.len() > 5, "{sums:?}");
}

#[test]
fn the_rows_of_a_flame_graph_are_the_samples_of_threads_and_times() {
    let (_folder, dataset, html) = made(sample("stacks.nettrace"));
    let recording = dataset.recording(None).unwrap();
    let profile = tracequet::analyze::profile::read(&recording, tracequet::analyze::profile::What::Cpu).unwrap();
    let found = exact_rows(&html, "rows-cpu");
    let head: serde_json::Value = serde_json::from_slice(&data(&html, "selection")).unwrap();
    assert_eq!(head["end"], profile.duration_ns);
    let thread_of = |place: u16| {
        let thread = &head["threads"][usize::from(place)];
        (thread[0].as_u64().unwrap(), thread[1].as_u64().unwrap())
    };
    let mut shown: Vec<_> =
        found.iter().map(|(at, thread, _, amount)| (thread_of(*thread), *at, *amount as u64)).collect();
    let mut expected: Vec<_> = profile
        .threads
        .iter()
        .flat_map(|of| of.samples.iter().map(|sample| ((of.process_id, of.thread_id), sample.ts_ns, sample.weight)))
        .collect();
    shown.sort_unstable();
    expected.sort_unstable();
    assert!(expected.len() > 50);
    assert_eq!(shown, expected);
    // Of each node the rows at it and at its callees are what the graph has.
    let all: f64 = found.iter().map(|(.., amount)| amount).sum();
    assert_eq!(all, nodes(&html, "flame-cpu")[0].2);
    assert!(found.iter().all(|(_, _, node, _)| ((node >> 1) as usize) < nodes(&html, "flame-cpu").len()));
}

#[test]
fn survival_of_the_page_is_that_of_the_ranges() {
    for name in ["gc-churn.nettrace", "server-gc.nettrace"] {
        let (_folder, dataset, html) = made(sample(name));
        let recording = dataset.recording(None).unwrap();
        let mut expected: BTreeMap<[String; 2], (u64, u64)> = BTreeMap::new();
        for table in ["gc_surviving_range", "gc_moved_range"] {
            for [before, after, length] in
                rows(&recording, table, ["generation_before", "generation_after", "range_length"])
            {
                let sum = expected.entry([before, after]).or_default();
                *sum = (sum.0 + 1, sum.1 + number(&length));
            }
        }
        let shown = table(&html, "survival-table");
        // The rows of the dataset read here have 0 for a generation that is not known.
        let mut found: BTreeMap<[&str; 2], (u64, u64)> = BTreeMap::new();
        for row in &shown {
            let key = [0, 1].map(|place| if row[place].1 == "–" { "generation 0" } else { row[place].1.as_str() });
            let sum = found.entry(key).or_default();
            *sum = (sum.0 + number(row[2].0.as_ref().unwrap()), sum.1 + number(row[3].0.as_ref().unwrap()));
        }
        let mut found: Vec<(u64, u64)> = found.into_values().collect();
        let mut expected: Vec<(u64, u64)> = expected.into_values().collect();
        found.sort_unstable();
        expected.sort_unstable();
        assert!(!expected.is_empty() && found == expected, "{name}: {found:?} {expected:?}");
    }
}

#[test]
fn a_heap_dump_has_its_types_and_what_keeps_them() {
    let (_folder, dataset, html) = made(sample("heap-10.gcdump"));
    let recording = dataset.recording(None).unwrap();
    let snapshot = tracequet::analyze::heap::snapshot(&recording, None).unwrap();
    let graph = tracequet::analyze::heap::read(&recording, &snapshot, 1 << 30).unwrap();
    let retention = tracequet::analyze::heap::Retention::of(&graph);
    let expected: HashMap<String, [u64; 3]> = retention
        .by_type(&graph)
        .iter()
        .map(|row| (cut(&row.name), [row.objects, row.size_bytes, row.retained_bytes]))
        .collect();
    let shown = table(&html, "retained-table");
    assert!(shown.len() > 20);
    for row in &shown {
        let figures = [1, 2, 3].map(|place| number(row[place].0.as_ref().unwrap()));
        assert_eq!(figures, expected[&row[0].1], "{}", row[0].1);
    }
    assert!(html.contains("<details><summary>") && html.contains("<li>root: "));
}

#[test]
fn a_dataset_of_several_recordings_has_a_page_and_a_check_adds_its_result() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (lake, page, checked, rules) = (path("lake"), path("lake.html"), path("checked.html"), path("rules.toml"));
    for (name, branch) in [("gc-churn.nettrace", "main"), ("server-gc.nettrace", "<b>fork</b>")] {
        let (input, label) = (format!("samples/{name}"), format!("branch={branch}"));
        let made = run(&["convert", "--quiet", "--append", &input, "-o", &lake, "--label", &label]);
        assert_eq!(made.code, Some(0), "{}", made.err);
    }
    let made = run(&["report", &lake, "-o", &page]);
    assert_eq!(made.code, Some(0), "{}", made.err);
    let html = std::fs::read_to_string(&page).unwrap();
    assert_eq!(table(&html, "recordings-table").len(), 2);
    let dataset = Dataset::open(&lake).unwrap();
    let mut counts: Vec<f64> =
        dataset.each_recording().map(|recording| rows(&recording, "gc", ["gc_id"]).len() as f64).collect();
    counts.sort_by(f64::total_cmp);
    let trends = table(&html, "trends-table");
    let of_count = trends.iter().find(|row| row.last().unwrap().1 == "gc.count").unwrap();
    let shown = [2, 4].map(|place| of_count[place].0.as_ref().unwrap().parse::<f64>().unwrap());
    assert_eq!(shown.to_vec(), counts);
    assert!(html.contains("&lt;b&gt;fork&lt;/b&gt;") && !html.contains("<b>fork"));
    assert!(html.contains("<b>Collections</b>") && of_count[0].1 == "Collections");
    // A recording that does not say when it was made is not the first one of 1970.
    let made = run(&["convert", "--quiet", "--append", "samples/heap-10.gcdump", "-o", &lake]);
    assert_eq!(made.code, Some(0), "{}", made.err);
    let dated = run(&["report", &lake]).out;
    assert_eq!(table(&dated, "recordings-table").len(), 3);
    assert!(!dated.contains("1970-01-01"), "{}", dated.split("</dl>").next().unwrap());
    // One of them has a page of its own; a check writes its result above the page.
    let trace = &dataset.recordings()[0].trace_id;
    assert!(run(&["report", &lake, "--trace", trace]).out.contains("<section id=\"collections\">"));
    std::fs::write(&rules, "rules = [\"gc.count <= 1\"]\n").unwrap();
    let result = run(&["check", "samples/gc-churn.nettrace", "--rules", &rules, "--report", &checked]);
    assert_eq!(result.code, Some(3), "{}", result.err);
    let html = std::fs::read_to_string(&checked).unwrap();
    assert!(html.contains("<section id=\"verdict\">") && html.contains("gc.count &lt;= 1"));
    assert_eq!(table(&html, "collections-table").len(), 19);
    let result = run(&["check", &lake, "--rules", &rules, "--report", &checked]);
    assert_eq!(result.code, Some(3), "{}", result.err);
    assert!(std::fs::read_to_string(&checked).unwrap().contains("<table id=\"recordings-table\">"));
}

/// The flame graph of a change: the path to each node, with its own weights and all of them, before and now.
fn changed_nodes(html: &str, id: &str) -> Vec<(Vec<String>, [[f64; 2]; 2])> {
    let data = data(html, id);
    let u32_at = |at: usize| u32::from_le_bytes(data[at..at + 4].try_into().unwrap()) as usize;
    let (count, names) = (u32_at(0), u32_at(4));
    let parents = 8 + count * 32;
    let lengths = parents + count * 8;
    let mut at = lengths + names * 5;
    let texts: Vec<String> = (0..names)
        .map(|name| {
            let from = at;
            at += u32_at(lengths + name * 4);
            String::from_utf8(data[from..at].to_vec()).unwrap().split_once('\n').unwrap().0.to_owned()
        })
        .collect();
    assert_eq!(at, data.len());
    let sum = |column: usize, node: usize| {
        let at = 8 + (column * count + node) * 8;
        f64::from_le_bytes(data[at..at + 8].try_into().unwrap())
    };
    let mut all: Vec<(Vec<String>, [[f64; 2]; 2])> = Vec::new();
    for node in 0..count {
        let mut path = if node == 0 { Vec::new() } else { all[u32_at(parents + node * 4)].0.clone() };
        path.extend((node > 0).then(|| texts[u32_at(parents + count * 4 + node * 4)].clone()));
        all.push((path, [[sum(0, node), sum(2, node)], [sum(1, node), sum(3, node)]]));
    }
    all
}

#[test]
fn a_flame_graph_of_two_recordings_is_the_exported_difference() {
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("changes.html").to_str().unwrap().to_owned();
    let (mut graphs, mut changed) = (0, 0);
    for (base, new) in [
        ("samples/bugs/large-clean.nettrace.zst", "samples/bugs/large.nettrace.zst"),
        ("samples/bugs/convoy-clean.nettrace.zst", "samples/bugs/convoy.nettrace.zst"),
        ("samples/requests/orders.nettrace.zst", "samples/bugs/queries.nettrace.zst"),
    ] {
        let [base, new] = [(base, "base"), (new, "new")].map(|(recording, side)| {
            let set = folder.path().join(side).to_str().unwrap().to_owned();
            let made = run(&["convert", "--quiet", recording, "-o", &set, "--overwrite"]);
            assert!(made.code.is_some_and(|code| code != 1), "{}", made.err);
            set
        });
        let (base, new) = (base.as_str(), new.as_str());
        let made = run(&["report", base, new, "-o", &page, "--overwrite"]);
        assert!(made.code.is_some_and(|code| code != 1), "{}", made.err);
        let html = std::fs::read_to_string(&page).unwrap();
        for id in ["cpu", "allocation", "exception", "contention", "wait"] {
            if !html.contains(&format!("id=\"flame-{id}\"")) {
                continue;
            }
            let exported = run(&["export", new, "--base", base, "--format", "folded", "--what", id]).out;
            let mut expected: BTreeMap<Vec<String>, [[f64; 2]; 2]> = BTreeMap::new();
            for line in exported.lines() {
                let mut parts = line.rsplitn(3, ' ');
                let weights: Vec<f64> = parts.by_ref().take(2).map(|n| n.parse().unwrap()).collect();
                let path: Vec<String> = parts.next().unwrap().split(';').map(cut).collect();
                for end in 0..=path.len() {
                    let [own, total] = expected.entry(path[..end].to_vec()).or_default();
                    for (side, weight) in weights.iter().rev().enumerate() {
                        total[side] += weight;
                        own[side] += if end == path.len() { *weight } else { 0.0 };
                    }
                }
            }
            let nodes = changed_nodes(&html, &format!("flame-{id}"));
            for (path, sums) in &nodes {
                assert_eq!(expected.get(path), Some(sums), "{new}: {id}: {path:?}");
                changed += usize::from(sums[1][0] != sums[1][1]);
            }
            // What is left out is small on both sides.
            let all = nodes[0].1[1];
            let shown: std::collections::HashSet<&Vec<String>> = nodes.iter().map(|(path, _)| path).collect();
            let left_out = expected.iter().filter(|(path, _)| !shown.contains(path));
            for (path, [_, total]) in left_out {
                let is_small = |side: usize| total[side] <= all[side] * 0.0003;
                assert!(is_small(0) && is_small(1), "{new}: {id}: {path:?} is left out");
            }
            graphs += 1;

            // The table has the functions with what they changed by, divided as the page says.
            let divided = |name: &str| -> f64 {
                let (_, rest) = html.split_once(&format!("data-flame=\"flame-{id}\"")).unwrap();
                rest.split_once(&format!("{name}=\"")).unwrap().1.split_once('"').unwrap().0.parse().unwrap()
            };
            let by = [divided("data-before"), divided("data-now")];
            let mut own: BTreeMap<&str, [f64; 2]> = BTreeMap::new();
            for (path, [sums, _]) in expected.iter().filter(|(path, _)| !path.is_empty()) {
                let both = own.entry(path.last().unwrap()).or_default();
                both.iter_mut().zip(sums).for_each(|(sum, of)| *sum += of);
            }
            let shown = table(&html, &format!("{id}-functions-table"));
            assert!(!shown.is_empty());
            let is_near =
                |text: &str, value: f64| (text.parse::<f64>().unwrap() - value).abs() <= value.abs() * 1e-9 + 1e-6;
            for (row, raw) in shown.iter().zip(0..) {
                let [before, now] = own[row[0].1.as_str()];
                let expected = [now / by[1] - before / by[0], before / by[0], now / by[1]];
                for (cell, value) in row[2..5].iter().zip(expected) {
                    assert!(is_near(cell.0.as_ref().unwrap(), value), "{new}: {id}: row {raw}: {cell:?}, {value}");
                }
            }
        }
    }
    assert!(graphs >= 6 && changed > 100, "{graphs} graphs, {changed} changed nodes");
}

#[test]
fn a_page_of_two_recordings_has_the_changes_of_diff() {
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("changes.html").to_str().unwrap().to_owned();
    for (base, new, what) in [
        ("samples/bugs/large-clean.nettrace.zst", "samples/bugs/large.nettrace.zst", "allocation"),
        ("samples/bugs/convoy-clean.nettrace.zst", "samples/bugs/convoy.nettrace.zst", "contention"),
        ("samples/heap.nettrace", "samples/heap-10.nettrace", "allocation"),
    ] {
        let made = run(&["report", base, new, "-o", &page, "--overwrite"]);
        let asked = run(&["diff", base, new, "--json"]);
        assert_eq!((made.code, &made.err), (asked.code, &asked.err), "{new}");
        let html = std::fs::read_to_string(&page).unwrap();
        let asked: serde_json::Value = serde_json::from_str(&asked.out).unwrap();
        let per = match asked["per"].as_str().unwrap() {
            "recording" => "amount".to_owned(),
            per => format!("per_{per}"),
        };
        let number = |value: &serde_json::Value| value.as_f64().map_or("–".to_owned(), |value| value.to_string());
        for section in asked["sections"].as_array().unwrap() {
            let rows = section["rows"].as_array().unwrap();
            let rows: Vec<_> = rows.iter().filter(|row| row["is_noise"] == false).take(200).collect();
            let id = format!("{}-table", section["what"].as_str().unwrap());
            assert_eq!(html.contains(&format!("<table id=\"{id}\">")), !rows.is_empty(), "{new}: {id}");
            assert!(section["what"] != what || !rows.is_empty() || new.contains("heap"), "{new}: {id}");
            if rows.is_empty() {
                continue;
            }
            let shown = table(&html, &id);
            // Reading JSON may change the last digit.
            let rounded = |text: String| text.parse::<f64>().map_or(text, |value| format!("{value:.10e}"));
            for (place, of) in [(0, "change"), (5, "chance")] {
                assert_eq!(
                    raw(&shown, place).into_iter().map(rounded).collect::<Vec<_>>(),
                    rows.iter().map(|row| rounded(number(&row[of]))).collect::<Vec<_>>(),
                    "{new}: {id}"
                );
            }
            for (place, side) in [(2, "base"), (3, "new")] {
                let expected: Vec<String> = rows.iter().map(|row| rounded(number(&row[side][&per]))).collect();
                let found: Vec<String> = raw(&shown, place).into_iter().map(rounded).collect();
                assert_eq!(found, expected, "{new}: {id}");
            }
        }
        for (id, of, column, field) in
            [("findings-table", "findings", 4, "rule"), ("metrics-table", "metrics", 1, "metric")]
        {
            let beyond_noise = asked[of].as_array().unwrap().iter().filter(|row| row["is_noise"] == false);
            let expected: Vec<&str> = beyond_noise.map(|row| row[field].as_str().unwrap()).collect();
            let shown = if expected.is_empty() { Vec::new() } else { table(&html, id) };
            let shown: Vec<String> = shown.into_iter().map(|row| row[column].1.clone()).collect();
            let expected: Vec<String> = expected.into_iter().take(200).map(cut).collect();
            // Methods are shown without their arguments where that is enough.
            let shown: Vec<String> = shown
                .iter()
                .zip(&expected)
                .map(|(shown, whole)| {
                    let start = shown.trim_end_matches(']');
                    if whole.starts_with(start) && whole.ends_with(")]") { whole.clone() } else { shown.clone() }
                })
                .chain(shown.iter().skip(expected.len()).cloned())
                .collect();
            assert_eq!(shown, expected, "{new}: {id}");
        }
        let types = asked["heap"]["types"].as_array();
        assert_eq!(types.is_some(), new.contains("heap"));
        if let Some(types) = types {
            let types: Vec<_> = types.iter().filter(|change| change["is_noise"] == false).take(200).collect();
            let bytes = |side: &str| types.iter().map(|change| number(&change[side]["size_bytes"])).collect::<Vec<_>>();
            let shown = table(&html, "heap-table");
            assert!(!types.is_empty() && raw(&shown, 4) == bytes("base") && raw(&shown, 5) == bytes("new"));
        }
        assert!(html.len() < 500_000 && !html.contains("http:") && !html.contains("https:"));
    }
    assert_eq!(run(&["report", "samples/heap.nettrace", "samples/heap-10.nettrace", "--trace", "a"]).code, Some(1));
}
