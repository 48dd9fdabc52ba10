//! The primitives on the host, with threads and semaphores that do what the nucleus's do.

extern crate std;

use core::cell::Cell;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar as HostCondvar, Mutex as HostMutex, OnceLock};
use std::thread;
use std::time::{Duration, Instant};
use std::vec::Vec;

use abi::{Error, NEVER};

use super::{Channel, Condvar, Kernel, Mutex, Once, RawMutex, Received, WaitSlot};

/// Semaphores of the host; deadlines are milliseconds since the first use.
struct Host;

type Semaphore = Arc<(HostMutex<u32>, HostCondvar)>;

static SEMAPHORES: HostMutex<Vec<Semaphore>> = HostMutex::new(Vec::new());
static THREADS: AtomicU32 = AtomicU32::new(1);

/// By thread: its own semaphore.
static OWN: HostMutex<Vec<u32>> = HostMutex::new(Vec::new());

std::thread_local! {
    static ME: u32 = THREADS.fetch_add(1, Ordering::Relaxed);
}

fn origin() -> Instant {
    static ORIGIN: OnceLock<Instant> = OnceLock::new();
    *ORIGIN.get_or_init(Instant::now)
}

fn now() -> u64 {
    origin().elapsed().as_millis() as u64
}

fn semaphore(number: u32) -> Semaphore {
    SEMAPHORES.lock().unwrap()[number as usize - 1].clone()
}

impl Kernel for Host {
    fn me() -> u32 {
        ME.with(|me| *me)
    }
    fn make() -> Result<u32, Error> {
        let mut all = SEMAPHORES.lock().unwrap();
        all.push(Semaphore::default());
        Ok(all.len() as u32)
    }
    fn remove(_: u32) {}
    fn p(number: u32, deadline: u64) -> Result<(), Error> {
        let semaphore = semaphore(number);
        let mut count = semaphore.0.lock().unwrap();
        while *count == 0 {
            if deadline == NEVER {
                count = semaphore.1.wait(count).unwrap();
            } else {
                let left = deadline.saturating_sub(now());
                if left == 0 {
                    return Err(Error::Timeout);
                }
                count = semaphore.1.wait_timeout(count, Duration::from_millis(left)).unwrap().0;
            }
        }
        *count -= 1;
        Ok(())
    }
    fn v(number: u32) {
        let semaphore = semaphore(number);
        *semaphore.0.lock().unwrap() += 1;
        semaphore.1.notify_one();
    }
    fn own() -> Result<u32, Error> {
        let me = Self::me() as usize;
        let mut all = OWN.lock().unwrap();
        while all.len() < me {
            all.push(Self::make()?);
        }
        Ok(all[me - 1])
    }
    fn v_own(thread: u32) {
        let semaphore = OWN.lock().unwrap()[thread as usize - 1];
        Self::v(semaphore);
    }
    fn relax() {
        thread::yield_now();
    }
}

#[test]
fn a_mutex_excludes() {
    static COUNTER: Mutex<u64, Host> = Mutex::new(0);
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for round in 0..5_000 {
                    let mut counter = COUNTER.lock();
                    assert_eq!(COUNTER.owner(), Some(Host::me()));
                    let before = *counter;
                    if round % 64 == 0 {
                        thread::yield_now();
                    }
                    *counter = before + 1;
                }
            });
        }
    });
    assert_eq!(*COUNTER.lock(), 40_000);
    assert_eq!(COUNTER.owner(), None);
}

#[test]
fn try_lock_reports() {
    let mutex: Mutex<(), Host> = Mutex::new(());
    let guard = mutex.lock();
    assert!(mutex.try_lock().is_none());
    drop(guard);
    assert!(mutex.try_lock().is_some());
}

/// A kernel for one thread, which is several activations in turn. Its waits end at once; the actions of others meanwhile are in `p`.
struct Scripted;

/// The semaphore that [`Scripted::make`] gives, and the activation's own.
const MADE: u32 = 1;
const OWN_ONE: u32 = 2;

std::thread_local! {
    static CLAIMED: RawMutex<Scripted> = const { RawMutex::new() };
    static RUNS: Cell<u32> = const { Cell::new(0) };
    /// Waits for the own semaphore, and V's on it.
    static OWN_WAITS: Cell<u32> = const { Cell::new(0) };
    static OWN_VS: Cell<u32> = const { Cell::new(0) };
    /// V's on the mutex's semaphore, and whether the waiter for that has been woken because the mutex was freed.
    static VS: Cell<u32> = const { Cell::new(0) };
    static IS_FREED: Cell<bool> = const { Cell::new(false) };
}

