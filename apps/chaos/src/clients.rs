//! `chaos --clients`: tests a server whose clients are killed, cancelled and run into deadlines at random instants,
//! several threads at a time, in whatever they call.
//!
//! | way | what happens to a call |
//! |---|---|
//! | killed | a program whose threads call dies |
//! | cancelled | threads of ours call; `thread_ex_regs` takes one back |
//! | late | threads of ours call through a service of ours, with deadlines that pass at random instants |
//!
//! After each round a fresh client asks every server, and must be answered soon.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt::Display;
use core::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use loader::startup::{Contents, write};
use runtime::abi::rights::{MAP_READ, MAP_WRITE};
use runtime::abi::{self, Control, PAGE_BYTES};
use runtime::child::Child;
use runtime::connection::{Connection, Direct, Name};
use runtime::entry::Owned;
use runtime::idl::{Delegate, Failure, Reply, Request};
use runtime::op::{self, Schedule};
use runtime::pipes::PIPES;
use runtime::protocols::console::ConsoleClient;
use runtime::protocols::file::{FileClient, TRUNCATE};
use runtime::protocols::names::NamesClient;
use runtime::protocols::net::{DatagramsClient, NetClient, SessionClient};
use runtime::protocols::parent::ParentClient;
use runtime::protocols::pipes::{PipeEndClient, PipesClient};
use runtime::protocols::random::RandomClient;
use runtime::protocols::sigma0::Sigma0Client;
use runtime::protocols::status::StatusClient;
use runtime::protocols::time::TimeClient;
use runtime::server::{self, Serve};
use runtime::stream::FILE_SYSTEM;
use runtime::thread::{self, Thread};
use runtime::{Entry, message};
use tool::inspect::PROC;
use tool::{Arguments, println};

use tool::random::Random;

const MICROSECOND: u64 = 1_000;
const MILLISECOND: u64 = 1_000_000;
/// How long a fresh client waits for its answer.
const PATIENCE: u64 = 2_000 * MILLISECOND;
/// Calls of ours that are cut off in a round.
const CUT_OFF: u64 = 40;
/// Threads that call at the same time.
const THREADS: usize = 4;
const BELOW_OURS: Schedule = Schedule { priority: 15, slice: 1_000 };

type Calls = Connection<Name<'static>>;

/// A server, and a call that does no harm.
struct Server {
    name: &'static str,
    connection: Calls,
    call: fn(&Calls) -> Result<(), String>,
}

impl Server {
    const fn new(name: &'static str, call: fn(&Calls) -> Result<(), String>) -> Self {
        Self { name, connection: Connection::named(name), call }
    }

    fn ask(&self) -> Result<(), String> {
        (self.call)(&self.connection).map_err(|error| format!("{}: {error}", self.name))
    }
}

/// A refusal is an answer, too.
fn answered<T, E: Display>(outcome: Result<T, Failure<E>>) -> Result<(), String> {
    match outcome {
        Ok(_) | Err(Failure::Refused(_)) => Ok(()),
        Err(error) => Err(error.to_string()),
    }
}

/// All that a program reaches.
static SERVERS: [Server; 15] = [
    Server::new("ramfs", |_| answered(FILE_SYSTEM.stat("/bin"))),
    Server::new("pipes", |calls| answered(PipesClient(calls).open(Delegate::entry(Entry::DOMAIN.0, abi::rights::ALL)))),
    Server::new("proc", |_| answered(PROC.list(0, &mut [0; 1024]))),
    Server::new("names", |_| answered(NamesClient(Direct(Entry::NAMES)).list(0, &mut [0; 256]))),
    Server::new("sigma0", |_| answered(Sigma0Client(Direct(Entry::SIGMA0)).draw(0, 0, MAP_READ | MAP_WRITE))),
    Server::new("roottask", |_| answered(ParentClient(Direct(Entry::PARENT)).restarts(0))),
    Server::new("console", |calls| answered(ConsoleClient(calls).write(&[]))),
    Server::new("random", |calls| answered(RandomClient(calls).fill(&mut [0; 64]))),
    Server::new("time", |calls| answered(TimeClient(calls).offset())),
    Server::new("status", |calls| answered(StatusClient(calls).take())),
    Server::new("net", |calls| answered(NetClient(calls).interfaces(0, &mut [0; 256]))),
    // The same servers, with calls that change something.
    Server::new("ramfs/write", |_| write_file()),
    Server::new("pipes/write", |_| write_pipe()),
    Server::new("proc/spawn", |_| spawn_and_end()),
    Server::new("net/session", |_| use_session()),
];

/// Makes a file, writes, reads and removes it: others do so under the same name.
fn write_file() -> Result<(), String> {
    const PATH: &str = "/tmp/client";
    let file = match FILE_SYSTEM.create(PATH, TRUNCATE) {
        Ok(file) => Owned::new(file.into()),
        outcome => return answered(outcome),
    };
    let file = FileClient(Direct(file.entry()));
    answered(file.append(b"what a client writes"))?;
    answered(file.read(0, &mut [0; 64]))?;
    answered(FILE_SYSTEM.remove(PATH))
}

