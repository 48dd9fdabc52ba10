//! The code of portals for this ISA.

pub use portalgen::x86_64::Generator;

/// Steps of writing a portal's code between two preemption points.
pub const EFFORT: usize = 6;
