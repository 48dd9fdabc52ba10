//! One question and its answer.

use idl::Failure;
use protocols::net::{Endpoint, NetError};
use protocols::random::RandomClient;
use runtime::connection::{Connection, Name};
use runtime::op;
use sntp::{Bad, PACKET_BYTES, PORT, Request, Sample};
use sockets::{Refusal, Session, target};

/// In nanoseconds.
pub const SECOND: u64 = 1_000_000_000;
/// How long an answer is waited for, in nanoseconds.
const PATIENCE: u64 = 3 * SECOND;
/// Bytes that an answer may have; more are cut off.
const MOST_BYTES: usize = 128;

static RANDOM: RandomClient<Connection<Name<'static>>> = RandomClient(Connection::named("random"));

/// Asks a server: its time, or why that is not accepted; `Err` if nobody answered or nothing could be sent.
pub fn ask(server: &str) -> Result<Result<Sample, Bad>, Refusal> {
    let session = Session::open()?;
    let to = endpoint(&session, server)?;
    // A port and a number that nobody can guess: a host that does not see our questions cannot answer them.
    let mut nonce = [0; 8];
    let unknown = Failure::Refused(NetError::Refused);
    if RANDOM.fill(&mut nonce).ok() != Some(nonce.len()) {
        return Err(unknown);
    }
    let socket = session.datagrams(0, 0)?;
    let request = Request::new(u64::from_le_bytes(nonce), op::clock());
    socket.send(to, &request.bytes())?;
    let deadline = op::clock() + PATIENCE;
    let mut bytes = [0; MOST_BYTES];
    loop {
        let (count, from) = session.until(deadline, || socket.receive(&mut bytes))?;
        let now = op::clock();
        // Datagrams of others may wait without end.
        if now >= deadline {
            return Err(Failure::Refused(NetError::TimedOut));
        }
        if from != to {
            continue;
        }
        match request.check(&bytes[..count.min(MOST_BYTES)], now) {
            // Anybody can send these: the answer may still come.
            Err(Bad::NotOurs | Bad::NotAReply | Bad::Short) => {}
            answer => return Ok(answer),
        }
    }
}

/// `address`, `address:port`, `[address]:port`, `name` or `name:port`.
fn endpoint(session: &Session, server: &str) -> Result<Endpoint, Refusal> {
    let split = server.rsplit_once(':').filter(|(host, _)| !host.contains(':') || host.ends_with(']'));
    let (host, port) = match split.map(|(host, port)| (host, port.parse())) {
        Some((host, Ok(port))) => (host, port),
        Some((_, Err(_))) => return Err(Failure::Refused(NetError::BadPort)),
        None => (server, PORT),
    };
    target::endpoint(session, host, port)
}

const _: () = assert!(PACKET_BYTES <= MOST_BYTES);