impl Kernel for Scripted {
    fn me() -> u32 {
        RUNS.get() + 1
    }
    fn make() -> Result<u32, Error> {
        Ok(MADE)
    }
    fn remove(_: u32) {}
    fn p(number: u32, _: u64) -> Result<(), Error> {
        if number == OWN_ONE {
            OWN_WAITS.set(OWN_WAITS.get() + 1);
            match OWN_WAITS.get() {
                // V's that are for other waits.
                1 | 3 => {}
                2 => return Err(Error::Cancelled),
                // The owner's.
                _ => CLAIMED.with(RawMutex::unlock),
            }
        } else if IS_FREED.get() {
            CLAIMED.with(RawMutex::unlock);
        }
        Ok(())
    }
    fn v(number: u32) {
        let count = if number == OWN_ONE { &OWN_VS } else { &VS };
        count.set(count.get() + 1);
    }
    fn own() -> Result<u32, Error> {
        Ok(OWN_ONE)
    }
    fn v_own(activation: u32) {
        assert_eq!(activation, Self::me());
    }
    fn relax() {}
}

/// A thread that claims a mutex takes the mutex when it is handed over, not before, and gives back what was meant for other waits.
#[test]
fn a_claimed_mutex_gives_back_tokens_for_other_waits() {
    CLAIMED.with(|mutex| {
        mutex.lock();
        RUNS.set(1);
        mutex.lock();
        assert_eq!(mutex.owner(), Some(Scripted::me()));
        assert_eq!((OWN_WAITS.get(), OWN_VS.get()), (4, 2));
        mutex.unlock();
        assert_eq!(mutex.owner(), None);
    });
}

/// A kernel for one thread, whose mutex is freed by another CPU while it is looked at. Nothing else may be asked of it.
struct Elsewhere;

std::thread_local! {
    static TAKEN: RawMutex<Elsewhere> = const { RawMutex::new() };
    static LOOKS: Cell<u32> = const { Cell::new(0) };
}

impl Kernel for Elsewhere {
    fn me() -> u32 {
        1 + LOOKS.get()
    }
    fn make() -> Result<u32, Error> {
        Err(Error::AccountExhausted)
    }
    fn remove(_: u32) {}
    fn p(_: u32, _: u64) -> Result<(), Error> {
        Err(Error::Cancelled)
    }
    fn v(_: u32) {}
    fn own() -> Result<u32, Error> {
        Err(Error::AccountExhausted)
    }
    fn v_own(_: u32) {}
    fn relax() {
        panic!("a wait for a mutex that is free soon");
    }
    fn pause() {
        LOOKS.set(LOOKS.get() + 1);
        if LOOKS.get() == 3 {
            TAKEN.with(RawMutex::unlock);
        }
    }
}

/// A mutex that its owner on another CPU frees soon is taken without a wait.
#[test]
fn a_mutex_that_is_free_soon_needs_no_wait() {
    TAKEN.with(|mutex| {
        mutex.lock();
        mutex.lock();
        assert_eq!(LOOKS.get(), 3);
        assert!(mutex.owner().is_some());
    });
}

/// Others may wait for the thread that waited: they are woken when it frees the mutex.
#[test]
fn a_waiter_that_got_the_mutex_wakes_the_next() {
    CLAIMED.with(|mutex| {
        mutex.lock();
        RUNS.set(1);
        IS_FREED.set(true);
        mutex.lock();
        assert_eq!((mutex.owner(), VS.get()), (Some(Scripted::me()), 1));
        mutex.unlock();
        assert_eq!((mutex.owner(), VS.get(), OWN_WAITS.get()), (None, 2, 0));
    });
}

#[test]
#[should_panic(expected = "locked again")]
fn locking_twice_is_found() {
    let mutex: Mutex<(), Host> = Mutex::new(());
    let _guard = mutex.lock();
    let _again = mutex.lock();
}

