//! Steps of the boot: starts the other CPUs and the first two components.

pub mod loader;
pub mod others;
