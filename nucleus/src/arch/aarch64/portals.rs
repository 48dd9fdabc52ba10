//! The code of portals for this ISA.

pub use portalgen::aarch64::Generator;
