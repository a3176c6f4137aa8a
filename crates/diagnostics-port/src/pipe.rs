//! Named pipes of Windows that others connect to. (Connecting to one is opening a file.)

#![allow(unsafe_code, reason = "functions of Windows that std has no name for")]

use std::fs::File;
use std::io;
use std::os::windows::ffi::OsStrExt;
use std::os::windows::io::{AsRawHandle, FromRawHandle, RawHandle};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

const PIPE_ACCESS_DUPLEX: u32 = 3;
const FILE_FLAG_FIRST_PIPE_INSTANCE: u32 = 0x8_0000;
/// Bytes, blocking, from this machine only.
const PIPE_REJECT_REMOTE_CLIENTS: u32 = 8;
const PIPE_UNLIMITED_INSTANCES: u32 = 255;
const BUFFER: u32 = 64 << 10;
const ERROR_PIPE_CONNECTED: i32 = 535;

unsafe extern "system" {
    fn CreateNamedPipeW(
        name: *const u16,
        open_mode: u32,
        pipe_mode: u32,
        max_instances: u32,
        out_buffer: u32,
        in_buffer: u32,
        timeout: u32,
        security: *const std::ffi::c_void,
    ) -> RawHandle;
    fn ConnectNamedPipe(pipe: RawHandle, overlapped: *mut std::ffi::c_void) -> i32;
}

/// A named pipe: each connection takes an instance, and another one waits for the next.
#[derive(Debug)]
pub struct Instances {
    name: Vec<u16>,
    next: Mutex<File>,
}

impl Instances {
    /// Creates the pipe. It is an error if another process has one of this name.
    pub fn new(path: &Path) -> io::Result<Instances> {
        let name: Vec<u16> = path.as_os_str().encode_wide().chain([0]).collect();
        let next = Mutex::new(instance(&name, FILE_FLAG_FIRST_PIPE_INSTANCE)?);
        Ok(Instances { name, next })
    }

    /// The next connection; waits for one.
    pub fn accept(&self) -> io::Result<File> {
        let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: the handle is that of an open pipe; without an overlapped structure the call waits.
        let connected = unsafe { ConnectNamedPipe(next.as_raw_handle(), std::ptr::null_mut()) };
        if connected == 0 {
            let error = io::Error::last_os_error();
            // A client was quicker than the call.
            if error.raw_os_error() != Some(ERROR_PIPE_CONNECTED) {
                return Err(error);
            }
        }
        Ok(std::mem::replace(&mut next, instance(&self.name, 0)?))
    }
}

fn instance(name: &[u16], flags: u32) -> io::Result<File> {
    // SAFETY: the name ends with a NUL; no security attributes: the default ones.
    let handle = unsafe {
        CreateNamedPipeW(
            name.as_ptr(),
            PIPE_ACCESS_DUPLEX | flags,
            PIPE_REJECT_REMOTE_CLIENTS,
            PIPE_UNLIMITED_INSTANCES,
            BUFFER,
            BUFFER,
            0,
            std::ptr::null(),
        )
    };
    if handle as isize == -1 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the handle is valid and owned by nothing else.
    Ok(unsafe { File::from_raw_handle(handle) })
}
