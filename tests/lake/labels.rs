//! Labels of recordings that were converted from samples.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use tracequet::dataset::format::paths;
use tracequet::lake::{Directory, of};
use tracequet::{Column, Convert, Dataset, Relabel, convert, relabel};

/// A dataset of two recordings of `main`.
fn lake(root: &Path) -> [String; 2] {
    let sample = |name: &str| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("samples").join(name);
    let request = Convert::new([sample("exit-early.nettrace"), sample("gc-churn.nettrace")], root)
        .append(true)
        .tables(["gc"])
        .labels([("branch".to_owned(), "main".to_owned()), ("n".to_owned(), "1".to_owned())]);
    convert(&request, &mut |_| {}).unwrap();
    let dataset = Dataset::open(root).unwrap();
    let keys: Vec<String> = dataset.recordings().iter().map(|one| one.trace_id.clone()).collect();
    keys.try_into().unwrap()
}

fn text(labels: &BTreeMap<String, String>) -> String {
    labels.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(",")
}

/// The labels of a recording by its entry, and by the table.
fn labels(root: &Path, key: &str) -> [String; 2] {
    let dataset = Dataset::open(root).unwrap();
    let info = dataset.recordings().iter().find(|one| one.trace_id == key).unwrap();
    let mut rows = BTreeMap::new();
    for batch in dataset.recording(Some(key)).unwrap().table("trace_label").unwrap().scan().batches().unwrap() {
        let batch = batch.unwrap();
        let column = |name| Column::of(&batch, name).unwrap();
        for row in 0..batch.num_rows() {
            assert_eq!(column("trace_id").text(row), Some(key));
            let cell = |name| column(name).text(row).unwrap().to_owned();
            rows.insert(cell("name"), cell("value"));
        }
    }
    [text(&info.labels), text(&rows)]
}

fn of_pairs(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

#[test]
fn labels_change_in_the_entry_and_in_the_table() {
    let folder = tempfile::tempdir().unwrap();
    let root = &folder.path().join("lake");
    let [first, second] = lake(root);
    let both = |text: &str| [text.to_owned(), text.to_owned()];
    let set = of_pairs(&[("baseline", "2026-11"), ("n", "2")]);
    let wanted = Relabel { keys: vec![first.clone()], set, ..Relabel::default() };
    let planned = relabel(root, &Relabel { dry_run: true, ..wanted.clone() }).unwrap();
    assert_eq!((planned, labels(root, &first)), (vec![first.clone()], both("branch=main,n=1")));
    assert_eq!(relabel(root, &wanted).unwrap().join(" "), first);
    assert_eq!(labels(root, &first), both("baseline=2026-11,branch=main,n=2"));
    assert_eq!(labels(root, &second), both("branch=main,n=1"));
    assert_eq!(relabel(root, &wanted).unwrap(), [] as [String; 0], "it has them already");
    // By labels, and to none at all.
    let unset = ["branch", "n"].map(str::to_owned).into();
    let wanted = Relabel { labels: of_pairs(&[("n", "1")]), unset, ..Relabel::default() };
    assert_eq!(relabel(root, &wanted).unwrap().join(" "), second);
    assert_eq!(labels(root, &second), both(""));
    assert!(!root.join(paths::folder("trace_label", &second)).exists());
    let left: Vec<_> = fs::read_dir(root.join(paths::ENTRIES)).unwrap().map(|one| one.unwrap().file_name()).collect();
    assert_eq!(left.len(), 3, "two entries and the lock: {left:?}");
    let all = Relabel { set: of_pairs(&[("n", "3")]), ..Relabel::default() };
    assert_eq!(relabel(root, &all).unwrap().len(), 2);
    assert_eq!(labels(root, &second), both("n=3"));
    let missing = Relabel { keys: vec!["none".into()], ..all };
    assert!(relabel(root, &missing).unwrap_err().to_string().contains("there is no recording none"));
    assert!(relabel(root, &Relabel::default()).unwrap_err().to_string().contains("no label is set"));
}

/// A run that was killed before the new entry, and one that was killed behind it.
#[test]
fn what_a_killed_run_began_is_finished_or_taken_back() {
    let folder = tempfile::tempdir().unwrap();
    let root = &folder.path().join("lake");
    let [key, _] = lake(root);
    let (entry, half) = (root.join(paths::entry(&key)), root.join(paths::half(&key)));
    let staged = root.join(format!("manifest/{key}.labels.parquet.half"));
    let file = root.join(paths::file("trace_label", &key, Default::default()));
    let before = [fs::read(&entry).unwrap(), fs::read(&file).unwrap()];
    relabel(root, &Relabel { set: of_pairs(&[("n", "2")]), ..Relabel::default() }).unwrap();
    let after = [fs::read(&entry).unwrap(), fs::read(&file).unwrap()];
    let now = || [fs::read(&entry).unwrap(), fs::read(&file).unwrap()];
    for (entry_then, expected) in [(&before[0], &before), (&after[0], &after)] {
        fs::write(&entry, entry_then).unwrap();
        fs::write(&half, &after[0]).unwrap();
        fs::write(&staged, &after[1]).unwrap();
        fs::write(&file, &before[1]).unwrap();
        of(Directory::new(root, false)).storage().open().unwrap();
        assert!(now() == *expected);
        assert!(!half.exists() && !staged.exists());
    }
}