/// Makes a pipe, writes and reads it.
fn write_pipe() -> Result<(), String> {
    let pipe = match PIPES.create() {
        Ok(pipe) => pipe,
        outcome => return answered(outcome),
    };
    let through = || match PIPES.end(pipe, pipe) {
        Ok(end) => {
            let end = Owned::new(end.into());
            let end = PipeEndClient(Direct(end.entry()));
            // Without a byte there it would wait.
            end.write(b"x").map_or_else(|error| answered::<(), _>(Err(error)), |_| answered(end.read(&mut [0; 8])))
        }
        outcome => answered(outcome),
    };
    let outcome = through();
    answered(PIPES.close_write(pipe))?;
    answered(PIPES.close_read(pipe))?;
    outcome
}

/// Starts a program, which ends by itself or by us.
fn spawn_and_end() -> Result<(), String> {
    const FRAMES: u64 = 48;
    let contents = Contents { schedule: 0, name: "nothing", streams: ["null", "null", "null"], compartments: &[] };
    let mut page = [0; PAGE_BYTES / 8];
    let used = write(&mut page, &contents, ["true"], [], []).map_err(text)?;
    match PROC.spawn("/bin/true", &page[..used], FRAMES, 0) {
        Ok(child) => answered(Child::from(child).kill()),
        outcome => answered(outcome),
    }
}

/// Opens a session of the network and a port in it, and closes both. A client that is cut off leaves sessions, which end after a while.
fn use_session() -> Result<(), String> {
    static NET: Calls = Connection::named("net");
    let session = match NetClient(&NET).open(Delegate::entry(Entry::ACCOUNT.0, abi::rights::ALL)) {
        Ok(session) => Owned::new(session.into()),
        outcome => return answered(outcome),
    };
    let session = SessionClient(Direct(session.entry()));
    match session.datagrams(0, 0) {
        Ok(port) => {
            let port = Owned::new(port.into());
            answered(DatagramsClient(Direct(port.entry())).port())?;
        }
        outcome => answered(outcome)?,
    }
    answered(session.close())
}

static STOP: AtomicBool = AtomicBool::new(false);
static CALLS: AtomicU64 = AtomicU64::new(0);
/// A portal to [`Between`].
static BETWEEN: AtomicUsize = AtomicUsize::new(0);

/// `chaos --client SERVER THREADS`: calls until it is killed.
pub fn client(server: &str) -> u8 {
    let Some(place) = SERVERS.iter().position(|known| known.name == server) else { return tool::USAGE };
    for _ in 1..THREADS {
        core::mem::forget(Thread::start(call, place));
    }
    call(place);
    0
}

fn call(place: usize) {
    while !STOP.load(Ordering::Relaxed) {
        // An end by force is one of the answers.
        let _ = SERVERS[place].ask();
        CALLS.fetch_add(1, Ordering::Relaxed);
    }
}

/// Calls the server that word 1 names.
struct Between;

impl Serve for Between {
    fn serve(request: &mut Request<'_>) -> Reply {
        let _ = SERVERS[request.words[1] as usize % SERVERS.len()].ask();
        Reply::word(0)
    }
}

fn call_between(place: usize) {
    let mut random = Random(place as u64);
    let entry = Entry(BETWEEN.load(Ordering::Relaxed));
    while !STOP.load(Ordering::Relaxed) {
        let words = [0, place as u64, 0, 0, op::clock() + random.below(200 * MICROSECOND)];
        let _ = message::call(entry, words, Control(Control::DEADLINE));
        CALLS.fetch_add(1, Ordering::Relaxed);
    }
}

/// `chaos --clients`.
pub fn run(mut arguments: Arguments) -> u8 {
    let numbers = arguments.number("--rounds").and_then(|rounds| Ok((rounds, arguments.number("--seed")?)));
    let Ok((rounds, seed)) = numbers else { return tool::USAGE };
    let (rounds, seed) = (rounds.unwrap_or(10), seed.unwrap_or(1));
    let wanted = arguments.words();
    println!("chaos: {rounds} rounds of clients that are killed, cancelled and late, seed {seed}");
    let chosen = |server: &&Server| wanted.is_empty() || wanted.contains(&server.name);
    let mut random = Random(seed);
    let outcome = prepare().and_then(|()| {
        SERVERS.iter().enumerate().filter(|(_, server)| chosen(server)).try_for_each(|(place, server)| {
            let mut slowest = 0;
            for round in 1..=rounds {
                for (way, cut_off) in WAYS {
                    let when = format!("{}, {way}, round {round}", server.name);
                    cut_off(place, &mut random).map_err(|error| format!("{when}: {error}"))?;
                    slowest = all_answer(place).map_err(|error| format!("{when}: {error}"))?.max(slowest);
                }
            }
            println!("chaos: {}: {rounds} rounds, a fresh client waits {} us at most", server.name, slowest / 1000);
            Ok(())
        })
    });
    match outcome {
        Ok(()) => 0,
        Err(cause) => arguments.fail("--clients", cause),
    }
}

