//! A session from its start to the last byte.

use crate::prelude::*;
use std::io::Read;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use diagnostics_port::{CgroupLimits, Provider, Session, SessionRequest, Target, start_session, stop_session};

use super::spool::{SpoolReader, SpoolWriter, spool};

/// Bytes that are taken from the runtime at a time.
const PIECE: usize = 256 << 10;
/// The time that the runtime may take to end a session that is to be stopped. Each look at the session counts for
/// [`LOOK`]: while a machine stands still, no time is counted.
struct Patience {
    /// Without sending anything, and in any case once it has refused.
    silence: Duration,
    /// While it sends, without the time in which nothing is taken from it.
    longest: Duration,
}

/// The longest silence of the runtime.
const SILENCE: Duration = Duration::from_secs(30);
/// The longest time when the tables cannot be written: what comes is only saved.
const RESCUE: Duration = Duration::from_secs(10);
/// The time between two looks for silence.
const LOOK: Duration = Duration::from_millis(500);

/// The limits of a recording: its end before that of its process, and the memory and disk that it takes.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Time.
    pub duration: Option<Duration>,
    /// Bytes of the recording.
    pub max_bytes: Option<u64>,
    /// A new file that all bytes of the recording are written to.
    pub keep: Option<PathBuf>,
    /// Bytes that may wait on the disk to be converted. With more, nothing is taken from the runtime, which then drops
    /// events.
    pub spool_bytes: u64,
    /// The longest time for which the runtime may go on sending when it was asked to stop: its buffer, and its rundown.
    pub stop_timeout: Duration,
    /// Whether a recording whose tables cannot be written is saved.
    pub is_saved: bool,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            duration: None,
            max_bytes: None,
            keep: None,
            spool_bytes: 8 << 30,
            stop_timeout: Duration::from_secs(60),
            is_saved: true,
        }
    }
}

/// Why a recording ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The process has ended, or its runtime has ended the session.
    Process,
    /// A request ended it.
    Asked,
    /// The time was over.
    Duration,
    /// The recording has its size.
    Size,
    /// Something that was waited for has happened.
    Trigger(String),
    /// The rest was discarded.
    GivenUp,
    /// The recording failed, with this message.
    Failed(String),
}

/// The end of a recording: its reason, and what was lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ending {
    /// Why.
    pub reason: Reason,
    /// Bytes that came.
    pub bytes: u64,
}

#[derive(Default)]
struct RecordingState {
    /// Why the session is to stop, once that is requested.
    stop: Option<Reason>,
    /// Why nothing comes any more.
    ended: Option<Reason>,
    bytes: u64,
    /// Whether bytes came since the last look.
    is_heard: bool,
    /// Whether nothing was taken since then because the spool was full.
    is_held: bool,
    /// The tables cannot be written: the rest is only saved.
    is_rescue: bool,
}

/// A handle that ends a recording; clones end the same one.
#[derive(Clone)]
pub struct Control {
    shared: Arc<(Mutex<RecordingState>, Condvar)>,
    spool: SpoolWriter,
}

impl Control {
    fn lock(&self) -> MutexGuard<'_, RecordingState> {
        self.shared.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks the runtime to end the session. What it has in its buffers, and its rundown, still come.
    pub fn stop(&self, reason: Reason) {
        self.lock().stop.get_or_insert(reason);
        self.shared.1.notify_all();
    }

    /// Ends the recording at once with what has come.
    pub fn give_up(&self, reason: Reason) {
        {
            let mut state = self.lock();
            state.stop.get_or_insert_with(|| reason.clone());
            state.ended.get_or_insert(reason);
        }
        self.spool.end();
        self.shared.1.notify_all();
    }

    /// Ends the recording because its bytes cannot be converted any more: what the runtime still has is waited for
    /// shortly, so that the recording can be saved.
    pub fn end_soon(&self) {
        self.lock().is_rescue = true;
        self.stop(Reason::GivenUp);
    }

    /// Whether the end was requested already.
    pub fn is_stopping(&self) -> bool {
        self.lock().stop.is_some()
    }

    /// Whether nothing comes any more.
    pub fn has_ended(&self) -> bool {
        self.lock().ended.is_some()
    }

    /// Bytes that have come.
    pub fn bytes(&self) -> u64 {
        self.lock().bytes
    }

    /// Bytes that have come and were not taken by the reader yet.
    pub fn unread(&self) -> u64 {
        self.spool.unread()
    }

