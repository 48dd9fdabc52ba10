//! Ports: sending and receiving where labels must be judged. `control::port` handles the cases without.

use super::finish;
use super::operands::{Operands, in_steps};
use crate::control::port::{self, More};
use crate::control::{chain, dispatch, flows, lent};
use crate::cpus::cpu;
use crate::memory::labels;
use crate::memory::portals::check_copy;
use crate::objects::{Activation, CANCELLED, Entry, Outcome, PLAIN, PLAIN_MESSAGE, Port, Reply, Stop, WOKEN};
use crate::pointer::Ref;
use crate::report::forbidden;
use abi::layout::ENTRY_BYTES;
use abi::rights::{self, Kind};
use abi::{Error, op};
use flow::Label;
use flow::rules::{self, Delivery, Labels, Optional};
use structures::derivation::Derived;

/// Called by `entry.s`: a domain invokes a port's entry.
#[unsafe(no_mangle)]
extern "C" fn port_entered(by: Ref<Activation>, entry: Ref<Entry>) -> Reply {
    if let Some(port) = entry.object::<Port>() {
        if by.registers.word(0) == op::RECEIVE {
            if let Some(result) = port::receive_at_once(by, entry, port) {
                return result.into();
            }
        } else if by.registers.word(0) as u8 == op::SEND as u8
            && let Some(precedes) = port::send_at_once(by, entry, port)
        {
            if precedes {
                dispatch::preempt_after_operation(by.held());
            }
            return Ok(0).into();
        }
    }
    slowly(by, entry)
}

#[cold]
#[inline(never)]
fn slowly(by: Ref<Activation>, entry: Ref<Entry>) -> Reply {
    finish(by, judged(by, entry))
}

fn judged(by: Ref<Activation>, entry: Ref<Entry>) -> Outcome {
    // The system call found the entry in the read-only range of the table. `place` gives the writable one.
    let index = entry.address().wrapping_sub(by.domain.table.get()) / ENTRY_BYTES;
    let entry = by.domain.place(index)?;
    let port: Ref<Port> = entry.object().ok_or(Error::Revoked)?;
    let word = by.registers.word(0);
    match word & 0xff {
        op::SEND => {
            entry.check_rights(rights::WRITE)?;
            send(by, port, u64::from(word as u32) >> port::BYTES_SHIFT, (word >> port::ENTRY_SHIFT) as usize)
        }
        op::RECEIVE if word == op::RECEIVE => {
            entry.check_rights(rights::USE)?;
            port::may_receive(by, entry, port)?;
            let outcome = receive(by, port);
            if outcome.is_err() && !matches!(outcome, Err(Stop::Repeat)) && port.pending.get() != 0 {
                // This receiver was woken for a message and does not take it: wakes the next.
                chain::wake_receiver(port);
            }
            outcome
        }
        _ => Err(Error::NoSuchWay.into()),
    }
}

/// Checks the labels that the caller chose, and makes copies charged to the port's account. All else is judged when the
/// message is taken.
fn send(by: Ref<Activation>, port: Ref<Port>, bytes: u64, along: usize) -> Outcome {
    if bytes > port.bytes.get() as u64 {
        return Err(Error::TooLong.into());
    }
    let entry = match along {
        0 => None,
        _ => Some(by.domain.place(along)?),
    };
    if let Some(source) = entry {
        check_copy(source)?;
        if source.node_reference().is_last() {
            return Err(Error::TooDerived.into());
        }
    }
    flows::go_on(by)?;
    let (operands, send) = (Operands(by), by.domain.labels().send);
    let option = |word: usize, is_upper: bool, usual: Label| {
        let index = operands.word(word) >> if is_upper { 32 } else { 0 } & u64::from(u32::MAX);
        if index == 0 { Ok(usual) } else { operands.label_at(index as usize, rights::READ) }
    };
    let none = Optional::NONE;
    let optional = Optional {
        contaminate: option(1, false, none.contaminate)?,
        decontaminate_send: option(1, true, none.decontaminate_send)?,
        verify: option(2, false, none.verify)?,
        decontaminate_receive: option(2, true, none.decontaminate_receive)?,
    };
    let own = by.domain.labelled().filter(|_| optional == none && send != PLAIN);
    let labels = match own {
        Some(own) => {
            if own.lent_to.get() != Some(port) {
                in_steps(&operands, || lent::end_step(own).is_err());
                lent::lend(own, port);
            }
            Some(effective_alone(send))
        }
        None if optional == none => Some(PLAIN_MESSAGE),
        None => copied(&operands, port, send, &optional)?,
    };
    if let Some(source) = entry {
        // Also if the port has no room for the message: the sender could observe the difference.
        source.shared(rights::ALL);
    }
    let Some(labels) = labels else { return Ok(0) };
    let is_plain = labels == PLAIN_MESSAGE && entry.is_none();
    let more = More { labels, is_lent: own.is_some(), entry };
    Ok(put(by, port, bytes, (!is_plain).then_some(more)))
}

/// Labels of a message with optional ones, charged to the port's account; None if that has no room: the sender must not learn of it.
fn copied(operands: &Operands, port: Ref<Port>, send: Label, optional: &Optional) -> Result<Option<Optional>, Stop> {
    let [contaminate, ds, verify, dr] = optional.all();
    let about = [send, contaminate, ds, verify, dr];
    let account = labels::payer(port);
    let mut made = Err(Stop::Repeat);
    in_steps(operands, || {
        made = labels::ask(operands.held(), labels::SENDS, account, &about, |pool, work| {
            rules::sent(pool, work, send, optional)
        });
        matches!(made, Err(Stop::Repeat))
    });
    match made {
        Ok(None) => Err(Error::NotOwned.into()),
        Err(Stop::Refused(_)) => Ok(None),
        made => made,
    }
}

