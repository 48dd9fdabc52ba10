//! Operations on portal tables.

use super::objects::{made_for, only};
use super::operands::{Operands, in_steps};
use crate::control::{activation, death, flows, removal};
use crate::memory::portals::{self, Content};
use crate::memory::{labels, shapes};
use crate::objects::{Account, Domain, Entry, LABEL_SHIFT, Outcome, SHAPE_SHIFT, STEPS, Stop, Thread};
use crate::pointer::Ref;
use abi::info::status;
use abi::rights::{self, Kind};
use abi::window::SLOTS;
use abi::{Error, PRIORITIES, layout, op};
use flow::{Label, rules};
use portalgen::specification::MAX_BYTES;
use structures::derivation::Derived;

pub fn copy(operands: &Operands) -> Outcome {
    let from = operands.domain(0, rights::USE)?;
    let to = operands.domain(2, rights::WRITE)?;
    let source = from.place_of(operands.index(1))?;
    let mask = u8::try_from(operands.word(4)).map_err(|_| Error::BadArgument)?;
    portals::check_copy(source)?;
    let (place, index) = operands.vacancy(to, 3)?;
    portals::copy_entry(source, mask, place)?;
    Ok(index as u64)
}

pub fn remove(operands: &Operands) -> Outcome {
    let domain = operands.domain(0, rights::CONTROL)?;
    let index = operands.index(1);
    let entry = domain.place_of(index)?;
    match entry.kind() {
        Kind::Empty => return Err(Error::Empty.into()),
        Kind::Operation => return Err(Error::WrongKind.into()),
        _ if entry.node_reference().is_original() => check_original(operands, entry)?,
        _ => {}
    }
    if removal::remove_step(entry) { Ok(0) } else { Err(Stop::Repeat) }
}

/// Checks that the caller may remove an original: it must not run in the object, and labels must allow that it ends what it ends. A
/// live domain is killed first, as a step.
fn check_original(operands: &Operands, entry: Ref<Entry>) -> Result<(), Stop> {
    let (domain, thread) = (entry.object::<Domain>(), entry.object::<Thread>());
    let within = match (domain, thread) {
        (Some(domain), _) => domain.contains(operands.own()),
        (_, Some(thread)) => operands.0.thread.get() == Some(thread) && operands.0.bottom.get(),
        _ => entry.object::<Account>() == Some(operands.own().account),
    };
    if within {
        return Err(Error::RunsInIt.into());
    }
    if entry.kind() == Kind::Interrupt {
        operands.may_change_nucleus()?;
    }
    let ends = domain.or(thread.map(|thread| thread.home));
    if let Some(ends) = ends.filter(|ends| operands.own().labelled().or(ends.labelled()).is_some()) {
        flows::judge_end(operands.0, ends)?;
    }
    match domain {
        Some(domain) if !domain.is_dead() => {
            death::die_step(domain, status::KILLED);
            Err(Stop::Repeat)
        }
        Some(domain) => {
            domain.begin_removal();
            Ok(())
        }
        None => Ok(()),
    }
}

pub fn revoke(operands: &Operands) -> Outcome {
    let domain = operands.domain(0, rights::CONTROL)?;
    let entry = domain.place_of(operands.index(1))?;
    match entry.kind() {
        Kind::Empty => return Err(Error::Empty.into()),
        Kind::Revoked => return Err(Error::Revoked.into()),
        Kind::Operation => return Err(Error::WrongKind.into()),
        _ => {}
    }
    for _ in 0..STEPS {
        if !entry.revoke_one() {
            return Ok(0);
        }
    }
    Err(Stop::Repeat)
}

