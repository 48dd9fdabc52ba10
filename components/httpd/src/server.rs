//! The loop: events, clients, time.

use alloc::vec;
use alloc::vec::Vec;
use core::convert::Infallible;

use idl::Failure;
use runtime::op;
use sockets::{Listener, NetError, Refusal, Session};

use crate::client::{Client, Outcome, PIECE, SENT_AT_ONCE};
use crate::clients::{Clients, MAX_CLIENTS};
use crate::files::Files;

const PORT: u16 = 80;
/// Connections that wait to be accepted.
const BACKLOG: u64 = 256;
/// Pages that each connection has to receive into and to send from; with many connections one of each.
const PAGES: (u64, u64) = (1, SENT_AT_ONCE as u64);
/// The listener's token.
const LISTENER: u32 = u32::MAX;
/// Connections accepted before others have their turn.
const ACCEPTED_AT_ONCE: usize = 32;

/// Whether this ends everything that came from the network.
fn is_final(refusal: &Refusal) -> bool {
    matches!(refusal, Failure::Transport(_) | Failure::Refused(NetError::Closed | NetError::NoSession))
}

/// Serves until the network dies; gives why.
pub fn serve(files: &mut Files) -> Result<Infallible, Refusal> {
    let session = Session::open()?;
    let listener = session.listen(LISTENER, PORT, BACKLOG, PAGES)?;
    let mut clients = Clients::new();
    let mut ready: Vec<u32> = Vec::new();
    let mut next: Vec<u32> = Vec::new();
    let mut piece = vec![0; PIECE];
    loop {
        if ready.is_empty() {
            match session.wait(clients.next_deadline()) {
                Ok(()) | Err(Failure::Refused(NetError::TimedOut)) => {}
                Err(refusal) => return Err(refusal),
            }
        }
        session.events(|event| {
            if event.token != LISTENER
                && let Some(client) = clients.get(event.token)
            {
                client.changed();
            }
            // A connection that is listed twice has nothing to do the second time.
            ready.push(event.token);
        })?;
        for token in ready.drain(..) {
            if token == LISTENER {
                if accept(&listener, &mut clients, &mut next)? {
                    next.push(LISTENER);
                }
                continue;
            }
            let Some(client) = clients.get(token) else { continue };
            match client.advance(files, &mut piece) {
                Ok(Outcome::Wait) if clients.keeps_too_much(token) => {
                    if let Some(client) = clients.remove(token) {
                        client.turn_away();
                    }
                }
                Ok(Outcome::Wait) => clients.watch(token),
                Ok(Outcome::Again) => next.push(token),
                Ok(Outcome::Close) => close(clients.remove(token)),
                Err(refusal) if is_final(&refusal) => return Err(refusal),
                Err(_) => close(clients.remove(token)),
            }
        }
        core::mem::swap(&mut ready, &mut next);
        let now = op::clock();
        while let Some(token) = clients.expired(now) {
            if let Some(client) = clients.remove(token) {
                client.give_up();
            }
        }
    }
}

fn close(client: Option<Client>) {
    if let Some(client) = client {
        client.close();
    }
}

/// Accepts connections; whether there may be more.
fn accept(listener: &Listener, clients: &mut Clients, next: &mut Vec<u32>) -> Result<bool, Refusal> {
    for _ in 0..ACCEPTED_AT_ONCE {
        if clients.len() == MAX_CLIENTS {
            close(clients.remove_idlest());
        }
        let Some(token) = clients.next_token() else { return Ok(false) };
        match listener.accept(token) {
            Ok(stream) => {
                clients.insert(token, Client::new(stream));
                next.push(token);
            }
            Err(Failure::Refused(NetError::WouldBlock)) => return Ok(false),
            Err(refusal) => return Err(refusal),
        }
    }
    Ok(true)
}
