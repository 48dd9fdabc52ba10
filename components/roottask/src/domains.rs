//! Domains of components: each with an account of its own, and what goes when it does.

use crate::plan::plan;
use crate::running::{Life, Running};
use crate::{compartments, cpus, memory, room, services};
use abi::layout;
use abi::rights::ALL;
use alloc::string::{String, ToString};
use runtime::{Entry, op};
use system::Component;

/// A domain with an account of its own and nothing in it.
pub fn make_domain(component: &Component, number: u16) -> Result<Running, String> {
    let text = |error: abi::Error| error.to_string();
    let labels = compartments::labels(component).map_err(text)?;
    let label = labels.as_ref().map_or(Entry::OWN, |labels| labels.send.entry());
    let account = op::account_new_labelled(Entry::OWN, room::account(component), room::threads_of(component), label);
    let account = account.map_err(text)?;
    let flags = if component.fpu { abi::op::DOMAIN_FPU } else { 0 }
        | if component.trusted { abi::op::DOMAIN_TRUSTED } else { 0 };
    let domain = match op::domain_new(account, flags, component.name) {
        Ok(domain) => domain,
        Err(error) => {
            services::remove(account);
            return Err(error.to_string());
        }
    };
    let instance = op::domain_number(domain).unwrap_or(0);
    let mut running = Running { number, instance, domain, account, thread: None, ticket: 0, life: Life::default() };
    let outcome = memory::manage_account(account).and_then(|ticket| {
        running.ticket = ticket;
        if let Some(labels) = &labels {
            op::domain_set_labels(domain, labels.send.entry(), labels.receive.entry(), false).map_err(text)?;
        }
        op::domain_set_max_priority(domain, component.max_priority.into()).map_err(text)?;
        op::domain_set_max_slice(domain, u64::from(component.max_slice) * 1_000).map_err(text)?;
        op::domain_set_share(domain, component.share.into()).map_err(text)?;
        if let Some(cpus) = component.cpus {
            cpus::restrict(domain, cpus).map_err(text)?;
        }
        op::domain_set_death_semaphore(domain, plan().events).map_err(text)?;
        op::entry_copy(Entry::OWN, account, domain, Entry(layout::ACCOUNT), ALL).map_err(text)?;
        op::entry_copy(Entry::OWN, domain, domain, Entry(layout::DOMAIN), ALL).map_err(text)?;
        Ok(())
    });
    finish(&mut running, outcome).map(|()| running)
}

/// Passes an outcome on; after an error the domain goes.
pub fn finish(running: &mut Running, outcome: Result<(), String>) -> Result<(), String> {
    if outcome.is_err() {
        remove(running);
    }
    outcome
}

/// Removes what is left of it.
pub fn remove(running: &mut Running) {
    let _ = op::domain_kill(running.domain, 0);
    if running.ticket != 0 {
        memory::forget(running.ticket);
        running.ticket = 0;
    }
    if let Some(thread) = running.thread.take() {
        services::remove(thread);
    }
    services::remove(running.domain);
    services::remove(running.account);
}
