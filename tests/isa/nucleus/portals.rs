use portalgen::{Code, Nucleus, Progress, Specification};

/// Writes some of the code of a portal; true if that was all.
pub fn write_step(_: &mut Code<'_>, _: &Specification, _: &Nucleus, _: &mut Progress) -> bool {
    unimplemented!()
}
