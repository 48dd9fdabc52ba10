//! Negative tests of programs that take all there is of the network. They need a system with `netd` and `httpd`.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::net::{IpAddr, Ipv4Addr};
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use idl::{Delegate, Failure, Protocol};
use protocols::net::{DatagramsClient, SessionClient};
use protocols::process::Force;
use runtime::abi::{self, rights};
use runtime::connection::Direct;
use runtime::entry::Owned;
use runtime::server::{self, ServeWord};
use runtime::{Entry, op, thread};
use sockets::{Endpoint, NetError, Refusal, Session};
use tool::inspect::{self, PROC};
use tool::println;

use crate::case::{Case, text};
use crate::child::Child;
use crate::launch::Process;

/// All of them.
pub const ALL: &[Case] = &[
    Case::tried("net-sessions", "opens sessions of the network without end, on several accounts", sessions),
    Case::tried("net-child", "opens more with threads of a domain that it made", child),
    Case::tried("net-ports", "takes UDP ports, echo sockets and queries without end", ports),
    Case::tried("net-connections", "connects with itself without end, in several sessions", connections),
    Case::tried("net-half-open", "has connections begin that it never accepts", half_open),
    Case::tried("net-lingers", "closes connections whose other ends stay open", lingers),
    Case::tried("net-junk", "hands the network other entries than it should", junk),
    Case::tried("net-kept", "listens on the port of the web server while that is started again", kept),
    Case::tried("net-short", "takes what a network with a small account has", short),
    Case::tried("net-self", "connects to a port of its own until it has that port itself", with_itself),
    Case::tried("net-orphans", "has calls that open sessions cut off, so that nobody opens them", orphans),
    Case::tried(
        "net-end",
        "ends connections before anything was read, and has the reader wait for the end",
        end_is_reported,
    ),
    Case::tried("net-crowd", "takes all that programs together may have of the network", crowd),
];

const MILLISECOND: u64 = 1_000_000;
const SECOND: u64 = 1_000 * MILLISECOND;
const LOCAL: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
/// The web server's.
const WEB: u16 = 80;
/// The limit of sessions for a program.
const SESSIONS: usize = 4;
const PORTS: usize = 8;
const QUERIES: usize = 4;
const FLOWS: usize = 128;
const NO_ROOM: Refusal = Failure::Refused(NetError::NoMemory);
const FULL: Refusal = Failure::Refused(NetError::Full);
const TOO_MANY: Refusal = Failure::Refused(NetError::TooMany);

/// Makes as many as are given; how many, and why there are no more.
fn all<T>(mut make: impl FnMut(usize) -> Result<T, Refusal>) -> (Vec<T>, Refusal) {
    let mut made = Vec::new();
    loop {
        match make(made.len()) {
            Ok(one) => made.push(one),
            Err(error) => return (made, error),
        }
    }
}

/// Refused after as many as may be, and for this reason.
fn expect<T>(what: &str, (made, error): &(Vec<T>, Refusal), most: usize) -> Result<(), String> {
    if made.len() == most && *error == TOO_MANY { Ok(()) } else { Err(format!("{} {what}, then: {error}", made.len())) }
}

/// Another program uses the network, and the web server answers it.
fn others_work() -> Result<(), String> {
    match Process::small("neighbour", &["--net-neighbour"])?.wait()? {
        0 => Ok(()),
        status => Err(format!("another program's use of the network ended with {status}")),
    }
}

/// A child: uses the network a little.
pub fn neighbour() -> u8 {
    let use_it = || -> Result<bool, Refusal> {
        let session = Session::open()?;
        let until = op::clock() + 5 * SECOND;
        let port = session.datagrams(0, 0)?;
        port.send(Endpoint::new(LOCAL, port.port()?), b"to myself")?;
        let mut bytes = [0; 64];
        let (count, _) = session.until(until, || port.receive(&mut bytes))?;
        let is_mine = &bytes[..count] == b"to myself";
        let stream = session.connect(1, Endpoint::new(LOCAL, WEB))?;
        session.until(until, || stream.write(b"GET / HTTP/1.0\r\n\r\n"))?;
        let count = session.until(until, || stream.read(&mut bytes))?;
        Ok(is_mine && bytes[..count].starts_with(b"HTTP/1.1 200"))
    };
    match use_it() {
        Ok(true) => 0,
        Ok(false) => 1,
        Err(error) => {
            runtime::log!("{error}");
            2
        }
    }
}

