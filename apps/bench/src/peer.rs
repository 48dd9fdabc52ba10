//! The other domain: this program again, started through `proc`. It serves words, or passes them on to another peer, and works with two
//! semaphores or two pipes that we hand to it. There can be several, each with a number.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use idl::{AllWords, Delegate, Delegated, Input, Reply, Request, codes, interface};
use protocols::pipes::PipeEndClient;
use runtime::abi::{NEVER, level, rights, window};
use runtime::child::Child;
use runtime::connection::{Connection, Direct, Name};
use runtime::entry::Entry;
use runtime::port::{self, Port, Size};
use runtime::server::{self, Serve, ServeWord};
use runtime::sync::Mutex;
use runtime::thread::Thread;
use runtime::window::Window;
use runtime::{message, op, program, table};
use tool::command::Command;

use crate::{asked, pages, together};

/// With this option the program is the peer of the number that follows.
pub const OPTION: &str = "--peer";
/// Peers that there can be: with this program, as many domains as a ring has.
pub const MOST: usize = 31;
/// Frames that the first peer may have, and each other one: fewer than is usual, so that there can be so many.
const FRAMES: [u64; 2] = [144, 112];
/// Calls that are served at the same time.
const ACTIVATIONS: usize = 2;

codes! {
    /// Why the peer refused.
    pub enum PeerError {
        1 Failed "the nucleus refused: the log has its error"
    }
}

/// The refusal for an error of the nucleus, which the log has.
fn failed(error: impl core::fmt::Display) -> PeerError {
    runtime::log!("the peer: {error}");
    PeerError::Failed
}

/// The size of a port of the benchmarks.
pub const PORT: Size = Size { bytes: 64, messages: 8 };

/// The tasks of the other domain.
#[interface]
pub trait Peer {
    /// A call entry to a service that adds its words.
    fn words(&self) -> Result<Delegated, PeerError>;
    /// Takes a semaphore: number 0 or 1.
    fn take(&self, number: u64, semaphore: Delegate) -> Result<(), PeerError>;
    /// Starts a thread that `count` times waits for semaphore 0 and raises semaphore 1, on the first of these CPUs (a bit
    /// for each; 0 = on any).
    fn answer(&self, count: u64, cpus: u64) -> Result<(), PeerError>;
    /// Takes a sender's entry of a port, and gives one of a port of its own.
    fn port(&self, back: Delegate) -> Result<Delegated, PeerError>;
    /// Starts a thread that `count` times takes a message at the latter and sends it to the former, the first word inverted.
    fn echo(&self, count: u64) -> Result<(), PeerError>;
    /// Gives the bytes back, the first one inverted.
    fn turn(&self, bytes: &[u8], into: &mut [u8]) -> Result<usize, PeerError>;
    /// Reads all bytes, word by word, and gives their sum.
    fn sum(&self, bytes: &[u8]) -> Result<u64, PeerError>;
    /// Starts a thread that yields `count` times.
    fn give_way(&self, count: u64) -> Result<(), PeerError>;
    /// A call entry to a service that adds its words, behind portals of the specification `npciii>i`.
    fn short(&self) -> Result<Delegated, PeerError>;
    /// A call entry of `Block`.
    fn block(&self) -> Result<Delegated, PeerError>;
    /// A call entry to a service behind such portals that passes its words on to the peer before this one, and adds to the answer. The
    /// first peer gives what `short` gives. `number` is the peer's own.
    fn link(&self, number: u64) -> Result<Delegated, PeerError>;
    /// The peer's domain, in which an end of pipes may be put at the index that `place` gives.
    fn domain(&self) -> Result<Delegated, PeerError>;
    /// An index of the peer's table that is free.
    fn place(&self) -> Result<u64, PeerError>;
    /// Starts a thread that `count` times reads a byte of the pipe at this index and writes it to another.
    fn relay(&self, count: u64, end: u64) -> Result<(), PeerError>;
    /// A call entry to a service that adds its words, behind portals of the specification `npcwii>i`. It writes word 3 into the window's
    /// page, unless that is 0.
    fn window(&self) -> Result<Delegated, PeerError>;
    /// A call entry of `Keeper`.
    fn keeper(&self) -> Result<Delegated, PeerError>;
    /// A call entry to a service that gives back each page that is torn away for it.
    fn torn(&self) -> Result<Delegated, PeerError>;
    /// A call entry to a service that counts what it costs to ask of its caller: word 0 is a label, word 1 how often.
    fn asks(&self) -> Result<Delegated, PeerError>;
    /// A label for that, by its index in the peer's table.
    fn label(&self) -> Result<u64, PeerError>;
    /// The peer accepts less of a handle, of this number.
    fn refuse(&self, handle: u64) -> Result<(), PeerError>;
    /// The peer is tainted by so many handles, as much as all accept. That ends the call, and what leads to those who are not.
    fn taint(&self, count: u64) -> Result<(), PeerError>;
    /// The peer ends: `proc` ends nothing for a tainted caller.
    fn leave(&self) -> Result<(), PeerError>;
}

