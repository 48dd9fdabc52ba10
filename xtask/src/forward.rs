//! Ports of this host that lead to ports of the machine.

use anyhow::{Context, Result};
use std::fmt;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, UdpSocket};

/// The port of the web server in the machine.
pub const WEB: u16 = 80;
/// The port that a person expects it at on this host.
const USUAL: u16 = 8080;

/// Which protocol a port is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// Connections.
    Tcp,
    /// Datagrams.
    Udp,
}

/// A port of this host that leads to one of the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Forward {
    /// Of both ports.
    pub protocol: Protocol,
    /// The port of this host, on 127.0.0.1.
    pub host: u16,
    /// The port of the machine.
    pub guest: u16,
}

impl Forward {
    /// For the web server: the usual port of this host, or if it is taken any.
    pub fn web() -> Result<Self> {
        let listener = bind_tcp(USUAL).or_else(|_| bind_tcp(0)).context(NONE_FREE)?;
        Ok(Self { protocol: Protocol::Tcp, host: listener.local_addr().context(NO_NUMBER)?.port(), guest: WEB })
    }

    /// Free ports of this host, different ones, for these of the machine.
    pub fn any(guests: &[(Protocol, u16)]) -> Result<Vec<Self>> {
        // All stay taken until the last one is found.
        let mut taken = Vec::new();
        for &(protocol, guest) in guests {
            let socket = Socket::bind(protocol).context(NONE_FREE)?;
            taken.push((socket.port().context(NO_NUMBER)?, protocol, guest, socket));
        }
        Ok(taken.iter().map(|&(host, protocol, guest, _)| Self { protocol, host, guest }).collect())
    }

    /// Where a client on this host finds it.
    pub fn address(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.host).into()
    }
}

/// As the emulator takes it: `hostfwd=tcp:127.0.0.1:8080-:80`.
impl fmt::Display for Forward {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let protocol = match self.protocol {
            Protocol::Tcp => "tcp",
            Protocol::Udp => "udp",
        };
        write!(f, "hostfwd={protocol}:127.0.0.1:{}-:{}", self.host, self.guest)
    }
}

const NONE_FREE: &str = "no port of this host is free";
const NO_NUMBER: &str = "a port without a number";

fn bind_tcp(port: u16) -> std::io::Result<TcpListener> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, port))
}

enum Socket {
    Tcp(TcpListener),
    Udp(UdpSocket),
}

impl Socket {
    fn bind(protocol: Protocol) -> std::io::Result<Self> {
        match protocol {
            Protocol::Tcp => bind_tcp(0).map(Self::Tcp),
            Protocol::Udp => UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).map(Self::Udp),
        }
    }

    fn port(&self) -> std::io::Result<u16> {
        let address = match self {
            Self::Tcp(listener) => listener.local_addr(),
            Self::Udp(socket) => socket.local_addr(),
        };
        address.map(|address| address.port())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_free_and_differ() {
        let guests = [(Protocol::Tcp, 7), (Protocol::Tcp, 19), (Protocol::Udp, 7), (Protocol::Tcp, WEB)];
        let forwards = Forward::any(&guests).unwrap();
        assert_eq!(forwards.iter().map(|forward| (forward.protocol, forward.guest)).collect::<Vec<_>>(), guests);
        let mut hosts: Vec<_> =
            forwards.iter().filter(|forward| forward.protocol == Protocol::Tcp).map(|forward| forward.host).collect();
        hosts.sort_unstable();
        hosts.dedup();
        assert_eq!(hosts.len(), 3);
        // They were let go again.
        let _taken: Vec<_> = hosts.iter().map(|&host| bind_tcp(host).unwrap()).collect();
    }

    #[test]
    fn the_web_server_gets_another_port_if_the_usual_one_is_taken() {
        // Taken by us, or by somebody else.
        let _usual = bind_tcp(USUAL);
        let web = Forward::web().unwrap();
        assert_ne!(web.host, USUAL);
        assert_eq!(web.guest, WEB);
    }

    #[test]
    fn as_the_emulator_takes_it() {
        let forward = Forward { protocol: Protocol::Udp, host: 4321, guest: 7 };
        assert_eq!(forward.to_string(), "hostfwd=udp:127.0.0.1:4321-:7");
        assert_eq!(forward.address().to_string(), "127.0.0.1:4321");
    }
}
