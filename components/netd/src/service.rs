//! What clients ask for. The badge of a connection's call entry names its socket.

use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicUsize, Ordering};

use interface::{Delegate, Reply, Request};
use interfaces::net::{ConnectionServer, ListenerServer, NetError, NetServer};
use runtime::server::{self, Serve};
use runtime::sync::Mutex;
use smoltcp::iface::SocketHandle;
use smoltcp::socket::tcp;

use crate::stack::{self, CHANGED, Stack};

/// Calls that may wait at the same time, and some that need not.
pub const ACTIVATIONS: usize = 6;
/// Bytes that wait in each direction of a connection.
const BUFFER: usize = 8192;
/// Sockets of a listener that wait for connections, at most.
const MAX_BACKLOG: u64 = 16;

static LISTENER: AtomicUsize = AtomicUsize::new(0);
static CONNECTION: AtomicUsize = AtomicUsize::new(0);

struct Table {
    next: u64,
    /// By number: connections that were accepted.
    open: BTreeMap<u64, SocketHandle>,
    /// By port: sockets that wait for a connection or have one that was not accepted.
    listening: BTreeMap<u16, Vec<SocketHandle>>,
    /// Closed by their client; they go when the protocol is done.
    closing: Vec<SocketHandle>,
}

static TABLE: Mutex<Table> =
    Mutex::new(Table { next: 1, open: BTreeMap::new(), listening: BTreeMap::new(), closing: Vec::new() });

/// Makes the services.
pub fn publish() -> Result<(), String> {
    let text = |error: abi::Error| error.to_string();
    LISTENER.store(server::service::<Listener>().map_err(text)?.0, Ordering::Relaxed);
    CONNECTION.store(server::service::<Connection>().map_err(text)?.0, Ordering::Relaxed);
    let net = server::service::<Net>().map_err(text)?;
    server::publish_service("net", net).map_err(|error| error.to_string())
}

struct Net;
struct Listener;
struct Connection;

impl Serve for Net {
    fn serve(request: &mut Request<'_>) -> Reply {
        Net.dispatch(request)
    }
}
impl Serve for Listener {
    fn serve(request: &mut Request<'_>) -> Reply {
        Listener.dispatch(request)
    }
}
impl Serve for Connection {
    fn serve(request: &mut Request<'_>) -> Reply {
        Connection.dispatch(request)
    }
}

fn listen_socket(stack: &mut Stack, port: u16) -> Result<SocketHandle, NetError> {
    let buffer = || tcp::SocketBuffer::new(vec![0; BUFFER]);
    let mut socket = tcp::Socket::new(buffer(), buffer());
    socket.set_nagle_enabled(false);
    socket.listen(port).map_err(|_| NetError::BadPort)?;
    Ok(stack.sockets.add(socket))
}

impl NetServer for Net {
    fn listen(&self, _badge: u64, port: u64, backlog: u64) -> Result<Delegate, NetError> {
        let port = u16::try_from(port).ok().filter(|port| *port != 0).ok_or(NetError::BadPort)?;
        let mut stack = stack::lock();
        let stack = stack.as_mut().ok_or(NetError::Closed)?;
        let mut table = TABLE.lock();
        for old in table.listening.remove(&port).into_iter().flatten() {
            stack.sockets.remove(old);
        }
        let count = backlog.clamp(1, MAX_BACKLOG);
        let sockets = (0..count).map(|_| listen_socket(stack, port)).collect::<Result<Vec<_>, _>>()?;
        table.listening.insert(port, sockets);
        Ok(Delegate::mint(LISTENER.load(Ordering::Relaxed), port.into()))
    }

    fn describe(&self, _badge: u64, into: &mut [u8]) -> Result<usize, NetError> {
        let stack = stack::lock();
        let text = stack.as_ref().map(Stack::describe).ok_or(NetError::Closed)?;
        let count = text.len().min(into.len());
        into[..count].copy_from_slice(&text.as_bytes()[..count]);
        Ok(count)
    }
}

