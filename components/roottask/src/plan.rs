//! The description by which the system is started.

use crate::failure::fail;
use protocols::listing::{Record, Writer};
use runtime::sync::Once;
use runtime::{Entry, op};
use system::{Component, Special, System};

/// The description, and what is looked up in it often.
pub struct Plan {
    /// The description.
    pub system: System<'static>,
    /// Raised when there is something for the main loop.
    pub events: Entry,
    /// A bit for each component that has the whole machine: looking that up in the description takes thousands of instructions.
    machines: u64,
}

static PLAN: Once<Plan> = Once::new();

/// The plan that [`init`] keeps.
pub fn plan() -> &'static Plan {
    PLAN.get().unwrap_or_else(|| fail("no plan"))
}

/// Keeps the description and the semaphore of events.
pub fn init(system: System<'static>, events: Entry) {
    let machines = system.components().filter(|component| component.special == Special::Machine);
    let machines = machines.fold(0, |machines, component| machines | 1 << component.number);
    PLAN.get_or_make(|| Plan { system, events, machines });
}

/// Something happened that the main loop looks at.
pub fn wake() {
    let _ = op::v(plan().events);
}

/// Whether a component has the whole machine, and so may do for its programs what only it can know to be right.
pub fn holds_machine(number: u16) -> bool {
    plan().machines.checked_shr(number.into()).is_some_and(|bits| bits & 1 != 0)
}

/// The component to which the description gives this name of a service.
pub fn owner_of(service: &str) -> Option<Component<'static>> {
    plan().system.owner_of(service)
}

/// Writes the programs whose account the description gives, from a position on.
pub fn programs(position: u64, into: &mut [u8]) -> (usize, u64) {
    let mut writer = Writer::new(into);
    for (number, program) in (0..).zip(plan().system.programs()).skip(position as usize) {
        let Some(frames) = program.account else { continue };
        if !writer.push(Record { tag: 0, value: frames.into(), name: program.name.as_bytes() }) {
            return (writer.used(), number);
        }
    }
    (writer.used(), 0)
}
