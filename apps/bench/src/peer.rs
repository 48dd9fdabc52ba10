//! The other domain: this program again, started through `proc`. It serves words, and works with two
//! semaphores that we hand to it.

use alloc::string::{String, ToString};
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use interface::{Delegate, Delegated, Reply, Request, codes, interface};
use loader::startup::{self, Contents};
use runtime::abi::{NEVER, PAGE_BYTES};
use runtime::connection::{Connection, Name};
use runtime::entry::Entry;
use runtime::op;
use runtime::server::{self, Serve, ServeWord};
use runtime::thread::Thread;
use tool::inspect::PROC;

/// With this option the program is the peer.
pub const OPTION: &str = "--peer";
/// The name of its service.
const NAME: &str = "bench-peer";
/// Calls that are served at the same time.
const ACTIVATIONS: usize = 2;

codes! {
    /// Why the peer refused.
    pub enum PeerError {
        1 Failed "the nucleus refused"
    }
}

/// What the other domain does.
#[interface]
pub trait Peer {
    /// A call entry to a service that adds its words.
    fn words(&self) -> Result<Delegated, PeerError>;
    /// Takes a semaphore: number 0 or 1.
    fn take(&self, number: u64, semaphore: Delegate) -> Result<(), PeerError>;
    /// Starts a thread that `count` times waits for semaphore 0 and raises semaphore 1.
    fn answer(&self, count: u64) -> Result<(), PeerError>;
    /// Starts a thread that yields `count` times.
    fn give_way(&self, count: u64) -> Result<(), PeerError>;
}

/// Our end of it.
pub static PEER: PeerClient<Connection<Name<'static>>> = PeerClient(Connection::named(NAME));
/// The peer's process, 0 = not started.
static PROCESS: AtomicU64 = AtomicU64::new(0);

/// Starts it, if it is not there.
pub fn start() -> Result<(), String> {
    if PROCESS.load(Ordering::Relaxed) == 0 {
        let number = spawn("/bin/bench", &["bench", OPTION])?;
        PROCESS.store(number, Ordering::Relaxed);
    }
    Ok(())
}

/// Starts a program without streams.
pub fn spawn(path: &str, words: &[&str]) -> Result<u64, String> {
    let contents = Contents { table_entries: 0, schedule: 0, name: words[0], streams: ["null", "console", "console"] };
    let mut page = [0; PAGE_BYTES / 8];
    let used = startup::write(&mut page, &contents, words.iter().copied(), [], []).map_err(|e| e.to_string())?;
    PROC.spawn(path, &page[..used], 0).map_err(|error| error.to_string())
}

/// Ends it, if it is there.
pub fn end() {
    let number = PROCESS.swap(0, Ordering::Relaxed);
    if number != 0 {
        let _ = PROC.kill(number);
        let _ = PROC.wait(number);
    }
}

/// The peer's service of words.
struct Sum;

impl ServeWord for Sum {
    fn serve(_badge: u64, words: [u64; 5]) -> u64 {
        words[0] + words[1]
    }
}

/// The peer.
struct Server;

static SEMAPHORES: [AtomicUsize; 2] = [const { AtomicUsize::new(0) }; 2];

fn semaphore(number: usize) -> Entry {
    Entry(SEMAPHORES[number].load(Ordering::Relaxed))
}

impl Serve for Server {
    fn serve(request: &mut Request<'_>) -> Reply {
        Self.dispatch(request)
    }
}

impl PeerServer for Server {
    fn words(&self, _badge: u64) -> Result<Delegate, PeerError> {
        let service = server::word_service::<Sum>().map_err(|_| PeerError::Failed)?;
        Ok(Delegate::mint(service.0, 0))
    }

    fn take(&self, _badge: u64, number: u64, semaphore: Delegated) -> Result<(), PeerError> {
        let place = SEMAPHORES.get(number as usize).ok_or(PeerError::Failed)?;
        place.store(Entry::from(semaphore).0, Ordering::Relaxed);
        Ok(())
    }

    fn answer(&self, _badge: u64, count: u64) -> Result<(), PeerError> {
        run(count, |count| {
            let (heard, said) = (semaphore(0), semaphore(1));
            for _ in 0..count {
                if op::p(heard, NEVER).is_err() || op::v(said).is_err() {
                    runtime::log!("the peer cannot answer");
                    return;
                }
            }
        })
    }

    fn give_way(&self, _badge: u64, count: u64) -> Result<(), PeerError> {
        run(count, |count| (0..count).for_each(|_| op::yield_now()))
    }
}

fn run(count: u64, work: fn(usize)) -> Result<(), PeerError> {
    Thread::start(work, count as usize).map(drop).map_err(|_| PeerError::Failed)
}

/// Is the peer.
pub fn serve() -> u8 {
    match server::publish::<Server>(NAME, ACTIVATIONS) {
        Ok(_) => server::park(),
        Err(error) => {
            runtime::log!("cannot serve: {error}");
            1
        }
    }
}
