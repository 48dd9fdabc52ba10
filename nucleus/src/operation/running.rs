//! Operations on time, threads and the running activation; the log; access to I/O ports.

use super::info as records;
use super::operands::Operands;
use crate::arch::memory;
use crate::control::{activation, call, chain, death, dispatch, fault, flows, priorities, ready};
use crate::cpus::{cpu, special, timer};
use crate::memory::mapping;
use crate::objects::{
    CANCELLED, Domain, Outcome, Reply, Runs, SavedFrame, State, Stop, Thread, Wait, is_seat, owns_all,
};
use crate::pointer::{Held, Ref};
use crate::report::forbidden::{self, Against, refuse};
use crate::report::log::{self as kernel_log, PROGRAMS, Part, SYSTEM};
use crate::report::trace;
use abi::layout::MAX_TABLE_ENTRIES;
use abi::op::{ABOUT_PROGRAM, ABOUT_REFUSED};
use abi::rights::{self, Kind};
use abi::{Error, MAX_LOG_BYTES, MAX_SLICE_MICROSECONDS, NEVER, PRIORITIES, op};

/// Default slice in microseconds.
const USUAL_SLICE: u64 = 10_000;

pub fn clock(_: Held, _: u64, _: u64) -> Reply {
    Ok(timer::nanoseconds()).into()
}

pub fn caller(held: Held, _: u64, _: u64) -> Reply {
    let caller = cpu::this(held).activation.get().and_then(|activation| activation.caller.get());
    let whose = match caller {
        None => op::CALLER_OTHER,
        Some(_) if flows::is_off(held) => op::CALLER_OWNS_ALL,
        Some(caller) => match caller.domain.labelled() {
            None => op::CALLER_USUAL,
            Some(labelled) if owns_all(&labelled.now.get()) => op::CALLER_OWNS_ALL,
            Some(_) => op::CALLER_OTHER,
        },
    };
    Ok(whose).into()
}

pub fn exit(held: Held, status: u64, _: u64) -> Reply {
    let cpu = cpu::this(held);
    let (Some(activation), Some(thread)) = (cpu.activation.get(), cpu.thread.get()) else {
        return Err(Error::IsScheduler).into();
    };
    if is_seat(thread) {
        death::die(activation.domain, status & 0xff);
        death::leave_dead(held)
    }
    if activation.caller.get().is_some() || thread.carries_orphans {
        call::abandon_call(thread, activation)
    }
    if thread.is_first && status & 0xff != 0 {
        fault::ended(activation, status & 0xff)
    }
    thread.ended.set(true);
    if thread.is_first {
        death::die(activation.domain, status & 0xff);
        // The domain is dead: after a preemption here, nothing may resume the activation.
        cpu.activation.set(None);
        dispatch::preemption_point(held);
    }
    dispatch::block_current(held)
}

/// Checks `priority | slice in microseconds << 8` for a thread of `home`, set by `setter`; gives the slice in ticks. A slice
/// of 0 means 10 ms, or the longest that both domains allow if that is shorter.
pub fn check_schedule(word: u64, [home, setter]: [Ref<Domain>; 2]) -> Result<(u8, u64), Error> {
    let (priority, slice) = (word & 0xff, word >> 8);
    if priority as usize >= PRIORITIES || slice > MAX_SLICE_MICROSECONDS {
        return Err(Error::BadArgument);
    }
    let longest = home.max_slice.get().min(setter.max_slice.get()) as u64;
    if priority > home.max_priority.get().min(setter.max_priority.get()) as u64 {
        return Err(Error::PriorityTooHigh);
    }
    if slice > longest {
        return Err(Error::SliceTooLong);
    }
    Ok((priority as u8, timer::from_microseconds(if slice == 0 { longest.min(USUAL_SLICE) } else { slice })))
}

fn thread_operand(operands: &Operands) -> Result<Ref<Thread>, Stop> {
    let held = operands.held();
    if operands.word(0) == 0 {
        return Ok(cpu::this(held).thread.get().ok_or(Error::IsScheduler)?);
    }
    operands.thread(0, rights::CONTROL)
}