    /// Waits until the end is requested or no more data come; `false` when the time is over before.
    fn wait(&self, limit: Option<Duration>) -> bool {
        let state = self.lock();
        let goes_on = |state: &mut RecordingState| state.stop.is_none() && state.ended.is_none();
        match limit {
            Some(limit) => {
                let waited = self.shared.1.wait_timeout_while(state, limit, goes_on);
                !waited.unwrap_or_else(PoisonError::into_inner).1.timed_out()
            }
            None => {
                drop(self.shared.1.wait_while(state, goes_on));
                true
            }
        }
    }
}

/// A session that runs, and its bytes.
pub struct PortRecording {
    control: Control,
    reader: Option<SpoolReader>,
    keep: Option<PathBuf>,
    is_saved: bool,
    /// Requests that the runtime is too old for, and what it does instead.
    pub compromises: Vec<&'static str>,
    /// The providers, with what was asked of them.
    pub asked: Vec<Provider>,
    /// The limits of the control groups of the process when the recording began; `None` where they are not known.
    pub cgroup: Option<CgroupLimits>,
    /// Ends the session when it is asked to.
    stopper: Option<JoinHandle<()>>,
    started: Instant,
}

impl PortRecording {
    /// Begins a session and takes its bytes from then on.
    pub fn start(target: &Target, request: &SessionRequest, limits: &Limits) -> Result<PortRecording> {
        let started = Instant::now();
        // Before the session: a file that cannot be made is no reason to disturb the process.
        let what = limits.keep.clone().unwrap_or_else(|| "temporary file".into());
        let (writer, reader) = spool(limits.keep.as_deref(), limits.spool_bytes).map_err(Error::io(what))?;
        let session = start_session(target, request).inspect_err(|_| {
            if let Some(path) = &limits.keep {
                std::fs::remove_file(path).ok();
            }
        })?;
        let Session { id, connection, compromises } = session;
        let cgroup = connection.cgroup_limits();
        let control = Control { shared: Arc::default(), spool: writer };
        let close = connection.closer();
        let pump = {
            let (control, max_bytes) = (control.clone(), limits.max_bytes);
            move || take_bytes(connection, &control, max_bytes)
        };
        let thread = |name: &str| std::thread::Builder::new().name(name.into());
        thread("recording").spawn(pump).map_err(Error::io("starting a thread"))?;
        let stopper = {
            let (control, target, duration) = (control.clone(), target.clone(), limits.duration);
            let longest = limits.stop_timeout;
            let patience = Patience { silence: SILENCE.min(longest), longest };
            move || {
                end_session(&control, &target, id, duration, &patience);
                close();
            }
        };
        let stopper = thread("recording's end").spawn(stopper).map_err(Error::io("starting a thread"))?;
        Ok(PortRecording {
            control,
            reader: Some(reader),
            keep: limits.keep.clone(),
            is_saved: limits.is_saved,
            compromises,
            asked: request.providers.clone(),
            cgroup,
            stopper: Some(stopper),
            started,
        })
    }

    /// The handle that ends the recording.
    pub fn control(&self) -> Control {
        self.control.clone()
    }

    /// The bytes of the recording: a .nettrace, as it comes. Once.
    pub fn take_reader(&mut self) -> Option<SpoolReader> {
        self.reader.take()
    }

    /// The file that is kept.
    pub fn kept(&self) -> Option<&Path> {
        self.keep.as_deref()
    }

    /// The time since the recording began.
    pub fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// Saves the recording, whose tables could not be written: ends it and gives the file that it is in, the one that
    /// is kept anyway or a new one in the system's folder of temporary files. `None` when nothing came, a part of it is
    /// gone, or it is not to be saved.
    pub fn rescue(&mut self, name: &Path) -> Option<Result<PathBuf>> {
        self.control.end_soon();
        if self.ending().bytes == 0 {
            return None;
        }
        if let Some(path) = &self.keep {
            return Some(Ok(path.clone()));
        }
        if !self.is_saved {
            return None;
        }
        let is_plain = |c: char| c.is_alphanumeric() || ".-_".contains(c);
        let name: String =
            name.to_string_lossy().chars().map(|c| if is_plain(c) { c } else { '_' }).take(100).collect();
        let folder = std::env::temp_dir();
        let saved = self.control.spool.save(&folder, &format!("tracequet-{name}"))?;
        Some(saved.map_err(Error::io(folder)))
    }

