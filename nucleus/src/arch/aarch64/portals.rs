//! The code of portals for this ISA.

pub use portalgen::aarch64::Generator;

/// Steps of writing a portal's code between two preemption points.
pub const EFFORT: usize = 6;
