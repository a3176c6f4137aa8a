//! Events of kernels about threads, disks, files, pages and the network.

pub mod disk;
pub mod file_operations;
pub mod files;
pub mod linux_switches;
pub mod network;
pub mod scheduling;
mod thread_states;
