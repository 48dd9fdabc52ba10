//! The slow path of call and return, and the delegation of entries.

use super::{chain, deadline, dispatch, flows, lending, priorities};
use crate::cpus::{cpu, timer};
use crate::memory::portals::{check_copy, copy_entry, make_call_entry};
use crate::memory::{lend, mapping, shapes};
use crate::objects::{Activation, Domain, Entry, SavedFrame, State, Stop, Thread, Wait, is_seat};
use crate::pointer::{Link, Ref, look};
use crate::report::{refusals, trace};
use abi::info::status;
use abi::rights::{self, Kind};
use abi::sched::Event;
use abi::{Control, Error, MAX_DEPTH, MESSAGE_BYTES, NEVER, op};
use portalgen::Letters;
use portalgen::specification::REGISTER_WORDS;

/// Called by portal code on its slow path: words and control are in the caller's frame.
#[unsafe(no_mangle)]
extern "C" fn call_slowly(caller: Ref<Activation>, entry: Ref<Entry>) -> ! {
    let (letters, words) = (shapes::of(entry), caller.all_words());
    let control = caller.registers.control();
    let window = window_of(entry, letters.is_some(), &words, control);
    let along = window.and_then(|_| along(letters, &words, control));
    let allowed = |(control, minted)| deadline_of(caller, entry, control).map(|deadline| (control, minted, deadline));
    let refused = match along.and_then(allowed) {
        Ok((control, minted, deadline)) => {
            let frame = if deadline == 0 { SavedFrame::Call } else { SavedFrame::Bounded };
            let window = window.ok().flatten();
            match call(caller, entry, frame, Message { letters, words, control, minted, window }, deadline) {
                Err(Error::Again) => {
                    shapes::keep_expected(caller, entry);
                    wait_for_activation(caller, entry, deadline)
                }
                Err(error) => error,
            }
        }
        Err(error) => error,
    };
    trace::refused(caller, entry, refused);
    flows::forget_change(caller);
    caller.set_result(Err(refused));
    caller.registers.set_control(0);
    caller.leave()
}

/// Index of the word that is a window, if the call passes one.
#[inline(always)]
fn window_of(
    entry: Ref<Entry>,
    has_letters: bool,
    words: &[u64; REGISTER_WORDS],
    control: u64,
) -> Result<Option<usize>, Error> {
    let word = shapes::window(entry);
    if has_letters {
        return Ok(word.filter(|word| words[*word] != 0));
    }
    if control & Control::WINDOW == 0 {
        return Ok(None);
    }
    // Word 4 holds one of window, badge and deadline.
    match word {
        Some(word) if control & (Control::MINT | Control::DEADLINE) == 0 => Ok(Some(word)),
        _ => Err(Error::BadControl),
    }
}

/// The deadline of a call in ticks; 0 = none.
fn deadline_of(caller: Ref<Activation>, entry: Ref<Entry>, control: Control) -> Result<u64, Error> {
    if control.0 & Control::DEADLINE == 0 {
        return Ok(0);
    }
    if entry.node.flags.get() as u64 & op::SERVICE_DEADLINE == 0 {
        return Err(Error::NoDeadline);
    }
    if control.0 & Control::MINT != 0 {
        // Word 4 holds either badge or deadline.
        return Err(Error::BadControl);
    }
    if caller.thread.get().is_none_or(is_seat) {
        return Err(Error::IsScheduler);
    }
    let nanoseconds = caller.words()[4];
    if nanoseconds == NEVER {
        return Ok(0);
    }
    if timer::nanoseconds() >= nanoseconds { Err(Error::Timeout) } else { Ok(timer::ticks(nanoseconds)) }
}

/// Restarts the call after a step of its preparation.
#[cold]
fn repeat(caller: Ref<Activation>, entry: Ref<Entry>) -> ! {
    let_others_in(caller, entry);
    if caller.frame.get() != SavedFrame::Full {
        caller.repeat_system_call();
    }
    caller.leave()
}

/// A preemption point after a step of a call's preparation. If somebody comes in, this does not return: the call restarts later.
#[cold]
#[inline(never)]
fn let_others_in(caller: Ref<Activation>, entry: Ref<Entry>) {
    let held = caller.held();
    let (frame, pc) = (caller.frame.get(), caller.registers.pc.get());
    if frame != SavedFrame::Full {
        shapes::keep_expected(caller, entry);
        caller.repeat_system_call();
    }
    if caller.thread.get().is_none() {
        // The chain was split below it.
        dispatch::enter(held, Event::Choose, 0)
    }
    dispatch::preemption_point(held);
    caller.frame.set(frame);
    caller.registers.pc.set(pc);
}

