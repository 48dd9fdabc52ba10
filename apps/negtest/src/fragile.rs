//! Negative tests of calls that a server dies of. They need the system `systems/restarts.toml`.

use alloc::format;
use alloc::string::{String, ToString};

use idl::Failure;
use protocols::file::FileClient;
use runtime::abi::Error;
use runtime::connection::{Connection, Name};
use runtime::{op, thread};
use tool::inspect;

use crate::case::Case;

/// All of them.
pub const ALL: &[Case] = &[
    Case::tried("call-kills-once", "calls what a server dies of and what is not repeated", || kills("append", 1)),
    Case::tried("call-kills-twice", "calls what a server dies of and what is repeated once", || kills("read", 2)),
    Case::tried("call-kills-by-name", "the same with another client each time, until restarts are late", late),
];

const SERVER: &str = "fragile";
/// Longer than its restart is put off in these tests, in nanoseconds.
const PATIENCE: u64 = 10_000_000_000;

fn client() -> FileClient<Connection<Name<'static>>> {
    FileClient(Connection::named(SERVER))
}

/// How often the server was started again, once it runs.
fn restarts() -> Result<u64, String> {
    let deadline = op::clock() + PATIENCE;
    loop {
        let domains = inspect::domains().map_err(|error| error.to_string())?;
        let all = inspect::restarts().map_err(|error| error.to_string())?;
        let number = inspect::only(&domains, SERVER);
        if let Ok(number) = number
            && let Some((_, restarts)) = all.iter().find(|(domain, _)| *domain == number)
        {
            return Ok(*restarts);
        }
        if op::clock() > deadline {
            return Err(format!("{SERVER} does not come back"));
        }
        thread::sleep(1_000_000).map_err(|error| error.to_string())?;
    }
}

/// Makes the call; the server must have died so often, and a fresh client be served.
fn kills(what: &str, deaths: u64) -> Result<String, String> {
    let before = restarts()?;
    client().stat().map_err(|error| format!("before: {error}"))?;
    let bad = client();
    let outcome = match what {
        "append" => bad.append(b"x").map(drop),
        _ => bad.read(0, &mut [0; 8]).map(drop),
    };
    if outcome != Err(Failure::Transport(Error::PeerDied)) {
        return Err(format!("{what}: {outcome:?}"));
    }
    client().stat().map_err(|error| format!("a fresh client: {error}"))?;
    bad.stat().map_err(|error| format!("the same client: {error}"))?;
    let died = restarts()? - before;
    if died != deaths {
        return Err(format!("{SERVER} died {died} times instead of {deaths}"));
    }
    Ok(format!("{}; deaths: {deaths}; a fresh client is served", Error::PeerDied))
}

fn late() -> Result<String, String> {
    const CALLS: usize = 12;
    for _ in 0..CALLS {
        kills("append", 1)?;
    }
    Ok(format!("{}, {CALLS} times; the server comes back", Error::PeerDied))
}
