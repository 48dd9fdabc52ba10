//! Operations that make or change objects.

use super::label;
use super::operands::{Operands, have_clear, have_frames, in_steps};
use super::running::check_schedule;
use crate::arch::memory;
use crate::control::{
    activation, chain, death, domain as domains, fault, flows, interrupt, lent, numbers, port, ready, seats, thread,
};
use crate::cpus::cpu;
use crate::memory::labels::Pool;
use crate::memory::portals::Content;
use crate::memory::{labels, mapping, slab, space};
use crate::objects::{Account, Domain, OPEN, Outcome, Port, Runs, Semaphore, Stop, TRUSTED, Thread, owns_all};
use crate::pointer::{Fresh, Ref};
use crate::report::{log, trace};
use abi::info::status;
use abi::layout::USER_END;
use abi::rights::{self, Kind};
use abi::{
    Error, MAX_BADGE, MAX_COUNT, MAX_MEMBERS, MAX_SLICE_MICROSECONDS, MESSAGE_BYTES, PAGE_BYTES, PRIORITIES, op,
};
use flow::rules::{self, Labels, NotGiven, Work};
use flow::{Label, Level};
use nucleus_sync::tokens::Tokens;
use structures::quota::Paying;

pub fn domain_new(operands: &Operands) -> Outcome {
    have_frames(operands);
    have_clear(operands, 3);
    let account = operands.account(0, rights::WRITE)?;
    let (place, index) = operands.vacancy(operands.own(), 2)?;
    let mut name = [0; 16];
    name[..8].copy_from_slice(&log::name(operands.word(3)).to_le_bytes());
    name[8..].copy_from_slice(&log::name(operands.word(4)).to_le_bytes());
    let own = labels_of_child(operands, account, operands.word(1) & op::DOMAIN_TRUSTED != 0)?;
    let made = domains::new(account, operands.word(1), name, Some(operands.own()), own);
    labels::forget_here(account);
    let domain = made?;
    place.fill(Content::original(domain), None)?;
    domain.entry.set(Some(place));
    Ok(index as u64)
}

/// The labels of a new domain, charged to `account`.
fn labels_of_child(operands: &Operands, account: Ref<Account>, trusted: bool) -> Result<Labels, Stop> {
    let own = operands.own().labels();
    if trusted {
        // Only a domain that owns all handles can make another one that does.
        return if owns_all(&own) { Ok(TRUSTED) } else { Err(Error::NotTrusted.into()) };
    }
    if let Some(plain) = rules::inherit_plain(&own) {
        return Ok(plain);
    }
    let all = [own.send, own.receive, own.send, own.receive];
    made_for(operands, account, (labels::INHERITS, &all), &mut |pool, work| rules::inherited(pool, work, &own).map(Ok))
}

pub fn domain_kill(operands: &Operands) -> Outcome {
    let domain = operands.domain_at_once(0, rights::CONTROL)?;
    let status = status::KILLED + (operands.word(1) & 0xff);
    if domain == operands.own() && status == status::KILLED + status::PANICKED {
        fault::ended(operands.0, status)
    }
    if death::die_step(domain, status) { Ok(0) } else { Err(Stop::Repeat) }
}

