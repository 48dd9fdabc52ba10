//! An instance's notes about others.

/// The only thread that wakes us, and a CPU that rests in step with it.
pub(super) struct Companion {
    pub(super) number: usize,
    pub(super) cpu: usize,
    /// That CPU's last count of rests, and how often in a row it had changed.
    pub(super) rests: u32,
    pub(super) times: u32,
}
