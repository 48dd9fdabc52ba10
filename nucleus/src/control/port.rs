//! Ports: their messages, waiting receivers, creation and removal. `operation::ports` judges labels.
//!
//! Sending reveals nothing to the sender. A message without room is still copied, to a place of its own, so that it costs
//! the same. Labels are judged when a receiver takes the message.

use super::{chain, deadline, dispatch, flows, lent};
use crate::cpus::{cpu, timer};
use crate::memory::frames::{self, Use};
use crate::memory::{account, labels, slab};
use crate::objects::{
    Account, Activation, CANCELLED, Entry, Message, OPEN, PLAIN, Port, SavedFrame, Semaphore, Stop, WOKEN, is_seat,
};
use crate::pointer::{Fresh, Link, Ref};
use abi::rights::{self, Kind};
use abi::{Error, NEVER, PAGE_BYTES, op};
use core::cell::Cell;
use flow::Label;
use flow::rules::Optional;

/// Labels and entry of a message that is not plain.
pub struct More {
    /// See [`Message::labels`].
    pub labels: Optional,
    /// See [`Message::is_lent`].
    pub is_lent: bool,
    /// An entry of the sender that the receiver gets a copy of.
    pub entry: Link<Entry>,
}

/// Position of the badge in the word that a receiver gets; the bits below count the bytes.
const BADGE_SHIFT: u32 = 16;

impl Ref<Port> {
    /// The place with this number, at most the capacity.
    pub fn message(self, number: u32) -> Ref<Message> {
        // SAFETY: the page has one place more than the port's capacity, and stays as long as the port.
        unsafe { Ref::new((self.messages.get() as *mut Message).add(number as usize)) }
    }

    /// Puts a message into the port and wakes a receiver. Without `more` it is [plain](Message::is_plain). If there is no
    /// room, drops it and gives its labels back. True if the receiver preempts the running thread.
    #[inline(always)]
    pub fn put(self, from: Ref<Activation>, bytes: u32, more: Option<More>) -> (bool, Option<Optional>) {
        let (first, count, capacity) = (self.first.get(), self.count.get(), self.capacity.get());
        // The place after the last message is always free. A message without room is written there, but not counted.
        let next = first + count;
        let message = self.message(if next > capacity { next - capacity - 1 } else { next });
        message.bytes.set(bytes);
        message.is_plain.set(more.is_none());
        copy(from.message_kernel, message.data.get(), bytes);
        let is_kept = count < capacity;
        let labels = more.map(|more| {
            message.labels.set(more.labels);
            message.is_lent.set(is_kept && more.is_lent);
            // The sender has checked that `source` can be derived from.
            if let Some(source) = more.entry.filter(|_| is_kept) {
                let _ = message.entry().fill_aside(source);
            }
            (!more.is_lent).then_some(more.labels)
        });
        let left = labels.flatten().filter(|_| !is_kept);
        let kept = is_kept as u32;
        self.count.set(count + kept);
        let Some(inbox) = self.inbox.get() else { return (false, left) };
        inbox.pending.update(|pending| pending + kept);
        (chain::wake_receiver(inbox), left)
    }

    /// The member port whose message is taken next at this inbox.
    #[inline(always)]
    pub fn next_with_message(self) -> Link<Port> {
        if self.pending.get() == 0 {
            return None;
        }
        let first = self.members.head.get()?;
        if first.count.get() != 0 { Some(first) } else { self.look_for_message() }
    }

    /// The same, if the first member has no message: rotates the members until one has. At most one step for each.
    #[inline(never)]
    fn look_for_message(self) -> Link<Port> {
        while let Some(member) = self.members.head.get() {
            if member.count.get() != 0 {
                return Some(member);
            }
            self.members.take();
            self.members.append(member);
        }
        None
    }

    /// The oldest message, of a port that has one.
    pub fn oldest(self) -> Ref<Message> {
        self.message(self.first.get())
    }