fn sessions() -> Result<String, String> {
    // Accounts that are made for it count as their maker's.
    let accounts: Vec<Owned> = (0..SESSIONS + 1)
        .map(|_| op::account_new(Entry::ACCOUNT, 16).map(Owned::new))
        .collect::<Result<_, _>>()
        .map_err(text)?;
    let held = all(|place| Session::paid_by(accounts[place % accounts.len()].entry()));
    expect("sessions", &held, SESSIONS)?;
    others_work()?;
    if Session::open().err() != Some(TOO_MANY) {
        return Err("one more while another program had one".to_string());
    }
    drop(held);
    let again = all(|_| Session::open());
    expect("sessions", &again, SESSIONS)?;
    Ok(format!("{SESSIONS}, then: {TOO_MANY}; others go on"))
}

/// The outcome of an opening: 1 = as it should be.
static OPENED: AtomicU64 = AtomicU64::new(0);

/// Opens a session with the caller's thread.
struct Opens;

impl ServeWord for Opens {
    fn serve(_: u64, _: [u64; 5]) -> u64 {
        let outcome = Session::open().err();
        OPENED.store(if outcome == Some(TOO_MANY) { 1 } else { 2 }, Ordering::Relaxed);
        0
    }
}

/// Threads of a domain that we made call us, and here open what we may not have ourselves.
fn child() -> Result<String, String> {
    server::activations(1).map_err(text)?;
    let service = Owned::new(server::word_service::<Opens>().map_err(text)?);
    let held = all(|_| Session::open());
    expect("sessions", &held, SESSIONS)?;
    let mut child = Child::new().map_err(text)?;
    let open = op::portal_new(child.entry(), service.entry(), 0, Entry::OWN, 0).map_err(text)?;
    child.begins(open.0 as u64, [0; 6]).map_err(text)?;
    child.ends_within(10 * SECOND)?;
    match OPENED.load(Ordering::Relaxed) {
        1 => others_work()?,
        0 => return Err("it was not tried".to_string()),
        _ => return Err("a session that a domain of ours opens does not count as ours".to_string()),
    }
    Ok(format!("counts as its maker: {TOO_MANY}"))
}

fn ports() -> Result<String, String> {
    let sessions = (Session::open().map_err(text)?, Session::open().map_err(text)?);
    let session = |place: usize| if place.is_multiple_of(2) { &sessions.0 } else { &sessions.1 };
    let udp = all(|place| session(place).datagrams(place as u32, 0));
    expect("UDP ports", &udp, PORTS)?;
    if session(0).echo(0).err() != Some(TOO_MANY) {
        return Err("echo besides".to_string());
    }
    let ports: Vec<u16> = udp.0.iter().map(|socket| socket.port()).collect::<Result<_, _>>().map_err(text)?;
    // Inboxes are filled: their content lies in pages of ours.
    for port in &ports {
        for _ in 0..16 {
            udp.0[0].send(Endpoint::new(LOCAL, *port), &[1; 1472]).map_err(text)?;
        }
    }
    others_work()?;
    drop(udp);
    let echo = all(|place| session(place).echo(place as u32));
    expect("echo sockets", &echo, PORTS)?;
    drop(echo);
    // Queries of which nobody takes the answer. They go with their session.
    let open =
        || sockets::NET.open(Delegate::entry(Entry::ACCOUNT.0, rights::ALL)).map(|entry| Owned::new(entry.into()));
    let raw = open().map_err(text)?;
    let raw = SessionClient(Direct(raw.entry()));
    let queries = all(|place| raw.resolve(place as u32, "cairn.invalid", false).map(|entry| Owned::new(entry.into())));
    raw.close().map_err(text)?;
    expect("queries", &queries, QUERIES)?;
    others_work()?;
    Ok(format!("{PORTS} and {QUERIES}, then: {TOO_MANY}; others go on"))
}