/// One way to disturb clients of the server at a place.
type Way = fn(usize, &mut Random) -> Result<(), String>;
const WAYS: [(&str, Way); 3] = [("killed", killed), ("cancelled", cancelled), ("late", late)];

fn text(error: impl Display) -> String {
    error.to_string()
}

fn prepare() -> Result<(), String> {
    server::activations(THREADS).map_err(text)?;
    let service = server::service_with::<Between>(abi::op::SERVICE_DEADLINE).map_err(text)?;
    let place = runtime::table::allocate().map_err(text)?;
    op::portal_new(Entry::OWN, service, 0, place, 0).map_err(text)?;
    BETWEEN.store(place.0, Ordering::Relaxed);
    // Connections are opened before anything is cut off.
    SERVERS.iter().try_for_each(Server::ask)
}

/// A fresh client asks the server at `place`, and then all others: nobody else is kept waiting either. Gives the longest wait.
fn all_answer(place: usize) -> Result<u64, String> {
    static ANSWERED: AtomicU64 = AtomicU64::new(0);
    ANSWERED.store(0, Ordering::SeqCst);
    let asks = Thread::start(
        |place| {
            for step in 0..SERVERS.len() {
                let start = op::clock();
                let outcome = SERVERS[(place + step) % SERVERS.len()].ask();
                let waited = op::clock() - start;
                ANSWERED.store(if outcome.is_ok() { waited.max(1) } else { u64::MAX }, Ordering::SeqCst);
                while ANSWERED.load(Ordering::SeqCst) != 0 {
                    let _ = thread::sleep(20 * MICROSECOND);
                }
            }
        },
        place,
    )
    .map_err(text)?;
    let mut slowest = 0;
    for step in 0..SERVERS.len() {
        let name = SERVERS[(place + step) % SERVERS.len()].name;
        let deadline = op::clock() + PATIENCE;
        let waited = loop {
            match ANSWERED.load(Ordering::SeqCst) {
                0 if op::clock() > deadline => {
                    core::mem::forget(asks);
                    return Err(format!("{name} does not answer a fresh client"));
                }
                0 => thread::sleep(20 * MICROSECOND).map_err(text)?,
                waited => break waited,
            }
        };
        if waited == u64::MAX {
            return Err(format!("{name} gives a fresh client an error"));
        }
        slowest = waited.max(slowest);
        ANSWERED.store(0, Ordering::SeqCst);
    }
    asks.join();
    Ok(slowest)
}

fn killed(place: usize, random: &mut Random) -> Result<(), String> {
    let contents = Contents { schedule: 0, name: "client", streams: ["null", "log", "log"], compartments: &[] };
    let mut page = [0; PAGE_BYTES / 8];
    let words = ["chaos", "--client", SERVERS[place].name];
    let used = write(&mut page, &contents, words, [], []).map_err(text)?;
    let child = PROC.spawn("/bin/chaos", &page[..used], 0, 0).map(Child::from).map_err(text)?;
    thread::sleep(2 * MILLISECOND + random.below(3 * MILLISECOND)).map_err(text)?;
    let begun = op::clock();
    child.end().map_err(text)?;
    if op::clock() - begun < PATIENCE { Ok(()) } else { Err("the program's end took too long".to_string()) }
}

/// Threads of ours that run `work` are cut off by `cut` at random instants; afterwards they end.
fn with_threads(
    place: usize,
    random: &mut Random,
    work: fn(usize),
    cut: impl Fn(&Thread) -> Result<(), String>,
) -> Result<(), String> {
    STOP.store(false, Ordering::Relaxed);
    let threads: Result<Vec<Thread>, _> = (0..THREADS).map(|_| Thread::start_with(work, place, BELOW_OURS)).collect();
    let threads = threads.map_err(text)?;
    let before = CALLS.load(Ordering::Relaxed);
    let mut outcome = Ok(());
    for _ in 0..CUT_OFF {
        thread::sleep(random.below(100 * MICROSECOND)).map_err(text)?;
        outcome = outcome.and_then(|()| cut(&threads[random.below(THREADS as u64) as usize]));
    }
    STOP.store(true, Ordering::Relaxed);
    let deadline = op::clock() + PATIENCE;
    while outcome.is_ok() && CALLS.load(Ordering::Relaxed) == before {
        thread::sleep(100 * MICROSECOND).map_err(text)?;
        if op::clock() > deadline {
            outcome = Err("no call has ended".to_string());
        }
    }
    // A server that hangs would keep us for ever, too: a client without an answer is cut off.
    if outcome.is_err() {
        core::mem::forget(threads);
    } else {
        threads.into_iter().for_each(Thread::join);
    }
    outcome
}

fn cancelled(place: usize, random: &mut Random) -> Result<(), String> {
    with_threads(place, random, call, |thread| op::thread_cancel(thread.entry()).map_err(text))
}

fn late(place: usize, random: &mut Random) -> Result<(), String> {
    with_threads(place, random, call_between, |_| Ok(()))
}
