//! The load while the victim is killed: threads that use every service, and compare.

use alloc::format;
use alloc::string::{String, ToString};
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use loader::startup::{Contents, write};
use runtime::abi::Error;
use runtime::child::Child;
use runtime::connection::{Connection, Name};
use runtime::idl::{Failure, Reply, Request};
use runtime::op::{self, Schedule};
use runtime::protocols::parent::ParentError;
use runtime::protocols::process::ProcessError;
use runtime::protocols::stream::{StreamClient, StreamError, StreamServer};
use runtime::server::{self, Serve};
use runtime::sync::Mutex;
use runtime::thread::{self, Thread};
use tool::inspect::PROC;

use crate::again::{again, report};
use crate::files::Files;
use tool::random::Random;

/// Slice of a load's thread, in microseconds.
const SLICE: u32 = 2_000;
/// Nanoseconds that a sleep may take longer than asked for.
const LATE: u64 = 2_000_000_000;

/// A thread that uses something again and again.
pub struct Load {
    /// The service that it uses.
    pub name: &'static str,
    priority: u8,
    work: fn(&Load, Random) -> Result<(), String>,
    seed: AtomicU64,
    done: AtomicU64,
    failure: Mutex<Option<String>>,
}

impl Load {
    const fn new(name: &'static str, priority: u8, work: fn(&Load, Random) -> Result<(), String>) -> Self {
        Self { name, priority, work, seed: AtomicU64::new(0), done: AtomicU64::new(0), failure: Mutex::new(None) }
    }
}

/// All of them. Their priorities are below that of the thread that kills.
pub static LOADS: [Load; 6] = [
    Load::new("files", 8, files),
    Load::new("console", 9, console),
    Load::new("names", 8, names),
    Load::new("programs", 10, programs),
    Load::new("sleeping", 12, sleeping),
    Load::new("yielding", 8, yielding),
];

static STOP: AtomicBool = AtomicBool::new(false);

/// The loads end after what they are at.
pub fn stop() {
    STOP.store(true, Ordering::Relaxed);
}

fn go_on() -> bool {
    !STOP.load(Ordering::Relaxed)
}

impl Load {
    /// Starts it.
    pub fn start(&'static self, seed: u64) -> Result<Thread, Error> {
        self.seed.store(seed, Ordering::Relaxed);
        let run = |address: usize| {
            let Some(load) = LOADS.get(address) else { return };
            if let Err(cause) = (load.work)(load, Random(load.seed.load(Ordering::Relaxed))) {
                *load.failure.lock() = Some(cause);
            }
        };
        let place = LOADS.iter().position(|load| core::ptr::eq(load, self)).unwrap_or_default();
        Thread::start_with(run, place, Schedule { priority: self.priority, slice: SLICE })
    }

    /// How often it has done what it does.
    pub fn done(&self) -> u64 {
        self.done.load(Ordering::Relaxed)
    }

    /// The failure of this thread, if it had one.
    pub fn failure(&self) -> Result<(), String> {
        match &*self.failure.lock() {
            Some(cause) => Err(format!("{}, after {} times: {cause}", self.name, self.done())),
            None => Ok(()),
        }
    }

    /// The work that it did, for the report.
    pub fn summary(&self) -> Result<String, String> {
        self.failure().map(|()| format!("{} times, nothing lost", self.done()))
    }

    fn count(&self) {
        self.done.fetch_add(1, Ordering::Relaxed);
    }
}

fn files(load: &Load, mut random: Random) -> Result<(), String> {
    let mut files = Files::new(Random(random.any()))?;
    while go_on() {
        files.step()?;
        load.count();
        thread::sleep(random.below(300_000)).map_err(report("sleep"))?;
    }
    files.finish()
}