fn connections() -> Result<String, String> {
    let sessions = (Session::open().map_err(text)?, Session::open().map_err(text)?);
    let connect = |place: usize| {
        let session = if place.is_multiple_of(2) { &sessions.0 } else { &sessions.1 };
        // Our table is small; the socket stays without its entry.
        session.connect(place as u32, Endpoint::new(LOCAL, WEB)).map(drop)
    };
    let held = all(connect);
    expect("connections", &held, FLOWS)?;
    others_work()?;
    // Sessions that were given back can be had again, and no more.
    drop(sessions);
    let session = Session::open().map_err(text)?;
    let again = all(|_| session.connect(0, Endpoint::new(LOCAL, WEB)).map(drop));
    expect("connections", &again, FLOWS)?;
    Ok(format!("{FLOWS}, then: {TOO_MANY}; others go on"))
}

/// Connections of anybody that their clients have closed and that are still there.
fn lingering() -> Result<usize, String> {
    let (mut place, mut found) = (0, 0);
    loop {
        let mut bytes = [0; 4096];
        let (count, next) = sockets::NET.sockets(place, &mut bytes).map_err(text)?;
        let lines = core::str::from_utf8(&bytes[..count]).map_err(text)?;
        found += lines.lines().filter(|line| line.contains(", closed")).count();
        if next == 0 {
            return Ok(found);
        }
        place = next;
    }
}

/// The oldest make room for the newest.
fn lingers() -> Result<String, String> {
    const PORT: u16 = 2100;
    const CLOSED: usize = 40;
    const LINGERING: usize = 32;
    let session = Session::open().map_err(text)?;
    let listener = session.listen(0, PORT, 16, (1, 1)).map_err(text)?;
    let mut others = Vec::new();
    for number in 1..=CLOSED {
        let stream = session.connect(number as u32, Endpoint::new(LOCAL, PORT)).map_err(text)?;
        let until = op::clock() + 5 * SECOND;
        others.push(session.until(until, || listener.accept(100)).map_err(text)?);
        stream.close().map_err(text)?;
    }
    let held = lingering()?;
    others_work()?;
    drop((others, listener, session));
    let left = (0..30).find_map(|_| {
        let _ = thread::sleep(SECOND / 10);
        lingering().ok().filter(|left| *left == 0)
    });
    match (held, left) {
        (LINGERING, Some(0)) => Ok(format!("{LINGERING} of {CLOSED}; others go on, and all go with their session")),
        _ => Err(format!("{held} of {CLOSED}, and all went: {}", left.is_some())),
    }
}

/// A reader that gets fewer bytes than it asked for gets an event for the end of the connection, also if that came before it read.
fn end_is_reported() -> Result<String, String> {
    const PORT: u16 = 2200;
    const READER: u32 = 7;
    let session = Session::open().map_err(text)?;
    let listener = session.listen(0, PORT, 16, (1, 1)).map_err(text)?;
    let until = op::clock() + 5 * SECOND;
    for ends_first in [true, false] {
        let writer = session.connect(1, Endpoint::new(LOCAL, PORT)).map_err(text)?;
        let reader = session.until(until, || listener.accept(READER)).map_err(text)?;
        session.until(until, || writer.write(b"all")).map_err(text)?;
        if ends_first {
            writer.finish().map_err(text)?;
        }
        thread::sleep(50 * MILLISECOND).map_err(text)?;
        session.events(|_| {}).map_err(text)?;
        let mut bytes = [0; 64];
        let count = reader.read(&mut bytes).map_err(text)?;
        if !ends_first {
            writer.finish().map_err(text)?;
        }
        let mut is_reported = false;
        while !is_reported {
            session.wait(op::clock() + SECOND).map_err(|error| format!("first the end ({ends_first}): {error}"))?;
            session.events(|event| is_reported |= event.token == READER).map_err(text)?;
        }
        let end = reader.read(&mut bytes);
        if (count, end) != (3, Ok(0)) {
            return Err(format!("{count} bytes, then {end:?}"));
        }
    }
    Ok("reported, whether it came before the bytes were read or after".to_string())
}