/// The labels of a message without optional ones.
fn effective_alone(effective: Label) -> Optional {
    Optional { contaminate: effective, ..Optional::NONE }
}

fn put(by: Ref<Activation>, port: Ref<Port>, bytes: u64, more: Option<More>) -> u64 {
    let (precedes, left) = port.put(by, bytes as u32, more);
    if let Some(labels) = left {
        port.release(labels);
    }
    if precedes {
        cpu::this(by.held()).preempt.set(true);
    }
    0
}

/// Takes the first message that the caller's labels admit. Drops those before it, one per step.
fn receive(by: Ref<Activation>, inbox: Ref<Port>) -> Outcome {
    let (held, own) = (by.held(), by.domain);
    let shown = match by.registers.word(2) {
        0 => None,
        _ => Some(Operands(by).entry(2, Kind::Label, rights::WRITE)?),
    };
    let Some(member) = inbox.next_with_message() else {
        flows::give_up_own(by);
        by.begun_for.set(0);
        return Ok(inbox.wait(by, by.registers.word(1))?);
    };
    let (number, begun) = (inbox.taken.get() + 1, by.begun_for.get());
    match flows::go_on(by) {
        Ok(()) => {}
        // The label change that the message requires is refused: drops the message, unless another receiver took it
        // meanwhile.
        Err(Stop::Refused(error)) if begun == number => {
            let drop = if error == Error::Flow { refuse_oldest } else { drop_oldest };
            return drop(by, inbox, member);
        }
        Err(Stop::Refused(_)) if begun != 0 => {
            by.begun_for.set(0);
            return Err(Stop::Repeat);
        }
        Err(stop) => return Err(stop),
    }
    let message = member.oldest();
    let labels = if message.is_plain.get() { PLAIN_MESSAGE } else { message.labels.get() };
    let (port, receiver) = (member.label.get(), own.labels());
    let [effective, ds, verify, dr] = labels.all();
    // As the one before, the label is walked no more.
    let names = || labels::with(held, own.account, |pool| [effective, port].map(|label| pool.name(label)));
    let known = own.labelled().filter(|_| shown.is_none() && labels == effective_alone(effective));
    if known.is_some_and(|own| own.received.get() == names()) {
        return Ok(inbox.give_oldest(member, by));
    }
    let about = [effective, ds, verify, dr, port, receiver.send, receiver.receive];
    let rule = labels::TAKES + receiver.is_explicit as u8 + 2 * shown.is_some() as u8;
    let asked = labels::ask(held, rule, own.account, &about, |pool, work| {
        let delivery = match flows::is_off(held) {
            true => Delivery::Taken,
            false => rules::delivery(pool, work, effective, &labels, port, &receiver)?,
        };
        let verify = match shown {
            Some(_) if delivery == Delivery::Taken => Some(rules::copied(pool, work, verify)?),
            _ => None,
        };
        Ok((delivery, verify))
    });
    match asked {
        Ok((Delivery::Taken, verify)) => {
            if let (Some(entry), Some(verify)) = (shown, verify) {
                entry.versions.set(0);
                labels::release_of(own.account, Label::from_word(entry.word0.replace(verify.word())));
            }
            if let Some(own) = known {
                own.received.set(names());
            }
            Ok(inbox.give_oldest(member, by))
        }
        // Several domains may receive at a shared port: there a message changes the labels of none.
        Ok((Delivery::Changes(send, receive), _)) if inbox.semaphore.is_shared.get() => {
            labels::release_all(own.account, &[send, receive]);
            refuse_oldest(by, inbox, member)
        }
        Ok((Delivery::Changes(send, receive), _)) => {
            by.begun_for.set(number);
            match flows::begin_for_message(by, Labels { send, receive, ..receiver }) {
                Ok(()) => Err(Stop::Repeat),
                Err(_) => drop_oldest(by, inbox, member),
            }
        }
        Ok((Delivery::Refused, _)) => refuse_oldest(by, inbox, member),
        Err(Stop::Refused(_)) => drop_oldest(by, inbox, member),
        Err(Stop::Repeat) => Err(Stop::Repeat),
    }
}

/// Drops the oldest message, which labels forbid, and notes that.
#[inline(never)]
fn refuse_oldest(by: Ref<Activation>, inbox: Ref<Port>, member: Ref<Port>) -> Outcome {
    let message = member.oldest();
    let labels = if message.is_plain.get() { PLAIN_MESSAGE } else { message.labels.get() };
    forbidden::message(by.domain, labels.all()[0]);
    drop_oldest(by, inbox, member)
}

/// Drops the oldest message, and restarts the operation for the next one. If the deadline has passed, only messages that were there at the
/// first drop are looked at: a receiver that nobody sends anything to does not wait longer.
#[inline(never)]
fn drop_oldest(by: Ref<Activation>, inbox: Ref<Port>, member: Ref<Port>) -> Outcome {
    flows::forget_change(by);
    by.begun_for.set(0);
    let state = inbox.begin_receive(by);
    let flags = state & (WOKEN | CANCELLED);
    let last = if state == flags { inbox.taken.get() + u64::from(inbox.pending.get()) } else { state & !flags };
    by.receive_state.set(flags | last);
    inbox.drop_oldest(member);
    if inbox.taken.get() >= last && flags & CANCELLED != 0 {
        return Err(Error::Cancelled.into());
    }
    if inbox.taken.get() >= last && port::is_over(by.registers.word(1)) {
        return Err(Error::Timeout.into());
    }
    Err(Stop::Repeat)
}
