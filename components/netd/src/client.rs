//! The owner of a session: the program that the calling thread started in, or a component.
//!
//! An entry that a program hands over does not identify it: it can make accounts, entries and domains as it likes, and calls
//! from each of them. Its threads cannot change where they started. So the nucleus is asked for the home of the thread that
//! runs here, and for its makers up to `roottask`: right below that are components, below those programs. All that a
//! program makes counts as itself. For that this component holds the machine to look, and for nothing else.

use abi::info;
use abi::rights::{self, Kind};
use core::sync::atomic::{AtomicU64, Ordering};
use runtime::{Entry, op};

/// A program by the number of its domain.
pub type Client = u64;
/// A program or component as `ps` shows it.
#[derive(Clone, Copy)]
pub struct Owner {
    /// Number of its domain.
    pub number: u64,
    name: [u8; 16],
}

impl Owner {
    const fn of(domain: &info::Domain) -> Self {
        Self { number: domain.number, name: domain.name }
    }

    /// Its name. The maker of the domain chose it, so characters that could be taken for more than a name are `?`.
    pub fn name(&self) -> impl Iterator<Item = char> {
        let bytes = self.name.iter().take_while(|byte| **byte != 0);
        bytes.map(|byte| if byte.is_ascii_graphic() { char::from(*byte) } else { '?' })
    }
}

/// All components: those of the description are trusted not to take each other's share.
pub const COMPONENTS: Client = 0;
/// All whose maker is gone.
const ORPHANS: Client = u64::MAX;
/// Domains made by each other that are followed upwards.
const DEEPEST: usize = 32;

/// Numbers of `roottask`'s domain and of ours.
static ROOTTASK: AtomicU64 = AtomicU64::new(0);
static OWN: AtomicU64 = AtomicU64::new(0);

/// Finds `roottask`, which made us, and gives the frames of our account. `None` if the machine is not held to look and for
/// nothing else.
pub fn open() -> Option<u64> {
    if op::entry_info(Entry::OWN, Entry::SPECIAL) != Ok((Kind::Machine, rights::READ)) {
        return None;
    }
    let own = op::domain_number(Entry::DOMAIN).ok().and_then(domain)?;
    ROOTTASK.store(own.parent, Ordering::Relaxed);
    OWN.store(own.number, Ordering::Relaxed);
    Some(own.limit)
}

/// The domain in which the running thread started.
fn home() -> Option<u64> {
    let number = op::thread_id();
    let (thread, _) = op::record::<info::Thread>(Entry::SPECIAL, number - 1).ok()?;
    (thread.number == number).then_some(thread.home)
}

/// The domain of this number.
fn domain(number: u64) -> Option<info::Domain> {
    let (domain, _) = op::record::<info::Domain>(Entry::SPECIAL, number + 1).ok()?;
    (domain.number == number).then_some(domain)
}

/// The client whose thread runs, and the program or component that it is, if that is known.
pub fn caller() -> (Client, Option<Owner>) {
    let roottask = ROOTTASK.load(Ordering::Relaxed);
    let home = home();
    // The call goes on without its caller: that is dead, or was cancelled.
    if home == Some(OWN.load(Ordering::Relaxed)) {
        return (ORPHANS, None);
    }
    let (mut below, mut owner, mut next) = (COMPONENTS, None, home);
    for _ in 0..DEEPEST {
        let Some(found) = next.and_then(domain) else { break };
        if found.parent == roottask {
            return (below, owner.or(Some(Owner::of(&found))));
        }
        below = found.number;
        owner = Some(Owner::of(&found));
        next = Some(found.parent);
    }
    (ORPHANS, None)
}
