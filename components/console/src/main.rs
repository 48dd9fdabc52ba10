//! The console: a driver for the serial line, and the terminal over it.
//!
//! # Threads
//! One thread waits for interrupts: it takes received bytes through the line discipline (crate
//! `terminal`), echoes, and wakes waiting readers. Everything else happens in calls.
//!
//! # Output is never lost
//! `write` answers when its bytes are in the device, so what was acknowledged survives a kill of this
//! component. Each call is written as a whole; programs write whole lines with one call.
//!
//! # Who has the terminal
//! The badge decides: a portal of the description (the shell's) may do everything. Clients that found us by name may write. Those with an
//! entry that [`ConsoleServer::give`] makes may write, read while the terminal is not raw, and be given to others: so a program reads
//! nothing of what the person types to the shell. It may read each key as it comes, but Ctrl-C stays the person's.
//!
//! # Waiting reads
//! A reader that was killed leaves its wait behind here, and would swallow the next line. So waits end as
//! interrupted at Ctrl-C, and when the shell reads or sets the mode. However many wait, the shell's read finds room.
//!
//! # The row that the shell edits
//! While the terminal is raw, the shell writes the row of its line editor, and nothing else. Before anybody else writes, the console
//! erases that row. Then the shell's read gives nothing, and the shell draws its row again, below. If the text before did not end its
//! line, the console begins a new one.
//!
//! # Output of tainted programs
//! A terminal keeps what sequences set, and types it to whoever asks. So of what a tainted program writes, only text and sequences whose effect
//! the screen shows pass ([`Filter`]). Where the cursor is may only be asked by who has the terminal.
//!
//! # Ctrl-C
//! Only the thread that waits for interrupts raises the shell's semaphore, without the lock, and only it removes the one before: its
//! index stands for nothing else meanwhile.
//!
//! # Memory
//! Calls allocate for what was typed only, and that is bounded: `terminal` keeps at most [`terminal::MAX_WAITING`] bytes and as
//! many ends of lines as a line may have bytes, and echo is lost beyond [`terminal::MAX_ECHO`]. All of it fits the account.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

extern crate alloc;

use alloc::vec::Vec;
use core::sync::atomic::{AtomicUsize, Ordering};

use abi::NEVER;
use abi::rights::{self, Kind};
use idl::{Delegated, Failure, Reply, Request};
use protocols::console::{ConsoleError, ConsoleServer, Mode};
use protocols::parent::ParentError;
use runtime::entry::{Entry, Owned};
use runtime::label::Compartments;
use runtime::program::STATUS_OF_NO_DEVICE;
use runtime::server::{self, Serve, Service};
use runtime::sync::{Condvar, Mutex};
use runtime::{log_refused, op};
use terminal::{Event, Filter, Input};

use uart::Uart;

runtime::entry!(main);

/// Activations that serve.
const ACTIVATIONS: usize = MAX_WAITING + 2;
/// Pages of stack that a call takes.
const STACK_PAGES: u64 = 1;
/// Reads of programs that may wait at the same time; the others stay for the shell's and for output.
const MAX_WAITING: usize = 2;

/// Badge of clients that opened us by name.
const BY_NAME: u64 = 0;
/// Badge of what `give` makes. All others are portals of the description.
const GIVEN: u64 = 1 << 63;

/// Answers what the caller may do with a thing of a compartment.
static CALLERS: Compartments = Compartments::new();

struct State {
    uart: Uart,
    input: Input,
    /// Echo that did not fit into the device yet.
    echo: Vec<u8>,
    /// The semaphore of the shell, until the thread that raises it takes it.
    semaphore: Option<Owned>,
    /// Ctrl-C was typed, and the semaphore not raised since.
    interrupted: bool,
    /// Ctrl-C was typed, and no mode set since: the shell may not know of it yet, and nobody reads a line until it does.
    stopped: bool,
    /// Counts the occasions at which waiting reads end.
    epoch: u64,
    /// Reads of programs that wait, but for those that are to end.
    waiting: usize,
    row: Row,
    /// Others wrote where the shell had its row.
    is_erased: bool,
    /// How often the terminal has changed hands.
    hands: u64,
    /// For what tainted programs write.
    filter: Filter,
}

