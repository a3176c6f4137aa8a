//! What the kernel of Windows tells of disks, files, pages and the network.

pub mod disk;
pub mod files;
pub mod network;
