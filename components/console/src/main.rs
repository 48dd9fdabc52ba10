//! The console: a driver for the serial line, and the terminal over it.
//!
//! # Threads
//! One thread waits for interrupts: it takes received bytes through the line discipline (crate
//! `terminal`), echoes, and wakes who waits. Everything else happens in calls.
//!
//! # Output is never lost
//! `write` answers when its bytes are in the device, so what was acknowledged survives a kill of this
//! component. Each call is written as a whole; programs write whole lines with one call.
//!
//! # Waiting reads
//! A reader that was killed leaves its wait behind here, and would swallow the next line. So waits end as
//! interrupted at Ctrl-C, and when somebody (the shell at its prompt) reads raw.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

extern crate alloc;

mod uart;

use alloc::vec::Vec;

use abi::NEVER;
use interface::{Delegated, Failure, Reply, Request};
use interfaces::console::{ConsoleError, ConsoleServer, Mode};
use interfaces::parent::ParentError;
use runtime::entry::{Entry, Owned};
use runtime::op;
use runtime::server::{self, Serve};
use runtime::sync::{Condvar, Mutex};
use terminal::{Event, Input};

use uart::Uart;

runtime::entry!(main);

/// Activations that serve.
const ACTIVATIONS: usize = MAX_WAITING + 2;
/// Pages of stack that a call takes.
const STACK_PAGES: u64 = 1;
/// Calls that may wait at the same time; the others stay for output.
const MAX_WAITING: usize = 2;

struct State {
    uart: Uart,
    input: Input,
    /// Echo that did not fit into the device yet.
    echo: Vec<u8>,
    interrupt: Option<Owned>,
    /// Counts the occasions at which waiting reads end.
    epoch: u64,
    waiting: usize,
}

static STATE: Mutex<State> = Mutex::new(State {
    uart: Uart::new(),
    input: Input::new(),
    echo: Vec::new(),
    interrupt: None,
    epoch: 0,
    waiting: 0,
});
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
        READABLE.notify_all();
    }

    fn interrupted(&mut self) {
        self.end_reads();
        if let Some(semaphore) = &self.interrupt {
            // The shell may be gone; the next one brings another semaphore.
            let _ = op::v(semaphore.entry());
        }
    }

    fn set_mode(&mut self, mode: terminal::Mode) {
        let Self { input, echo, .. } = self;
        if input.set_mode(mode, echo) {
            self.interrupted();
        }
        if !self.echo.is_empty() {
            self.send_echo();
        }
    }
}

fn read(mode: terminal::Mode, into: &mut [u8]) -> Result<usize, ConsoleError> {
    let mut state = STATE.lock();
    if mode == terminal::Mode::Raw && state.waiting > 0 {
        state.end_reads();
    }
    state.set_mode(mode);
    let epoch = state.epoch;
    loop {
        if state.epoch != epoch {
            return Err(ConsoleError::Interrupted);
        }
        if let Some(count) = state.input.read(into) {
            return Ok(count);
        }
        if state.waiting >= MAX_WAITING {
            return Err(ConsoleError::Interrupted);
        }
        state.waiting += 1;
        state = READABLE.wait(state);
        state.waiting -= 1;
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

struct Console;

impl Serve for Console {
    fn serve(request: &mut Request<'_>) -> Reply {
        Console.dispatch(request)
    }
}

impl ConsoleServer for Console {
    fn read(&self, _badge: u64, into: &mut [u8]) -> Result<usize, ConsoleError> {
        read(terminal::Mode::Cooked, into)
    }

    fn write(&self, _badge: u64, bytes: &[u8]) -> Result<usize, ConsoleError> {
        let _writer = WRITER.lock();
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
        Ok(bytes.len())
    }

    fn read_raw(&self, _badge: u64, into: &mut [u8]) -> Result<usize, ConsoleError> {
        read(terminal::Mode::Raw, into)
    }

    fn set_interrupt_semaphore(&self, _badge: u64, semaphore: Delegated) -> Result<(), ConsoleError> {
        STATE.lock().interrupt = Some(Owned::new(semaphore.into()));
        Ok(())
    }

    fn set_mode(&self, _badge: u64, mode: Mode) -> Result<(), ConsoleError> {
        let mode = match mode {
            Mode::Cooked => terminal::Mode::Cooked,
            Mode::Raw => terminal::Mode::Raw,
        };
        let mut state = STATE.lock();
        state.end_reads();
        state.set_mode(mode);
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
}

/// Takes what the device has, until it has nothing more to say.
fn handle_interrupt() {
    let mut state = STATE.lock();
    state.uart.acknowledge();
    let mut readable = false;
    while let Some(byte) = state.uart.receive() {
        let State { input, echo, .. } = &mut *state;
        match input.receive(byte, echo) {
            Event::Nothing => {}
            Event::Ready => readable = true,
            Event::Interrupt => state.interrupted(),
        }
    }
    state.send_echo();
    drop(state);
    if readable {
        READABLE.notify_all();
    }
    SENDABLE.notify_all();
}

fn main() -> u8 {
    match start() {
        Ok(semaphore) => loop {
            if op::p(semaphore, NEVER).is_err() {
                return 1;
            }
            handle_interrupt();
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

fn start() -> Result<Entry, Failure<ParentError>> {
    let semaphore = op::semaphore_new(Entry::ACCOUNT, 0).map_err(Failure::Transport)?;
    STATE.lock().uart.start().map_err(Failure::Transport)?;
    op::interrupt_bind(Entry::INTERRUPT, semaphore).map_err(Failure::Transport)?;
    server::prepared_activations(ACTIVATIONS, STACK_PAGES).map_err(Failure::Transport)?;
    server::publish_new::<Console>("console")?;
    // What was typed before we listened.
    handle_interrupt();
    Ok(semaphore)
}