pub fn thread_schedule(operands: &Operands) -> Outcome {
    let held = operands.held();
    // During a call, the running thread is not the callee's own.
    if operands.word(0) == 0 && !operands.0.bottom.get() {
        return Err(Error::Borrowed.into());
    }
    let thread = thread_operand(operands)?;
    if is_seat(thread) {
        return Err(Error::IsScheduler.into());
    }
    let cpus = match operands.word(2) {
        0 => 0,
        wanted => cpu::check_mask(held, wanted, thread.home.cpus.get())?,
    };
    let old = thread.own_priority.get();
    let (priority, slice) = check_schedule(operands.word(1), [thread.home, operands.own()])?;
    thread.own_priority.set(priority);
    thread.slice.set(slice);
    thread.left.set(thread.slice.get());
    priorities::recompute(thread);
    if cpus != 0 {
        thread.set_cpus(cpus);
    }
    let home = thread.cpu.get();
    let may_stay = thread.may_run_on(home);
    thread.moves.set(!may_stay && thread.runs.get() == Runs::Running);
    match thread.runs.get() {
        Runs::Blocked if !may_stay => ready::go_to(thread, thread.nearest_cpu()),
        Runs::Ready if !may_stay => {
            ready::move_away(thread);
        }
        _ => {}
    }
    if thread.runs.get() == Runs::Running && !may_stay {
        ready::interrupt(home);
    }
    Ok(old.into())
}

pub fn thread_ex_regs(operands: &Operands) -> Outcome {
    let held = operands.held();
    let thread = thread_operand(operands)?;
    if Some(thread) == cpu::this(held).thread.get() {
        return Err(Error::ThreadRuns.into());
    }
    cpu::stop_cpu_of(thread);
    let Some(bottom) = thread.bottom.get().filter(|_| !thread.ended.get()) else { return Err(Error::Ended.into()) };
    let (pc, stack) = (operands.word(1), operands.word(2));
    for address in [pc, stack] {
        if address != NEVER {
            activation::check_address(address)?;
        }
    }
    let was_calling = bottom.state.get() == State::Calling;
    if was_calling {
        chain::split_above(bottom);
    }
    let old = bottom.registers.pc.get();
    let was_receiving = bottom.receive_state.get() != 0;
    bottom.forget_progress();
    // This also cancels the restart of a woken caller, and of a woken receiver.
    let waited = bottom.wait.get() != Wait::No || bottom.frame.get() == SavedFrame::Receives;
    chain::stop_waiting(bottom);
    chain::pass_message_on(bottom);
    if (waited || was_calling || thread.runs.get() == Runs::Blocked) && bottom.frame.get() != SavedFrame::Full {
        bottom.set_result(Err(Error::Cancelled));
    }
    if was_receiving && pc == NEVER {
        // Its receive is being restarted. It ends where it would wait again.
        bottom.receive_state.set(CANCELLED);
    }
    ready::make_ready(thread);
    if pc != NEVER {
        bottom.registers.pc.set(pc);
    }
    if stack != NEVER {
        bottom.registers.sp.set(stack);
    }
    thread.top.set(Some(bottom));
    chain::recheck_top(thread);
    Ok(old)
}

pub fn io(held: Held, ports: u64, offset: u64, value: u64, _: u64, direction: u64, _: u64) -> Reply {
    access_port(held, ports, offset, value, direction).into()
}

/// Reads or writes the port at this offset in a range of ports; a write gives 0.
fn access_port(held: Held, ports: u64, offset: u64, value: u64, direction: u64) -> Result<u64, Error> {
    let domain = cpu::this(held).domain.get().ok_or(Error::IsScheduler)?;
    let entry = domain.entry(usize::try_from(ports).unwrap_or(usize::MAX), Kind::IoPorts, rights::WRITE)?;
    if flows::may_change(domain).is_err() {
        return Err(refuse(domain, Against::Thing("ports of devices")));
    }
    let (first, count) = (entry.word0.get() & 0xffff, entry.word0.get() >> 16);
    let port = |bytes: u64| {
        if offset >= count || count - offset < bytes { Err(Error::NotItsPorts) } else { Ok((first + offset) as u16) }
    };
    match direction {
        op::IO_READ => {
            let port = port(1)?;
            // SAFETY: the entry gives the caller this port, with the effects of a read on its device.
            Ok(unsafe { memory::port_read(port) } as u64)
        }
        op::IO_WRITE => {
            let port = port(1)?;
            // SAFETY: the entry gives the caller this port, with the effects of a write on its device.
            unsafe { memory::port_write(port, value as u8) };
            Ok(0)
        }
        op::IO_READ_LONG => {
            let port = port(4)?;
            // SAFETY: the entry gives the caller all four ports, with the effects of a read on their device.
            Ok(unsafe { memory::port_read_long(port) } as u64)
        }
        op::IO_WRITE_LONG => {
            let port = port(4)?;
            // SAFETY: the entry gives the caller all four ports, with the effects of a write on their device.
            unsafe { memory::port_write_long(port, value as u32) };
            Ok(0)
        }
        _ => Err(Error::NoSuchWay),
    }
}