/// Does `work` again whenever something changed, until it gives something.
fn wait<R>(mut work: impl FnMut(&mut Stack) -> Option<Result<R, NetError>>) -> Result<R, NetError> {
    let mut guard = stack::lock();
    loop {
        let stack = guard.as_mut().ok_or(NetError::Closed)?;
        if let Some(outcome) = work(stack) {
            return outcome;
        }
        guard = CHANGED.wait(guard);
    }
}

impl ListenerServer for Listener {
    fn accept(&self, badge: u64) -> Result<Delegate, NetError> {
        let port = badge as u16;
        wait(|stack| {
            let mut table = TABLE.lock();
            table.sweep(stack);
            let Some(sockets) = table.listening.get_mut(&port) else { return Some(Err(NetError::Closed)) };
            let place = sockets.iter().position(|handle| {
                let socket = stack.sockets.get::<tcp::Socket<'_>>(*handle);
                socket.may_recv() || socket.may_send()
            })?;
            let handle = sockets.swap_remove(place);
            if let Ok(fresh) = listen_socket(stack, port) {
                sockets.push(fresh);
            }
            let number = table.next;
            table.next += 1;
            table.open.insert(number, handle);
            Some(Ok(Delegate::mint(CONNECTION.load(Ordering::Relaxed), number)))
        })
    }
}

impl Table {
    /// Removes sockets whose protocol is done, and lets broken listeners listen again.
    fn sweep(&mut self, stack: &mut Stack) {
        self.closing.retain(|handle| {
            let done = !stack.sockets.get::<tcp::Socket<'_>>(*handle).is_open();
            if done {
                stack.sockets.remove(*handle);
            }
            !done
        });
        for (port, sockets) in &self.listening {
            for handle in sockets {
                let socket = stack.sockets.get_mut::<tcp::Socket<'_>>(*handle);
                if !socket.is_open() {
                    let _ = socket.listen(*port);
                }
            }
        }
    }
}

fn handle(badge: u64) -> Result<SocketHandle, NetError> {
    TABLE.lock().open.get(&badge).copied().ok_or(NetError::Closed)
}

impl ConnectionServer for Connection {
    fn read(&self, badge: u64, into: &mut [u8]) -> Result<usize, NetError> {
        wait(|stack| {
            let handle = match handle(badge) {
                Ok(handle) => handle,
                Err(error) => return Some(Err(error)),
            };
            let socket = stack.sockets.get_mut::<tcp::Socket<'_>>(handle);
            if socket.can_recv() {
                let count = socket.recv_slice(into).unwrap_or(0);
                return Some(Ok(count));
            }
            (!socket.may_recv()).then_some(Ok(0))
        })
    }

    fn write(&self, badge: u64, bytes: &[u8]) -> Result<usize, NetError> {
        wait(|stack| {
            let handle = match handle(badge) {
                Ok(handle) => handle,
                Err(error) => return Some(Err(error)),
            };
            let socket = stack.sockets.get_mut::<tcp::Socket<'_>>(handle);
            if !socket.may_send() {
                return Some(Err(NetError::Reset));
            }
            let count = socket.send_slice(bytes).unwrap_or(0);
            if count == 0 && !bytes.is_empty() {
                return None;
            }
            stack.poll_from_call();
            Some(Ok(count))
        })
    }

    fn close(&self, badge: u64) -> Result<(), NetError> {
        let mut stack = stack::lock();
        let stack = stack.as_mut().ok_or(NetError::Closed)?;
        let mut table = TABLE.lock();
        let handle = table.open.remove(&badge).ok_or(NetError::Closed)?;
        stack.sockets.get_mut::<tcp::Socket<'_>>(handle).close();
        table.closing.push(handle);
        table.sweep(stack);
        drop(table);
        stack.poll_from_call();
        Ok(())
    }
}