/// Takes bytes into memory of its own.
#[interface]
pub trait Keeper {
    /// Takes the first `count` bytes, or as many as there are.
    fn keep(&self, count: u64, #[window] bytes: &[u8]) -> Result<usize, PeerError>;
    /// Reads all bytes where they are, word by word, so many times; gives how many there are, and the sum.
    fn sum(&self, times: u64, #[window] bytes: &[u8]) -> Result<(usize, u64), PeerError>;
}

/// A block of 64 bytes, as words.
#[interface(words)]
pub trait Block {
    /// Gives it back, the first word inverted.
    fn turn(&self, block: [u64; 8]) -> Result<[u64; 8], PeerError>;
}

/// Our end of one.
pub type End = PeerClient<Connection<Name<'static>>>;

/// The names of their services, and our ends of them.
macro_rules! peers {
    ($($number:literal)*) => {
        const NAMES: [&str; MOST] = [$(concat!("bench-peer-", $number)),*];
        static PEERS: [End; MOST] = [$(PeerClient(Connection::named(concat!("bench-peer-", $number)))),*];
    };
}
peers!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30);

/// The first peer, with which all is done that needs but one.
pub static PEER: &End = &PEERS[0];
/// The peers' processes, 0 = not started.
static PROCESSES: Mutex<[Option<Child>; MOST]> = Mutex::new([const { None }; MOST]);

/// Starts the first, if it is not there.
pub fn start() -> Result<(), String> {
    start_number(0).map(drop)
}

/// Starts one, if it is not there, and waits until it serves.
pub fn start_number(number: usize) -> Result<&'static End, String> {
    let mut processes = PROCESSES.lock();
    let (Some(process), Some(end)) = (processes.get_mut(number), PEERS.get(number)) else {
        return Err(alloc::format!("there are but {MOST} peers"));
    };
    if process.is_none() {
        let frames = FRAMES[number.min(1)];
        *process = Some(spawn(&["/bin/bench", OPTION, &number.to_string()], frames)?);
        end.turn(&[], &mut []).map_err(|error| error.to_string())?;
    }
    Ok(end)
}

/// Starts a program without streams, which may have so many frames; 0 = as many as is usual.
pub fn spawn(words: &[&str], frames: u64) -> Result<Child, String> {
    let command = Command::new(words).environment([]).streams(["null", "console", "console"]).frames(frames);
    command.load().map_err(|error| error.to_string())
}

/// Measures one row in a process of its own, which prints it, and has peers of its own.
pub fn alone(row: &str) -> Result<(), String> {
    end();
    match spawn(&["/bin/bench", row], 0)?.wait() {
        Ok(0) => Ok(()),
        Ok(status) => Err(alloc::format!("status {status}")),
        Err(error) => Err(error.to_string()),
    }
}

/// Ends those that are there.
pub fn end() {
    for process in PROCESSES.lock().iter_mut() {
        let _ = process.take().map(Child::end);
    }
}

/// The badge of the portal to the service of `short`.
pub const SHORT_BADGE: u64 = 30;

/// The badge of the portal to the service of `link`.
pub const LINK_BADGE: u64 = 1000;

/// The peer's service of words.
struct Sum;

impl ServeWord for Sum {
    fn serve(_badge: u64, words: [u64; 5]) -> u64 {
        words[0] + words[1]
    }
}

impl server::ServeShort for Sum {
    fn serve(badge: u64, word1: u64, word2: u64, word3: u64) -> u64 {
        badge + word1 + word2 + word3
    }
}

impl server::ServeWindow for Sum {
    fn serve(badge: u64, window: Option<Window<'_>>, word2: u64, word3: u64) -> u64 {
        match window {
            Some(window) if word3 != 0 => {
                window.write(0, &word3.to_le_bytes());
            }
            Some(_) => {}
            None => return 0,
        }
        badge + word2 + word3
    }
}

/// Where `Keeper` keeps bytes, once somebody has an entry of it.
static KEPT: Mutex<Vec<u8>> = Mutex::new(Vec::new());

struct Keeps;

impl Serve for Keeps {
    fn serve(request: &mut Request<'_>) -> Reply {
        Self.dispatch(request)
    }
}

impl KeeperServer for Keeps {
    fn keep(&self, _badge: u64, count: u64, bytes: Input<'_>) -> Result<usize, PeerError> {
        let count = (count as usize).min(bytes.len());
        bytes.copy_to(0, &mut KEPT.lock()[..count]);
        Ok(count)
    }

