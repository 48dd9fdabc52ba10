//! Memory that outlives the component that uses it: after a restart the new instance asks for the same
//! pages and finds what stood there.

use idl::{codes, interface};

codes! {
    /// Why the vault refused.
    pub enum VaultError {
        1 NoMemory "the vault has no memory left: give it more (`vault` in the system description)"
        2 BadAddress "not the address of a page"
        3 TooMany "the vault has no page of this index"
        4 NoSuchPage "there is no such page"
        5 NoTables "the component's account has no frames left for tables"
        6 Gone "the component does not run any more"
        7 Failed "it could not be done: dmesg says why"
        8 Occupied "a page is mapped there"
    }
}

/// A component's vault.
#[interface]
pub trait Vault {
    /// Maps the page of this index, writable, at an address of the caller. A page that does not exist
    /// yet is drawn clear and charged to the vault's own account. Gives whether it is new.
    fn page(&self, index: u64, address: u64) -> Result<bool, VaultError>;
    /// Maps a page that exists; gives whether it does.
    #[repeatable]
    fn existing(&self, index: u64, address: u64) -> Result<bool, VaultError>;
    /// Unmaps the page and gives its frame back.
    fn release(&self, index: u64) -> Result<(), VaultError>;
    /// One more than the highest index of a page that exists.
    #[repeatable]
    fn pages(&self) -> Result<u64, VaultError>;
    /// How many pages there can be: indices are below this.
    fn limit(&self) -> Result<u64, VaultError>;
}
