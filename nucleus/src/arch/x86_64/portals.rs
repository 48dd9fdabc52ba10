//! The code of portals for this ISA.

pub use portalgen::x86_64::Generator;

/// How often something is written until there is a preemption point.
pub const EFFORT: usize = 6;