pub fn info(operands: &Operands) -> Outcome {
    operands.entry(0, Kind::Machine, rights::READ)?;
    records::report(operands.0, operands.word(1), operands.word(2))
}

pub fn log(held: Held, bytes: u64, about: u64) -> Reply {
    let Some(activation) = cpu::this(held).activation.get() else { return Err(Error::IsScheduler).into() };
    if bytes as usize > MAX_LOG_BYTES {
        return Err(Error::BadArgument).into();
    }
    if flows::may_change(activation.domain).is_err() {
        return Err(refuse(activation.domain, Against::Thing("the log"))).into();
    }
    // SAFETY: the message area is a page of the nucleus, in the direct map, with room for `MAX_LOG_BYTES`.
    let text = unsafe { core::slice::from_raw_parts(activation.message_kernel as *const u8, bytes as usize) };
    let text = text.strip_suffix(b"\n").unwrap_or(text);
    trace::log(activation, text);
    let domain = activation.domain;
    let line = [Part::Text(": "), Part::Foreign(text)];
    let name = Part::Foreign(domain.name_bytes());
    if about == ABOUT_REFUSED && !domain.is_program() {
        // A caller that was cut off is refused nothing any more.
        if let Some(caller) = activation.caller.get() {
            forbidden::by_server(caller.domain, domain, text);
        }
    } else if domain.is_program() {
        // Programs may have equal names, or the name of a component, so the line has the domain's number.
        kernel_log::line_in(held, PROGRAMS, &[name, Part::Text("#"), Part::Number(domain.number)], &line);
    } else {
        kernel_log::line_in(held, if about == ABOUT_PROGRAM { PROGRAMS } else { SYSTEM }, &[name], &line);
    }
    if cpu::this(held).preempt.get() {
        dispatch::preempt_after_operation(held)
    }
    Ok(0).into()
}

pub fn activation_set(held: Held, what: u64, value: u64) -> Reply {
    let cpu = cpu::this(held);
    let (Some(activation), Some(domain)) = (cpu.activation.get(), cpu.domain.get()) else {
        return Err(Error::IsScheduler).into();
    };
    match what {
        op::ACTIVATION_RECEIVE => {
            if value >= domain.table_entries() as u64
                && let Err(error) = grow_towards(domain, value)
            {
                return Err(error).into();
            }
            activation.receive.set(value as u32);
        }
        op::ACTIVATION_THREAD_POINTER => {
            if let Err(error) = activation::check_address(value) {
                return Err(error).into();
            }
            special::set_pointer(activation, value);
        }
        op::ACTIVATION_TEAR => {
            if value != 0
                && let Err(error) = mapping::check_flexpage(value, 0)
            {
                return Err(error).into();
            }
            activation.torn.set(value);
        }
        _ => return Err(Error::NoSuchWay).into(),
    }
    Ok(0).into()
}

/// Grows the table by a step towards `index`; `Again` if more steps are needed.
#[cold]
#[inline(never)]
fn grow_towards(domain: Ref<Domain>, index: u64) -> Result<(), Error> {
    if index >= MAX_TABLE_ENTRIES as u64 {
        return Err(Error::BadIndex);
    }
    domain.grow_table_step()?;
    if index < domain.table_entries() as u64 { Ok(()) } else { Err(Error::Again) }
}
