//! Activities as pieces of work, and what belongs to them.

use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher, Hash};
use tracequet_dataset::row;

use serde_json::Value;

use crate::pieces::Pieces;

/// Reporters of HTTP requests that came in, as provider and name, the best first: several stand for the same requests.
/// The metrics `request.server.*` and the view `requests` have the same.
pub const SERVER: [(&str, &str); 3] = [
    ("Microsoft.AspNetCore", "Microsoft.AspNetCore.Hosting.HttpRequestIn"),
    ("Microsoft.AspNetCore.Hosting", "Request"),
    ("Microsoft-AspNetCore-Server-Kestrel", "Request"),
];

/// Reporters of requests of HttpClient, the best first.
pub const CLIENT: [(&str, &str); 3] = [
    ("HttpHandlerDiagnosticListener", "System.Net.Http.HttpRequestOut"),
    ("System.Net.Http", "System.Net.Http.HttpRequestOut"),
    ("System.Net.Http", "Request"),
];

/// Activities that last as long as a server or a connection: no piece of work.
const FRAMES: [(&str, &str); 2] =
    [("Microsoft.AspNetCore.Hosting", "Host"), ("Microsoft-AspNetCore-Server-Kestrel", "Connection")];

/// Tasks have no id of their own, but that of the work that they are a part of.
pub(crate) const TASKS: &str = "System.Threading.Tasks.TplEventSource";

/// Activities of a process that are remembered, and steps from one to those that it lies in.
const MOST_SPANS: usize = 1 << 18;
const MOST_STEPS: usize = 64;

/// Activities of the same id that are looked at for one that runs at a time.
const MOST_OF_ID: usize = 8;

// An activity, as rules look at it.
row!(pub(crate) struct Activity of activity {
    process_id, thread_id, end_thread_id, callsite_id, start_ts_ns, duration_ns, provider_name, name, activity_id,
    parent_activity_id, start_fields, end_fields
});

/// A kind of activity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A request that came in, by its place in [`SERVER`].
    Request(usize),
    /// A request of HttpClient, by its place in [`CLIENT`].
    Call(usize),
    /// A query of a database.
    Query,
    /// A server or a connection: no piece of work.
    Frame,
    /// Any other work.
    Other,
}

impl Kind {
    /// The kind by who reports it, and by whether it has the text of a command.
    pub fn of(provider: &str, name: &str, is_query: bool) -> Kind {
        let place = |sources: &[(&str, &str)]| sources.iter().position(|known| *known == (provider, name));
        match (place(&SERVER), place(&CLIENT)) {
            (Some(place), _) => Kind::Request(place),
            (None, Some(place)) => Kind::Call(place),
            (None, None) if is_query => Kind::Query,
            (None, None) if place(&FRAMES).is_some() => Kind::Frame,
            (None, None) => Kind::Other,
        }
    }
}

/// An activity and when it ran.
#[derive(Clone, Copy, Debug)]
struct Span {
    id: Id,
    start_ns: i64,
    /// `i64::MAX` of one whose end is not known.
    end_ns: i64,
    parent: Id,
    kind: Kind,
}

/// The id of an activity as a number; 0 of none.
pub(crate) type Id = u64;

/// The number of an id.
pub(crate) fn id_of(text: Option<&str>) -> Id {
    text.filter(|text| !text.is_empty()).map_or(0, hashed)
}

/// A number that stands for an id; never 0.
pub(crate) fn hashed(id: impl Hash) -> Id {
    BuildHasherDefault::<DefaultHasher>::default().hash_one(id) | 1
}

/// A piece of work: the id of its activity, and when it began; `i64::MIN` of one that began before the recording.
pub(crate) type Piece = (Id, i64);

/// The piece of work that a query or a call belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Belongs {
    To(Piece),
    /// The query or call is a part of another query, or of another call of the same source, and counts there.
    Inside,
    /// Nothing says it.
    Unknown,
}

/// The activities of a process.
#[derive(Debug, Default)]
pub(crate) struct Work {
    spans: Pieces<Span>,
    /// Places in `spans`, ordered by id and start.
    order: Vec<u32>,
    /// Whether requests that came in have ids, so that what they ask for names them.
    pub(crate) has_requests: bool,
}

