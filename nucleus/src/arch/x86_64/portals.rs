//! The code of portals for this ISA.

pub use portalgen::x86_64::Generator;