#[test]
fn a_channel_delivers_all_in_order() {
    static CHANNEL: Channel<(u32, u32), 3, Host> = Channel::new();
    const EACH: u32 = 3_000;
    let seen: Vec<(u32, u32)> = thread::scope(|scope| {
        for sender in 0..3 {
            scope.spawn(move || (0..EACH).for_each(|number| CHANNEL.send((sender, number))));
        }
        let receivers: Vec<_> =
            (0..3).map(|_| scope.spawn(|| (0..EACH).map(|_| CHANNEL.receive()).collect::<Vec<_>>())).collect();
        let mut all = Vec::new();
        for receiver in receivers {
            let seen = receiver.join().unwrap();
            for sender in 0..3 {
                let numbers = seen.iter().filter(|(from, _)| *from == sender).map(|(_, number)| *number);
                assert!(numbers.is_sorted(), "a receiver sees each sender's values in order");
            }
            all.extend(seen);
        }
        all
    });
    let mut seen = seen;
    seen.sort_unstable();
    assert!(seen.into_iter().eq((0..3).flat_map(|sender| (0..EACH).map(move |number| (sender, number)))));
    assert_eq!(CHANNEL.try_receive(), None);
}

#[test]
fn a_full_channel_gives_back() {
    let channel: Channel<u8, 2, Host> = Channel::new();
    assert_eq!((channel.try_send(1), channel.try_send(2), channel.try_send(3)), (Ok(()), Ok(()), Err(3)));
    assert_eq!((channel.try_receive(), channel.try_receive(), channel.try_receive()), (Some(1), Some(2), None));
}

#[test]
fn waits_end_at_their_time_and_leave_nothing_behind() {
    let channel: Channel<u8, 2, Host> = Channel::new();
    let start = now();
    assert_eq!(channel.receive_until(start + 20), None);
    assert!(now() >= start + 20);
    channel.send(7);
    assert_eq!(channel.receive_until(0), Some(7));
    assert_eq!(channel.receive_until(now() + 5), None, "the first wait's semaphore has no surplus");
}

#[test]
fn wake_ups_and_times_out_at_once() {
    static MUTEX: Mutex<u32, Host> = Mutex::new(0);
    static CONDVAR: Condvar<Host> = Condvar::new();
    let timeouts = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..6 {
            scope.spawn(|| {
                for _ in 0..100 {
                    let mut tokens = MUTEX.lock();
                    loop {
                        if *tokens > 0 {
                            *tokens -= 1;
                            break;
                        }
                        let in_time;
                        (tokens, in_time) = CONDVAR.wait_until(tokens, now() + 1);
                        if !in_time {
                            timeouts.fetch_add(1, Ordering::Relaxed);
                        }
                    }
                }
            });
        }
        scope.spawn(|| {
            for round in 0..600 {
                *MUTEX.lock() += 1;
                CONDVAR.notify_one();
                if round % 50 == 0 {
                    thread::sleep(Duration::from_millis(2));
                    CONDVAR.notify_all();
                }
            }
        });
    });
    assert_eq!(*MUTEX.lock(), 0);
    CONDVAR.notify_one();
    assert!(timeouts.load(Ordering::Relaxed) > 0, "the test must see both");
}

#[test]
fn once() {
    static ONCE: Once<u32, Host> = Once::new();
    static MADE: AtomicUsize = AtomicUsize::new(0);
    assert_eq!(ONCE.get(), None);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let value = ONCE.get_or_make(|| {
                    MADE.fetch_add(1, Ordering::Relaxed);
                    thread::sleep(Duration::from_millis(2));
                    5
                });
                assert_eq!(*value, 5);
            });
        }
    });
    assert_eq!(MADE.load(Ordering::Relaxed), 1);
}

/// The state of a [`WaitSlot`]: words that nobody was there for, the place of a waiter for some, and whether it is the end.
#[derive(Default)]
struct Said {
    bytes: Vec<u8>,
    hears: WaitSlot<Host>,
    is_over: bool,
}

/// Hears all that is said until it is over, so many bytes at a time; gives how many came into its hands.
fn hear(said: &Mutex<Said, Host>, room: usize) -> (Vec<u8>, usize) {
    let (mut heard, mut handed) = (Vec::new(), 0);
    let mut now = said.lock();
    loop {
        heard.append(&mut now.bytes);
        if now.is_over {
            return (heard, handed);
        }
        let mut bytes = std::vec![0; room];
        now = match WaitSlot::receive(now, &mut bytes, |said| Some(&mut said.hears)) {
            Received::Nothing(said) => said,
            Received::Bytes(count) => {
                heard.extend(&bytes[..count]);
                handed += count;
                said.lock()
            }
        };
    }
}