    /// Releases labels and entry of a message.
    #[inline(never)]
    fn release_more(self, message: Ref<Message>) {
        if !message.is_lent.replace(false) {
            self.release(message.labels.get());
        }
        if message.entry().kind() != Kind::Empty {
            message.entry().vacate(Kind::Empty);
        }
    }

    /// Releases the labels of a message.
    #[inline(never)]
    pub fn release(self, labels: Optional) {
        labels::release_all(labels::payer(self), &labels.all());
    }

    /// Removes the oldest message, with its labels and entry.
    #[inline(always)]
    fn forget_oldest(self) {
        let message = self.oldest();
        if !message.is_plain.get() {
            self.release_more(message);
        }
        let next = self.first.get() + 1;
        self.first.set(if next > self.capacity.get() { 0 } else { next });
        self.count.update(|count| count - 1);
    }

    /// Drops the oldest message of a member of this inbox.
    #[inline(never)]
    pub fn drop_oldest(self, member: Self) {
        self.take_oldest(member);
    }

    /// Removes the oldest message of a member. The members take turns, also with messages that are dropped: this one goes to the end.
    #[inline(always)]
    fn take_oldest(self, member: Self) {
        member.forget_oldest();
        self.pending.update(|pending| pending - 1);
        self.taken.update(|taken| taken + 1);
        if self.member_count.get() > 1 {
            self.put_last(member);
        }
    }

    #[inline(never)]
    fn put_last(self, member: Self) {
        self.members.remove(member);
        self.members.append(member);
    }

    /// Copies the oldest message to the receiver; gives the word that describes it.
    #[inline(always)]
    pub fn give_oldest(self, member: Self, to: Ref<Activation>) -> u64 {
        let message = member.oldest();
        let bytes = message.bytes.get();
        copy(message.data.get(), to.message_kernel, bytes);
        let has_entry = !message.is_plain.get() && give_entry(message.entry(), to);
        self.take_oldest(member);
        bytes as u64 | if has_entry { op::ENTRY_CAME } else { 0 } | member.badge.get() << BADGE_SHIFT
    }

    /// Blocks the caller until a message comes or the deadline passes. Returns only errors.
    #[inline(never)]
    pub fn wait(self, by: Ref<Activation>, until: u64) -> Result<u64, Error> {
        let held = self.held();
        let thread = cpu::this(held).thread.get().filter(|thread| !is_seat(*thread)).ok_or(Error::IsScheduler)?;
        let state = self.begin_receive(by);
        by.receive_state.set(0);
        if state & CANCELLED != 0 {
            return Err(Error::Cancelled);
        }
        if until != NEVER {
            if is_over(until) {
                return Err(Error::Timeout);
            }
            deadline::set(by, timer::ticks(until));
        }
        let semaphore = self.semaphore();
        semaphore.count.enlist();
        semaphore.queue(by, thread);
        if state & WOKEN != 0 {
            // It was first in the queue until it was woken for a message that it did not get.
            semaphore.waiters.remove(by);
            semaphore.waiters.prepend(by);
        }
        dispatch::block_current(held)
    }

    /// The state of the caller's receive at this port.
    #[inline(always)]
    pub fn begin_receive(self, by: Ref<Activation>) -> u64 {
        if by.receives_at.replace(self.address()) == self.address() { by.receive_state.get() } else { 0 }
    }

    /// The semaphore in which receivers wait.
    pub fn semaphore(self) -> Ref<Semaphore> {
        // SAFETY: a field of a live object.
        unsafe { Ref::new(&raw mut (*self.pointer()).semaphore) }
    }
}

/// Moves the message's entry to the receiver; false if there is none, it was revoked meanwhile, or the receiver has no
/// place.
#[inline(never)]
fn give_entry(entry: Ref<Entry>, to: Ref<Activation>) -> bool {
    let receive = to.receive.get() as usize;
    if receive == 0 || entry.is_vacant() {
        return false;
    }
    to.domain.vacancy(receive).is_ok_and(|(place, _)| {
        place.move_from(entry);
        // The receiver names another index before it accepts the next entry.
        to.receive.set(0);
        true
    })
}

