//! The system's services, through the runtime's connections and streams.

use alloc::vec;
use alloc::vec::Vec;

use interface::{Code, Delegate, Failure};
use interfaces::file::{FileClient, FileError, FileSystemClient, Kind, TRUNCATE};
use interfaces::listing::Listing;
use interfaces::names::NamesClient;
use interfaces::pipes::{PipeError, PipesClient};
use interfaces::process::{Force, ProcessClient, ProcessError};
use loader::startup::{Contents, write};
use runtime::entry::Owned;
use runtime::stream::{FILE_SYSTEM, Stream};
use runtime::{Connection, Direct, Entry, op, thread};

use abi::{info, rights};

use crate::{Check, hold};

pub const CHECKS: &[Check] = &[
    ("names lists what is published", names),
    ("a file is made, written, read, renamed and removed", file),
    ("a file's errors arrive", errors),
    ("a pipe carries bytes and ends", pipe),
    ("streams append to a file and read it", streams),
    ("a program runs and its status arrives", program),
    ("a program that does not exist is refused", no_program),
    ("a server that was killed is reached again", killed),
];

fn say<E: Code>(failure: Failure<E>) -> &'static str {
    match failure {
        Failure::Refused(error) => error.text(),
        Failure::Transport(error) => error.text(),
        Failure::Protocol(error) => error.text(),
    }
}

fn account() -> Delegate {
    Delegate::entry(Entry::ACCOUNT.0, rights::COPY | rights::READ | rights::WRITE)
}

fn names() -> Result<(), &'static str> {
    let mut bytes = [0; 1024];
    let (count, next) = NamesClient(Direct(Entry::NAMES)).list(0, &mut bytes).map_err(say)?;
    let names: Vec<&[u8]> = Listing(&bytes[..count]).map(|record| record.name).collect();
    hold(next == 0, "the list goes on")?;
    hold(["ramfs", "pipes", "console", "proc"].iter().all(|name| names.contains(&name.as_bytes())), "one is missing")
}

fn files() -> &'static FileSystemClient<Connection<runtime::connection::Name<'static>>> {
    &FILE_SYSTEM
}

fn file() -> Result<(), &'static str> {
    let opened = Owned::new(files().create("/tmp/selftest", TRUNCATE, account()).map_err(say)?.into());
    let file = FileClient(Direct(opened.entry()));
    let bytes: Vec<u8> = (0..4096u32).map(|number| (number % 251) as u8).collect();
    for page in 0..3 {
        hold(file.write(page * 4096, &bytes).map_err(say)? == 4096, "a short write")?;
    }
    let mut back = vec![0; 4096];
    for page in 0..3 {
        hold(file.read(page * 4096, &mut back).map_err(say)? == 4096, "a short read")?;
        hold(back == bytes, "other bytes")?;
    }
    hold(file.read(3 * 4096, &mut back).map_err(say)? == 0, "no end")?;
    let stat = files().stat("/tmp/selftest").map_err(say)?;
    hold(stat.size == 3 * 4096 && stat.kind == Kind::File, "a wrong size or kind")?;
    files().rename("/tmp/selftest", "/tmp/renamed").map_err(say)?;
    files().remove("/tmp/renamed").map_err(say)?;
    hold(file.stat() == Err(Failure::Refused(FileError::Stale)), "a removed file goes on")
}

fn errors() -> Result<(), &'static str> {
    let refused = |result: Result<_, _>, error| result == Err(Failure::Refused(error));
    hold(refused(files().stat("/nowhere"), FileError::NotFound), "a file that does not exist")?;
    hold(refused(files().stat("/etc/nowhere/x"), FileError::NotFound), "a folder that does not exist")?;
    let made = files().make_directory("/etc", account());
    hold(made == Err(Failure::Refused(FileError::Exists)), "a folder that exists")
}