    fn sum(&self, _badge: u64, times: u64, bytes: Input<'_>) -> Result<(usize, u64), PeerError> {
        let mut sum = 0u64;
        for _ in 0..times {
            for at in (0..bytes.len()).step_by(8) {
                let mut word = [0; 8];
                bytes.copy_to(at, &mut word);
                sum = sum.wrapping_add(u64::from_le_bytes(word));
            }
        }
        Ok((bytes.len(), sum))
    }
}

struct Turns;

impl server::ServeAllWords for Turns {
    fn serve(badge: u64, words: &AllWords) -> AllWords {
        Self.dispatch(badge, words)
    }
}

impl BlockServer for Turns {
    fn turn(&self, _badge: u64, block: [u64; 8]) -> Result<[u64; 8], PeerError> {
        let mut block = block;
        block[0] = !block[0];
        Ok(block)
    }
}

/// The peer's service that passes words on.
struct Link;

/// The entry by which it does.
static NEXT: AtomicUsize = AtomicUsize::new(0);

impl server::ServeShort for Link {
    fn serve(badge: u64, word1: u64, word2: u64, word3: u64) -> u64 {
        let next = Entry(NEXT.load(Ordering::Relaxed));
        // An answer that nobody expects.
        message::call_short(next, [word1, word2, word3]).map_or(0, |answer| badge + answer)
    }
}

/// The peer.
struct Server;

/// The entry by which the thread that relays reads and writes.
static END: AtomicUsize = AtomicUsize::new(0);
/// Its port, and where it sends what it takes there.
static PORTS: Mutex<Option<(Port, Entry)>> = Mutex::new(None);
static SEMAPHORES: [AtomicUsize; 2] = [const { AtomicUsize::new(0) }; 2];
/// Where the thread that answers may run, a bit for each CPU; 0 = anywhere.
static CPUS: AtomicU64 = AtomicU64::new(0);

fn semaphore(number: usize) -> Entry {
    Entry(SEMAPHORES[number].load(Ordering::Relaxed))
}

impl Serve for Server {
    fn serve(request: &mut Request<'_>) -> Reply {
        Self.dispatch(request)
    }
}

impl PeerServer for Server {
    fn short(&self, _badge: u64) -> Result<Delegate, PeerError> {
        let service = server::short_service::<Sum>().map_err(failed)?;
        Ok(Delegate::mint(service.0, SHORT_BADGE))
    }

    fn window(&self, _badge: u64) -> Result<Delegate, PeerError> {
        let service = server::short_window_service::<Sum>().map_err(failed)?;
        Ok(Delegate::mint(service.0, SHORT_BADGE))
    }

    fn keeper(&self, _badge: u64) -> Result<Delegate, PeerError> {
        let service = server::window_service::<Keeps>().map_err(failed)?;
        KEPT.lock().resize(window::SLOT_BYTES, 0);
        Ok(Delegate::mint(service.0, 0))
    }

    fn torn(&self, _badge: u64) -> Result<Delegate, PeerError> {
        let service = pages::torn_service().map_err(failed)?;
        Ok(Delegate::mint(service.0, 0))
    }

    fn asks(&self, _badge: u64) -> Result<Delegate, PeerError> {
        let service = server::word_service::<asked::Asks>().map_err(failed)?;
        Ok(Delegate::mint(service.0, 0))
    }

    fn label(&self, _badge: u64) -> Result<u64, PeerError> {
        asked::made().map(|label| label.0 as u64).map_err(failed)
    }

    fn refuse(&self, _badge: u64, handle: u64) -> Result<(), PeerError> {
        let levels = op::label_receive(handle, level::ONE).and_then(|()| op::label_levels(handle));
        if levels == Ok([level::ONE; 2]) { Ok(()) } else { Err(PeerError::Failed) }
    }

    fn taint(&self, _badge: u64, count: u64) -> Result<(), PeerError> {
        asked::taint(0, count).map_err(failed)
    }

    fn leave(&self, _badge: u64) -> Result<(), PeerError> {
        program::exit(0)
    }

    fn block(&self, _badge: u64) -> Result<Delegate, PeerError> {
        let service = server::all_words_service::<Turns>().map_err(failed)?;
        Ok(Delegate::mint(service.0, 0))
    }

    fn link(&self, badge: u64, number: u64) -> Result<Delegate, PeerError> {
        let Some(before) = (number as usize).checked_sub(1) else { return self.short(badge) };
        let next = PEERS.get(before).ok_or(PeerError::Failed)?.link(before as u64);
        NEXT.store(Entry::from(next.map_err(failed)?).0, Ordering::Relaxed);
        let service = server::short_service::<Link>().map_err(failed)?;
        Ok(Delegate::mint(service.0, LINK_BADGE))
    }

    fn domain(&self, _badge: u64) -> Result<Delegate, PeerError> {
        Ok(Delegate::entry(Entry::DOMAIN.0, rights::COPY | rights::WRITE))
    }

