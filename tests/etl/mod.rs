//! Windows event logs: real files against what an independent reader found in them, and made files with every kind of
//! damage.

#[cfg(feature = "tables")]
mod convert;
mod decoded;
mod expected;
mod hostile;
#[cfg(feature = "tables")]
mod live;
#[cfg(feature = "tables")]
mod profiler;
#[cfg(feature = "tables")]
mod profiler_joined;
#[cfg(all(feature = "tables", target_os = "linux"))]
mod profiler_retold;
mod writer;
