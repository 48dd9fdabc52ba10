//! What happens once: other CPUs begin, and the first two components.

pub mod loader;
pub mod others;