pub fn domain_set(operands: &Operands) -> Outcome {
    let held = operands.held();
    let domain = operands.domain(0, rights::CONTROL)?;
    let (a, b, c) = (operands.word(2), operands.word(3), operands.word(4));
    match operands.word(1) {
        op::SET_FAULT_RANGE => {
            if a as usize >= domain.ranges.len() || b > c || c > USER_END {
                return Err(Error::BadArgument.into());
            }
            domain.ranges[a as usize].set((b, c));
        }
        op::SET_DEATH_SEMAPHORE => {
            let semaphore = operands.semaphore(2, rights::WRITE)?;
            // Only the maker, if there is one: else the domain, or anyone who has its entry, could hide its death.
            if domain.is_made_by_another_than(operands.own()) {
                return Err(Error::NotMaker.into());
            }
            semaphore.hold();
            if let Some(old) = domain.death_semaphore.replace(Some(semaphore)) {
                old.drop_hold();
            }
        }
        op::SET_SCHEDULER => {
            // Only a domain that controls the machine may appoint schedulers.
            operands.controls_machine()?;
            return Ok(seats::take_seat(domain, b, c, a)?);
        }
        op::SET_CPUS => {
            domain.cpus.set(cpu::check_mask(held, a, operands.own().cpus.get())?);
            if let Some(thread) = domain.orphan_thread.get().filter(|thread| thread.top.get().is_none()) {
                thread.set_cpus(domain.cpus.get());
                if thread.runs.get() != Runs::Ready {
                    thread.cpu.set(thread.nearest_cpu());
                } else if !thread.may_run_on(thread.cpu.get()) {
                    // An orphan waits for this thread. It moves to a CPU where it may run, and is posted there.
                    ready::move_away(thread);
                }
            }
        }
        op::SET_MAX_PRIORITY => {
            if a as usize >= PRIORITIES {
                return Err(Error::BadArgument.into());
            }
            if a > operands.own().max_priority.get() as u64 {
                return Err(Error::PriorityTooHigh.into());
            }
            domain.max_priority.set(a as u8);
        }
        op::SET_MAX_SLICE => {
            if a == 0 || a > MAX_SLICE_MICROSECONDS {
                return Err(Error::BadArgument.into());
            }
            if a > operands.own().max_slice.get() as u64 {
                return Err(Error::SliceTooLong.into());
            }
            domain.max_slice.set(a as u32);
        }
        op::SET_SHARE => {
            operands.controls_machine()?;
            if a > 100 {
                return Err(Error::BadArgument.into());
            }
            domain.time_share.set(a as u8);
        }
        op::SET_LABELS => return set_labels(operands, domain),
        _ => return Err(Error::NoSuchWay.into()),
    }
    Ok(0)
}

/// Sets the labels of a new domain, as its maker requests.
fn set_labels(operands: &Operands, domain: Ref<Domain>) -> Outcome {
    let (own, account) = (flows::of_maker(operands.own()), domain.account);
    if domain.maker != Some(operands.own()) {
        return Err(Error::NotMaker.into());
    }
    // A new domain shares nothing with others but the objects in its table, whose use is judged later.
    // One that had activations keeps a message area, even after their threads were removed.
    if domain.message_slots.get() != 0 || domain.pages.get() != 0 {
        return Err(Error::NotNew.into());
    }
    let (send, receive) = (operands.label(2, rights::READ)?, operands.label(3, rights::READ)?);
    let child = Labels { send, receive, is_explicit: operands.truth(4)? };
    in_steps(operands, || domain.labelled().is_some_and(|labelled| lent::end_step(labelled).is_err()));
    let all = [own.send, own.receive, send, receive];
    let made =
        made_for(operands, account, (labels::GIVEN, &all), &mut |pool, work| rules::given(pool, work, &own, &child))?;
    labels::forget_here(account);
    flows::take_at_once(domain, made)?;
    Ok(0)
}

/// A rule that makes labels, or returns why it refuses.
type Make<'a> = &'a mut dyn FnMut(&mut Pool, &mut Work) -> Result<Result<Labels, NotGiven>, rules::Stop>;

/// Makes labels charged to `account`, in preemptible steps, by a rule about the labels `all`. When the rule is
/// complete, its result stays cached on this CPU, these labels are released, and a preemption point follows. The next step takes
/// the labels from the cache, so the rest of the operation begins with a full step.
#[inline(never)]
pub fn made_for(
    operands: &Operands,
    account: Ref<Account>,
    (rule, all): (u8, &[Label]),
    make: Make<'_>,
) -> Result<Labels, Stop> {
    let held = operands.held();
    let mut made = Err(Stop::Repeat);
    in_steps(operands, || {
        // A restarted operation finds the result cached.
        let is_known = labels::knows(held, rule, account, all);
        made = labels::ask(held, rule, account, all, &mut *make);
        match made {
            Ok(Ok(labels)) if !is_known => {
                labels::release_both(account, labels);
                true
            }
            _ => matches!(made, Err(Stop::Repeat)),
        }
    });
    made?.map_err(|why| match why {
        NotGiven::NotOwned => Error::NotOwned.into(),
        NotGiven::Flow => Error::Flow.into(),
    })
}

pub fn account_new(operands: &Operands) -> Outcome {
    let parent = operands.account(0, rights::WRITE)?;
    let frames = usize::try_from(operands.word(1)).map_err(|_| Error::BadArgument)?;
    let (place, index) = operands.vacancy(operands.own(), 2)?;
    let label = label_of_account(operands, parent)?;
    let made = parent.new_child(frames, operands.word(3));
    labels::forget_here(parent);
    match made {
        Ok(account) => account.label.set(label),
        Err(error) => {
            labels::release_of(parent, label);
            return Err(error.into());
        }
    }
    place.fill(Content::original(made?), None)?;
    Ok(index as u64)
}

