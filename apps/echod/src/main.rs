//! `echod`: gives back what comes on UDP and TCP port 7 (RFC 862), and sends for ever on TCP port 19 (after RFC 864).
//! For tests and measurements.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

extern crate alloc;

use alloc::collections::BTreeMap;
use alloc::vec;
use alloc::vec::Vec;

use idl::Failure;
use runtime::abi::PAGE_BYTES;
use runtime::window::Page;
use sockets::{Datagrams, Listener, NetError, Refusal, Session, Stream};
use tool::{Arguments, println};

runtime::entry!(main);

const HELP: &str = "\
usage: echod

Serves until it is killed: UDP and TCP port 7 give back what comes, TCP port 19 sends
for ever. For tests and measurements.
";

const ECHO: u16 = 7;
const SOURCE: u16 = 19;
/// Tokens of the sockets that are there from the beginning.
const DATAGRAMS: u32 = 0;
const ECHO_LISTENER: u32 = 1;
const SOURCE_LISTENER: u32 = 2;
const FIRST_CLIENT: u32 = 3;
/// Bytes that are moved at once.
const PIECE: usize = 4000;
const BACKLOG: u64 = 16;

enum Client {
    /// The bytes that were sent and not yet returned.
    Echo(Stream, Vec<u8>),
    Source(Stream),
}

struct Server {
    session: Session,
    datagrams: Datagrams,
    echo: Listener,
    source: Listener,
    clients: BTreeMap<u32, Client>,
    next: u32,
    /// Bytes on their way.
    bytes: Vec<u8>,
}

fn main() -> u8 {
    let arguments = Arguments::new("echod", HELP);
    if !arguments.none() {
        return tool::USAGE;
    }
    let served = open().and_then(|mut server| {
        println!("echod: ports {ECHO} and {SOURCE}");
        server.serve()
    });
    match served {
        Ok(()) => 0,
        Err(refusal) => arguments.fail("the network", refusal),
    }
}

fn open() -> Result<Server, Refusal> {
    let session = Session::open()?;
    Ok(Server {
        datagrams: session.datagrams(DATAGRAMS, ECHO)?,
        echo: session.listen(ECHO_LISTENER, ECHO, BACKLOG, (2, 2))?,
        source: session.listen(SOURCE_LISTENER, SOURCE, BACKLOG, (1, 4))?,
        session,
        clients: BTreeMap::new(),
        next: FIRST_CLIENT,
        bytes: vec![0; PIECE],
    })
}

/// `None` = later.
fn later<R>(outcome: Result<R, Refusal>) -> Result<Option<R>, Refusal> {
    match outcome {
        Ok(value) => Ok(Some(value)),
        Err(Failure::Refused(NetError::WouldBlock)) => Ok(None),
        Err(refusal) => Err(refusal),
    }
}

impl Server {
    fn serve(&mut self) -> Result<(), Refusal> {
        let mut ready = Vec::new();
        loop {
            self.session.wait(runtime::abi::NEVER)?;
            self.session.events(|event| ready.push(event.token))?;
            for token in ready.drain(..) {
                match token {
                    DATAGRAMS => self.datagrams()?,
                    ECHO_LISTENER | SOURCE_LISTENER => self.accept(token)?,
                    token => self.client(token)?,
                }
            }
        }
    }

    fn datagrams(&mut self) -> Result<(), Refusal> {
        while let Some((count, from)) = later(self.datagrams.receive(&mut self.bytes))? {
            // A datagram that cannot be returned is lost, as on any wire.
            let _ = self.datagrams.send(from, &self.bytes[..count]);
        }
        Ok(())
    }

    fn accept(&mut self, token: u32) -> Result<(), Refusal> {
        let listener = if token == ECHO_LISTENER { &self.echo } else { &self.source };
        let mut accepted = Vec::new();
        while let Some(stream) = later(listener.accept(self.next))? {
            let client = if token == ECHO_LISTENER { Client::Echo(stream, Vec::new()) } else { Client::Source(stream) };
            accepted.push((self.next, client));
            self.next = self.next.checked_add(1).unwrap_or(FIRST_CLIENT);
        }
        for (token, client) in accepted {
            self.clients.insert(token, client);
            self.client(token)?;
        }
        Ok(())
    }

    fn client(&mut self, token: u32) -> Result<(), Refusal> {
        let Some(client) = self.clients.get_mut(&token) else { return Ok(()) };
        let goes_on = match client {
            Client::Echo(stream, kept) => echo(stream, kept, &mut self.bytes),
            Client::Source(stream) => source(stream),
        };
        match goes_on {
            Ok(true) => Ok(()),
            Err(Failure::Transport(error)) => Err(Failure::Transport(error)),
            Ok(false) | Err(_) => {
                if let Some(Client::Echo(stream, _) | Client::Source(stream)) = self.clients.remove(&token) {
                    let _ = stream.close();
                }
                Ok(())
            }
        }
    }
}

/// Gives back; whether the client is still there.
fn echo(stream: &Stream, kept: &mut Vec<u8>, bytes: &mut [u8]) -> Result<bool, Refusal> {
    loop {
        while !kept.is_empty() {
            let Some(count) = later(stream.write(kept))? else { return Ok(true) };
            kept.drain(..count);
        }
        let Some(count) = later(stream.read(bytes))? else { return Ok(true) };
        if count == 0 {
            return Ok(false);
        }
        let given = later(stream.write(&bytes[..count]))?.unwrap_or(0);
        kept.extend_from_slice(&bytes[given..count]);
        if kept.is_empty() && count < PIECE {
            return Ok(true);
        }
    }
}

/// Sends as much as there is room for.
fn source(stream: &Stream) -> Result<bool, Refusal> {
    // Whole pages, which the network is shown.
    static PAGES: [Page; 4] = [const { Page([b'.'; PAGE_BYTES]) }; 4];
    let bytes = Page::bytes(&PAGES);
    while later(stream.write(bytes))?.is_some_and(|count| count == bytes.len()) {}
    Ok(true)
}