/// The content of the row in which the cursor stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Row {
    Nothing,
    /// The beginning of a line of text.
    Text,
    /// The row of the shell's line editor.
    Edited,
}

static STATE: Mutex<State> = Mutex::new(State {
    uart: Uart::new(),
    input: Input::new(),
    echo: Vec::new(),
    semaphore: None,
    interrupted: false,
    stopped: false,
    epoch: 0,
    waiting: 0,
    row: Row::Nothing,
    is_erased: false,
    hands: 0,
    filter: Filter::new(),
});
static SERVICE: Service = Service::new();
/// Raised by the device's interrupt, and when there is something for the thread that waits for it.
static EVENT: AtomicUsize = AtomicUsize::new(0);
/// Something can be read, or waiting reads end.
static READABLE: Condvar = Condvar::new();
/// The device can take bytes.
static SENDABLE: Condvar = Condvar::new();
/// Held while a call writes, so that calls are not mixed.
static WRITER: Mutex<()> = Mutex::new(());

impl State {
    /// Sends as much of `bytes` as the device takes now; gives how much.
    fn send(&mut self, bytes: &[u8]) -> usize {
        if !self.uart.can_send() {
            return 0;
        }
        let burst = self.uart.burst();
        let uart = &mut self.uart;
        terminal::send(bytes, burst, |byte| uart.send(byte))
    }

    /// Notes what the row contains after this text, which the line editor writes or somebody else; gives the bytes to send before it.
    fn begin_text(&mut self, text: &[u8], is_edited: bool) -> &'static [u8] {
        let Some(last) = text.last() else { return b"" };
        let lead: &[u8] = match (self.row, is_edited) {
            (Row::Edited, false) => b"\r\x1b[K",
            (Row::Text, true) => b"\n",
            _ => b"",
        };
        self.is_erased = !is_edited && (self.is_erased || self.row == Row::Edited);
        self.row = match (last, is_edited) {
            (b'\n', _) => Row::Nothing,
            (_, true) => Row::Edited,
            (_, false) => Row::Text,
        };
        lead
    }

    /// Sends echo. It has `\r` in it already.
    fn send_echo(&mut self) {
        while !self.echo.is_empty() && self.uart.can_send() {
            let count = self.echo.len().min(self.uart.burst());
            for byte in self.echo.drain(..count) {
                self.uart.send(byte);
            }
        }
        self.uart.interrupt_when_empty(!self.echo.is_empty());
    }

    /// Reads that wait come back without anything.
    fn end_reads(&mut self) {
        self.epoch += 1;
        self.waiting = 0;
        READABLE.notify_all();
    }

    fn interrupt(&mut self) {
        self.end_reads();
        self.interrupted = true;
        self.stopped = true;
    }

    fn set_mode(&mut self, mode: terminal::Mode) {
        let Self { input, echo, .. } = self;
        if input.set_mode(mode, echo) {
            self.interrupt();
            let _ = op::v(event());
        }
        if !self.echo.is_empty() {
            self.send_echo();
        }
    }
}

fn event() -> Entry {
    Entry(EVENT.load(Ordering::Relaxed))
}

const fn is_given(badge: u64) -> bool {
    badge & GIVEN != 0
}

/// Refuses all but holders of a portal of the description.
fn allow(badge: u64) -> Result<(), ConsoleError> {
    if badge == BY_NAME || is_given(badge) { Err(ConsoleError::NotAllowed) } else { Ok(()) }
}

/// Refuses clients that found us by our name, and holders of the terminal from before it changed hands: others type there now.
fn allow_to_read(state: &State, badge: u64) -> Result<(), ConsoleError> {
    let is_old = badge & !GIVEN != state.hands;
    if badge == BY_NAME || is_given(badge) && is_old { Err(ConsoleError::NotAllowed) } else { Ok(()) }
}

