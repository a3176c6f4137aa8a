//! Recordings on their way into a growing dataset: those that are ready at the same time are put into it together.

use std::sync::mpsc::Receiver;

use crate::error::Error;
use crate::sink::{Lake, NewRecording, Put};

/// Recordings that are put together, at most. So many more may wait for that.
pub(super) const MOST: usize = 64;

/// Puts recordings into the dataset as they come: those that came while others were put, together. Says of each what became of
/// it, or what was wrong with the dataset; nothing is put after that.
pub(super) fn put<T>(
    lake: &Lake,
    ready: &Receiver<(NewRecording, T)>,
    mut done: impl FnMut(T, Put),
    mut broken: impl FnMut(Error),
) {
    let mut is_broken = false;
    while let Ok(first) = ready.recv() {
        let group = std::iter::once(first).chain(ready.try_iter().take(MOST - 1));
        let (recordings, own): (Vec<_>, Vec<_>) = group.unzip();
        if is_broken {
            continue;
        }
        match lake.put(&recordings) {
            Ok(puts) => own.into_iter().zip(puts).for_each(|(own, put)| done(own, put)),
            Err(error) => {
                is_broken = true;
                broken(error);
            }
        }
    }
}
