//! The network: listeners and connections, each a call entry of its own.

use interface::{codes, interface};

codes! {
    /// Why the network refused.
    pub enum NetError {
        1 InUse "somebody listens on this port"
        2 Closed "the connection is closed"
        3 Full "no room for more"
        4 BadPort "not a port"
        5 Reset "the other side broke the connection off"
    }
}

/// The network.
#[interface]
pub trait Net {
    /// Listens on a port: a call entry of [`Listener`]. A listener of the port that was there before goes.
    fn listen(&self, port: u64, backlog: u64) -> Result<Delegated, NetError>;
    /// The interface in text: addresses and counters.
    fn describe(&self, into: &mut [u8]) -> Result<usize, NetError>;
}

/// A port that is listened on.
#[interface]
pub trait Listener {
    /// Waits for a connection: a call entry of [`Connection`].
    fn accept(&self) -> Result<Delegated, NetError>;
}

/// A TCP connection.
#[interface]
pub trait Connection {
    /// Waits for bytes; 0 = the other side sends no more.
    fn read(&self, into: &mut [u8]) -> Result<usize, NetError>;
    /// Waits for room; gives how many bytes were taken, at least one.
    fn write(&self, bytes: &[u8]) -> Result<usize, NetError>;
    /// Sends what was written, then the end.
    fn close(&self) -> Result<(), NetError>;
}