fn pipe() -> Result<(), &'static str> {
    let pipes = PipesClient(Connection::named("pipes"));
    let number = pipes.create().map_err(say)?;
    let writer = thread::spawn(move || {
        let pipes = PipesClient(Connection::named("pipes"));
        let mut left = 20_000usize;
        while left > 0 {
            let Ok(count) = pipes.write(number, &[b'x'; 1000][..left.min(1000)]) else { break };
            left -= count;
        }
        let _ = pipes.close_write(number);
    })
    .map_err(|error| error.text())?;
    let mut total = 0;
    let mut bytes = [0; 700];
    loop {
        match pipes.read(number, &mut bytes).map_err(say)? {
            0 => break,
            count => {
                hold(bytes[..count].iter().all(|byte| *byte == b'x'), "other bytes")?;
                total += count;
            }
        }
    }
    writer.join();
    hold(total == 20_000, "bytes were lost")?;
    pipes.close_read(number).map_err(say)?;
    hold(pipes.read(number, &mut bytes) == Err(Failure::Refused(PipeError::NoSuchPipe)), "the pipe is still there")
}

fn streams() -> Result<(), &'static str> {
    drop(Owned::new(files().create("/tmp/stream", TRUNCATE, account()).map_err(say)?.into()));
    Stream::new("append:/tmp/stream").write_all(b"one ").map_err(say)?;
    Stream::new("append:/tmp/stream").write_all(b"two").map_err(say)?;
    let input = Stream::input("file:/tmp/stream");
    let mut bytes = [0; 5];
    hold(input.read(&mut bytes).map_err(say)? == 5 && &bytes == b"one t", "the first part")?;
    hold(input.read(&mut bytes).map_err(say)? == 2 && &bytes[..2] == b"wo", "the second part")?;
    hold(input.read(&mut bytes).map_err(say)? == 0, "no end")?;
    files().remove("/tmp/stream").map_err(say)
}

fn launch(path: &str) -> Result<u64, Failure<ProcessError>> {
    let mut launch = [0; 512];
    let contents = Contents { table_entries: 0, schedule: 0, name: "", streams: ["null", "console", "console"] };
    let used = write(&mut launch, &contents, [path], [], []).unwrap_or(0);
    ProcessClient(Connection::named("proc")).spawn(path, &launch[..used], 0)
}

fn program() -> Result<(), &'static str> {
    let process = launch("/bin/hello").map_err(say)?;
    let status = ProcessClient(Connection::named("proc")).wait(process).map_err(say)?;
    hold(status == 0, "another status")
}

fn no_program() -> Result<(), &'static str> {
    hold(launch("/bin/nothing") == Err(Failure::Refused(ProcessError::NotFound)), "not refused")
}

/// The number of a living domain.
fn domain(name: &str) -> Result<u64, &'static str> {
    let mut position = 0;
    let offset = |field: usize, bytes: &[u8]| {
        bytes.get(field..field + 8).and_then(|bytes| bytes.try_into().ok()).map_or(0, u64::from_le_bytes)
    };
    let proc = ProcessClient(Connection::named("proc"));
    loop {
        let mut bytes = [0; size_of::<info::Domain>()];
        let (_, next) = proc.inspect(info::DOMAIN, position, &mut bytes).map_err(say)?;
        let found = &bytes[core::mem::offset_of!(info::Domain, name)..][..16];
        if found.starts_with(name.as_bytes()) && offset(core::mem::offset_of!(info::Domain, state), &bytes) == 0 {
            return Ok(offset(0, &bytes));
        }
        if next == 0 {
            return Err("no such domain");
        }
        position = next;
    }
}

fn killed() -> Result<(), &'static str> {
    let proc = ProcessClient(Connection::named("proc"));
    for round in 0..3 {
        files().stat("/etc").map_err(say)?;
        for name in ["ramfs", "names"] {
            let number = domain(name)?;
            proc.kill_domain(number, Force::Gentle).map_err(say)?;
            let start = op::clock();
            let stat = files().stat("/etc").map_err(say)?;
            hold(stat.kind == Kind::Directory, "another kind")?;
            runtime::log!("round {round}: {name} was back after {} us", (op::clock() - start) / 1000);
        }
    }
    Ok(())
}
