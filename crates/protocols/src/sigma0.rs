//! The source of memory and the pager of every domain without another one. The badge says which domain asks.

use idl::{codes, interface};

codes! {
    /// Why the source of memory refused.
    pub enum Sigma0Error {
        1 AccountExhausted "the account has no frames left: end what it pays for, or give it more (`account`)"
        2 NoFrames "no free block of this size"
        3 Occupied "something is mapped there already"
        4 BadAddress "not an address of user space"
        5 BadRights "a right that there is not"
        6 NotManaged "not a domain or an account that this caller handed over"
        7 Full "this caller has handed over as many domains and accounts as it may"
        8 Failed "it could not be done: dmesg says why"
        9 NotAnAccount "not an account that may be drawn from"
        10 NotADomain "not a domain that may be changed"
        11 NotRoottask "only roottask may, before it starts others"
        12 NotAligned "not a multiple of the size"
        13 Reserved "message areas or windows are there"
        14 WritableCode "a page is never both writable and executable"
        15 Flow "a tainted program hands nothing over, and draws for itself only"
        16 BadSize "larger than the largest block of memory"
        17 Gone "the caller does not run any more"
        18 AllGiven "others have handed over all accounts that there can be: end a program (ps, kill)"
        19 AccountGone "the account was removed"
        20 Equipped "the domain has portals to sigma0 already, or other entries in their places"
    }
}

/// Fewest and most tickets that there can be.
pub const FEWEST_TICKETS: usize = 288;
/// The same.
pub const MOST_TICKETS: usize = 3900;

/// The source of memory.
#[interface]
pub trait Sigma0 {
    /// Maps 2^order clear pages at an address of the caller, charged to its account.
    fn draw(&self, address: u64, order: u64, rights: u64) -> Result<(), Sigma0Error>;
    /// The same, charged to an account that the caller handed over with `manage_account`. Others see what is charged there, so a tainted
    /// caller is refused here and by `manage_account` and `manage_domain` (`Flow`).
    fn draw_for(&self, ticket: u64, address: u64, order: u64, rights: u64) -> Result<(), Sigma0Error>;
    /// For loaders, first half: hands over a new domain's account; gives the ticket for the second. Components and programs
    /// have numbers of tickets that do not take room from each other; each program has 8, those of the domains that it
    /// makes included (`Full`). `AllGiven`: those of programs, or of components, have all been given. `Gone`: the caller is dead.
    fn manage_account(&self, account: Delegate) -> Result<u64, Sigma0Error>;
    /// Second half: hands over the domain itself, whose own account pays from here on. From now on its page faults in its heap, which begins at
    /// the page `heap`, and in its stacks are served, and its entry `SIGMA0` leads here.
    fn manage_domain(&self, ticket: u64, heap: u64, domain: Delegate) -> Result<(), Sigma0Error>;
    /// For `roottask`, before it starts others (`NotRoottask`): makes room for so many tickets, at most [`MOST_TICKETS`]. There are
    /// never fewer than before. The account of `sigma0` pays a frame for 256 of them, and one for 64 entries of its table.
    fn make_room(&self, tickets: u64) -> Result<(), Sigma0Error>;
    /// Lets go of both; the loader does this before it removes the domain.
    fn forget(&self, ticket: u64) -> Result<(), Sigma0Error>;
}