fn half_open() -> Result<String, String> {
    const FIRST: u16 = 2000;
    const LISTENERS: usize = 8;
    let session = Session::open().map_err(text)?;
    let listeners = all(|place| session.listen(place as u32, FIRST + place as u16, 256, (1, 1)));
    expect("listeners", &listeners, LISTENERS)?;
    // Each connection has two ends, and both are ours.
    let held = all(|_| session.connect(100, Endpoint::new(LOCAL, FIRST)));
    expect("connections", &held, FLOWS / 2)?;
    others_work()?;
    drop(session);
    others_work()?;
    Ok(format!("{LISTENERS} and {FLOWS}, then: {TOO_MANY}; others go on"))
}

fn junk() -> Result<String, String> {
    let semaphore = Owned::new(op::semaphore_new(Entry::ACCOUNT, 0).map_err(text)?);
    let service = Owned::new(server::word_service::<Opens>().map_err(text)?);
    // A call of it would wait: we have no activation.
    let call = || Delegate::mint(service.entry().0, 0);
    let entry = |entry: Entry, rights: u8| Delegate::entry(entry.0, rights);
    let accounts = [entry(semaphore.entry(), rights::ALL), call(), entry(Entry::ACCOUNT, rights::READ)];
    for (place, account) in accounts.into_iter().enumerate() {
        let outcome = sockets::NET.open(account).map(|entry| drop(Owned::new(entry.into())));
        if outcome != Err(Failure::Refused(NetError::NotAnAccount)) {
            return Err(format!("account {place}: {outcome:?}"));
        }
    }
    let raw = sockets::NET.open(entry(Entry::ACCOUNT, rights::ALL)).map_err(text)?;
    let raw = Owned::new(raw.into());
    let raw = SessionClient(Direct(raw.entry()));
    let semaphores = [entry(Entry::ACCOUNT, rights::ALL), call(), entry(semaphore.entry(), rights::READ)];
    for (place, semaphore) in semaphores.into_iter().enumerate() {
        let outcome = raw.notify(semaphore);
        if outcome != Err(Failure::Refused(NetError::NotASemaphore)) {
            return Err(format!("semaphore {place}: {outcome:?}"));
        }
    }
    for pages in [(0, 1), (1, 0), (5, 1), (1, u64::MAX)] {
        let outcome = raw.listen(1, 2000, 1, pages.0, pages.1).map(|entry| drop(Owned::new(entry.into())));
        if outcome != Err(Failure::Refused(NetError::BadSize)) {
            return Err(format!("buffers of {pages:?} pages: {outcome:?}"));
        }
    }
    let port = raw.datagrams(1, 0).map_err(text)?;
    let port = Owned::new(port.into());
    let port = DatagramsClient(Direct(port.entry()));
    port.close().map_err(text)?;
    if port.port() != Err(Failure::Refused(NetError::Closed)) {
        return Err("a socket that was closed".to_string());
    }
    raw.close().map_err(text)?;
    if raw.datagrams(1, 0).err() != Some(Failure::Refused(NetError::NoSession)) {
        return Err("a session that was closed".to_string());
    }
    // At once the account is missed, and later the session is gone.
    let account = Owned::new(op::account_new(Entry::ACCOUNT, 16).map_err(text)?);
    let orphan = sockets::NET.open(entry(account.entry(), rights::ALL)).map_err(text)?;
    let orphan = Owned::new(orphan.into());
    drop(account);
    let orphan = SessionClient(Direct(orphan.entry())).datagrams(1, 0);
    if orphan.err() != Some(Failure::Refused(NetError::NoSession)) {
        return Err("a session whose account was removed".to_string());
    }
    others_work()?;
    let errors = [NetError::NotAnAccount, NetError::NotASemaphore, NetError::Closed, NetError::NoSession];
    Ok(format!("refused: {}", errors.map(idl::Code::text).join("; ")))
}

/// Ends a component.
fn end(name: &str) -> Result<(), String> {
    let domains = inspect::domains().map_err(text)?;
    PROC.kill_domain(inspect::only(&domains, name)?, Force::Gentle).map_err(text)
}

