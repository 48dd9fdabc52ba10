//! The interface `Parent`: what components ask of who started them. The badge is the component's
//! number plus one.

use crate::{components, services, vault};
use alloc::string::{String, ToString};
use interface::{Delegate, Delegated, Reply, Request};
use interfaces::parent::{ParentError, ParentServer};
use interfaces::vault::VaultServer;
use runtime::Entry;
use runtime::server::{self, Serve};

/// Longest name of a service.
const MAX_NAME: usize = 64;

/// Badges from here on are vaults.
const VAULT: u64 = 1 << 32;

/// The service of all components; vaults are the same entry with other badges.
pub struct Parent;

impl Serve for Parent {
    fn serve(request: &mut Request<'_>) -> Reply {
        if request.badge >= VAULT {
            request.badge -= VAULT;
            VaultServer::dispatch(&vault::Vault, request)
        } else {
            ParentServer::dispatch(&Parent, request)
        }
    }
}

/// Starts serving.
pub fn serve(activations: usize) -> Result<(), String> {
    let text = |error: abi::Error| error.to_string();
    server::activations(activations).map_err(text)?;
    let service = server::service::<Parent>().map_err(text)?;
    components::set_parent_service(service);
    Ok(())
}

impl ParentServer for Parent {
    fn publish(&self, badge: u64, name: &str, service: Delegated) -> Result<(), ParentError> {
        let entry = Entry::from(service);
        if name.is_empty() || name.len() > MAX_NAME || name.contains(char::is_control) {
            services::remove(entry);
            return Err(ParentError::BadName);
        }
        services::publish((badge - 1) as u16, name, entry);
        components::wake();
        Ok(())
    }

    fn vault(&self, badge: u64) -> Result<Delegate, ParentError> {
        Ok(Delegate::mint(components::parent_service().0, VAULT + badge - 1))
    }

    fn equip(&self, _badge: u64, domain: Delegated) -> Result<(), ParentError> {
        services::equip(Entry::from(domain));
        Ok(())
    }
}