/// Lines with rising numbers: a boot test sees whether each that was acknowledged came out.
fn console(load: &Load, mut random: Random) -> Result<(), String> {
    let console = StreamClient(Connection::named("console"));
    let mut number = 0;
    while go_on() {
        number += 1;
        let line = format!("chaos: line {number} {}ok\n", "-".repeat(random.below(40) as usize));
        let count = again(|| console.write(line.as_bytes())).map_err(report("write"))?;
        if count != line.len() {
            return Err(format!("{count} bytes of {} were taken", line.len()));
        }
        load.count();
        thread::sleep(random.below(8_000_000)).map_err(report("sleep"))?;
    }
    Ok(())
}

/// A service of ours, so that names that a program registered are looked up, too.
struct Echo;

impl Serve for Echo {
    fn serve(request: &mut Request<'_>) -> Reply {
        Echo.dispatch(request)
    }
}

impl StreamServer for Echo {
    fn read(&self, _badge: u64, _into: &mut [u8]) -> Result<usize, StreamError> {
        Err(StreamError::NotReadable)
    }

    fn write(&self, _badge: u64, bytes: &[u8]) -> Result<usize, StreamError> {
        Ok(bytes.len())
    }
}

/// Publishes our service.
pub fn publish() -> Result<(), Failure<ParentError>> {
    server::publish::<Echo>("chaos", 2).map(drop)
}

fn names(load: &Load, mut random: Random) -> Result<(), String> {
    while go_on() {
        // New connections each time: each first call looks the name up.
        let length = random.below(100) as usize;
        let own = StreamClient(Connection::named("chaos"));
        let count = again(|| own.write(&[b'x'; 100][..length])).map_err(report("chaos"))?;
        if count != length {
            return Err(format!("{count} bytes came back instead of {length}"));
        }
        for name in ["ramfs", "console", "proc", "pipes"] {
            reach(name)?;
        }
        load.count();
        thread::sleep(random.below(1_000_000)).map_err(report("sleep"))?;
    }
    Ok(())
}

/// A service of this name is found, at last.
fn reach(name: &str) -> Result<(), String> {
    let deadline = op::clock() + 5_000_000_000;
    loop {
        match Connection::new(Name(name)).entry() {
            Ok(_) => return Ok(()),
            Err(error) if op::clock() > deadline => return Err(format!("{name}: {error}")),
            Err(_) => thread::sleep(1_000_000).map_err(report("sleep"))?,
        }
    }
}

fn programs(load: &Load, mut random: Random) -> Result<(), String> {
    let mut launch = [0; 512];
    let contents = Contents { schedule: 0, name: "", streams: ["null", "null", "null"], compartments: &[] };
    while go_on() {
        let fails = random.once_in(2);
        let path = if fails { "/bin/false" } else { "/bin/true" };
        let used = write(&mut launch, &contents, [path], [], []).map_err(|error| error.to_string())?;
        let process = loop {
            match PROC.spawn(path, &launch[..used], 0, 0) {
                // The file server died twice while it was read.
                Err(Failure::Refused(ProcessError::Unreadable)) => {}
                outcome => break outcome.map_err(report("spawn"))?,
            }
        };
        let status = Child::from(process).wait().map_err(report("wait"))?;
        if status != u64::from(fails) {
            return Err(format!("{path} ended with {status}"));
        }
        load.count();
        thread::sleep(random.below(2_000_000)).map_err(report("sleep"))?;
    }
    Ok(())
}

fn sleeping(load: &Load, mut random: Random) -> Result<(), String> {
    while go_on() {
        let (start, pause) = (op::clock(), random.below(1_000_000));
        thread::sleep(pause).map_err(report("sleep"))?;
        let slept = op::clock() - start;
        if !(pause..pause + LATE).contains(&slept) {
            return Err(format!("slept {slept} ns instead of {pause}"));
        }
        load.count();
    }
    Ok(())
}

fn yielding(load: &Load, mut random: Random) -> Result<(), String> {
    while go_on() {
        for _ in 0..random.below(200) {
            op::yield_now();
        }
        load.count();
        thread::sleep(random.below(500_000)).map_err(report("sleep"))?;
    }
    Ok(())
}
