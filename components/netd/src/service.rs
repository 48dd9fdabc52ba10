//! The requests of clients. The badge of a call entry is the number of its session or socket; for a connection, the
//! bits above the number say what this entry may not do.

use core::sync::atomic::{AtomicUsize, Ordering};

use alloc::boxed::Box;
use alloc::string::{String, ToString};
use idl::{Delegate, Delegated, Input, Reply, Request};
use protocols::net::{
    ConnectionClient, ConnectionServer, DatagramsClient, DatagramsServer, EVENT_BYTES, EchoClient, EchoServer,
    Endpoint, ListenerClient, ListenerServer, MAY_CLOSE, MAY_READ, MAY_WRITE, NetError, NetServer, QueryClient,
    QueryServer, READABLE, Received, SessionClient, SessionServer, WRITABLE,
};
use runtime::entry::Owned;
use runtime::op;
use runtime::server::{self, Serve};
use smoltcp::socket::tcp::RecvError;

use crate::failure::failed;
use crate::session::Session as Client;
use crate::slots::{NUMBER_BITS, Number};
use crate::socket::What;
use crate::socket::{Kind, Socket, Stage};
use crate::stack::{self, Stack};
use crate::tcp::SEGMENT;
use crate::text;
use crate::{client, limits, random};

/// Calls that are served at the same time; none waits for the network.
const ACTIVATIONS: usize = 2;

/// A service of ours for each interface.
struct Service(AtomicUsize);

impl Service {
    const fn new() -> Self {
        Self(AtomicUsize::new(0))
    }
    fn make<S: Serve>(&self) -> Result<(), abi::Error> {
        self.0.store(server::service::<S>()?.0, Ordering::Relaxed);
        Ok(())
    }
    /// With windows.
    fn make_window<S: Serve>(&self) -> Result<(), String> {
        let service = server::window_service::<S>().map_err(|error| error.to_string())?;
        self.0.store(service.0, Ordering::Relaxed);
        Ok(())
    }
    fn mint(&self, badge: u64) -> Delegate {
        Delegate::mint(self.0.load(Ordering::Relaxed), badge)
    }
}

static SESSION: Service = Service::new();
static LISTENER: Service = Service::new();
static CONNECTION: Service = Service::new();
static DATAGRAMS: Service = Service::new();
static ECHO: Service = Service::new();
static QUERY: Service = Service::new();

/// Makes the services.
pub fn publish() -> Result<(), String> {
    let make = || {
        server::prepared_activations(ACTIVATIONS, limits::STACK_PAGES)?;
        SESSION.make::<Session>()?;
        LISTENER.make::<Listener>()?;
        DATAGRAMS.make::<Datagrams>()?;
        ECHO.make::<Echo>()?;
        QUERY.make::<Query>()?;
        server::service::<Net>()
    };
    CONNECTION.make_window::<Connection>()?;
    let net = make().map_err(|error| error.to_string())?;
    server::publish_service("net", net).map_err(|error| error.to_string())
}

/// Services, and which of their methods free something: those work while memory is short, too.
macro_rules! serve {
    ($($name:ident $($frees:pat)?,)*) => { $(
        struct $name;
        impl Serve for $name {
            fn serve(request: &mut Request<'_>) -> Reply {
                $name.dispatch(request)
            }
            $(fn needs_memory(request: &Request<'_>) -> bool {
                !matches!(request.method(), $frees)
            })?
        }
    )* };
}

serve! {
    Net,
    Session SessionClient::EVENTS | SessionClient::CLOSE,
    Listener ListenerClient::CLOSE,
    Datagrams DatagramsClient::RECEIVE | DatagramsClient::CLOSE,
    Echo EchoClient::RECEIVE | EchoClient::CLOSE,
    Query QueryClient::ADDRESSES,
}

struct Connection;

impl Serve for Connection {
    fn serve(request: &mut Request<'_>) -> Reply {
        let writes = request.method() == ConnectionClient::WRITE;
        let reply = Connection.dispatch(request);
        // Frames go out when the client's bytes are not borrowed any more: they would have to be put aside for each.
        if writes {
            // The stack is there, or nobody could have written.
            let _ = with(|_| Ok(()));
        }
        reply
    }