fn read(mode: terminal::Mode, badge: u64, into: &mut [u8]) -> Result<usize, ConsoleError> {
    let is_shell = !is_given(badge);
    let mut state = STATE.lock();
    allow_to_read(&state, badge)?;
    // A program that reads keys takes the terminal from those that read lines.
    let takes = is_shell || mode == terminal::Mode::Keys && state.input.mode() == terminal::Mode::Cooked;
    if takes {
        state.end_reads();
        state.set_mode(mode);
    } else if state.input.mode() != mode {
        return Err(ConsoleError::Interrupted);
    }
    if mode == terminal::Mode::Cooked && state.stopped {
        return Err(ConsoleError::Interrupted);
    }
    if into.is_empty() {
        return Ok(0);
    }
    let epoch = state.epoch;
    loop {
        if mode == terminal::Mode::Raw && core::mem::take(&mut state.is_erased) {
            return Ok(0);
        }
        if let Some(count) = state.input.read(into) {
            return Ok(count);
        }
        if !is_shell && state.waiting >= MAX_WAITING {
            return Err(ConsoleError::TooManyWaits);
        }
        state.waiting += usize::from(!is_shell);
        state = READABLE.wait(state);
        if state.epoch != epoch {
            // `end_reads` has counted this read out.
            return Err(ConsoleError::Interrupted);
        }
        state.waiting -= usize::from(!is_shell);
    }
}

/// Waits until the device can take bytes, then lets `work` go on; until that says that it is done.
fn while_sending(mut work: impl FnMut(&mut State) -> bool) {
    let mut state = STATE.lock();
    while !work(&mut state) {
        state.uart.interrupt_when_empty(true);
        state = SENDABLE.wait(state);
    }
}

fn send_all(bytes: &[u8]) {
    let mut done = 0;
    while_sending(|state| {
        loop {
            match state.send(&bytes[done..]) {
                0 => return done == bytes.len(),
                sent => done += sent,
            }
            if done == bytes.len() {
                return true;
            }
        }
    });
}

/// Bytes that go through the filter together, and the most that come out: for each byte two, and the rest of a sequence that began before.
const PIECE: usize = 256;
const PASSED: usize = 2 * PIECE + 32;

/// Sends what a tainted program may: the terminal types to others what it keeps. `may_ask`: the caller reads what is typed.
fn send_filtered(bytes: &[u8], may_ask: bool) {
    for piece in bytes.chunks(PIECE) {
        let (mut passed, mut count) = ([0; PASSED], 0);
        STATE.lock().filter.pass(piece, may_ask, |bytes| {
            if let Some(room) = passed.get_mut(count..count + bytes.len()) {
                room.copy_from_slice(bytes);
                count += bytes.len();
            }
        });
        send_all(&passed[..count]);
    }
}

struct Console;

impl Serve for Console {
    fn serve(request: &mut Request<'_>) -> Reply {
        Console.dispatch(request)
    }
}

impl ConsoleServer for Console {
    fn read(&self, badge: u64, into: &mut [u8]) -> Result<usize, ConsoleError> {
        read(terminal::Mode::Cooked, badge, into)
    }

    fn write(&self, badge: u64, bytes: &[u8]) -> Result<usize, ConsoleError> {
        let _writer = WRITER.lock();
        let lead = {
            let mut state = STATE.lock();
            let is_edited = allow(badge).is_ok() && state.input.mode() == terminal::Mode::Raw;
            state.begin_text(bytes, is_edited)
        };
        send_all(lead);
        if CALLERS.caller_may(0).change {
            send_all(bytes);
        } else {
            send_filtered(bytes, is_given(badge) && allow_to_read(&STATE.lock(), badge).is_ok());
        }
        if STATE.lock().is_erased {
            READABLE.notify_all();
        }
        Ok(bytes.len())
    }

    fn read_raw(&self, badge: u64, into: &mut [u8]) -> Result<usize, ConsoleError> {
        allow(badge)?;
        read(terminal::Mode::Raw, badge, into)
    }

    fn set_interrupt_semaphore(&self, badge: u64, semaphore: Delegated) -> Result<(), ConsoleError> {
        let semaphore = Owned::new(semaphore.into());
        allow(badge)?;
        if !semaphore.entry().is(Kind::Semaphore, rights::WRITE) {
            return Err(ConsoleError::NotASemaphore);
        }
        let before = STATE.lock().semaphore.replace(semaphore);
        drop(before);
        Ok(())
    }

