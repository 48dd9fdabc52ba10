//! The code of portals for this ISA.

use portalgen::{Code, Nucleus, Progress, Specification};

/// Writes some of the code of a portal; true if that was all.
pub fn write_step(
    code: &mut Code<'_>,
    specification: &Specification,
    nucleus: &Nucleus,
    progress: &mut Progress,
) -> bool {
    portalgen::x86_64::write_step(code, specification, nucleus, progress)
}