impl Work {
    /// An activity of the process.
    pub(crate) fn add(&mut self, row: &Activity<'_>, kind: Kind) {
        let id = id_of(row.activity_id);
        if id == 0 || row.provider_name == TASKS || self.spans.len() >= MOST_SPANS {
            return;
        }
        self.has_requests |= matches!(kind, Kind::Request(_));
        let end_ns = row.duration_ns.map_or(i64::MAX, |ns| row.start_ts_ns.saturating_add(ns.max(0)));
        let parent = id_of(row.parent_activity_id);
        self.spans.push(Span { id, start_ns: row.start_ts_ns, end_ns, parent, kind });
    }

    /// All were added.
    pub(crate) fn finish(&mut self) {
        self.order = (0..).take(self.spans.len()).collect();
        let key = |span: &Span| (span.id, span.start_ns, span.end_ns, span.parent);
        self.order.sort_unstable_by_key(|place| (self.spans.get(*place as usize).map(key), *place));
    }

    /// The activity of an id that ran at a time: the last one that had begun and not ended; without one, the last that
    /// had begun.
    fn at(&self, id: Id, ts_ns: i64) -> Option<&Span> {
        let span = |place: &u32| self.spans.get(*place as usize);
        let end = self.order.partition_point(|at| span(at).is_some_and(|span| (span.id, span.start_ns) <= (id, ts_ns)));
        let begun = || self.order.iter().take(end).rev().filter_map(span).take_while(|span| span.id == id);
        begun().take(MOST_OF_ID).find(|span| span.end_ns >= ts_ns).or_else(|| begun().next())
    }

    /// The activities that one lies in which began at a time, by its parent, the nearest first; the last one may be
    /// unknown.
    fn around(&self, parent: Id, ts_ns: i64) -> impl Iterator<Item = Around> {
        let mut next = Some((parent, ts_ns));
        std::iter::from_fn(move || {
            let (id, ts_ns) = next.filter(|(id, _)| *id != 0)?;
            let span = self.at(id, ts_ns);
            next = span.map(|span| (span.parent, span.start_ns));
            Some(Around {
                kind: span.map(|span| span.kind),
                piece: (id, span.map_or(i64::MIN, |span| span.start_ns)),
                is_running: span.is_some_and(|span| span.end_ns >= ts_ns),
            })
        })
        .take(MOST_STEPS)
    }

    /// The piece of work that a query or a call belongs to which began at a time, by its parent: the request that it
    /// lies in; without one, the nearest other piece of work.
    pub(crate) fn of(&self, kind: Kind, parent: Id, ts_ns: i64) -> Belongs {
        let mut nearest = None;
        for around in self.around(parent, ts_ns) {
            match around.kind {
                Some(Kind::Request(_)) => return Belongs::To(around.piece),
                Some(same) if same == kind && around.is_running => return Belongs::Inside,
                // The parent began before the recording, or is not in it.
                None | Some(Kind::Other) => nearest = nearest.or(Some(around.piece)),
                _ => {}
            }
        }
        nearest.map_or(Belongs::Unknown, Belongs::To)
    }

    /// Whether an activity that ran at a time is a request, or lies in one.
    pub(crate) fn is_of_request(&self, activity: Id, ts_ns: i64) -> bool {
        self.around(activity, ts_ns).any(|around| matches!(around.kind, Some(Kind::Request(_))))
    }

    /// Whether a query lies in another one, or a call in another call, whoever reports it.
    pub(super) fn is_inside(&self, kind: Kind, parent: Id, ts_ns: i64) -> bool {
        let is_same = |other: Kind| match kind {
            Kind::Call(_) => matches!(other, Kind::Call(_)),
            kind => kind == other,
        };
        self.around(parent, ts_ns).any(|around| around.is_running && around.kind.is_some_and(is_same))
    }
}

/// An activity that another one lies in.
struct Around {
    /// `None` when it is not in the recording.
    kind: Option<Kind>,
    piece: Piece,
    is_running: bool,
}

