//! The network over loopback. The host measures what goes over the wire.

use alloc::string::{String, ToString};

use core::net::{IpAddr, Ipv4Addr};
use runtime::op;
use runtime::thread;
use sockets::{Endpoint, Refusal, Session, Stream};

use crate::measure::{Row, average};
use crate::peer;

/// Repetitions, and those before counting starts.
const MANY: u64 = 500;
const WARM_UP: u64 = 50;
/// The bytes of each echo.
const MESSAGE: [u8; 8] = *b"01234567";
/// Where `echod` listens.
const PORT: u16 = 7;
/// How long anything may take, in nanoseconds.
const PATIENCE: u64 = 5_000_000_000;
const PAUSE: u64 = 1_000_000;

/// A TCP connection to `echod`, which runs meanwhile: eight bytes there and back.
pub fn tcp_local() -> Result<Row, String> {
    let server = peer::spawn(&["/bin/echod"], 0)?;
    let outcome = measure();
    let _ = server.end();
    outcome
}

fn measure() -> Result<Row, String> {
    let text = |refusal: Refusal| refusal.to_string();
    let session = Session::open().map_err(text)?;
    let stream = connect(&session).map_err(text)?;
    let mut problem = None;
    let mut once = || match echo(&session, &stream) {
        Ok(true) => {}
        Ok(false) => problem = Some(String::from("other bytes came back than were sent")),
        Err(refusal) => problem = Some(refusal.to_string()),
    };
    (0..WARM_UP).for_each(|_| once());
    let value = average(MANY, &mut once);
    match problem {
        None => Ok(Row::instructions(value).of(MANY)),
        Some(problem) => Err(problem),
    }
}

/// Connects once the server listens.
fn connect(session: &Session) -> Result<Stream, Refusal> {
    let deadline = op::clock() + PATIENCE;
    let to = Endpoint::new(IpAddr::V4(Ipv4Addr::LOCALHOST), PORT);
    loop {
        let tried = session.connect(0, to).and_then(|stream| {
            session.until(deadline, || stream.write(&[]))?;
            Ok(stream)
        });
        match tried {
            Err(_) if op::clock() < deadline => drop(thread::sleep(PAUSE)),
            outcome => return outcome,
        }
    }
}

/// Whether what was sent came back.
fn echo(session: &Session, stream: &Stream) -> Result<bool, Refusal> {
    let deadline = op::clock() + PATIENCE;
    session.until(deadline, || stream.write(&MESSAGE))?;
    let mut back = [0; MESSAGE.len()];
    let count = session.until(deadline, || stream.read(&mut back))?;
    Ok(count == MESSAGE.len() && back == MESSAGE)
}
