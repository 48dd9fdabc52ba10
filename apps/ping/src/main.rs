//! `ping`: asks a host whether it is there.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use idl::Failure;
use runtime::{op, thread};
use sockets::{NetError, Refusal, Session, target};
use tool::{Arguments, println};

runtime::entry!(main);

const HELP: &str = "\
usage: ping [-c COUNT] HOST

Sends echo requests (ICMP), one each second, and shows the answers. HOST is a name or an
address, IPv4 or IPv6. The status is 1 if not all were answered.

  -c COUNT  so many requests (4)
";

const SECOND: u64 = 1_000_000_000;
/// How long an answer may take.
const PATIENCE: u64 = SECOND;
const BYTES: [u8; 56] = *b"Cairn asks whether you are there. Cairn asks whether you";

fn main() -> u8 {
    let mut arguments = Arguments::new("ping", HELP);
    let count = match arguments.number("-c") {
        Ok(count) => count.unwrap_or(4),
        Err(status) => return status,
    };
    if count == 0 || count > u64::from(u16::MAX) {
        return arguments.wrong("COUNT is from 1 to 65535");
    }
    let Some(host) = arguments.one("HOST") else { return tool::USAGE };
    match ping(host, count as u16) {
        Ok(true) => 0,
        Ok(false) => tool::FAILED,
        Err(cause) => arguments.fail(host, cause),
    }
}

fn ping(host: &str, count: u16) -> Result<bool, Refusal> {
    let session = Session::open()?;
    let to = target::address(&session, host)?;
    let echo = session.echo(0)?;
    println!("{} bytes to {to}", BYTES.len());
    let mut answered = 0;
    for sequence in 1..=count {
        let sent = op::clock();
        echo.send(to, sequence, &BYTES)?;
        let mut bytes = [0; BYTES.len()];
        let answer = loop {
            match session.until(sent + PATIENCE, || echo.receive(&mut bytes)) {
                // One that comes late is counted as none.
                Ok((_, from)) if from.port != sequence => {}
                other => break other,
            }
        };
        match answer {
            Ok((length, from)) => {
                answered += 1;
                let micros = (op::clock() - sent) / 1000;
                let same = if bytes[..length] == BYTES { "" } else { ", and not what was sent" };
                println!(
                    "{length} bytes from {}: number {sequence}, {}.{:03} ms{same}",
                    from.ip(),
                    micros / 1000,
                    micros % 1000
                );
            }
            Err(Failure::Refused(NetError::TimedOut)) => println!("number {sequence}: no answer"),
            Err(refusal) => return Err(refusal),
        }
        if sequence < count {
            let _ = thread::sleep((sent + SECOND).saturating_sub(op::clock()));
        }
    }
    println!("{count} sent, {answered} answered");
    Ok(answered == count)
}