/// Judges a call whose entry has not cached the verdict, in steps. None ends a domain, or empties an entry.
#[cold]
#[inline(never)]
fn judge(caller: Ref<Activation>, entry: Ref<Entry>, callee: Ref<Domain>) -> Result<(), Error> {
    loop {
        match flows::judge(caller, entry, callee) {
            Ok(()) => return Ok(()),
            Err(Stop::Refused(error)) => return Err(error),
            // With the verdict cached, the fast path may do the call.
            Err(Stop::Repeat) if entry.allows(caller.domain, callee) => repeat(caller, entry),
            Err(Stop::Repeat) => let_others_in(caller, entry),
        }
    }
}

/// Blocks the caller until the callee has a free activation, then restarts the call.
fn wait_for_activation(caller: Ref<Activation>, entry: Ref<Entry>, deadline: u64) -> Error {
    let held = caller.held();
    if cpu::this(held).thread.get().is_some_and(is_seat) {
        return Error::Busy;
    }
    if caller.frame.get() != SavedFrame::Full {
        caller.repeat_system_call();
    }
    dispatch::yield_lock(held);
    // If the callee is gone, the restarted call is refused.
    let Some(callee) = entry.callee() else { caller.leave() };
    if let Some(thread) = caller.thread.get() {
        caller.amount.set(thread.priority.get());
    }
    caller.wait.set(Wait::Pool);
    caller.waits_on.set(callee.address());
    callee.waiters.append(caller);
    callee.note_waiters();
    // A CPU on the return fast path may have missed this waiter. After the stop all see it.
    cpu::stop_where(held, |other| other.domain_there() == Some(callee));
    if cpu::several(held) && callee.per_cpus().any(|per_cpu| look(&per_cpu.pool).is_some()) {
        callee.waiters.remove(caller);
        callee.note_waiters();
        caller.wait.set(Wait::No);
        caller.leave()
    }
    deadline::set(caller, deadline);
    lending::begin_at_pool(caller, callee);
    dispatch::block_current(held)
}

/// Calls an upcall portal for a faulting activation. Returns only on failure.
#[inline(always)]
pub fn upcall(caller: Ref<Activation>, entry: Ref<Entry>, words: [u64; 5], control: Control) -> Error {
    if entry.shape() != 0 {
        // The words are the fault's own. A shape would read them as a constant, a length or an index.
        return Error::WrongKind;
    }
    let [a, b, c, d, e] = words;
    let words = [a, b, c, d, e, 0, 0, 0, 0];
    let message = Message { letters: None, words, control, minted: 0, window: None };
    match call(caller, entry, SavedFrame::Full, message, 0) {
        Err(Error::Again) => wait_for_activation(caller, entry, 0),
        Err(error) => error,
    }
}

/// The message of a call.
struct Message {
    /// None: the control word decides.
    letters: Option<Letters>,
    words: [u64; REGISTER_WORDS],
    /// Bytes and delegated entry.
    control: Control,
    /// The badge of a minted entry.
    minted: u64,
    /// Index of the window's word.
    window: Option<usize>,
}

