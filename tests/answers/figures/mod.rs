//! One figure, every surface: what stands on the page, in a view, a metric, a finding, `explain --json` and an export is one number.

mod pairs;
mod pauses;
mod surfaces;

use crate::support::expected::shared_folder;
use crate::support::python::python;

/// Of each recording all surfaces are made once, and held against each other.
#[test]
fn what_stands_on_several_surfaces_is_one_number() {
    let test = "what_stands_on_several_surfaces_is_one_number";
    let python = python(test);
    let mut recordings = surfaces::samples();
    recordings.extend(shared_folder(test, "fourth/right").map(|folder| folder.join("one240.nettrace.zst")));
    let (mut with_pauses, mut with_requests, mut compared) = (0, 0, pairs::Compared::new());
    for recording in recordings {
        let surfaces = surfaces::Surfaces::of(&recording);
        let [has_pauses, has_requests] = pauses::check(&surfaces, python.as_deref());
        with_pauses += usize::from(has_pauses);
        with_requests += usize::from(has_requests);
        if let Some(python) = &python {
            pairs::check(&surfaces, python, &mut compared);
        }
    }
    assert!(with_pauses > 20 && with_requests > 3, "{with_pauses} with pauses, {with_requests} with requests");
    let empty: Vec<_> = compared.iter().filter(|(_, count)| **count == 0).map(|(what, _)| what).collect();
    assert!(empty.is_empty(), "no sample has {empty:?}");
}