/// Whether a deadline has passed.
#[inline(never)]
pub fn is_over(until: u64) -> bool {
    until == 0 || until != NEVER && timer::nanoseconds() >= until
}

#[inline(always)]
fn copy(from: usize, to: usize, bytes: u32) {
    // SAFETY: both are in the direct map, in different pages, and have room for the longest message of the port.
    unsafe { core::ptr::copy_nonoverlapping(from as *const u8, to as *mut u8, bytes as usize) };
}

/// Most pages for the bytes of a port's messages.
const MOST_PAGES: u64 = 8;

/// Size of the place for a message of so many bytes: a power of two, so that no place crosses the end of a page.
fn place_bytes(bytes: u64) -> u64 {
    bytes.next_power_of_two().max(64)
}

/// The largest capacity of a port for messages of so many bytes.
pub fn most_messages(bytes: u64) -> u64 {
    (MOST_PAGES * PAGE_BYTES as u64 / place_bytes(bytes)).min((PAGE_BYTES / size_of::<Message>()) as u64) - 1
}

/// Makes a port charged to `account`. Its messages are taken at `inbox`; without one, at the port itself.
pub fn new(
    account: Ref<Account>,
    [bytes, messages]: [u32; 2],
    (label, badge): (Label, u64),
    inbox: Link<Port>,
) -> Result<Ref<Port>, Error> {
    let mut port: Fresh<Port> = slab::allocate(account)?;
    port.label = Cell::new(label);
    port.badge = Cell::new(badge);
    port.bytes = Cell::new(bytes);
    port.capacity = Cell::new(messages);
    let port = port.share();
    if let Err(error) = port.allocate(account) {
        while port.release_page() {}
        slab::free(port);
        return Err(error);
    }
    let inbox = inbox.unwrap_or(port);
    port.inbox.set(Some(inbox));
    inbox.members.append(port);
    inbox.member_count.update(|count| count + 1);
    Ok(port)
}

impl Ref<Port> {
    /// Allocates the pages for the messages.
    #[inline(never)]
    fn allocate(self, account: Ref<Account>) -> Result<(), Error> {
        self.messages.set(account.allocate_clear(Use::Kernel).map(frames::address_of)?);
        let (step, places) = (place_bytes(self.bytes.get() as u64) as usize, self.capacity.get() + 1);
        let mut data = 0;
        for number in 0..places {
            if data % PAGE_BYTES == 0 {
                data = account.allocate_one(Use::Kernel).map(frames::address_of)?;
            }
            let message = self.message(number);
            message.data.set(data);
            message.is_plain.set(true);
            data += step;
        }
        Ok(())
    }

    /// Frees one of these pages; false if none is left.
    #[inline(never)]
    fn release_page(self) -> bool {
        let (held, messages) = (self.held(), self.messages.get());
        if messages == 0 {
            return false;
        }
        let first = (0..=self.capacity.get()).map(|number| self.message(number)).find(|message| {
            // The message at the start of a page stands for the page.
            message.data.get() != 0 && message.data.get() % PAGE_BYTES == 0
        });
        match first {
            Some(message) => account::release(held, frames::frame_of(message.data.replace(0))),
            None => account::release(held, frames::frame_of(self.messages.replace(0))),
        }
        true
    }

