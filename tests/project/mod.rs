//! The project itself: layers, documents, examples, packages.

#[cfg(all(feature = "cli", target_os = "linux"))]
mod action;
#[cfg(feature = "cli")]
mod docs;
#[cfg(all(feature = "cli", feature = "packed", target_os = "linux"))]
mod dotnet_tool;
mod examples;
mod layers;
