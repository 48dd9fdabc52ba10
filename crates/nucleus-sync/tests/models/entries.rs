//! A table entry is emptied, and its place and its object are used for something else, while another CPU traverses it.

use crate::machine::{Fault, Machine, Plain, explore};
use loom::sync::Arc;
use loom::sync::atomic::{AtomicU32, Ordering};
use loom::thread;

const ELSEWHERE: u32 = 0;
const OWNER: u32 = 1;
/// The values of an entry.
const EMPTY: u32 = 0;
const CODE: u32 = 1;

struct Table {
    machine: Arc<Machine>,
    /// Which code the entry leads to, and the number of the object for it.
    code: AtomicU32,
    object: AtomicU32,
    /// Objects: the purpose of each.
    objects: [Plain<&'static str>; 2],
}

/// Goes through the entry as a fast path does: interrupts are off from the first load to the last use. It leads elsewhere, and
/// all that stands in the entry is read before that is said.
fn traverse(table: &Table) -> Option<&'static str> {
    if table.code.load(Ordering::Acquire) == EMPTY {
        return None;
    }
    if table.machine.fault == Fault::LooksTooEarly {
        table.machine.go(1, ELSEWHERE);
    }
    let object = table.object.load(Ordering::Relaxed) as usize;
    let object = table.objects[object].read(|object| *object);
    table.machine.go(1, ELSEWHERE);
    Some(object)
}

fn model(fault: Fault, inside: bool) {
    let table = Arc::new(Table {
        machine: Machine::new(fault),
        code: AtomicU32::new(CODE),
        object: AtomicU32::new(0),
        objects: [Plain::new("old"), Plain::new("unused")],
    });
    if inside {
        table.machine.cpus[1].domain.store(OWNER, Ordering::Relaxed);
    }
    let other = table.clone();
    let other = thread::spawn(move || {
        if !inside {
            other.machine.go(1, OWNER);
        }
        for _ in 0..2 {
            let seen = traverse(&other);
            assert!(matches!(seen, None | Some("old" | "new")), "{seen:?} was used");
            other.machine.user(1);
            other.machine.go(1, OWNER);
        }
        other.machine.user(1);
        other.machine.sleep(1);
    });
    table.machine.enter(0);
    table.code.store(EMPTY, Ordering::Relaxed);
    table.machine.stop_in(0, 1, OWNER).for_each(drop);
    // The object is gone, its memory is something else; the place gets another entry.
    table.objects[0].change(|object| *object = "something else");
    if fault == Fault::Swapped {
        table.code.store(CODE, Ordering::Release);
    }
    table.objects[1].change(|object| *object = "new");
    table.object.store(1, Ordering::Relaxed);
    table.code.store(CODE, if fault == Fault::LeftOut { Ordering::Relaxed } else { Ordering::Release });
    table.machine.leave();
    other.join().unwrap();
}

#[test]
fn against_who_comes() {
    explore(None, || model(Fault::None, false));
}

#[test]
fn against_who_is_there() {
    explore(None, || model(Fault::None, true));
}

#[test]
#[should_panic(expected = "Causality violation")]
fn no_fence_before_asking_who_is_there() {
    explore(None, || model(Fault::NoFence, false));
}

#[test]
#[should_panic(expected = "Causality violation")]
fn the_root_before_the_domain() {
    explore(None, || model(Fault::RootFirst, false));
}

#[test]
#[should_panic(expected = "Causality violation")]
fn nobody_is_stopped() {
    explore(None, || model(Fault::StopsNone, true));
}

#[test]
#[should_panic(expected = "Causality violation")]
fn an_interrupt_is_not_enough() {
    explore(None, || model(Fault::DoesNotWait, true));
}

#[test]
#[should_panic(expected = "Causality violation")]
fn read_after_it_is_elsewhere() {
    explore(None, || model(Fault::LooksTooEarly, true));
}

/// The code of a new entry is what makes it one: it is written last.
#[test]
#[should_panic(expected = "was used")]
fn the_code_before_the_object() {
    explore(None, || model(Fault::Swapped, false));
}

#[test]
#[should_panic(expected = "Causality violation")]
fn the_code_without_an_order() {
    explore(None, || model(Fault::LeftOut, false));
}
