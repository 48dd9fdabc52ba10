//! Kernel operations: the first `op::COUNT` entries of each portal table. Their contract is `abi::operations`.

mod entries;
mod info;
mod label;
mod memory;
mod objects;
mod operands;
mod ports;
mod running;
mod semaphores;

use crate::control::{death, dispatch};
use crate::cpus::assembly;
use crate::cpus::{counters, cpu};
use crate::memory::labels;
use crate::objects::{Activation, Operation, Outcome, Reply, Stop};
use crate::pointer::{Held, Ref};
use crate::report::refusals;
use abi::Error;
use abi::layout::ENTRY_BYTES;
use abi::op::{self, Class, Each};
use abi::sched::Event;
use operands::Operands;

/// An operation that can be restarted. Its operands are the words saved in the activation.
type Full = extern "C" fn(Ref<Activation>) -> Reply;

/// An operation with its class, which is compared with the contract.
type Entered = (Class, Operation);

/// An operation that `entry.s` does alone.
const fn assembly(code: unsafe extern "C" fn()) -> Entered {
    (Class::Assembly, Operation { code: code as *const (), function: core::ptr::null() })
}
const fn full(function: Full) -> Entered {
    (Class::Full, Operation { code: assembly::op_full as *const (), function: function as *const () })
}

/// An operation that is never restarted. Its arguments are words 0, 1, 2, 5, 3, 4, or the first of these.
macro_rules! light {
    ($number:ident: $function:path, $($word:ident),*) => {
        light!(Light op_light, $number: $function, $($word),*)
    };
    ($class:ident $code:ident, $number:ident: $function:path, $($word:ident),*) => {{
        extern "C" fn handler($($word: u64),*) -> Reply {
            // SAFETY: `entry.s` took the lock before it called this.
            let held = unsafe { Held::new() };
            let reply = $function(held, $($word),*);
            if let Err(error) = reply.result() {
                refusals::note(held, op::$number, error);
            }
            reply
        }
        (Class::$class, Operation { code: assembly::$code as *const (), function: handler as *const () })
    }};
}

macro_rules! full {
    ($function:path) => {{
        extern "C" fn handler(activation: Ref<Activation>) -> Reply {
            finish(activation, $function(&Operands(activation)))
        }
        full(handler)
    }};
}

/// By portal index.
pub static TABLE: [Operation; op::COUNT] = in_order(Each {
    r#return: assembly(assembly::entry_return),
    thread_id: assembly(assembly::op_thread_id),
    clock: light!(CLOCK: running::clock, a, b),
    r#yield: light!(YIELD: dispatch::yield_, a, b),
    exit: light!(EXIT: running::exit, a, b),
    domain_new: full!(objects::domain_new),
    domain_kill: full!(objects::domain_kill),
    domain_set: full!(objects::domain_set),
    account_new: full!(objects::account_new),
    account_move: full!(objects::account_move),
    activation_new: full!(objects::activation_new),
    thread_new: full!(objects::thread_new),
    thread_schedule: full!(running::thread_schedule),
    thread_ex_regs: full!(running::thread_ex_regs),
    entry_copy: full!(entries::copy),
    entry_remove: full!(entries::remove),
    entry_revoke: full!(entries::revoke),
    map: full!(memory::map),
    unmap: full!(memory::unmap),
    draw: full!(memory::draw),
    service_new: full!(entries::service_new),
    portal_new: full!(entries::portal_new),
    semaphore_new: full!(objects::semaphore_new),
    interrupt_bind: full!(objects::interrupt_bind),
    io: light!(IO: running::io, a, b, c, d, e, f),
    dispatch: light!(Dispatch op_dispatch, DISPATCH: dispatch::dispatch, a, b),
    info: full!(running::info),
    machine: full!(objects::machine),
    log: light!(LOG: running::log, a, b),
    activation_set: light!(ACTIVATION_SET: running::activation_set, a, b),
    entry_info: full!(entries::info),
    ipc: full!(reserved),
    shape_new: full!(entries::shape_new),
    label: full!(label::label),
    caller: light!(CALLER: running::caller, a, b),
    port_new: full!(objects::port_new),
});

/// By portal index. Asserts that the class of each is that of the contract.
const fn in_order(each: Each<Entered>) -> [Operation; op::COUNT] {
    let entered = each.in_order();
    let mut table = [entered[0].1; op::COUNT];
    let mut index = 0;
    while index < op::COUNT {
        assert!(entered[index].0 as u8 == op::TABLE[index].class as u8, "entered otherwise than the contract says");
        table[index] = entered[index].1;
        index += 1;
    }
    table
}

fn reserved(_: &Operands) -> Outcome {
    Err(Error::NotYet.into())
}

/// Ends a step of a full operation: resumes its caller, or whatever runs next if the operation stopped or preempted the
/// caller.
fn finish(activation: Ref<Activation>, outcome: Outcome) -> Reply {
    let held = activation.held();
    if !matches!(outcome, Err(Stop::Repeat)) {
        activation.forget_progress();
    }
    match outcome {
        Ok(value) => activation.set_result(Ok(value)),
        Err(Stop::Refused(error)) => {
            refusals::note(held, activation.registers.status() as usize / ENTRY_BYTES, error);
            activation.set_result(Err(error));
        }
        Err(Stop::Repeat) => {
            counters::all(held).restarts.up();
            activation.repeat_system_call();
        }
    }
    if !labels::is_tidy(held) {
        // This or an earlier operation left label nodes to free.
        labels::tidy(held, activation.domain.account);
    }
    let cpu = cpu::this(held);
    if activation.domain.is_dead() {
        death::leave_dead(held)
    }
    if activation.thread.get().is_none() || activation.thread.get() != cpu.thread.get() {
        // The chain was split below this activation, and the orphan thread is busy.
        dispatch::enter(held, Event::Choose, 0)
    }
    if cpu.preempt.get() {
        // A preemption point first, as the operation may have been long.
        dispatch::preemption_point(held);
        dispatch::give_way(held, Event::Preempted)
    }
    activation.leave()
}
