//! The interface `Parent`: the requests of components to their creator. The badge says which component asks
//! and which instance of it: requests of an instance from before it died must not be done to the next one.

use crate::badge::{self, VAULT, component_of, instance_of};
use crate::services::Publisher;
use crate::{compartments, components, plan, running, services, vault};
use alloc::string::{String, ToString};
use idl::{Delegate, Delegated, Reply, Request};
use protocols::names::is_name;
use protocols::parent::{Force, ParentError, ParentServer, State};
use protocols::vault::VaultServer;
use runtime::entry::Owned;
use runtime::server::{self, Serve};

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
    badge::set_parent_service(service);
    Ok(())
}

impl ParentServer for Parent {
    fn publish(&self, badge: u64, name: &str, service: Delegated) -> Result<(), ParentError> {
        publish(badge, name, service, Publisher::Component)
    }

    fn vault(&self, badge: u64) -> Result<Delegate, ParentError> {
        Ok(Delegate::mint(badge::parent_service().0, VAULT | badge))
    }

    fn equip(&self, badge: u64, domain: Delegated) -> Result<(), ParentError> {
        let domain = Owned::new(domain.into());
        if !plan::holds_machine(component_of(badge)) {
            return Err(ParentError::NotHolder);
        }
        services::equip(domain);
        Ok(())
    }

    fn kill(&self, badge: u64, domain: u64, force: Force) -> Result<(), ParentError> {
        components::kill(component_of(badge), domain, force)
    }

    fn restarts(&self, _badge: u64, after: u64) -> Result<(u64, u64), ParentError> {
        Ok(running::restarts(after))
    }

    fn state(&self, _badge: u64, component: &str) -> Result<State, ParentError> {
        components::state(component)
    }

    fn publish_for_program(&self, badge: u64, name: &str, service: Delegated) -> Result<(), ParentError> {
        publish(badge, name, service, Publisher::Program)
    }

    fn programs(&self, _badge: u64, position: u64, into: &mut [u8]) -> Result<(usize, u64), ParentError> {
        Ok(plan::programs(position, into))
    }

    fn compartments(&self, badge: u64, position: u64, into: &mut [u8]) -> Result<(usize, u64), ParentError> {
        trust(badge)?;
        Ok(compartments::list(position, into))
    }

    fn compartments_of(&self, badge: u64, domain: u64, into: &mut [u8]) -> Result<usize, ParentError> {
        trust(badge)?;
        let component = components::in_domain(domain).ok_or(ParentError::NoSuchComponent)?;
        Ok(compartments::write(&component, into))
    }
}

/// Refuses components that are not trusted.
fn trust(badge: u64) -> Result<(), ParentError> {
    let component = plan::plan().system.component_number(component_of(badge));
    if component.is_some_and(|component| component.trusted) { Ok(()) } else { Err(ParentError::NotTrusted) }
}

/// Publishes what this caller may publish.
fn publish(badge: u64, name: &str, service: Delegated, publisher: Publisher) -> Result<(), ParentError> {
    let service = Owned::new(service.into());
    if !is_name(name) {
        return Err(ParentError::BadName);
    }
    let asks = component_of(badge);
    // A call of an instance that is dead must not happen to the one that runs.
    if running::domain_of_instance(instance_of(badge)).is_none() {
        return Err(ParentError::Gone);
    }
    let publisher = match (publisher, plan::owner_of(name)) {
        (Publisher::Component, Some(owner)) if owner.number == asks && owner.is_private(name) => Publisher::Hidden,
        (Publisher::Component, Some(owner)) if owner.number == asks => Publisher::Component,
        (Publisher::Program, None) if plan::holds_machine(asks) => Publisher::Program,
        (_, Some(_)) => return Err(ParentError::Taken),
        (_, None) => return Err(ParentError::NotAllowed),
    };
    services::publish(asks, name, service, publisher)?;
    running::note_published(instance_of(badge));
    // Found under its name from now on, unless the name service is being restarted.
    services::register(name);
    plan::wake();
    Ok(())
}
