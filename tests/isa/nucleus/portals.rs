/// A port has a module of its own in `portalgen`.
pub use portalgen::x86_64::Generator;
