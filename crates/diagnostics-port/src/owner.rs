//! Whose a port must be.

/// The process that must listen at a port that was found by its id.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Owner {
    /// The process id that was asked for.
    pub process: u32,
    /// The id in the process's own pid namespace, which its runtime sends.
    pub inner: u32,
    /// The id by which the kernel names it to this process; `None` where /proc shows another pid namespace than ours,
    /// so that the two cannot be compared.
    pub visible: Option<u32>,
    /// The users: real, effective, saved.
    pub users: Vec<u32>,
}

impl Owner {
    /// A process of which only the id is known.
    #[cfg(all(unix, not(target_os = "linux")))]
    pub(crate) fn named(process: u32) -> Owner {
        Owner { process, inner: process, visible: Some(process), users: Vec::new() }
    }
}

#[cfg(target_os = "linux")]
mod linux {
    use std::os::fd::AsRawFd;
    use std::os::unix::net::UnixStream;
    use std::path::Path;

    use super::Owner;
    use crate::error::{Error, Result};
    use crate::sockets::user_name;

    impl Owner {
        /// Whether the other end of a connection is this process.
        pub(crate) fn check(&self, stream: &UnixStream, path: &Path) -> Result<()> {
            let peer = peer(stream).map_err(Error::io(format!("{}: who listens there", path.display())))?;
            let process = u32::try_from(peer.pid).unwrap_or_default();
            if self.is(process, peer.uid) {
                return Ok(());
            }
            let of = user_name(peer.uid);
            let listener = match process {
                0 => format!("a process of {of} outside of this pid namespace"),
                _ => format!("process {process} of {of}"),
            };
            Err(Error::Stranger { port: path.to_owned(), process: self.process, listener })
        }

        /// The user counts, too, because the kernel still names a process that has ended, and ids are reused. Root may
        /// open a port and become another user later.
        pub(super) fn is(&self, process: u32, user: u32) -> bool {
            self.visible.is_none_or(|visible| visible == process) && (user == 0 || self.users.contains(&user))
        }
    }

    /// The process that began to listen at the other end, or connected from there.
    #[allow(unsafe_code, reason = "a call of the system that the standard library has not")]
    pub(crate) fn peer(stream: &UnixStream) -> std::io::Result<libc::ucred> {
        let mut peer = libc::ucred { pid: 0, uid: 0, gid: 0 };
        let mut length = libc::socklen_t::try_from(size_of::<libc::ucred>()).unwrap_or_default();
        // SAFETY: the descriptor is open while `stream` is borrowed, and the system writes `length` bytes at most.
        let result = unsafe {
            let (option, place) = (libc::SO_PEERCRED, std::ptr::from_mut(&mut peer).cast());
            libc::getsockopt(stream.as_raw_fd(), libc::SOL_SOCKET, option, place, &mut length)
        };
        if result == 0 { Ok(peer) } else { Err(std::io::Error::last_os_error()) }
    }
}

#[cfg(target_os = "linux")]
pub(crate) use linux::peer;

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::Owner;

    fn owner(visible: Option<u32>, users: &[u32]) -> Owner {
        Owner { process: 7, inner: 7, visible, users: users.to_vec() }
    }

    #[test]
    fn a_listener_is_the_process_by_id_and_by_user() {
        let alice = owner(Some(7), &[1000, 1000, 1001]);
        assert!(alice.is(7, 1000) && alice.is(7, 1001) && alice.is(7, 0));
        // Another process; another user, whose process had the id before; a process outside of this namespace, which
        // has the id 0 here.
        assert!(!alice.is(8, 1000) && !alice.is(7, 1002) && !alice.is(0, 1000) && !alice.is(8, 0));
        let elsewhere = owner(None, &[1000]);
        assert!(elsewhere.is(99, 1000) && !elsewhere.is(99, 1001));
    }
}
