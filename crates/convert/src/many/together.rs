//! Recordings on their way into a growing dataset: those that are ready at the same time are put into it together.

use std::sync::mpsc::Receiver;

use tracequet_dataset::error::{Error, Result};
use tracequet_lake::{NewRecording, Put};

use super::memory::{Budget, Share};

/// Files that are put together, at most. As many more may wait for that. Each time the disk is waited for; of a
/// recording that could not be read there are two files, so that a thousand of them wait once.
const MOST_FILES: u64 = 2048;

/// A recording that is ready, and what the caller wants to know it by.
pub(crate) struct Ready<'r, T> {
    recording: NewRecording,
    own: T,
    _room: Share<'r>,
}

/// The room of those that wait.
pub(crate) fn room() -> Budget {
    Budget::new(MOST_FILES)
}

impl<'r, T> Ready<'r, T> {
    /// Waits until there is room for it.
    pub(crate) fn new(recording: NewRecording, own: T, room: &'r Budget) -> Ready<'r, T> {
        let _room = room.take(recording.file_count() as u64);
        Ready { recording, own, _room }
    }
}

/// Puts recordings into the dataset, by `put_all`, as they come: those that came while others were put, together. Says
/// of each its outcome, or an error of the dataset; nothing is put after that.
pub(crate) fn put<T>(
    put_all: impl Fn(&[NewRecording]) -> Result<Vec<Put>>,
    ready: &Receiver<Ready<'_, T>>,
    mut done: impl FnMut(T, Put),
    mut broken: impl FnMut(Error),
) {
    let mut is_broken = false;
    while let Ok(first) = ready.recv() {
        // Recordings keep their room until all are here, so that the group has an end.
        let group: Vec<_> = std::iter::once(first).chain(ready.try_iter()).collect();
        let (recordings, own): (Vec<_>, Vec<_>) = group.into_iter().map(|ready| (ready.recording, ready.own)).unzip();
        if is_broken {
            continue;
        }
        match put_all(&recordings) {
            Ok(puts) => own.into_iter().zip(puts).for_each(|(own, put)| done(own, put)),
            Err(error) => {
                is_broken = true;
                broken(error);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;
    use tracequet_dataset::write::{DatasetOptions, DatasetWriter, Encoders, Shelf};
    use tracequet_lake::Directory;

    /// Each group waits for the disk: 2,000 names of files that are not there must not do so 2,000 times.
    #[test]
    fn what_waits_is_put_together_and_the_room_has_an_end() {
        let folder = tempfile::tempdir().unwrap();
        let lake = tracequet_lake::of(Directory::new(folder.path(), false));
        lake.storage().open().unwrap();
        let (encoders, mut shelf) = (Encoders::start(1), Shelf::new(folder.path()));
        let mut recording = |key: usize| {
            let part = DatasetWriter::part_beside(&mut shelf, encoders.clone(), DatasetOptions::default()).unwrap();
            NewRecording::new(&format!("r{key}"), part, b"{}", Vec::new()).unwrap()
        };
        let room = room();
        let (finished, to_put) = channel();
        let groups = std::cell::RefCell::new(Vec::new());
        let (mut done, all) = (0, MOST_FILES as usize);
        std::thread::scope(|scope| {
            for key in 0..all {
                finished.send(Ready::new(recording(key), key, &room)).unwrap();
            }
            // The next one finds no room before the others are taken, and they are taken together.
            let last = recording(all);
            let room = &room;
            let waiting = scope.spawn(move || finished.send(Ready::new(last, all, room)).unwrap());
            std::thread::sleep(std::time::Duration::from_millis(20));
            assert!(!waiting.is_finished());
            let put_all = |recordings: &[NewRecording]| {
                groups.borrow_mut().push(recordings.len());
                lake.put(recordings)
            };
            put(put_all, &to_put, |_, put| done += usize::from(put == Put::Done), |error| panic!("{error}"));
        });
        assert_eq!((done, groups.into_inner()), (all + 1, vec![all, 1]));
    }
}
