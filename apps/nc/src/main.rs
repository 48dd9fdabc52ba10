//! `nc`: connects standard input and output with the network.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

extern crate alloc;

use alloc::string::{String, ToString};
use alloc::sync::Arc;
use core::sync::atomic::{AtomicBool, Ordering};

use idl::Failure;
use runtime::abi::NEVER;
use runtime::{op, stream, thread};
use sockets::{Endpoint, NetError, Refusal, Session, Stream, target};
use tool::{Arguments, eprintln};

runtime::entry!(main);

const HELP: &str = "\
usage: nc [-n] HOST PORT
       nc [-n] -l PORT
       nc -u HOST PORT

Connects standard input and output with the other end of a TCP connection, until both
ends have said all.

  -l  waits for a connection to PORT, and serves it
  -n  sends nothing
  -u  UDP: each line is a datagram; ends one second after the end of the input
";

const SECOND: u64 = 1_000_000_000;
/// How long a connection may take to come.
const PATIENCE: u64 = 20 * SECOND;
/// How long the input waits for room.
const PAUSE: u64 = 2_000_000;
const PIECE: usize = 4000;

fn main() -> u8 {
    let mut arguments = Arguments::new("nc", HELP);
    let Some(options) = arguments.options("lnu") else { return tool::USAGE };
    let has = |letter| options.contains(letter);
    let done = match (arguments.words(), has('l'), has('u')) {
        ([port], true, false) => match port.parse() {
            Ok(port) => listen(port, !has('n')),
            Err(_) => return arguments.wrong("PORT is a number from 1 to 65535"),
        },
        ([host, port], false, udp) => match port.parse() {
            Ok(port) if udp => datagrams(host, port),
            Ok(port) => connect(host, port, !has('n')),
            Err(_) => return arguments.wrong("PORT is a number from 1 to 65535"),
        },
        _ => return arguments.wrong("HOST and PORT, or -l and PORT"),
    };
    match done {
        Ok(()) => 0,
        Err(cause) => arguments.fail(&arguments.words().join(" "), cause),
    }
}

fn text(refusal: Refusal) -> String {
    refusal.to_string()
}

fn listen(port: u16, sends: bool) -> Result<(), String> {
    let session = Session::open().map_err(text)?;
    let listener = session.listen(0, port, 1, (2, 2)).map_err(text)?;
    eprintln!("nc: waiting on port {port}");
    let stream = session.until(NEVER, || listener.accept(1)).map_err(text)?;
    if let Ok(peer) = stream.peer() {
        eprintln!("nc: connected with {peer}");
    }
    exchange(&session, stream, sends)
}

fn connect(host: &str, port: u16, sends: bool) -> Result<(), String> {
    let session = Session::open().map_err(text)?;
    let to = target::endpoint(&session, host, port).map_err(text)?;
    let stream = session.connect(0, to).map_err(text)?;
    // It is there when it takes something.
    session.until(op::clock() + PATIENCE, || stream.write(&[])).map_err(text)?;
    exchange(&session, stream, sends)
}

/// Both directions, until the other end has said all.
fn exchange(session: &Session, stream: Stream, sends: bool) -> Result<(), String> {
    let stream = Arc::new(stream);
    let sender = match sends {
        true => {
            let stream = stream.clone();
            Some(thread::spawn(move || send(&stream)).map_err(|cause| cause.to_string())?)
        }
        false => None,
    };
    let mut bytes = [0; PIECE];
    loop {
        let count = session.until(NEVER, || stream.read(&mut bytes)).map_err(text)?;
        if count == 0 {
            break;
        }
        stream::write(&bytes[..count])
            .and_then(|()| stream::STDOUT.lock().flush())
            .map_err(|cause| cause.to_string())?;
    }
    // A sender that still waits for input ends with the program. The bytes sent arrive all the same, and then the end.
    drop(sender);
    let _ = stream.close();
    Ok(())
}

/// Standard input to the other end.
fn send(stream: &Stream) {
    let mut bytes = [0; PIECE];
    while let Ok(count @ 1..) = stream::read(&mut bytes) {
        let mut rest = &bytes[..count];
        while !rest.is_empty() {
            match stream.write(rest) {
                Ok(count) => rest = rest.get(count..).unwrap_or_default(),
                Err(Failure::Refused(NetError::WouldBlock)) => drop(thread::sleep(PAUSE)),
                Err(_) => return,
            }
        }
    }
    let _ = stream.finish();
}

/// Lines to the other end, and what it answers.
fn datagrams(host: &str, port: u16) -> Result<(), String> {
    let session = Session::open().map_err(text)?;
    let to: Endpoint = target::endpoint(&session, host, port).map_err(text)?;
    let socket = Arc::new(session.datagrams(0, 0).map_err(text)?);
    let ended = Arc::new(AtomicBool::new(false));
    let sending = {
        let (socket, ended) = (socket.clone(), ended.clone());
        thread::spawn(move || {
            let mut bytes = [0; PIECE];
            while let Ok(count @ 1..) = stream::read(&mut bytes) {
                for line in bytes[..count].split_inclusive(|byte| *byte == b'\n') {
                    if let Err(cause) = socket.send(to, line) {
                        eprintln!("nc: {cause}");
                    }
                }
            }
            ended.store(true, Ordering::Release);
        })
    };
    drop(sending.map_err(|cause| cause.to_string())?);
    let mut bytes = [0; PIECE];
    loop {
        match session.until(op::clock() + SECOND, || socket.receive(&mut bytes)) {
            Ok((count, from)) if from == to => {
                let shown = stream::write(&bytes[..count]).and_then(|()| stream::STDOUT.lock().flush());
                shown.map_err(|cause| cause.to_string())?;
            }
            Ok(_) => {}
            Err(Failure::Refused(NetError::TimedOut)) if ended.load(Ordering::Acquire) => return Ok(()),
            Err(Failure::Refused(NetError::TimedOut)) => {}
            Err(refusal) => return Err(text(refusal)),
        }
    }
}
