//! The components that run.

use alloc::vec::Vec;
use runtime::Entry;
use runtime::sync::Mutex;
use system::restarts::History;

/// A component that was started.
pub struct Running {
    /// Number of its record.
    pub number: u16,
    /// The number of its domain in the nucleus's lists: no two instances share it.
    pub instance: u64,
    /// Its domain.
    pub domain: Entry,
    /// The account that it pays with.
    pub account: Entry,
    /// Its first thread.
    pub thread: Option<Entry>,
    /// The ticket that draws frames for it.
    pub ticket: u64,
    /// The state that survives a restart.
    pub life: Life,
}

/// The state of a component that survives from one instance to the next.
#[derive(Clone, Copy, Default)]
pub struct Life {
    /// Of its deaths.
    pub history: History,
    /// When this instance was started.
    pub started: u64,
    /// How often it was started again since boot.
    pub restarts: u64,
    /// This instance published a service.
    pub has_published: bool,
    /// A component with that right asked for the end of this instance: that is no sign that it fails.
    pub is_killed: bool,
}

/// All of them.
pub static RUNNING: Mutex<Vec<Running>> = Mutex::new(Vec::new());

/// The domain of a component that runs.
pub fn domain_of(number: u16) -> Option<Entry> {
    RUNNING.lock().iter().find(|running| running.number == number).map(|running| running.domain)
}

/// The domain of this instance of a component, while it is the one that runs.
pub fn domain_of_instance(instance: u64) -> Option<Entry> {
    RUNNING.lock().iter().find(|running| running.instance == instance).map(|running| running.domain)
}

/// The component with the lowest number of a domain above `after`: that number, and how often it was started
/// again; zeros if there is none.
pub fn restarts(after: u64) -> (u64, u64) {
    let running = RUNNING.lock();
    let later = running.iter().filter(|running| running.instance > after);
    later.min_by_key(|running| running.instance).map_or((0, 0), |running| (running.instance, running.life.restarts))
}

/// This instance of a component published a service.
pub fn note_published(instance: u64) {
    if let Some(running) = RUNNING.lock().iter_mut().find(|running| running.instance == instance) {
        running.life.has_published = true;
    }
}