    /// One step of the removal of a port whose entries are gone; true after the last.
    #[inline(never)]
    pub fn remove_step(self) -> bool {
        if self.semaphore().dismiss_one() {
            return false;
        }
        if let Some(inbox) = self.inbox.get() {
            if self.count.get() != 0 {
                inbox.drop_oldest(self);
                return false;
            }
            inbox.members.remove(self);
            inbox.member_count.update(|count| count - 1);
            self.inbox.set(None);
        }
        if let Some(member) = self.members.take() {
            // From now on its messages are received there. A sender does not notice.
            member.inbox.set(Some(member));
            member.members.append(member);
            member.member_count.set(1);
            member.pending.set(member.count.get());
            return false;
        }
        if self.count.get() != 0 {
            // Its inbox was removed before.
            self.forget_oldest();
            return false;
        }
        if let Some(lender) = self.lenders.head.get() {
            lent::forget(lender, self);
            return false;
        }
        if self.release_page() {
            return false;
        }
        labels::release_of(labels::payer(self), self.label.get());
        slab::free(self);
        true
    }
}

/// In word 0: the low byte is the operation, bits 8 to 31 the bytes of a message, the upper half the index of an entry to
/// copy.
pub const BYTES_SHIFT: u32 = 8;
/// See [`BYTES_SHIFT`].
pub const ENTRY_SHIFT: u32 = 32;

/// Checks that messages are taken at this port, and that the caller may do so: if others receive there, too, labels are
/// judged as for any object.
pub fn may_receive(by: Ref<Activation>, entry: Ref<Entry>, port: Ref<Port>) -> Result<(), Stop> {
    if port.inbox.get() != Some(port) {
        return Err(Error::NotInbox.into());
    }
    let (own, label) = (by.domain, labels::of_object(port));
    if port.semaphore.is_shared.get() && (own.is_barred.get() || label != PLAIN) && !entry.allows(own, own) {
        flows::judge_object(by, entry, label)?;
        return Err(Stop::Repeat);
    }
    Ok(())
}

/// Sends a plain message, for which no labels are judged; true if its receiver preempts the running thread. None if the
/// message is not plain, or an error.
#[inline(always)]
pub fn send_at_once(by: Ref<Activation>, entry: Ref<Entry>, port: Ref<Port>) -> Option<bool> {
    let bytes = by.registers.word(0) >> BYTES_SHIFT;
    let has_options = by.registers.word(1) | by.registers.word(2) != 0;
    let has_right = entry.node.rights.get() & rights::WRITE != 0;
    let is_plain = has_right && !has_options && bytes <= port.bytes.get() as u64 && by.domain.labelled().is_none();
    is_plain.then(|| port.put(by, bytes as u32, None).0)
}

/// Takes a message, or waits for one, if no labels need to be judged for that; else None.
#[inline(always)]
pub fn receive_at_once(by: Ref<Activation>, entry: Ref<Entry>, port: Ref<Port>) -> Option<Result<u64, Error>> {
    let has_right = entry.node.rights.get() & rights::USE != 0;
    let is_own = !port.semaphore.is_shared.get() && port.inbox.get() == Some(port);
    if !has_right || !is_own || by.registers.word(2) != 0 || by.domain.labelled().is_some() {
        return None;
    }
    match port.next_with_message() {
        Some(member) if member.oldest().is_plain.get() && member.label.get() == OPEN => {
            by.receive_state.set(0);
            Some(Ok(port.give_oldest(member, by)))
        }
        Some(_) => None,
        None => Some(port.wait(by, by.registers.word(1))),
    }
}

/// Resumes an activation that was woken to take a message.
#[inline(never)]
pub fn receive_again(by: Ref<Activation>) -> ! {
    by.frame.set(SavedFrame::Words);
    match chain::entered_port(by) {
        // The port, or the right to receive there, went after the wait had ended.
        None => by.set_result(Err(Error::Removed)),
        Some((entry, port)) => {
            by.receive_state.set(WOKEN);
            match receive_at_once(by, entry, port) {
                Some(result) => by.set_result(result),
                None => {
                    by.repeat_system_call();
                    if port.pending.get() != 0 {
                        // The restarted call may never take the message: wakes another receiver, too.
                        chain::wake_receiver(port);
                    }
                }
            }
        }
    }
    by.leave_lightly()
}