    /// Reading, closing and breaking off need none.
    fn needs_memory(request: &Request<'_>) -> bool {
        !matches!(request.method(), ConnectionClient::READ | ConnectionClient::CLOSE | ConnectionClient::ABORT)
    }
}

/// The stack. It is open before anybody can call.
fn there(stack: &mut Option<Box<Stack>>) -> Result<&mut Stack, NetError> {
    stack.as_deref_mut().ok_or_else(|| failed("the stack", "not open yet"))
}

/// Runs `work` on the stack, and what follows from it.
fn with<R>(work: impl FnOnce(&mut Stack) -> Result<R, NetError>) -> Result<R, NetError> {
    let mut guard = stack::lock();
    let stack = there(&mut guard)?;
    stack.time = op::clock();
    let outcome = work(stack);
    stack.finish_call();
    outcome
}

/// A port of a call.
fn port(word: u64) -> Result<u16, NetError> {
    word.try_into().map_err(|_| NetError::BadPort)
}

fn endpoint(high: u64, low: u64, port: u64) -> Result<Endpoint, NetError> {
    Endpoint::from_words(high, low, port).ok_or(NetError::BadPort)
}

impl NetServer for Net {
    fn open(&self, _badge: u64, account: Delegated) -> Result<Delegate, NetError> {
        let account = Owned::new(account.into());
        let caller = client::caller();
        // A client over its limit costs no more than this.
        with(|stack| stack.have_room(caller.0, What::Session))?;
        let session = Client::new(caller, account)?;
        with(|stack| stack.open_session(session)).map(|number| SESSION.mint(number))
    }

    fn interfaces(&self, _badge: u64, position: u64, into: &mut [u8]) -> Result<usize, NetError> {
        let text = with(|stack| Ok(text::interfaces(stack)))?;
        let rest = text.as_bytes().get(position as usize..).unwrap_or_default();
        let count = rest.len().min(into.len());
        into[..count].copy_from_slice(&rest[..count]);
        Ok(count)
    }

    fn sockets(&self, _badge: u64, position: u64, into: &mut [u8]) -> Result<(usize, u64), NetError> {
        with(|stack| Ok(text::sockets(stack, position, into)))
    }
}

/// Makes a socket for a session that is there. It waits for random numbers before it takes the lock.
fn make(
    session: Number,
    service: &Service,
    make: impl FnOnce(&mut Stack) -> Result<Number, NetError>,
) -> Result<Delegate, NetError> {
    random::wait()?;
    let number = with(|stack| match stack.sessions.get_mut(session) {
        Some(_) => make(stack),
        None => Err(NetError::NoSession),
    })?;
    Ok(service.mint(number))
}

impl SessionServer for Session {
    fn notify(&self, badge: u64, semaphore: Delegated) -> Result<(), NetError> {
        let semaphore = Owned::new(semaphore.into());
        with(|stack| stack.sessions.get_mut(badge).ok_or(NetError::NoSession)?.set_semaphore(semaphore))
    }

    fn events(&self, badge: u64, into: &mut [u8]) -> Result<usize, NetError> {
        let mut guard = stack::lock();
        let stack = there(&mut guard)?;
        let session = stack.sessions.get_mut(badge).ok_or(NetError::NoSession)?;
        let mut bytes = 0;
        for place in into.chunks_exact_mut(EVENT_BYTES) {
            let Some(number) = session.next_changed() else { break };
            // It is there: one that goes is taken out of what changed.
            let Some(socket) = stack.sockets.get_mut(number) else { break };
            place[..4].copy_from_slice(&socket.token.to_le_bytes());
            place[4..].copy_from_slice(&core::mem::take(&mut socket.pending).to_le_bytes());
            bytes += EVENT_BYTES;
        }
        Ok(bytes)
    }