    fn set_mode(&self, badge: u64, mode: Mode) -> Result<(), ConsoleError> {
        allow(badge)?;
        let mode = match mode {
            Mode::Cooked => terminal::Mode::Cooked,
            Mode::Raw => terminal::Mode::Raw,
        };
        let mut state = STATE.lock();
        state.end_reads();
        state.stopped = false;
        state.hands += 1;
        state.set_mode(mode);
        let restored = state.filter.restore();
        drop(state);
        if !restored.is_empty() {
            let _writer = WRITER.lock();
            send_all(restored);
        }
        Ok(())
    }

    fn flush(&self, _badge: u64) -> Result<(), ConsoleError> {
        let _writer = WRITER.lock();
        while_sending(|state| state.uart.can_send());
        // The last byte is in the shift register: that takes no longer than its bits do.
        while !STATE.lock().uart.is_idle() {
            op::yield_now();
        }
        Ok(())
    }

    fn give(&self, badge: u64, domain: Delegated, index: u64) -> Result<(), ConsoleError> {
        let domain = Owned::new(domain.into());
        let hands = {
            let state = STATE.lock();
            allow_to_read(&state, badge)?;
            state.hands
        };
        // We may put an entry into every domain, a tainted caller not.
        if !CALLERS.caller_may(0).both() {
            log_refused!("the terminal for a program");
            return Err(ConsoleError::Flow);
        }
        if !domain.entry().is(Kind::Domain, rights::WRITE) {
            return Err(ConsoleError::NotADomain);
        }
        let badge = GIVEN | hands;
        op::portal_new(domain.entry(), SERVICE.entry(), badge, Entry(index as usize), 0)
            .map(drop)
            .map_err(ConsoleError::of_entry)
    }

    fn read_keys(&self, badge: u64, into: &mut [u8]) -> Result<usize, ConsoleError> {
        read(terminal::Mode::Keys, badge, into)
    }
}

/// Takes what the device has, until it has nothing more to say; raises the semaphore of the shell if it is to be.
fn handle_interrupt(shell: &mut Option<Owned>) {
    let mut state = STATE.lock();
    state.uart.acknowledge();
    let mut readable = false;
    while let Some(byte) = state.uart.receive() {
        let State { input, echo, .. } = &mut *state;
        match input.receive(byte, echo) {
            Event::Nothing => {}
            Event::Ready => readable = true,
            Event::Interrupt => state.interrupt(),
        }
    }
    match state.echo.last() {
        Some(b'\n') => state.row = Row::Nothing,
        Some(_) => state.row = Row::Text,
        None => {}
    }
    state.send_echo();
    let interrupted = core::mem::take(&mut state.interrupted);
    let new = state.semaphore.take();
    drop(state);
    if new.is_some() {
        *shell = new;
    }
    if interrupted && let Some(semaphore) = shell {
        // The shell may be gone; the next one brings another semaphore.
        let _ = op::v(semaphore.entry());
    }
    if readable {
        READABLE.notify_all();
    }
    SENDABLE.notify_all();
}

fn main() -> u8 {
    let has_device = op::entry_info(Entry::OWN, Entry::INTERRUPT).is_ok_and(|(kind, _)| kind == Kind::Interrupt);
    if !has_device {
        return STATUS_OF_NO_DEVICE as u8;
    }
    match start() {
        Ok(mut shell) => loop {
            if op::p(event(), NEVER).is_err() {
                return 1;
            }
            handle_interrupt(&mut shell);
            if op::interrupt_enable(Entry::INTERRUPT).is_err() {
                return 1;
            }
        },
        Err(error) => {
            runtime::log!("cannot start: {error}");
            1
        }
    }
}

/// Gives the shell's semaphore, if it came already.
fn start() -> Result<Option<Owned>, Failure<ParentError>> {
    let semaphore = op::semaphore_new(Entry::ACCOUNT, 0).map_err(Failure::Transport)?;
    EVENT.store(semaphore.0, Ordering::Relaxed);
    STATE.lock().uart.start().map_err(Failure::Transport)?;
    op::interrupt_bind(Entry::INTERRUPT, semaphore).map_err(Failure::Transport)?;
    server::prepared_activations(ACTIVATIONS, STACK_PAGES).map_err(Failure::Transport)?;
    SERVICE.make::<Console>().map_err(Failure::Transport)?;
    server::publish_service("console", SERVICE.entry())?;
    // Input typed before we listened.
    let mut shell = None;
    handle_interrupt(&mut shell);
    Ok(shell)
}