pub fn service_new(operands: &Operands) -> Outcome {
    let domain = operands.domain(0, rights::CONTROL)?;
    let address = activation::check_address(operands.word(1))?;
    let flags = operands.word(2);
    let shape = match operands.word(4) {
        0 => 0,
        _ => shapes::number(operands.entry(4, Kind::Shape, rights::USE)?),
    };
    if flags & !op::SERVICE_DEADLINE != 0 || flags != 0 && shape != 0 {
        return Err(Error::BadArgument.into());
    }
    if shapes::numbered_passes_windows(operands.held(), shape) && domain.message_slots.get() >> SLOTS != 0 {
        return Err(Error::TooManyForWindows.into());
    }
    let (place, index) = operands.vacancy(domain, 3)?;
    let label = match operands.word(5) {
        0 => 0,
        _ => portal_label(operands, domain, operands.label(5, rights::READ)?)?,
    };
    shapes::own(domain, shape);
    let flags = flags as u32 | (shape as u32) << SHAPE_SHIFT | (label as u32) << LABEL_SHIFT;
    place.fill(Content::service(domain, address, flags), None)?;
    Ok(index as u64)
}

/// The number of a label among those of a domain's portals; adds the label if it is new.
fn portal_label(operands: &Operands, domain: Ref<Domain>, label: Label) -> Result<usize, Stop> {
    let account = domain.account;
    let all = labels::of_portals(domain)?;
    if let Some(found) =
        labels::with(operands.held(), account, |pool| all.all().position(|known| pool.name(known) == pool.name(label)))
    {
        return Ok(found + 1);
    }
    let place = all.labels.get(all.count.get()).ok_or(Error::TooManyLabels)?;
    let made = made_for(operands, account, (labels::PORTAL, &[label]), &mut |pool, work| {
        rules::copied(pool, work, label).map(only).map(Ok)
    });
    let made = made?.send;
    labels::forget_here(account);
    place.set(made);
    all.count.update(|count| count + 1);
    Ok(all.count.get())
}

pub fn shape_new(operands: &Operands) -> Outcome {
    operands.nucleus(0, Kind::Machine, rights::USE)?;
    // One byte more than the maximum, so that a longer text is refused.
    let mut text = [0; MAX_BYTES + 1];
    let bytes = usize::try_from(operands.word(1)).unwrap_or(usize::MAX).min(text.len());
    // SAFETY: the message area is a page of the nucleus, longer than `text`. User code may write it meanwhile, so this
    // copies it.
    unsafe { core::ptr::copy_nonoverlapping(operands.0.message_kernel as *const u8, text.as_mut_ptr(), bytes) };
    let mut made = Err(Stop::Repeat);
    in_steps(operands, || {
        made = shapes::make_step(operands.0, &text[..bytes]);
        matches!(made, Err(Stop::Repeat))
    });
    let number = made?;
    let (place, index) = operands.vacancy(operands.own(), 2)?;
    shapes::take(operands.held(), number);
    place.fill(Content::plain(Kind::Shape, number as u64), None)?;
    Ok(index as u64)
}

pub fn portal_new(operands: &Operands) -> Outcome {
    let domain = operands.domain(0, rights::WRITE)?;
    let service = operands.entry(1, Kind::Service, rights::USE)?;
    operands.judged(service, service.server().ok_or(Error::WrongKind)?)?;
    let ceiling = operands.word(4);
    if ceiling >= PRIORITIES as u64 {
        return Err(Error::BadArgument.into());
    }
    if ceiling > operands.own().max_priority.get() as u64 {
        return Err(Error::PriorityTooHigh.into());
    }
    let (place, index) = operands.vacancy(domain, 3)?;
    portals::make_call_entry(service, operands.word(2), ceiling as u8, domain, place)?;
    Ok(index as u64)
}

pub fn info(operands: &Operands) -> Outcome {
    let domain = operands.domain_at_once(0, rights::READ)?;
    let entry = domain.place_of(operands.index(1))?;
    let number = entry.object::<Domain>().map_or(entry.shape() as u64, |domain| domain.number);
    Ok(entry.node.kind.get() as u64 | (entry.node.rights.get() as u64) << 8 | number << 16)
}

const _: () = assert!(layout::FIRST_FREE < layout::TABLE_ENTRIES);