    fn listen(
        &self,
        badge: u64,
        token: u32,
        at: u64,
        backlog: u64,
        receive: u64,
        send: u64,
    ) -> Result<Delegate, NetError> {
        let at = port(at).ok().filter(|port| *port != 0).ok_or(NetError::BadPort)?;
        make(badge, &LISTENER, |stack| stack.listen(badge, token, at, backlog, (receive, send)))
    }

    fn connect(&self, badge: u64, token: u32, high: u64, low: u64, port: u64) -> Result<Delegate, NetError> {
        let remote = endpoint(high, low, port)?;
        make(badge, &CONNECTION, |stack| stack.connect(badge, token, remote))
    }

    fn datagrams(&self, badge: u64, token: u32, at: u64) -> Result<Delegate, NetError> {
        let at = port(at)?;
        make(badge, &DATAGRAMS, |stack| stack.datagrams(badge, token, at))
    }

    fn echo(&self, badge: u64, token: u32) -> Result<Delegate, NetError> {
        make(badge, &ECHO, |stack| stack.echo(badge, token))
    }

    fn resolve(&self, badge: u64, token: u32, name: &str, six: bool) -> Result<Delegate, NetError> {
        make(badge, &QUERY, |stack| stack.resolve(badge, token, name, six))
    }

    fn close(&self, badge: u64) -> Result<(), NetError> {
        with(|stack| {
            stack.sessions.get_mut(badge).ok_or(NetError::NoSession)?;
            stack.close_session(badge);
            Ok(())
        })
    }
}

impl ListenerServer for Listener {
    fn accept(&self, badge: u64, token: u32) -> Result<Delegate, NetError> {
        with(|stack| stack.accept(badge, token)).map(|number| CONNECTION.mint(number))
    }

    fn close(&self, badge: u64) -> Result<(), NetError> {
        remove(badge)
    }
}

fn remove(number: Number) -> Result<(), NetError> {
    with(|stack| {
        stack.sockets.get_mut(number).ok_or(NetError::Closed)?;
        stack.remove(number);
        Ok(())
    })
}

/// The socket that a connection's entry names, if the entry may do this.
fn allowed(badge: u64, may: u64) -> Result<Number, NetError> {
    if badge >> NUMBER_BITS & may != 0 {
        return Err(NetError::NotAllowed);
    }
    Ok(badge & ((1 << NUMBER_BITS) - 1))
}

/// The connection of this number, if a client has it, and what it is armed for.
fn open(stack: &mut Stack, number: Number) -> Result<(&mut crate::socket::Flow, &mut u32), NetError> {
    match stack.sockets.get_mut(number) {
        Some(Socket { kind: Kind::Flow(flow), armed, .. }) if matches!(flow.stage, Stage::Open | Stage::Connecting) => {
            Ok((flow, armed))
        }
        _ => Err(NetError::Closed),
    }
}

impl ConnectionServer for Connection {
    fn read(&self, badge: u64, into: &mut [u8]) -> Result<usize, NetError> {
        let number = allowed(badge, MAY_READ)?;
        with(|stack| {
            let (flow, armed) = open(stack, number)?;
            *armed |= READABLE;
            if flow.stage == Stage::Connecting {
                return Err(NetError::WouldBlock);
            }
            let failure = flow.failure;
            let tcp = flow.tcp();
            match tcp.recv_slice(into) {
                Ok(0) if !into.is_empty() => Err(NetError::WouldBlock),
                Ok(count) => {
                    flow.taken += count as u32;
                    if flow.taken >= flow.enough {
                        flow.taken = 0;
                        stack.poll(number);
                    }
                    Ok(count)
                }
                Err(RecvError::Finished) => Ok(0),
                Err(RecvError::InvalidState) => Err(failure.unwrap_or(NetError::Reset)),
            }
        })
    }

