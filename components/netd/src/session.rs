//! Clients: their accounts, semaphores and pending events.

use abi::rights::{self, Kind};
use alloc::collections::VecDeque;
use idl::{Delegate, Failure};
use protocols::net::NetError;
use protocols::sigma0::{Sigma0Client, Sigma0Error};
use runtime::entry::Owned;
use runtime::{Direct, Entry, op};

use crate::client::{Client, Owner};
use crate::failure::failed;
use crate::slots::Number;

/// How long a client may take to set its semaphore, in nanoseconds.
const FIRST: u64 = 2_000_000_000;

/// Whether a client handed over an entry of this kind, to be charged or raised.
fn check(handed: &Owned, kind: Kind, refusal: NetError) -> Result<(), NetError> {
    if handed.entry().is(kind, rights::WRITE) { Ok(()) } else { Err(refusal) }
}

/// See the module.
pub struct Session {
    /// Its owner.
    pub client: Client,
    /// Number and name of the domain that opened it, for `netstat`.
    pub owner: Option<Owner>,
    account: Owned,
    /// The account's ticket at sigma0.
    pub ticket: u64,
    semaphore: Option<Owned>,
    /// Sockets with events to report.
    pub changed: VecDeque<Number>,
    /// The semaphore was raised, and not everything was taken since.
    signalled: bool,
    /// The semaphore vanished: so did the client.
    dead: bool,
    /// When it was opened, in nanoseconds since boot.
    since: u64,
}

impl Session {
    /// Takes over an account.
    pub fn new((client, owner): (Client, Option<Owner>), account: Owned) -> Result<Self, NetError> {
        check(&account, Kind::Account, NetError::NotAnAccount)?;
        let handed = Delegate::entry(account.entry().0, rights::ALL);
        let ticket = Sigma0Client(Direct(Entry::SIGMA0)).manage_account(handed).map_err(|error| match error {
            Failure::Refused(Sigma0Error::AllGiven) => NetError::AllGiven,
            Failure::Refused(Sigma0Error::NotAnAccount) => NetError::NotAnAccount,
            error => failed("the account of a session", error),
        })?;
        Ok(Self {
            client,
            owner,
            account,
            ticket,
            semaphore: None,
            changed: VecDeque::new(),
            signalled: false,
            dead: false,
            since: op::clock(),
        })
    }

    /// Sets the semaphore for notifications from now on.
    pub fn set_semaphore(&mut self, semaphore: Owned) -> Result<(), NetError> {
        check(&semaphore, Kind::Semaphore, NetError::NotASemaphore)?;
        self.semaphore = Some(semaphore);
        self.signalled = false;
        self.signal();
        Ok(())
    }

    /// This socket has an event to report.
    pub fn note(&mut self, socket: Number) {
        self.changed.push_back(socket);
        self.signal();
    }

    fn signal(&mut self) {
        if self.changed.is_empty() || self.signalled {
            return;
        }
        if let Some(semaphore) = &self.semaphore {
            self.signalled = true;
            self.dead |= op::v(semaphore.entry()).is_err();
        }
    }

    /// The next socket with an event to report; with the last one the semaphore is armed again.
    pub fn next_changed(&mut self) -> Option<Number> {
        let next = self.changed.pop_front();
        self.signalled &= !self.changed.is_empty();
        next
    }

    /// This socket is gone.
    pub fn forget(&mut self, socket: Number) {
        self.changed.retain(|other| *other != socket);
    }

    /// Whether a notification found its client gone.
    pub const fn is_dead(&self) -> bool {
        self.dead
    }

    /// Whether its client is still there: its entries vanish with it. The account of a component goes on
    /// to its next instance, so the semaphore counts, which is to be set soon.
    pub fn lives(&self, now: u64) -> bool {
        let is_there =
            |owned: &Owned| op::entry_info(Entry::OWN, owned.entry()).is_ok_and(|(kind, _)| kind != Kind::Revoked);
        let semaphore = self.semaphore.as_ref().map_or(now < self.since + FIRST, is_there);
        !self.dead && is_there(&self.account) && semaphore
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // A ticket of an account that is gone is forgotten all the same.
        let _ = Sigma0Client(Direct(Entry::SIGMA0)).forget(self.ticket);
    }
}