    fn place(&self, _badge: u64) -> Result<u64, PeerError> {
        table::allocate().map(|entry| entry.0 as u64).map_err(failed)
    }

    fn relay(&self, _badge: u64, count: u64, end: u64) -> Result<(), PeerError> {
        END.store(end as usize, Ordering::Relaxed);
        run(count, |count| {
            let end = Entry(END.load(Ordering::Relaxed));
            for _ in 0..count {
                if read_byte(end).and_then(|byte| write_byte(end, byte)).is_none() {
                    runtime::log!("the peer cannot relay");
                    return;
                }
            }
        })
    }

    fn words(&self, _badge: u64) -> Result<Delegate, PeerError> {
        let service = server::word_service::<Sum>().map_err(failed)?;
        Ok(Delegate::mint(service.0, 0))
    }

    fn take(&self, _badge: u64, number: u64, semaphore: Delegated) -> Result<(), PeerError> {
        let place = SEMAPHORES.get(number as usize).ok_or(PeerError::Failed)?;
        place.store(Entry::from(semaphore).0, Ordering::Relaxed);
        Ok(())
    }

    fn answer(&self, _badge: u64, count: u64, cpus: u64) -> Result<(), PeerError> {
        CPUS.store(cpus, Ordering::Relaxed);
        run(count, |count| {
            let stays = match CPUS.load(Ordering::Relaxed) {
                0 => Ok(()),
                cpus => together::stay_on(cpus.trailing_zeros() as usize),
            };
            if let Err(problem) = stays {
                runtime::log!("the peer: {problem}");
                return;
            }
            let (heard, said) = (semaphore(0), semaphore(1));
            for _ in 0..count {
                if op::p(heard, NEVER).is_err() || op::v(said).is_err() {
                    runtime::log!("the peer cannot answer");
                    return;
                }
            }
        })
    }

    fn port(&self, _badge: u64, back: Delegated) -> Result<Delegate, PeerError> {
        let own = Port::new(Entry::OWN, PORT, None, None, 0).map_err(failed)?;
        let there = Delegate::entry(own.entry().0, rights::WRITE | rights::COPY);
        *PORTS.lock() = Some((own, Entry::from(back)));
        Ok(there)
    }

    fn echo(&self, _badge: u64, count: u64) -> Result<(), PeerError> {
        run(count, |count| {
            let Some((own, back)) = PORTS.lock().take() else { return };
            for _ in 0..count {
                let Ok((_, mut block)) = port::receive_words::<{ PORT.bytes / 8 }>(own.entry(), NEVER) else {
                    return;
                };
                block[0] = !block[0];
                if port::send_words(back, &block).is_err() {
                    runtime::log!("the peer cannot send");
                    return;
                }
            }
        })
    }

    fn turn(&self, _badge: u64, bytes: &[u8], into: &mut [u8]) -> Result<usize, PeerError> {
        let into = into.get_mut(..bytes.len()).ok_or(PeerError::Failed)?;
        into.copy_from_slice(bytes);
        if let Some(first) = into.first_mut() {
            *first = !*first;
        }
        Ok(bytes.len())
    }

    fn sum(&self, _badge: u64, bytes: &[u8]) -> Result<u64, PeerError> {
        Ok(sum(bytes))
    }

    fn give_way(&self, _badge: u64, count: u64) -> Result<(), PeerError> {
        run(count, |count| (0..count).for_each(|_| op::yield_now()))
    }
}

/// Waits for a byte of the pipe that this end reads.
pub fn read_byte(end: Entry) -> Option<u8> {
    let mut byte = [0];
    PipeEndClient(Direct(end)).read(&mut byte).ok().filter(|count| *count == 1).map(|_| byte[0])
}

/// Writes a byte to the pipe that this end writes.
pub fn write_byte(end: Entry, byte: u8) -> Option<()> {
    PipeEndClient(Direct(end)).write(&[byte]).ok().filter(|count| *count == 1).map(drop)
}

/// The sum of the words of eight bytes.
#[inline(never)]
pub fn sum(bytes: &[u8]) -> u64 {
    let (words, _) = bytes.as_chunks();
    words.iter().fold(0, |sum: u64, word| sum.wrapping_add(u64::from_le_bytes(*word)))
}

fn run(count: u64, work: fn(usize)) -> Result<(), PeerError> {
    Thread::start(work, count as usize).map(drop).map_err(failed)
}

/// Is the peer of this number.
pub fn serve(number: u64) -> u8 {
    let Some(name) = usize::try_from(number).ok().and_then(|number| NAMES.get(number)) else {
        runtime::log!("there are but {MOST} peers");
        return 1;
    };
    match server::publish::<Server>(name, ACTIVATIONS) {
        Ok(_) => server::park(),
        Err(error) => {
            runtime::log!("cannot serve: {error}");
            1
        }
    }
}