/// A single label, as the send label of a pair.
pub fn only(label: Label) -> Labels {
    Labels { send: label, receive: Label::of(Level::Star), is_explicit: false }
}

/// The label of a new account, which its parent pays for.
fn label_of_account(operands: &Operands, parent: Ref<Account>) -> Result<Label, Stop> {
    let send = operands.own().labels().send;
    if operands.word(4) != 0 {
        let (send, label) = (flows::of_maker(operands.own()).send, operands.label(4, rights::READ)?);
        let made = made_for(operands, parent, (labels::OBJECT, &[send, label]), &mut |pool, work| {
            Ok(rules::given_to_object(pool, work, send, label)?.map(only))
        });
        return made.map(|made| made.send);
    }
    if let Some(plain) = rules::inherit_plain(&only(send)) {
        return Ok(plain.send);
    }
    let made = made_for(operands, parent, (labels::OBJECT_INHERITS, &[send]), &mut |pool, work| {
        rules::inherited_by_object(pool, work, send).map(only).map(Ok)
    });
    made.map(|made| made.send)
}

pub fn account_move(operands: &Operands) -> Outcome {
    // Frees label nodes first: until then their frames count as used.
    if !labels::tidy(operands.held(), operands.own().account) {
        return Err(Stop::Repeat);
    }
    let from = operands.account(0, rights::WRITE)?;
    let to = operands.account(1, rights::WRITE)?;
    let frames = usize::try_from(operands.word(2)).map_err(|_| Error::BadArgument)?;
    from.move_to(to, frames)?;
    Ok(0)
}

/// Clears frames ahead for a message area and its page tables.
fn have_room(operands: &Operands, domain: Ref<Domain>) {
    if domain.spare.get().is_none() {
        have_clear(operands, 4);
    }
}

pub fn activation_new(operands: &Operands) -> Outcome {
    let domain = operands.domain(0, rights::CONTROL)?;
    let receive = operands.index(2);
    activation::check_address(operands.word(1))?;
    operands.reach(domain, receive)?;
    have_room(operands, domain);
    let activation = activation::new(domain, operands.word(1))?;
    activation.receive.set(receive as u32);
    let per_cpu = domain.per_cpu();
    activation.next.set(per_cpu.pool.replace(Some(activation)));
    chain::wake_waiter_soon(domain);
    Ok(activation.message)
}

pub fn thread_new(operands: &Operands) -> Outcome {
    let domain = operands.domain(0, rights::CONTROL)?;
    let (place, index) = operands.vacancy(operands.own(), 5)?;
    let (priority, slice) = check_schedule(operands.word(4), [domain, operands.own()])?;
    let (pc, stack, argument) = (operands.word(1), operands.word(2), operands.word(3));
    have_room(operands, domain);
    let thread: Ref<Thread> = thread::new(domain, pc, stack, argument, priority, slice)?;
    place.fill(Content::original(thread), None)?;
    thread.entry.set(Some(place));
    ready::make_ready(thread);
    Ok(index as u64)
}

pub fn semaphore_new(operands: &Operands) -> Outcome {
    let account = operands.account(0, rights::WRITE)?;
    let count = i64::try_from(operands.word(1)).map_err(|_| Error::BadArgument)?;
    if count > MAX_COUNT as i64 {
        return Err(Error::BadArgument.into());
    }
    let (place, index) = operands.vacancy(operands.own(), 2)?;
    let mut semaphore: Fresh<Semaphore> = slab::allocate(account)?;
    semaphore.count = Tokens::new(count);
    let semaphore = semaphore.share();
    place.fill(Content::original(semaphore), None)?;
    Ok(index as u64)
}