    /// Waits for the end, and says what it was.
    pub fn ending(&mut self) -> Ending {
        if let Some(stopper) = self.stopper.take() {
            stopper.join().ok();
        }
        let state = self.control.lock();
        let ended = state.ended.clone().unwrap_or(Reason::GivenUp);
        // When we asked for it, that is why the runtime ended it.
        let reason = match (ended, &state.stop) {
            (Reason::Process, Some(stop)) => stop.clone(),
            (ended, _) => ended,
        };
        Ending { reason, bytes: state.bytes }
    }
}

impl Drop for PortRecording {
    fn drop(&mut self) {
        // A conversion that failed: the rest is not needed.
        if self.stopper.is_some() {
            self.control.give_up(Reason::GivenUp);
        }
    }
}

/// Takes the bytes of a session until it ends.
fn take_bytes(mut connection: impl Read, control: &Control, max_bytes: Option<u64>) {
    let mut buffer = vec![0; PIECE];
    let reason = loop {
        let read = match connection.read(&mut buffer) {
            Ok(0) => break Reason::Process,
            Ok(read) => read,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            // The process was killed.
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => break Reason::Process,
            Err(error) => break Reason::Failed(format!("reading from the runtime: {error}")),
        };
        while !control.spool.has_room(LOOK) {
            control.lock().is_held = true;
        }
        if let Err(error) = control.spool.write(buffer.get(..read).unwrap_or_default()) {
            break Reason::Failed(format!("writing the recording: {error}"));
        }
        let mut state = control.lock();
        state.bytes += read as u64;
        state.is_heard = true;
        if state.stop.is_none() && max_bytes.is_some_and(|max| state.bytes >= max) {
            state.stop = Some(Reason::Size);
            control.shared.1.notify_all();
        }
    };
    control.lock().ended.get_or_insert(reason);
    control.spool.end();
    control.shared.1.notify_all();
}

