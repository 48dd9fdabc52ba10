//! Memory that outlives the component that uses it.
//!
//! The frames are ours (originals in our space, charged to the account that came with the request); the
//! component has them mapped. After a restart the new instance has the same pages mapped again.

use crate::{components, memory, services};
use abi::PAGE_BYTES;
use abi::rights::{MAP_READ, MAP_WRITE};
use alloc::collections::BTreeSet;
use interface::Delegated;
use interfaces::vault::{VaultError, VaultServer};
use runtime::sync::Mutex;
use runtime::{Entry, op};

/// Vaults of component n begin here plus n times [`VAULT_BYTES`].
const START: u64 = 0x10_0000_0000;
const VAULT_BYTES: u64 = 1 << 32;
/// Pages of one vault.
const MAX_PAGES: u64 = VAULT_BYTES / PAGE_BYTES as u64;

/// Pages there are: component and index.
static PAGES: Mutex<BTreeSet<(u64, u64)>> = Mutex::new(BTreeSet::new());

/// The interface; the badge is the component's number.
pub struct Vault;

fn address_of(component: u64, index: u64) -> u64 {
    START + component * VAULT_BYTES + index * PAGE_BYTES as u64
}

fn share(component: u64, index: u64, address: u64) -> Result<(), VaultError> {
    let domain = components::domain_of(component).ok_or(VaultError::BadAddress)?;
    // SAFETY: we hold no reference into vault pages.
    unsafe { op::map(domain, address_of(component, index), address, 0, MAP_READ | MAP_WRITE) }.map_err(|error| {
        if error == abi::Error::AccountExhausted { VaultError::NoMemory } else { VaultError::BadAddress }
    })
}

impl VaultServer for Vault {
    fn page(&self, badge: u64, index: u64, address: u64, account: Delegated) -> Result<bool, VaultError> {
        let account = Entry::from(account);
        let outcome = page(badge, index, address, account);
        services::remove(account);
        outcome
    }

    fn existing(&self, badge: u64, index: u64, address: u64) -> Result<bool, VaultError> {
        if !PAGES.lock().contains(&(badge, index)) {
            return Ok(false);
        }
        share(badge, index, address).map(|()| true)
    }

    fn release(&self, badge: u64, index: u64) -> Result<(), VaultError> {
        if !PAGES.lock().remove(&(badge, index)) {
            return Err(VaultError::NoSuchPage);
        }
        memory::take_back(address_of(badge, index));
        Ok(())
    }

    fn pages(&self, badge: u64) -> Result<u64, VaultError> {
        let pages = PAGES.lock();
        Ok(pages.range((badge, 0)..=(badge, u64::MAX)).next_back().map_or(0, |(_, index)| index + 1))
    }
}

fn page(component: u64, index: u64, address: u64, account: Entry) -> Result<bool, VaultError> {
    if index >= MAX_PAGES {
        return Err(VaultError::TooMany);
    }
    let is_new = !PAGES.lock().contains(&(component, index));
    if is_new {
        let ticket = memory::manage_account(account).map_err(|_| VaultError::NoMemory)?;
        let drawn = memory::draw_for(ticket, address_of(component, index));
        memory::forget(ticket);
        drawn.map_err(|_| VaultError::NoMemory)?;
        PAGES.lock().insert((component, index));
    }
    if let Err(error) = share(component, index, address) {
        if is_new {
            PAGES.lock().remove(&(component, index));
            memory::take_back(address_of(component, index));
        }
        return Err(error);
    }
    Ok(is_new)
}