/// The text of a command in the fields of an activity, as the view `queries` finds it.
pub fn query_text(start: &str, end: &str) -> Option<String> {
    let may_have = |text: &str| ["ommandText", "db.query.text", "db.statement"].iter().any(|key| text.contains(key));
    if !may_have(start) && !may_have(end) {
        return None;
    }
    let parse = |text: &str| serde_json::from_str::<Value>(text).unwrap_or_default();
    let (start, end) = (parse(start), parse(end));
    let found = [
        start.get("CommandText"),
        start.get("commandText"),
        end.get("tags").and_then(|tags| tags.get("db.query.text")),
        end.get("tags").and_then(|tags| tags.get("db.statement")),
        start.get("tags").and_then(|tags| tags.get("db.query.text")),
        start.get("tags").and_then(|tags| tags.get("db.statement")),
    ];
    found.into_iter().flatten().find_map(Value::as_str).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::definition_of;

    fn work(rows: &[(&str, &str, &str, i64, i64)]) -> Work {
        let mut work = Work::default();
        for (source, id, parent, start_ts_ns, duration_ns) in rows {
            let (provider_name, name) = source.split_once('/').unwrap();
            let row = Activity {
                process_id: 7,
                thread_id: 1,
                end_thread_id: 1,
                callsite_id: 0,
                start_ts_ns: *start_ts_ns,
                duration_ns: Some(*duration_ns),
                provider_name,
                name,
                activity_id: Some(id),
                parent_activity_id: Some(parent),
                start_fields: None,
                end_fields: None,
            };
            work.add(&row, Kind::of(provider_name, name, name == "query"));
        }
        work.finish();
        work
    }

    #[test]
    fn an_id_that_is_given_again_is_another_piece_of_work() {
        let work = work(&[
            ("Microsoft-AspNetCore-Server-Kestrel/Connection", "c", "", 0, 1000),
            ("Microsoft.AspNetCore.Hosting/Request", "r", "c", 100, 50),
            ("Microsoft.AspNetCore.Hosting/Request", "r", "c", 200, 50),
            ("System.Threading.Tasks.TplEventSource/Operation", "r", "", 205, 40),
            ("Shop/load", "l", "r", 210, 30),
            ("Shop/query", "q", "l", 215, 10),
        ]);
        let of = |parent: &str, ts_ns| work.of(Kind::Query, id_of(Some(parent)), ts_ns);
        assert_eq!(of("r", 110), Belongs::To((id_of(Some("r")), 100)));
        // Through the work in between, and after its end by what began last.
        for (parent, ts_ns) in [("l", 220), ("r", 249), ("r", 280)] {
            assert_eq!(of(parent, ts_ns), Belongs::To((id_of(Some("r")), 200)), "{parent} {ts_ns}");
        }
        // A request of the same id that began before the recording.
        assert_eq!(of("r", 50), Belongs::To((id_of(Some("r")), i64::MIN)));
        assert_eq!((of("q", 216), of("c", 300), of("", 300)), (Belongs::Inside, Belongs::Unknown, Belongs::Unknown));
        assert_eq!(work.of(Kind::Call(2), id_of(Some("q")), 216), Belongs::To((id_of(Some("r")), 200)));
    }

    #[test]
    fn parents_in_a_circle_end() {
        let work = work(&[("A/a", "a", "b", 0, 9), ("A/b", "b", "a", 0, 9)]);
        assert_eq!(work.of(Kind::Query, id_of(Some("a")), 5), Belongs::To((id_of(Some("a")), 0)));
    }

    /// One list of sources, wherever it stands.
    #[test]
    fn metrics_and_views_have_the_sources_of_requests() {
        let view = tracequet_schemas::VIEWS.iter().find(|(name, _)| *name == "requests");
        for (side, sources) in [("server", SERVER), ("client", CLIENT)] {
            let names = sources.map(|(provider, name)| format!("{provider}/{name}"));
            for metric in ["count", "p50", "p99", "failed", "failed.count"] {
                let definition = definition_of(&format!("request.{side}.{metric}")).unwrap().unwrap();
                assert_eq!(definition.first_of.get(..names.len()), Some(&names[..]), "{side} {metric}");
            }
            let listed = names.map(|name| format!("('{name}', '{side}')"));
            assert!(listed.iter().all(|row| view.is_some_and(|(_, sql)| sql.contains(row))), "{listed:?}");
        }
    }
}
