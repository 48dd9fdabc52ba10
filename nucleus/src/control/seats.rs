//! The seats of schedulers: taking and losing them.

use super::activation;
use super::ready::{hand_over, seats};
use crate::cpus::{counters, cpu, timer};
use crate::memory::slab;
use crate::objects::{Cpu, Domain, Runs, Seat, State, Thread, owns_all};
use crate::pointer::{Fresh, Held, Ref};
use crate::report::log::{self, Part};
use abi::sched::Ring as SharedRing;
use abi::{Error, MAX_DEPTH};

/// Microseconds within which `sched` must dispatch after it was entered.
pub const PATIENCE_MICROSECONDS: u64 = 10_000;

/// `DOMAIN_SET`, `SET_SCHEDULER`: `domain` takes the seat of a CPU, or becomes the standby for all; `which` is the
/// operation's operand.
pub fn take_seat(domain: Ref<Domain>, entry: u64, stack: u64, which: u64) -> Result<u64, Error> {
    let held = domain.held();
    const STANDBY: u64 = 1;
    if which & 0xff & !STANDBY != 0 {
        return Err(Error::BadArgument);
    }
    let target = usize::try_from(which >> 8).ok().and_then(|number| cpu::of(held, number)).ok_or(Error::NotThere)?;
    // A scheduler sees when the threads of all domains run, whatever taints these.
    if !owns_all(&domain.labels()) {
        return Err(Error::NotTrusted);
    }
    activation::check_address(entry)?;
    let activation = activation::new(domain, stack)?;
    let mut thread: Fresh<Thread> = match slab::allocate(domain.account) {
        Ok(thread) => thread,
        Err(error) => {
            activation::free_first(domain);
            return Err(error);
        }
    };
    thread.home = domain;
    let thread = thread.share();
    activation.bottom.set(true);
    activation.state.set(State::Top);
    activation.thread.set(Some(thread));
    activation.entry.set(entry);
    // It may be re-entered at its start at any time, so it may not call: its depth is already the limit.
    activation.depth.set(MAX_DEPTH as u16 - 1);
    thread.top.set(Some(activation));
    thread.bottom.set(Some(activation));
    thread.priority.set(u8::MAX);
    thread.runs.set(Runs::Blocked);
    thread.cpu.set(target);
    let ring = activation.message_kernel as *mut SharedRing;
    let seat = Seat { activation, thread, domain, ring };
    let seats = seats(held);
    seats.patience.set(timer::from_microseconds(PATIENCE_MICROSECONDS));
    // SAFETY: the ring is the message area of the new activation; no other code of the nucleus accesses this word.
    unsafe { (*ring).ticks = seats.patience.get() as u32 }
    if which & STANDBY != 0 {
        if let Some(old) = seats.standby.replace(Some(seat)) {
            retire(old);
        }
        return Ok(activation.message);
    }
    if target != cpu::this(held) {
        cpu::stop(target);
    }
    match target.seat.replace(Some(seat)) {
        Some(old) if target.thread.get() == Some(old.thread) => {
            // The old scheduler runs there: its choice is lost.
            target.leave_thread();
            retire_or_keep(held, old);
        }
        Some(old) => retire_or_keep(held, old),
        None => seats.taken.update(|taken| taken + 1),
    }
    hand_over(target);
    Ok(activation.message)
}

/// Makes a replaced scheduler the standby, if there is none; else retires it.
fn retire_or_keep(held: Held, old: Seat) {
    let standby = &seats(held).standby;
    if standby.get().is_none() {
        standby.set(Some(old));
    } else {
        retire(old);
    }
}

fn retire(seat: Seat) {
    // The activation is freed with its domain.
    seat.activation.thread.set(None);
    seat.activation.state.set(State::Free);
    slab::free(seat.thread);
}

/// After a domain's death: if it held seats, the standby takes over one. The threads of its other CPUs migrate.
pub fn domain_died(domain: Ref<Domain>) {
    let held = domain.held();
    let seats = seats(held);
    if let Some(seat) = seats.standby.get().filter(|seat| seat.domain == domain) {
        seats.standby.set(None);
        retire(seat);
    }
    for cpu in cpu::all(held) {
        let Some(seat) = cpu.seat.get().filter(|seat| seat.domain == domain) else { continue };
        cpu.seat.set(seats.standby.take());
        cpu.patience_ends.set(u64::MAX);
        counters::all(held).standby.up();
        if cpu.thread.get() == Some(seat.thread) {
            cpu.thread.set(cpu.seat.get().map(|seat| seat.thread));
            if cpu != cpu::this(held) && !cpu.idle.get() {
                cpu.leave_thread();
            }
        }
        if cpu.seat.get().is_some() {
            log::line(held, &[Part::Text("the standby scheduler takes over")]);
            hand_over(cpu);
        } else {
            seats.taken.update(|taken| taken - 1);
            if seats.taken.get() == 0 {
                panic!("the scheduler died and no standby is there");
            }
            leave_to_others(cpu);
        }
        retire(seat);
    }
}

/// Migrates the threads of a CPU that lost its scheduler: the hand-over to the scheduler of another CPU includes them.
#[cold]
fn leave_to_others(cpu: Ref<Cpu>) {
    let held = cpu.held();
    let number = Part::Number(cpu.number as u64);
    log::line(held, &[Part::Text("the scheduler died and no standby is there: nothing runs any more on CPU "), number]);
    if let Some(heir) = cpu::all(held).find(|cpu| cpu.seat.get().is_some()) {
        hand_over(heir);
    }
    if cpu != cpu::this(held) {
        cpu::send_ipi(cpu);
    }
}