    fn write(&self, badge: u64, bytes: Input<'_>) -> Result<usize, NetError> {
        let number = allowed(badge, MAY_WRITE)?;
        let mut guard = stack::lock();
        let stack = there(&mut guard)?;
        let (flow, armed) = open(stack, number)?;
        if flow.stage == Stage::Connecting {
            *armed |= WRITABLE;
            return Err(NetError::WouldBlock);
        }
        let failure = flow.failure;
        let tcp = flow.tcp();
        let room = tcp.send_capacity() - tcp.send_queue();
        // Data that does not fit whole is cut behind a full segment, so that the rest leaves in full ones too.
        let fits = if bytes.len() <= room { bytes.len() } else { room / SEGMENT * SEGMENT };
        let mut count = 0;
        loop {
            let part = tcp.send(|room| {
                let part = room.len().min(fits - count);
                bytes.copy_to(count, &mut room[..part]);
                (part, part)
            });
            let part = part.map_err(|_| failure.unwrap_or(NetError::Reset))?;
            count += part;
            // At the buffer's end, the rest follows at its start.
            if part == 0 || count == fits {
                break;
            }
        }
        if count < bytes.len() {
            *armed |= WRITABLE;
        }
        if count == 0 && !bytes.is_empty() {
            return Err(NetError::WouldBlock);
        }
        stack.poll_later(number);
        Ok(count)
    }

    fn finish(&self, badge: u64) -> Result<(), NetError> {
        let number = allowed(badge, MAY_WRITE)?;
        with(|stack| {
            open(stack, number)?.0.tcp().close();
            stack.poll(number);
            Ok(())
        })
    }

    fn close(&self, badge: u64) -> Result<(), NetError> {
        let number = allowed(badge, MAY_CLOSE)?;
        with(|stack| {
            open(stack, number)?;
            stack.linger(number);
            Ok(())
        })
    }

    fn abort(&self, badge: u64) -> Result<(), NetError> {
        let number = allowed(badge, MAY_CLOSE)?;
        with(|stack| {
            open(stack, number)?;
            stack.abort(number);
            Ok(())
        })
    }

    fn peer(&self, badge: u64) -> Result<(u64, u64, u64), NetError> {
        let number = allowed(badge, 0)?;
        with(|stack| Ok(open(stack, number)?.0.key.remote.words()))
    }

    fn part(&self, badge: u64, may: u64) -> Result<Delegate, NetError> {
        let number = allowed(badge, 0)?;
        with(|stack| open(stack, number).map(drop))?;
        let denied = !may & (MAY_READ | MAY_WRITE | MAY_CLOSE);
        Ok(CONNECTION.mint(badge | denied << NUMBER_BITS))
    }
}

impl DatagramsServer for Datagrams {
    fn send(&self, badge: u64, high: u64, low: u64, port: u64, bytes: &[u8]) -> Result<(), NetError> {
        let to = endpoint(high, low, port)?;
        with(|stack| {
            let Some(Socket { kind: Kind::Datagrams(own), .. }) = stack.sockets.get_mut(badge) else {
                return Err(NetError::Closed);
            };
            let (handle, from) = (own.handle, own.port);
            stack.send_datagram(handle, from, to, bytes)
        })
    }

    fn receive(&self, badge: u64, into: &mut [u8]) -> Result<Received, NetError> {
        with(|stack| stack.receive_datagram(badge, into))
    }

    fn port(&self, badge: u64) -> Result<u64, NetError> {
        with(|stack| match stack.sockets.get_mut(badge) {
            Some(Socket { kind: Kind::Datagrams(own), .. }) => Ok(own.port.into()),
            _ => Err(NetError::Closed),
        })
    }

    fn close(&self, badge: u64) -> Result<(), NetError> {
        remove(badge)
    }
}

impl EchoServer for Echo {
    fn send(&self, badge: u64, high: u64, low: u64, sequence: u64, bytes: &[u8]) -> Result<(), NetError> {
        let to = endpoint(high, low, 0)?;
        let sequence = port(sequence)?;
        with(|stack| stack.send_echo(badge, to, sequence, bytes))
    }

    fn receive(&self, badge: u64, into: &mut [u8]) -> Result<Received, NetError> {
        with(|stack| stack.receive_echo(badge, into))
    }

    fn close(&self, badge: u64) -> Result<(), NetError> {
        remove(badge)
    }
}

impl QueryServer for Query {
    fn addresses(&self, badge: u64, into: &mut [u8]) -> Result<usize, NetError> {
        with(|stack| stack.addresses(badge, into))
    }
}