/// While the web server or the network itself is started again nobody listens on its port.
fn kept() -> Result<String, String> {
    const KEPT: Refusal = Failure::Refused(NetError::Kept);
    for victim in ["httpd", "netd", "netd"] {
        end(victim)?;
        let until = op::clock() + SECOND;
        let mut refused = 0;
        while op::clock() < until {
            match Session::open().and_then(|session| session.listen(0, WEB, 1, (1, 1)).map(drop)) {
                Err(KEPT) => refused += 1,
                // It died, or is not there yet.
                Err(Failure::Transport(_) | Failure::Refused(NetError::NoSession)) => {}
                outcome => return Err(format!("without {victim}: {outcome:?}")),
            }
            let _ = thread::sleep(MILLISECOND / 2);
        }
        if refused == 0 {
            return Err(format!("without {victim}: never tried"));
        }
        others_work()?;
    }
    Ok(format!("refused: {KEPT}"))
}

/// The network's own account is exhausted before the limit of a program: it refuses, goes on, and has room again when
/// something was given back.
fn short() -> Result<String, String> {
    const PORT: u16 = 2000;
    let take = || -> Result<usize, String> {
        let session = Session::open().map_err(text)?;
        let listener = session.listen(1, PORT, 256, (1, 1)).map_err(text)?;
        let (held, error) = all(|_| session.connect(2, Endpoint::new(LOCAL, PORT)).map(drop));
        let is_right = matches!(error, Failure::Protocol(Protocol::NoMemory) | NO_ROOM);
        if !is_right || held.len() >= FLOWS / 2 {
            return Err(format!("{} connections, then: {error}", held.len()));
        }
        // Those that are there still serve, and what frees something works.
        listener.close().map_err(text)?;
        Ok(held.len())
    };
    let first = take()?;
    for _ in 0..3 {
        let again = take()?;
        if again + 8 < first {
            return Err(format!("{first} connections, then {again}"));
        }
    }
    Ok("refused, and all came back".to_string())
}

/// A child of [`crowd`]: takes all it can, and holds it.
pub fn hog() -> u8 {
    let mut sessions = Vec::new();
    loop {
        // A test whether there is one more takes it for a moment.
        sessions.extend(all(|_| Session::open()).0);
        let _ = thread::sleep(10 * MILLISECOND);
    }
}

/// For `network-wire-window`: takes what comes on a port, from one page: late, and a little at a time.
pub fn sip() -> u8 {
    const PORT: u16 = 9;
    /// How long bytes wait: until there is no room for more, and the other end knows.
    const LATER: u64 = 20 * MILLISECOND;
    let serve = || -> Result<(), Refusal> {
        let session = Session::open()?;
        let listener = session.listen(0, PORT, 1, (1, 1))?;
        println!("sip: port {PORT}");
        loop {
            let stream = session.until(abi::NEVER, || listener.accept(1))?;
            let mut bytes = [0; 500];
            let mut take = || match stream.read(&mut bytes) {
                // All that there was is taken: more comes later.
                Err(Failure::Refused(NetError::WouldBlock)) => {
                    let _ = thread::sleep(LATER);
                    stream.read(&mut bytes)
                }
                outcome => outcome,
            };
            while session.until(abi::NEVER, &mut take).is_ok_and(|count| count > 0) {}
            let _ = stream.close();
        }
    };
    if let Err(refusal) = serve() {
        println!("sip: {refusal}");
    }
    1
}

/// A port that nobody listens on, and from which a connection may come. One chosen at random is it once in 16,384 times.
fn with_itself() -> Result<String, String> {
    const TIMES: usize = 30_000;
    const PORT: u16 = 50_000;
    let session = Session::open().map_err(text)?;
    for _ in 0..TIMES {
        let stream = session.connect(1, Endpoint::new(LOCAL, PORT)).map_err(text)?;
        match session.until(op::clock() + SECOND, || stream.write(b"x")) {
            Err(Failure::Refused(NetError::Refused)) => {}
            outcome => return Err(format!("{outcome:?}")),
        }
        stream.abort().map_err(text)?;
    }
    Ok(format!("{TIMES} times: {}", idl::Code::text(NetError::Refused)))
}

/// Whether the thread of [`orphans`] ends.
static ENDS: AtomicBool = AtomicBool::new(false);