#[test]
fn a_waiter_in_a_slot_gets_all_bytes_in_order() {
    static SAID: Mutex<Said, Host> = Mutex::new(Said { bytes: Vec::new(), hears: WaitSlot::new(), is_over: false });
    let (heard, handed) = thread::scope(|scope| {
        let hears = scope.spawn(|| hear(&SAID, 3));
        for word in 0..20_000_u32 {
            let mut said = SAID.lock();
            let bytes = &word.to_le_bytes()[..word as usize % 5];
            let (given, woken) = said.hears.give(bytes);
            assert!(given == 0 || said.bytes.is_empty(), "it waits though something was said");
            said.bytes.extend(&bytes[given..]);
            drop(said);
            drop(woken);
            if word % 64 == 0 {
                thread::sleep(Duration::from_micros(50));
            }
        }
        let mut said = SAID.lock();
        said.is_over = true;
        let woken = said.hears.take();
        drop(said);
        drop(woken);
        hears.join().unwrap()
    });
    let all = (0..20_000_u32).flat_map(|word| word.to_le_bytes().into_iter().take(word as usize % 5));
    assert!(heard.into_iter().eq(all));
    assert!(handed > 0, "nobody waited");
}

#[test]
fn a_slot_has_one_place_and_wakes_whoever_is_there_when_it_goes() {
    let data: Mutex<Option<WaitSlot<Host>>, Host> = Mutex::new(Some(WaitSlot::new()));
    thread::scope(|scope| {
        let waits = scope.spawn(|| WaitSlot::wait(data.lock(), Option::as_mut).is_none());
        while !data.lock().as_ref().is_some_and(WaitSlot::is_taken) {
            thread::yield_now();
        }
        // A second one comes back at once.
        assert!(WaitSlot::wait(data.lock(), Option::as_mut).is_some());
        drop(data.lock().take());
        assert!(waits.join().unwrap(), "it waits for a slot that is gone");
    });
    assert!(WaitSlot::wait(data.lock(), Option::as_mut).is_none());
}

/// A kernel whose waits are cancelled, perhaps when somebody has given something already.
struct Cancelling;

std::thread_local! {
    static HEARS: Mutex<WaitSlot<Cancelling>, Cancelling> = const { Mutex::new(WaitSlot::new()) };
    /// The bytes given while the wait begins, if any.
    static GIVES: Cell<&'static [u8]> = const { Cell::new(&[]) };
    /// Waits, and V's that were sent and not consumed.
    static WAITS: Cell<u32> = const { Cell::new(0) };
    static SENT: Cell<i32> = const { Cell::new(0) };
}

impl Kernel for Cancelling {
    fn me() -> u32 {
        1
    }
    fn make() -> Result<u32, Error> {
        Ok(MADE)
    }
    fn remove(_: u32) {}
    fn p(_: u32, _: u64) -> Result<(), Error> {
        WAITS.set(WAITS.get() + 1);
        if WAITS.get() == 1 && !GIVES.get().is_empty() {
            HEARS.with(|hears| drop(hears.lock().give(GIVES.get())));
        }
        // The second wait is for a V that was sent, and cancelled once more.
        if WAITS.get() <= 2 {
            return Err(Error::Cancelled);
        }
        SENT.set(SENT.get() - 1);
        Ok(())
    }
    fn v(_: u32) {
        SENT.set(SENT.get() + 1);
    }
    fn own() -> Result<u32, Error> {
        Ok(OWN_ONE)
    }
    fn v_own(_: u32) {}
    fn relax() {}
}

#[test]
fn a_wait_in_a_slot_that_is_cancelled_keeps_what_was_given_and_leaves_no_surplus() {
    let mut room = [0; 2];
    let waited = HEARS.with(|hears| match WaitSlot::receive(hears.lock(), &mut room, |slot| Some(slot)) {
        Received::Nothing(slot) => Some(slot.is_taken()),
        Received::Bytes(_) => None,
    });
    assert_eq!((waited, WAITS.get(), SENT.get()), (Some(false), 1, 0), "it left the place");
    WAITS.set(0);
    GIVES.set(&[5, 6, 7]);
    let count = HEARS.with(|hears| match WaitSlot::receive(hears.lock(), &mut room, |slot| Some(slot)) {
        Received::Nothing(_) => 0,
        Received::Bytes(count) => count,
    });
    assert_eq!((count, room, WAITS.get(), SENT.get()), (2, [5, 6], 3, 0));
    HEARS.with(|hears| assert!(!hears.lock().is_taken()));
}
