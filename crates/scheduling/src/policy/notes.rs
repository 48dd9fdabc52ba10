//! What an instance notes of others.

/// Who wakes us alone, and a CPU that rests in step with it.
pub(super) struct Companion {
    pub(super) number: usize,
    pub(super) cpu: usize,
    /// What that CPU's count of rests was last, and how often in a row it had changed.
    pub(super) rests: u32,
    pub(super) times: u32,
}