/// The numbers of network sessions that components and programs hold.
fn sessions_held() -> Result<(u64, u64), String> {
    let mut text = [0; 2048];
    let count = sockets::NET.interfaces(0, &mut text).map_err(self::text)?;
    let text = core::str::from_utf8(&text[..count]).map_err(|_| "no text")?;
    let line = text.lines().find(|line| line.starts_with("sessions ")).ok_or("sessions are not reported")?;
    let mut numbers = line.split(' ').filter_map(|word| word.parse().ok());
    let (Some(components), Some(_), Some(programs)) = (numbers.next(), numbers.next(), numbers.next()) else {
        return Err(line.to_string());
    };
    Ok((components, programs))
}

/// A call that is cut off before the network asks whose thread it is goes on as nobody's. A session opened so counts for programs.
fn orphans() -> Result<String, String> {
    const ROUNDS: u64 = 1_000;
    /// After so many nanoseconds a call is cut off, and after so many more in the next round. If each instruction takes one, as
    /// in a test, that is at every few instructions on the way.
    const FIRST: u64 = 1_000;
    const STEP: u64 = 20;
    /// Of a program.
    const MOST: u64 = 4;
    const LOWEST: op::Schedule = op::Schedule { priority: 0, slice: 10_000 };
    let (components, _) = sessions_held()?;
    let turn = Owned::new(op::semaphore_new(Entry::OWN, 0).map_err(text)?);
    let opens = |turn| {
        while !ENDS.load(Ordering::Relaxed) {
            // A call that came back first is not cut off, but this is.
            if op::p(Entry(turn), abi::NEVER).is_ok() {
                let session = sockets::NET.open(Delegate::entry(Entry::ACCOUNT.0, rights::ALL));
                drop(session.map(|session| Owned::new(session.into())));
            }
        }
    };
    let opens = thread::Thread::start_with(opens, turn.entry().0, LOWEST).map_err(text)?;
    for round in 0..ROUNDS {
        op::v(turn.entry()).map_err(text)?;
        thread::sleep(FIRST + round * STEP).map_err(text)?;
        op::thread_cancel(opens.entry()).map_err(text)?;
    }
    ENDS.store(true, Ordering::Relaxed);
    op::v(turn.entry()).map_err(text)?;
    opens.join();
    match sessions_held()? {
        (of_components, of_programs) if of_components == components && of_programs > MOST => {
            Ok("sessions that nobody opened count for programs".to_string())
        }
        (of_components, of_programs) => {
            Err(format!("components {components}, then {of_components}, programs {of_programs}"))
        }
    }
}

/// Ends the web server, which has to open a session and listen again.
fn restart_web_server() -> Result<(), String> {
    end("httpd")?;
    thread::sleep(SECOND).map_err(text)?;
    let mut lines = [0; 1024];
    let (count, _) = sockets::NET.sockets(0, &mut lines).map_err(text)?;
    let is_back = lines[..count].windows(b"listening    80 ".len()).any(|part| part == b"listening    80 ");
    if is_back { Ok(()) } else { Err("the web server does not listen".to_string()) }
}

/// Programs that have all sessions of programs: the web server gets its own when it is started again, and when they are
/// gone there is room again.
fn crowd() -> Result<String, String> {
    const HOGS: usize = 5;
    let hogs: Vec<Process> = (0..HOGS).map(|_| Process::small("hog", &["--net-hog"])).collect::<Result<_, _>>()?;
    let wait = |is_done: &dyn Fn(&Result<(), Refusal>) -> bool| {
        let until = op::clock() + 10 * SECOND;
        loop {
            let outcome = Session::open().map(drop);
            if is_done(&outcome) {
                return Ok(());
            }
            if op::clock() > until {
                return Err(format!("{outcome:?}"));
            }
            let _ = thread::sleep(20 * MILLISECOND);
        }
    };
    wait(&|outcome| *outcome == Err(FULL))?;
    // Components have a part of their own.
    restart_web_server()?;
    if Session::open().err() != Some(FULL) {
        return Err("programs have more".to_string());
    }
    hogs.into_iter().try_for_each(|hog| hog.kill().map(drop))?;
    wait(&Result::is_ok)?;
    others_work()?;
    Ok(format!("{HOGS} programs have all: {FULL}; the web server is started again, and all comes back"))
}