/// Calls `entry`; `frame` says which registers of the caller are saved. Returns only refusals; `Again` = no activation is free
/// and the caller may block.
#[inline(always)]
fn call(
    caller: Ref<Activation>,
    entry: Ref<Entry>,
    frame: SavedFrame,
    Message { letters, mut words, control, minted, window }: Message,
    deadline: u64,
) -> Result<core::convert::Infallible, Error> {
    let callee = entry.callee().ok_or(Error::Revoked)?;
    if !entry.allows(caller.domain, callee) {
        judge(caller, entry, callee)?
    }
    if callee.is_dead() {
        // The call was not carried, so its error is that of a revoked entry. `PeerDied` is for a call that had entered.
        return Err(Error::Revoked);
    }
    flows::forget_change(caller);
    if caller.depth.get() as usize + 1 >= MAX_DEPTH {
        return Err(Error::TooDeep);
    }
    let window = match window {
        Some(word) => {
            let shown = lend::check(caller, words[word])?;
            if !lend::prepare(callee)? {
                repeat(caller, entry)
            }
            Some((word, shown))
        }
        None => None,
    };
    let Some(activation) = callee.per_cpu().pool.get().or_else(|| fetch(callee)) else {
        return Err(if control.0 & Control::NO_WAIT != 0 { Error::Busy } else { Error::Again });
    };
    let received = if control.delegated() != 0 {
        let to = (callee, activation.receive.get() as usize);
        delegate(caller.domain, control, minted, to)?
    } else {
        match tear(letters, &words, caller.domain, activation) {
            Ok(pages) => pages,
            Err(Stop::Refused(error)) => return Err(error),
            Err(Stop::Repeat) => repeat(caller, entry),
        }
    };
    if let Some((word, _)) = window {
        trace::window(caller, words[word]);
    }
    trace::call(caller, entry, words[0], frame == SavedFrame::Full);
    callee.per_cpu().pool.set(activation.next.get());
    caller.domain.per_cpu().crossings.update(|value| value + 1);
    caller.frame.set(frame);
    caller.state.set(State::Calling);
    caller.callee.set(Some(activation));
    activation.state.set(State::Top);
    activation.caller.set(Some(caller));
    match frame {
        SavedFrame::Call => shapes::set_back(activation, entry),
        _ => activation.set_back(),
    }
    activation.depth.set(caller.depth.get() + 1);
    copy_message(caller, activation, control.length());
    let thread = caller.thread.get().ok_or(Error::IsScheduler)?;
    thread.top.set(Some(activation));
    activation.thread.set(Some(thread));
    let ceiling = entry.ceiling();
    if ceiling != 0 {
        priorities::raise(thread, activation, ceiling);
    }
    if deadline != 0 {
        deadline::set(caller, deadline);
    }
    if activation.is_special() {
        activation.reset_fpu();
        activation.make_current();
    } else {
        activation.make_current_plainly();
    }
    let mut badge = entry.word1.get();
    let window = window.map(|(word, shown)| {
        words[word] = lend::open(activation, words[word], &shown);
        words[word]
    });
    let control = deliver(letters, &mut words, control, badge, received, window);
    if letters.is_some_and(|letters| !letters.has_badge()) {
        badge = 0;
    }
    activation.leave_to_service(entry.word0.get(), badge, &words, control.0)
}

/// The control word of a message (bytes and entry), and the badge of an entry that it mints.
#[inline(always)]
fn along(letters: Option<Letters>, words: &[u64; REGISTER_WORDS], control: u64) -> Result<(Control, u64), Error> {
    match letters {
        None if control & !Control::VALID != 0 => Err(Error::BadControl),
        None if Control(control).length() > MESSAGE_BYTES => Err(Error::BadArgument),
        None => Ok((Control(control), words[4])),
        Some(letters) => letters.along(words),
    }
}

/// Turns sent words into received ones; gives the received control word.
#[inline(always)]
fn deliver(
    letters: Option<Letters>,
    words: &mut [u64; REGISTER_WORDS],
    control: Control,
    constant: u64,
    received: u64,
    window: Option<u64>,
) -> Control {
    match letters {
        None => {
            words[5..].fill(0);
            Control::bytes(control.length()).delegate(received as usize, 0).with(window.map_or(0, |_| Control::WINDOW))
        }
        Some(letters) => {
            letters.deliver(words, constant, received, timer::now(), window.unwrap_or_default());
            Control(0)
        }
    }
}

/// Steals a free activation of `domain` from another CPU's pool.
#[cold]
fn fetch(domain: Ref<Domain>) -> Link<Activation> {
    let held = domain.held();
    for other in cpu::others(held) {
        let per_cpu = domain.per_cpu_on(other.number as usize);
        if look(&per_cpu.pool).is_some() {
            cpu::stop(other);
            if let Some(activation) = per_cpu.pool.get() {
                per_cpu.pool.set(activation.next.get());
                activation.next.set(None);
                domain.per_cpu().pool.set(Some(activation));
                return Some(activation);
            }
        }
    }
    None
}

