//! A made-up runtime that connects to a port of ours, and does in its session what a test wants.

use std::io::Write;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::patience::{comes, wait_for};
use tracequet::trace::source::diagnostics::port::frame::{ANSWER, ERROR, Message, OK, read_message};

/// What it does with the connection of its session, after it has been asked to begin one.
pub type InSession = dyn Fn(UnixStream, Stopped) + Send + Sync;

/// Whether the session was asked to stop.
pub struct Stopped(Arc<AtomicBool>);

impl Stopped {
    /// Waits until it is.
    pub fn wait(&self) {
        wait_for("the request to stop", || self.0.load(Ordering::Acquire));
    }
}

/// How it answers where a test wants something else than a runtime does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Answers {
    /// As a runtime does.
    #[default]
    Right,
    /// With these bytes to the first command, and then it is gone.
    Bytes(&'static [u8]),
    /// With this HRESULT to CollectTracing.
    Refuses(u32),
    /// Not to CollectTracing.
    Silent,
    /// To ResumeRuntime a second late: the session has begun, and its recorder still waits.
    LateResume,
}

/// Connects to `port` again and again, one command a connection, until the listener is gone. Stop is never answered:
/// what happens then is up to `session`, whose end ends the recording.
pub fn start(port: &Path, answers: Answers, session: Arc<InSession>) -> std::thread::JoinHandle<()> {
    let port = port.to_owned();
    std::thread::spawn(move || {
        let (mut kept, stopped) = (Vec::new(), Arc::new(AtomicBool::new(false)));
        while let Some(mut connection) = connect(&port) {
            let introduction = [&b"ADVR_V1\0"[..], &[7; 16], &77u64.to_le_bytes(), &[0, 0]].concat();
            if connection.write_all(&introduction).is_err() {
                continue;
            }
            let Ok(command) = read_message(&mut connection) else { continue };
            let ok = |message: Message| message.finish().expect("a small message");
            match (answers, command.command_set, command.command) {
                (Answers::Bytes(bytes), ..) => {
                    connection.write_all(bytes).ok();
                    // Closed when the other end has read it.
                    connection.shutdown(std::net::Shutdown::Write).ok();
                    std::io::copy(&mut connection, &mut std::io::sink()).ok();
                    return;
                }
                (Answers::Refuses(hresult), 2, _) => {
                    connection.write_all(&ok(Message::new(ANSWER, ERROR).u32(hresult))).ok();
                    kept.push(connection);
                }
                // Stop.
                (_, 2, 1) => {
                    stopped.store(true, Ordering::Release);
                    kept.push(connection);
                }
                (answers, 2, _) => {
                    if answers != Answers::Silent {
                        connection.write_all(&ok(Message::new(ANSWER, OK).u64(1))).ok();
                    }
                    let (session, stopped) = (session.clone(), Stopped(stopped.clone()));
                    std::thread::spawn(move || session(connection, stopped));
                }
                (answers, command_set, number) => {
                    if (answers, command_set, number) == (Answers::LateResume, 4, 1) {
                        std::thread::sleep(Duration::from_secs(1));
                    }
                    connection.write_all(&ok(Message::new(ANSWER, OK))).ok();
                    kept.push(connection);
                }
            }
        }
    })
}

/// Waits for the port, and gives up when it is gone.
fn connect(port: &Path) -> Option<UnixStream> {
    let mut stream = None;
    comes(Duration::from_secs(60), || {
        stream = UnixStream::connect(port).ok();
        stream.is_some()
    });
    stream
}
