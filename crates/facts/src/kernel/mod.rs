//! Events of kernels about threads, interrupts, system calls, messages, disks, files, pages, the registry and the
//! network.

pub mod alpc;
pub mod disk;
pub mod file_operations;
pub mod files;
pub mod hardware_counters;
pub mod interrupts;
mod kernel_images;
pub mod linux_switches;
mod nesting;
pub mod network;
mod paths;
pub mod registry;
pub mod scheduling;
pub mod system_calls;
mod thread_states;
