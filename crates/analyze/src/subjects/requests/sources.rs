//! The source of requests that is shown, where several report the same ones.

use std::cmp::Reverse;

use crate::prelude::*;

use super::route::route;
use super::work::Kind;

row!(struct Reported of activity { provider_name, name, start_fields, end_fields });

/// Requests of a source in which a route is looked for.
const MAX_LOOKED_AT: u64 = 100;

/// A source as far as it was read.
#[derive(Clone, Copy, Debug, Default)]
struct Source {
    rows: u64,
    has_routes: bool,
}

/// The side of a request (0: it came in, 1: HttpClient sent it), and the place of its source in [`super::SERVER`] or
/// [`super::CLIENT`]. A request is a row for each source. `None` for other activities.
pub fn source(provider: &str, name: &str) -> Option<(usize, usize)> {
    match Kind::of(provider, name, false) {
        Kind::Request(place) => Some((0, place)),
        Kind::Call(place) => Some((1, place)),
        _ => None,
    }
}

/// Of each side the source whose requests are shown: of those with routes the one that has most requests; of two with as
/// many the better one.
pub fn sources(recording: &Recording<'_>) -> Result<[Option<usize>; 2]> {
    let mut found = [[Source::default(); 3]; 2];
    recording.each_recorded::<Reported<'_>>(|row| {
        let place = source(row.provider_name, row.name);
        let Some(of) = place.and_then(|(side, place)| found.get_mut(side)?.get_mut(place)) else { return };
        of.rows += 1;
        if !of.has_routes && of.rows <= MAX_LOOKED_AT {
            let [start, end] = [row.start_fields, row.end_fields].map(Option::unwrap_or_default);
            of.has_routes = !route(start, end).is_empty();
        }
    })?;
    Ok(found.map(|of_side| {
        let reported = of_side.iter().enumerate().filter(|(_, of)| of.rows > 0);
        let best = reported.min_by_key(|(place, of)| (!of.has_routes, Reverse(of.rows), *place));
        best.map(|(place, _)| place)
    }))
}
