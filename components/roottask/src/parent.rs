//! The interface `Parent`: what components ask of who started them. The badge says which component asks
//! and which instance of it: what an instance asked for before it died must not happen to the next one.

use crate::{components, services, vault};
use alloc::string::{String, ToString};
use interface::{Delegate, Delegated, Reply, Request};
use interfaces::parent::{Force, ParentError, ParentServer};
use interfaces::vault::VaultServer;
use runtime::Entry;
use runtime::server::{self, Serve};

/// Longest name of a service.
const MAX_NAME: usize = 64;

/// Set in badges that are vaults.
const VAULT: u64 = 1 << 63;

/// The badge of this instance of a component.
pub fn badge(number: u16, instance: u64) -> u64 {
    instance << 16 | u64::from(number)
}

/// The component that a badge means.
fn component_of(badge: u64) -> u16 {
    badge as u16
}

/// The instance that a badge means.
fn instance_of(badge: u64) -> u64 {
    (badge & !VAULT) >> 16
}

/// The service of all components; vaults are the same entry with other badges.
pub struct Parent;

impl Serve for Parent {
    fn serve(request: &mut Request<'_>) -> Reply {
        if request.badge & VAULT != 0 {
            let (component, instance) = (component_of(request.badge), instance_of(request.badge));
            VaultServer::dispatch(&vault::Vault { component: component.into(), instance }, request)
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
        if components::domain_of_instance(instance_of(badge)).is_none() {
            // It is dead, or not started to the end: `publish` comes from a thread of it, so it is dead.
            services::remove(entry);
            return Err(ParentError::NotAllowed);
        }
        if let Err(error) = services::publish(component_of(badge), name, entry) {
            services::remove(entry);
            return Err(error);
        }
        // Found under its name from now on, unless the name service is being restarted.
        services::register(name);
        components::wake();
        Ok(())
    }

    fn vault(&self, badge: u64) -> Result<Delegate, ParentError> {
        Ok(Delegate::mint(components::parent_service().0, VAULT | badge))
    }

    fn equip(&self, _badge: u64, domain: Delegated) -> Result<(), ParentError> {
        services::equip(Entry::from(domain));
        Ok(())
    }

    fn kill(&self, badge: u64, domain: u64, force: Force) -> Result<(), ParentError> {
        components::kill(component_of(badge), domain, force)
    }

    fn restarts(&self, _badge: u64, after: u64) -> Result<(u64, u64), ParentError> {
        Ok(components::restarts(after))
    }
}
