//! The network asks for all that it can: programs keep their share of time.

use super::frames::MACHINE;
use super::host::{Host, WEB, udp_frame};
use anyhow::{Context, Result, ensure};
use smoltcp::iface::SocketHandle;
use smoltcp::socket::tcp::State;
use std::time::{Duration, Instant};

/// Two programs work for so long, each in its own turns: together they are to have the share of one CPU, or of two.
const WORK: &str = "sleep --busy 1 & sleep --busy 1";
/// Of the time of all CPUs, what they are to have: undisturbed; in a flood; in a flood, in the tenth in which each has least. On
/// several CPUs the flood comes to one of them, and leaves the others: there it shows less.
const ALONE: u64 = 80;
const SHARE: u64 = 30;
const AT_LEAST: u64 = 15;
/// Programs that still work for more percent than this are not flooded.
const FLOODED: u64 = 75;
/// So often a flood is tried.
const TRIES: usize = 3;
/// Connections on which the flood comes, and what is sent on each again and again, in one go: the answers are short, and the work
/// for them is not.
const CONNECTIONS: usize = 32;
const REQUEST: &str = "HEAD / HTTP/1.1\r\nHost: cairn\r\n\r\n";
const REQUESTS: usize = 100;
/// Frames that wait for the machine.
const FRAMES: usize = 64;
/// How long all may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// The scenario.
pub fn run(host: &mut Host<'_>) -> Result<()> {
    let alone = worked(host, 0)?;
    ensure!(alone[0] >= ALONE, "without a flood they worked for {} %", alone[0]);
    let mut tries = Vec::new();
    while tries.len() < TRIES && tries.iter().all(|worked| *worked > FLOODED) {
        let requests = worked(host, CONNECTIONS)?;
        println!("flood: alone {alone:?}, in a flood {requests:?}");
        ensure!(requests[0] >= SHARE, "in a flood they worked for {} %", requests[0]);
        ensure!(requests[1] >= AT_LEAST, "in a flood they worked for {} % of a tenth of the time", requests[1]);
        tries.push(requests[0]);
    }
    // Of several CPUs, which take turns, an emulator may bring too few frames to one.
    let was_flood = host.cpus > 1 || tries.iter().any(|worked| *worked <= FLOODED);
    ensure!(was_flood, "it was no flood: they worked for {tries:?} %");
    host.get("/", 10.0).context("after the flood")?;
    Ok(())
}

/// Lets programs work while requests come on so many connections; what they had of the time of all CPUs, and at least.
fn worked(host: &mut Host<'_>, connections: usize) -> Result<[u64; 2]> {
    let begin = Instant::now();
    let mut sockets = (0..connections).map(|_| host.connect(MACHINE.into(), WEB)).collect::<Result<Vec<_>>>()?;
    let requests = REQUEST.repeat(REQUESTS);
    let from = host.begin(WORK)?;
    loop {
        ensure!(begin.elapsed() < PATIENCE, "the programs do not end: {:?}", host.printed_since(from));
        for socket in &mut sockets {
            turn(host, socket, requests.as_bytes())?;
        }
        while connections != 0 && host.link.waiting() < FRAMES {
            host.link.inject(udp_frame(7, 9, &[0; 1000]));
        }
        host.turn();
        let text = host.printed_since(from);
        let found: Vec<[u64; 2]> = text.lines().filter_map(percents).collect();
        if let [one, other] = found[..] {
            sockets.into_iter().for_each(|socket| host.drop_socket(socket));
            host.finish(from, 20.0)?;
            return Ok([one[0] + other[0], one[1] + other[1]]);
        }
    }
}

/// Sends what it can on a connection and forgets what comes. A closed one is reopened.
fn turn(host: &mut Host<'_>, handle: &mut SocketHandle, requests: &[u8]) -> Result<()> {
    let socket = host.tcp(*handle);
    while socket.can_recv() {
        socket.recv(|bytes| (bytes.len(), ())).context("cannot receive")?;
    }
    if socket.can_send() && socket.send_capacity() - socket.send_queue() >= requests.len() {
        socket.send_slice(requests).context("cannot send")?;
    }
    if !socket.is_active() || socket.state() == State::CloseWait {
        host.drop_socket(*handle);
        *handle = host.connect(MACHINE.into(), WEB)?;
    }
    Ok(())
}

/// The two numbers of `worked for 40 % of the time, 38 % at least`.
fn percents(line: &str) -> Option<[u64; 2]> {
    let (all, least) = line.split_once("worked for ")?.1.split_once(" % of the time, ")?;
    Some([all.parse().ok()?, least.split_once(" % at least")?.0.parse().ok()?])
}
