//! The project itself: layers, documents, examples, packages.

#[cfg(target_os = "linux")]
mod action;
mod docs;
#[cfg(target_os = "linux")]
mod dotnet_tool;
mod examples;
mod layers;