/// Waits for the time or for a request to end, and then asks the runtime to stop.
fn end_session(control: &Control, target: &Target, id: u64, duration: Option<Duration>, patience: &Patience) {
    if !control.wait(duration) {
        control.stop(Reason::Duration);
    }
    if control.has_ended() {
        return;
    }
    let (target, failed) = (target.clone(), Arc::<Mutex<Option<String>>>::default());
    let say = failed.clone();
    // On a thread of its own: the answer comes after all bytes, so that only they show whether the runtime is at it.
    let ask = move || {
        let year = Duration::from_secs(365 * 24 * 3600);
        if let Err(error) = stop_session(&target, id, year) {
            *say.lock().unwrap_or_else(PoisonError::into_inner) = Some(error.to_string());
        }
    };
    std::thread::Builder::new().name("stop".into()).spawn(ask).ok();
    let (mut silent, mut waited) = (Duration::ZERO, Duration::ZERO);
    loop {
        let state = control.lock();
        let ended = |state: &mut RecordingState| state.ended.is_none();
        let looked = control.shared.1.wait_timeout_while(state, LOOK, ended);
        let (mut state, looked) = looked.unwrap_or_else(PoisonError::into_inner);
        if !looked.timed_out() {
            return;
        }
        let (is_heard, is_held) = (std::mem::take(&mut state.is_heard), std::mem::take(&mut state.is_held));
        silent = if is_heard || is_held { Duration::ZERO } else { silent + LOOK };
        waited += if is_held { Duration::ZERO } else { LOOK };
        let longest = if state.is_rescue { patience.longest.min(RESCUE) } else { patience.longest };
        drop(state);
        let is_silent = silent > patience.silence;
        let mut refusal = failed.lock().unwrap_or_else(PoisonError::into_inner);
        let limit = if is_silent || refusal.is_some() { patience.silence.min(longest) } else { longest };
        if is_silent || waited > limit {
            let otherwise = if is_silent { "it neither answers nor sends data" } else { "it continues to send" };
            let why = refusal.take().unwrap_or_else(|| otherwise.into());
            control.give_up(Reason::Failed(format!(
                "the runtime did not end its session within {} s: {why}",
                limit.as_secs()
            )));
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn control() -> (Control, SpoolReader) {
        let (spool, reader) = spool(None, u64::MAX).unwrap();
        (Control { shared: Arc::default(), spool }, reader)
    }

    fn bytes_of(mut reader: SpoolReader) -> Vec<u8> {
        let mut bytes = Vec::new();
        reader.read_to_end(&mut bytes).unwrap();
        bytes
    }

    #[test]
    fn a_stream_that_ends_ends_the_recording() {
        let (control, reader) = control();
        take_bytes(&b"all there is"[..], &control, None);
        assert!(control.has_ended() && !control.is_stopping());
        assert_eq!((bytes_of(reader), control.bytes()), (b"all there is".to_vec(), 12));
    }

    #[test]
    fn a_recording_of_its_size_asks_for_the_end_and_takes_what_still_comes() {
        let (control, reader) = control();
        let stream = std::io::repeat(7).take(3 * PIECE as u64);
        take_bytes(stream, &control, Some(100));
        assert_eq!(control.lock().stop, Some(Reason::Size));
        assert_eq!(bytes_of(reader).len(), 3 * PIECE);
    }

    #[test]
    fn a_stream_that_fails_keeps_what_came() {
        struct Fails(bool);
        impl Read for Fails {
            fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
                if std::mem::replace(&mut self.0, true) {
                    Err(std::io::Error::other("no more"))
                } else {
                    buffer[..2].fill(1);
                    Ok(2)
                }
            }
        }
        let (control, reader) = control();
        take_bytes(Fails(false), &control, None);
        assert!(matches!(&control.lock().ended, Some(Reason::Failed(why)) if why.contains("no more")));
        assert_eq!(bytes_of(reader), [1, 1]);
    }

    /// A runtime that never stops sending, whether it refuses to or does not answer.
    #[test]
    fn a_stream_without_end_is_given_up() {
        struct Endless;
        impl Read for Endless {
            fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
                std::thread::sleep(Duration::from_millis(1));
                buffer.first_mut().into_iter().for_each(|byte| *byte = 7);
                Ok(1)
            }
        }
        let folder = tempfile::tempdir().unwrap();
        #[cfg(unix)]
        let _listener = std::os::unix::net::UnixListener::bind(folder.path().join("silent")).unwrap();
        // The port `absent` has no listener, the port `silent` one that never answers. The limit that is not tested is
        // an hour: the test would wait for it if the short one were ignored.
        const HOUR: u64 = 3_600_000;
        for (name, silence, longest) in [("absent", 300, HOUR), ("silent", HOUR, 300)] {
            if cfg!(not(unix)) && name == "silent" {
                continue;
            }
            let (control, reader) = control();
            let pump = {
                let control = control.clone();
                std::thread::spawn(move || take_bytes(Endless, &control, None))
            };
            let target = Target::Port(diagnostics_port::Port::from_path(&folder.path().join(name)));
            let [silence, longest] = [silence, longest].map(Duration::from_millis);
            end_session(&control, &target, 1, Some(Duration::ZERO), &Patience { silence, longest });
            assert!(
                matches!(&control.lock().ended, Some(Reason::Failed(why)) if why.contains("did not end")),
                "{name}"
            );
            pump.join().unwrap();
            assert!(bytes_of(reader).len() > 10);
        }
    }

    #[test]
    fn nothing_is_taken_from_a_runtime_while_too_much_waits_to_be_read() {
        const LIMIT: u64 = 1 << 20;
        let (spool, mut reader) = spool(None, LIMIT).unwrap();
        let control = Control { shared: Arc::default(), spool };
        let pump = {
            let control = control.clone();
            std::thread::spawn(move || take_bytes(std::io::repeat(7), &control, None))
        };
        for round in 1..4 {
            while control.spool.has_room(Duration::ZERO) {
                std::thread::yield_now();
            }
            // Pieces that the spool holds already may be written when there is room again.
            assert!(control.bytes() <= round * LIMIT + 2 * PIECE as u64, "round {round}: {}", control.bytes());
            reader.read_exact(&mut vec![0; LIMIT as usize]).unwrap();
        }
        drop(reader);
        pump.join().unwrap();
        assert!(matches!(&control.lock().ended, Some(Reason::Failed(_))));
    }

    #[test]
    fn giving_up_wakes_everybody() {
        let (control, reader) = control();
        let other = control.clone();
        let waiting = std::thread::spawn(move || other.wait(None));
        control.give_up(Reason::GivenUp);
        assert!(waiting.join().unwrap());
        assert!(bytes_of(reader).is_empty() && control.is_stopping());
        assert!(control.spool.write(b"late").is_err());
    }
}
