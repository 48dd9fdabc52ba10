//! Indices of our portal table as handles.

use abi::layout;

/// An index of our portal table. It owns nothing: copying it copies the number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Entry(pub usize);

impl Entry {
    /// As a domain or account operand: the caller's own. As an index to fill: the nucleus chooses.
    pub const OWN: Entry = Entry(0);
    /// The creator of this domain.
    pub const PARENT: Entry = Entry(layout::PARENT);
    /// The source of memory.
    pub const SIGMA0: Entry = Entry(layout::SIGMA0);
    /// The name service.
    pub const NAMES: Entry = Entry(layout::NAMES);
    /// Our account.
    pub const ACCOUNT: Entry = Entry(layout::ACCOUNT);
    /// Our domain.
    pub const DOMAIN: Entry = Entry(layout::DOMAIN);
    /// An interrupt line of ours, if the system description gave one.
    pub const INTERRUPT: Entry = Entry(layout::INTERRUPT);
    /// I/O ports of ours, if the system description gave some.
    pub const IO_PORTS: Entry = Entry(layout::IO_PORTS);
    /// The machine, the memory or the scheduler's seat.
    pub const SPECIAL: Entry = Entry(layout::SPECIAL);

    /// The operand word.
    #[inline(always)]
    pub(crate) const fn word(self) -> u64 {
        self.0 as u64
    }
}

impl From<idl::Delegated> for Entry {
    fn from(delegated: idl::Delegated) -> Self {
        Self(delegated.0)
    }
}