pub fn port_new(operands: &Operands) -> Outcome {
    let account = operands.account(0, rights::WRITE)?;
    let (bytes, messages, badge) = (operands.word(1) & 0xffff, operands.word(1) >> 16, operands.word(5));
    if bytes > MESSAGE_BYTES as u64 || messages == 0 || badge > MAX_BADGE {
        return Err(Error::BadArgument.into());
    }
    if messages > port::most_messages(bytes) {
        return Err(Error::TooManyMessages.into());
    }
    let inbox = match operands.word(4) {
        0 => None,
        _ => {
            let entry = operands.entry(4, Kind::Port, rights::USE)?;
            let inbox: Ref<Port> = entry.object().ok_or(Error::WrongKind)?;
            port::may_receive(operands.0, entry, inbox)?;
            if inbox.member_count.get() as usize == MAX_MEMBERS {
                return Err(Error::TooManyPorts.into());
            }
            Some(inbox)
        }
    };
    have_clear(operands, 1);
    let (place, index) = operands.vacancy(operands.own(), 2)?;
    let label = match operands.word(3) {
        0 => OPEN,
        _ => {
            let label = operands.label(3, rights::READ)?;
            let made = made_for(operands, account, (labels::PORTAL, &[label]), &mut |pool, work| {
                rules::copied(pool, work, label).map(only).map(Ok)
            });
            labels::forget_here(account);
            made?.send
        }
    };
    match port::new(account, [bytes as u32, messages as u32], (label, badge), inbox) {
        Ok(made) => place.fill(Content::original(made), None)?,
        Err(error) => {
            labels::release_of(account, label);
            return Err(error.into());
        }
    }
    Ok(index as u64)
}

pub fn interrupt_bind(operands: &Operands) -> Outcome {
    let held = operands.held();
    let line = operands.nucleus(0, Kind::Interrupt, rights::WRITE)?.word0.get() as usize;
    if operands.word(1) == 0 {
        interrupt::enable(held, line);
    } else {
        interrupt::bind(line, operands.semaphore(1, rights::WRITE)?);
    }
    Ok(0)
}

pub fn machine(operands: &Operands) -> Outcome {
    let held = operands.held();
    operands.nucleus(0, Kind::Machine, rights::WRITE)?;
    let value = operands.word(2);
    match operands.word(1) {
        op::MACHINE_STOP => {
            trace::end(held, value & 0x7f);
            memory::stop_machine((value & 0x7f) as u32)
        }
        op::MACHINE_INTERRUPT => {
            let (place, index) = operands.vacancy(operands.own(), 3)?;
            let line = usize::try_from(value).map_err(|_| Error::NotThere)?;
            interrupt::take(held, line)?;
            place.fill(Content::plain(Kind::Interrupt, value), None)?;
            Ok(index as u64)
        }
        op::MACHINE_PORTS => {
            let (first, count) = (value & 0xffff, value >> 16);
            if count == 0 {
                return Err(Error::BadArgument.into());
            }
            if first + count > memory::PORTS {
                return Err(Error::NotThere.into());
            }
            let (place, index) = operands.vacancy(operands.own(), 3)?;
            place.fill(Content::plain(Kind::IoPorts, value), None)?;
            Ok(index as u64)
        }
        op::MACHINE_LOG_SEMAPHORE => {
            log::set_semaphore(operands.semaphore(2, rights::WRITE)?);
            Ok(0)
        }
        op::MACHINE_ARCHIVE => {
            have_clear(operands, 1);
            space::show_archive(operands.domain(2, rights::WRITE)?)?;
            Ok(0)
        }
        op::MACHINE_DEVICE => {
            have_clear(operands, 3);
            operands.entry(0, Kind::Machine, rights::CONTROL)?;
            // A change of labels that has passed the address would not see the page.
            flows::go_on(operands.0)?;
            mapping::check_flexpage(operands.word(3), 0)?;
            mapping::map_device_page(operands.own(), operands.word(3), value)?;
            Ok(0)
        }
        op::MACHINE_FDT => {
            have_clear(operands, 3);
            operands.entry(0, Kind::Machine, rights::CONTROL)?;
            mapping::check_flexpage(operands.word(3), 0)?;
            Ok(mapping::map_fdt_page(operands.own(), operands.word(3), value)?)
        }
        op::MACHINE_HANDLES => {
            operands.entry(0, Kind::Machine, rights::CONTROL)?;
            Ok(label::set_key(operands)?)
        }
        op::MACHINE_THREADS => {
            operands.entry(0, Kind::Machine, rights::CONTROL)?;
            if ready::has_scheduler(held) {
                return Err(Error::TooLate.into());
            }
            // Clearing the frame here delays no thread: no scheduler has a seat yet.
            Ok(numbers::add_page(operands.own().account)? as u64)
        }
        op::MACHINE_PHYSICAL => {
            operands.entry(0, Kind::Machine, rights::CONTROL)?;
            mapping::check_flexpage(value, 0)?;
            let slot = space::find(operands.own(), value).filter(space::Slot::is_used).ok_or(Error::NotMapped)?;
            Ok((slot.frame() * PAGE_BYTES) as u64)
        }
        _ => Err(Error::NoSuchWay.into()),
    }
}
