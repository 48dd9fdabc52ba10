//! Memory that outlives the component that uses it.
//!
//! The frames are ours (originals in our space), charged to an account that the vault alone has and that the
//! description limits; the component has them mapped. After a restart the new instance has the same pages mapped again.

use crate::running::domain_of_instance;
use crate::{memory, room, services};
use abi::PAGE_BYTES;
use abi::rights::{MAP_READ, MAP_WRITE};
use alloc::collections::{BTreeMap, BTreeSet};
use idl::Failure;
use protocols::sigma0::Sigma0Error;
use protocols::vault::{VaultError, VaultServer};
use runtime::sync::Mutex;
use runtime::{Entry, op};

/// Vaults of component n begin here plus n times [`VAULT_BYTES`].
const START: u64 = 0x10_0000_0000;
const VAULT_BYTES: u64 = 1 << 32;
/// Most pages of one vault.
const MAX_PAGES: u64 = VAULT_BYTES / PAGE_BYTES as u64;
/// Of so many frames of a vault's account one is kept for the records of our mappings. Our own account pays for those of the component's.
const RECORDS: u64 = 32;

/// Pages there are: component and index. Held while one is made, mapped or released.
static PAGES: Mutex<BTreeSet<(u64, u64)>> = Mutex::new(BTreeSet::new());
/// The ticket of each vault's account, by component. Made with its first page, kept for ever. Taken after [`PAGES`].
static TICKETS: Mutex<BTreeMap<u64, u64>> = Mutex::new(BTreeMap::new());

/// The interface, for one instance of a component. A call that an instance made before it died finds that
/// it is not the one that runs, and does nothing.
pub struct Vault {
    /// The component's number.
    pub component: u64,
    /// See [`domain_of_instance`].
    pub instance: u64,
}

/// Waits until no call is at work. Those that come for an instance that is not the one that runs do nothing.
pub fn drain() {
    drop(PAGES.lock());
}

/// The ticket with which pages of a component's vault are drawn.
fn ticket(component: u64) -> Result<u64, VaultError> {
    let mut tickets = TICKETS.lock();
    if let Some(ticket) = tickets.get(&component) {
        return Ok(*ticket);
    }
    let account = op::account_new(Entry::OWN, room::vault(component)).map_err(failed)?;
    let ticket = memory::manage_account(account).map_err(|error| {
        services::remove(account);
        failed(error)
    })?;
    tickets.insert(component, ticket);
    Ok(ticket)
}

/// The refusal for an error that a component never meets if all is well. The log has the error.
fn failed(error: impl core::fmt::Display) -> VaultError {
    runtime::log!("a vault: {error}");
    VaultError::Failed
}

fn address_of(component: u64, index: u64) -> u64 {
    START + component * VAULT_BYTES + index * PAGE_BYTES as u64
}

impl Vault {
    fn domain(&self) -> Result<Entry, VaultError> {
        domain_of_instance(self.instance).ok_or(VaultError::Gone)
    }

    fn share(&self, domain: Entry, index: u64, address: u64) -> Result<(), VaultError> {
        // SAFETY: we hold no reference into vault pages.
        unsafe { op::map(domain, address_of(self.component, index), address, 0, MAP_READ | MAP_WRITE) }.map_err(
            |error| match error {
                abi::Error::OtherExhausted => VaultError::NoTables,
                abi::Error::PeerDied | abi::Error::Revoked => VaultError::Gone,
                abi::Error::Occupied => VaultError::Occupied,
                abi::Error::BadAddress | abi::Error::NotAligned | abi::Error::Reserved => VaultError::BadAddress,
                error => failed(error),
            },
        )
    }

    /// Pages there can be.
    fn most(&self) -> u64 {
        let frames = room::vault(self.component);
        (frames - frames.div_ceil(RECORDS)).min(MAX_PAGES)
    }

    fn make(&self, index: u64, address: u64) -> Result<bool, VaultError> {
        if index >= self.most() {
            return Err(VaultError::TooMany);
        }
        let mut pages = PAGES.lock();
        let domain = self.domain()?;
        let place = address_of(self.component, index);
        let is_new = !pages.contains(&(self.component, index));
        if is_new {
            memory::draw_for(ticket(self.component)?, place).map_err(|error| match error {
                Failure::Refused(Sigma0Error::AccountExhausted | Sigma0Error::NoFrames) => VaultError::NoMemory,
                error => failed(error),
            })?;
            pages.insert((self.component, index));
        }
        if let Err(error) = self.share(domain, index, address) {
            if is_new {
                pages.remove(&(self.component, index));
                memory::take_back(place);
            }
            return Err(error);
        }
        Ok(is_new)
    }
}

impl VaultServer for Vault {
    fn page(&self, _badge: u64, index: u64, address: u64) -> Result<bool, VaultError> {
        self.make(index, address)
    }

    fn existing(&self, _badge: u64, index: u64, address: u64) -> Result<bool, VaultError> {
        let pages = PAGES.lock();
        let domain = self.domain()?;
        if !pages.contains(&(self.component, index)) {
            return Ok(false);
        }
        self.share(domain, index, address).map(|()| true)
    }

    fn release(&self, _badge: u64, index: u64) -> Result<(), VaultError> {
        let mut pages = PAGES.lock();
        self.domain()?;
        if !pages.remove(&(self.component, index)) {
            return Err(VaultError::NoSuchPage);
        }
        memory::take_back(address_of(self.component, index));
        Ok(())
    }

    fn pages(&self, _badge: u64) -> Result<u64, VaultError> {
        let pages = PAGES.lock();
        let of_component = (self.component, 0)..=(self.component, u64::MAX);
        Ok(pages.range(of_component).next_back().map_or(0, |(_, index)| index + 1))
    }
    fn limit(&self, _badge: u64) -> Result<u64, VaultError> {
        Ok(self.most())
    }
}