/// Called by portal code on its slow path.
#[unsafe(no_mangle)]
extern "C" fn return_slowly(callee: Ref<Activation>) -> ! {
    let held = callee.held();
    let (letters, mut words) = (shapes::behind(callee), callee.all_words());
    let along = along(letters, &words, callee.registers.control());
    let Some(caller) = callee.caller.get() else {
        match callee.thread.get() {
            Some(thread) if thread.carries_orphans => end_orphan(thread, callee),
            _ => refuse_return(callee, Error::NoCaller),
        }
    };
    let (control, minted) = match along {
        Ok(along) => along,
        Err(error) => refuse_return(callee, error),
    };
    if control.0 & (Control::NO_WAIT | Control::DEADLINE | Control::WINDOW) != 0 {
        refuse_return(callee, Error::BadControl)
    }
    let mut received = 0;
    if !caller.domain.is_dead() {
        let passed = match control.delegated() {
            0 => tear(letters, &words, callee.domain, caller),
            _ => delegate(callee.domain, control, minted, (caller.domain, caller.receive.get() as usize))
                .map_err(Stop::from),
        };
        match passed {
            Ok(what) => received = what,
            Err(Stop::Refused(error)) => refuse_return(callee, error),
            Err(Stop::Repeat) => {
                callee.repeat_system_call();
                dispatch::preemption_point(held);
                callee.leave()
            }
        }
    }
    copy_message(callee, caller, control.length());
    let Some(thread) = callee.thread.get() else { dispatch::enter(held, Event::Choose, 0) };
    chain::unlink_top(thread, callee, caller);
    if caller.frame.get() == SavedFrame::Full {
        // An upcall: word 0 = 0 resumes the caller.
        if words[0] != 0 {
            let died = if words[0] < status::KILLED { status::PAGE_FAULT } else { words[0] };
            caller.condemn(died, [caller.entry.get(), 0, 0]);
        }
    } else {
        let control = deliver(letters, &mut words, control, 0, received, None);
        caller.set_all_words(&words, letters.map_or(0, |letters| letters.in_registers()), control.0);
        caller.registers.set_status(0);
        caller.frame.set(SavedFrame::Words);
    }
    dispatch::resume_or_give_way(thread)
}

fn refuse_return(callee: Ref<Activation>, error: Error) -> ! {
    refusals::note(callee.held(), op::RETURN, error);
    callee.set_result(Err(error));
    callee.leave()
}

#[inline(always)]
fn copy_message(from: Ref<Activation>, to: Ref<Activation>, bytes: usize) {
    if bytes == 0 {
        return;
    }
    // SAFETY: the areas are two pages of the nucleus, and `bytes` is at most a page.
    unsafe {
        let words = bytes.div_ceil(8);
        core::ptr::copy_nonoverlapping(from.message_kernel as *const u64, to.message_kernel as *mut u64, words);
    }
}

/// Moves the torn page of the message, if any. Gives the receiver's word for it.
#[inline(always)]
fn tear(
    letters: Option<Letters>,
    words: &[u64; REGISTER_WORDS],
    from: Ref<Domain>,
    to: Ref<Activation>,
) -> Result<u64, Stop> {
    match letters.and_then(|letters| letters.torn()).map(|word| words[word]) {
        None | Some(0) => Ok(0),
        Some(torn) => mapping::tear(from, torn, to.domain, to.torn.get()),
    }
}

/// Copies or mints the entry that a message delegates. Gives the receiver's index.
fn delegate(from: Ref<Domain>, control: Control, badge: u64, to: (Ref<Domain>, usize)) -> Result<u64, Error> {
    let (domain, index) = to;
    if index == 0 {
        return Err(Error::NotAccepted);
    }
    let (place, index) = domain.vacancy(index)?;
    if control.0 & Control::MINT != 0 {
        let source = from.entry(control.delegated(), Kind::Service, rights::USE)?;
        make_call_entry(source, badge, 0, domain, place)?;
    } else {
        let source = from.place(control.delegated())?;
        check_copy(source)?;
        copy_entry(source, control.delegated_rights(), place)?;
    }
    Ok(index as u64)
}

/// An orphan's last activation returned: the next orphan has its turn.
fn end_orphan(thread: Ref<Thread>, last: Ref<Activation>) -> ! {
    chain::take_off_orphan(thread, last);
    dispatch::resume_or_give_way(thread)
}

/// Ends a called activation without a return: its caller gets `PeerDied`.
pub fn abandon_call(thread: Ref<Thread>, top: Ref<Activation>) -> ! {
    match top.caller.get() {
        Some(caller) => {
            chain::unlink_top(thread, top, caller);
            chain::fail_call(caller, Error::PeerDied);
            dispatch::resume_or_give_way(thread)
        }
        None => end_orphan(thread, top),
    }
}
