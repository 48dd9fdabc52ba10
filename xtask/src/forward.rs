//! Ports of this host that lead to ports of the machine.

use anyhow::{Context, Result, bail};
use std::fmt;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, UdpSocket};
use std::ops::Range;
use std::str::FromStr;
use std::sync::atomic::{AtomicU32, Ordering};

/// The port of the web server in the machine.
pub const WEB: u16 = 80;
/// The port that a person expects it at on this host.
const USUAL: u16 = 8080;
/// Below the ports that Linux gives to clients: none of our own connections takes one between our look and the
/// emulator's.
const ANY: Range<u16> = 20_000..32_768;

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
    /// For the web server: the usual port of this host, or if it is taken any. For people: only one asks at a time.
    pub fn usual() -> Result<Self> {
        match bind(Protocol::Tcp, USUAL) {
            true => Ok(Self { protocol: Protocol::Tcp, host: USUAL, guest: WEB }),
            false => Self::any(Protocol::Tcp, WEB),
        }
    }

    /// A free port of this host for this one of the machine. None is given twice: tests run at the same time.
    pub fn any(protocol: Protocol, guest: u16) -> Result<Self> {
        static GIVEN: AtomicU32 = AtomicU32::new(0);
        let first = std::process::id().wrapping_mul(101);
        let count = ANY.len() as u32;
        let mut ports = (0..count).map(|_| {
            let place = first.wrapping_add(GIVEN.fetch_add(1, Ordering::Relaxed)) % count;
            ANY.start + place as u16
        });
        let host = ports.find(|&port| bind(protocol, port)).context("no port of this host is free")?;
        Ok(Self { protocol, host, guest })
    }

    /// These that a person asks for, after the usual one of the web server.
    pub fn usual_and(wanted: &[Self]) -> Result<Vec<Self>> {
        for (number, forward) in wanted.iter().enumerate() {
            let Self { protocol, host, .. } = *forward;
            if wanted[..number].iter().any(|other| other.has_port_of(forward)) {
                bail!("--forward names {protocol} port {host} of this computer twice");
            }
            if !bind(protocol, host) {
                bail!(
                    "{protocol} port {host} of this computer is taken, or not ours to take: choose another one for --forward"
                );
            }
        }
        let mut usual = Self::usual()?;
        while wanted.iter().any(|other| other.has_port_of(&usual)) {
            usual = Self::any(Protocol::Tcp, WEB)?;
        }
        Ok([&[usual], wanted].concat())
    }

    fn has_port_of(&self, other: &Self) -> bool {
        (self.protocol, self.host) == (other.protocol, other.host)
    }

    /// Where a client on this host finds it.
    pub fn address(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.host).into()
    }
}

/// As the emulator takes it: `hostfwd=tcp:127.0.0.1:8080-:80`.
impl fmt::Display for Forward {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "hostfwd={}:127.0.0.1:{}-:{}", self.protocol, self.host, self.guest)
    }
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tcp => "tcp",
            Self::Udp => "udp",
        })
    }
}

/// As a person writes it: `2000:7`, `2000:7/udp`.
impl FromStr for Forward {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let (ports, protocol) = match text.split_once('/') {
            None | Some((_, "tcp")) => (text.trim_end_matches("/tcp"), Protocol::Tcp),
            Some((ports, "udp")) => (ports, Protocol::Udp),
            Some((_, other)) => return Err(format!("`{other}` is neither tcp nor udp")),
        };
        let (host, guest) = ports.split_once(':').ok_or("it takes two ports: HOST:MACHINE, as 2000:7")?;
        let port = |text: &str| match text.parse() {
            Ok(port) if port != 0 => Ok(port),
            _ => Err(format!("`{text}` is no port: these are 1 to 65535")),
        };
        Ok(Self { protocol, host: port(host)?, guest: port(guest)? })
    }
}

/// Whether nobody has it.
fn bind(protocol: Protocol, port: u16) -> bool {
    let address = (Ipv4Addr::LOCALHOST, port);
    match protocol {
        Protocol::Tcp => TcpListener::bind(address).is_ok(),
        Protocol::Udp => UdpSocket::bind(address).is_ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_free_and_differ() {
        let hosts: Vec<_> = (0..100).map(|_| Forward::any(Protocol::Tcp, WEB).unwrap().host).collect();
        let mut different = hosts.clone();
        different.sort_unstable();
        different.dedup();
        assert_eq!(different.len(), hosts.len());
        assert!(hosts.iter().all(|host| ANY.contains(host)));
        // They were let go again.
        let _taken: Vec<_> =
            hosts.iter().map(|&host| TcpListener::bind((Ipv4Addr::LOCALHOST, host)).unwrap()).collect();
    }

    #[test]
    fn the_web_server_gets_another_port_if_the_usual_one_is_taken() {
        // Taken by us, or by somebody else.
        let _usual = TcpListener::bind((Ipv4Addr::LOCALHOST, USUAL));
        let web = Forward::usual().unwrap();
        assert_ne!(web.host, USUAL);
        assert_eq!(web.guest, WEB);
    }

    #[test]
    fn as_a_person_writes_it() {
        let is = |text: &str, protocol, host, guest| {
            assert_eq!(text.parse::<Forward>(), Ok(Forward { protocol, host, guest }), "{text}");
        };
        is("2000:7", Protocol::Tcp, 2000, 7);
        is("1:65535/tcp", Protocol::Tcp, 1, 65535);
        is("65535:1/udp", Protocol::Udp, 65535, 1);
        let two_ports = "it takes two ports: HOST:MACHINE, as 2000:7";
        for (text, why) in [
            ("", two_ports),
            ("2000", two_ports),
            ("2000/udp", two_ports),
            ("2000:", "`` is no port: these are 1 to 65535"),
            (":7", "`` is no port: these are 1 to 65535"),
            ("0:7", "`0` is no port: these are 1 to 65535"),
            ("7:65536", "`65536` is no port: these are 1 to 65535"),
            ("1:2:3", "`2:3` is no port: these are 1 to 65535"),
            ("1:2/icmp", "`icmp` is neither tcp nor udp"),
            ("1:2/", "`` is neither tcp nor udp"),
        ] {
            assert_eq!(text.parse::<Forward>(), Err(why.to_string()), "{text}");
        }
    }

    #[test]
    fn ports_that_somebody_wants() {
        let any = |protocol, guest| Forward::any(protocol, guest).unwrap();
        let wanted = [any(Protocol::Tcp, 7), any(Protocol::Udp, 7)];
        let all = Forward::usual_and(&wanted).unwrap();
        assert_eq!((all[0].guest, &all[1..]), (WEB, &wanted[..]));
        let why = |wanted: &[Forward]| Forward::usual_and(wanted).unwrap_err().to_string();
        let host = wanted[0].host;
        assert_eq!(why(&[wanted[0]; 2]), format!("--forward names tcp port {host} of this computer twice"));
        let _taken = TcpListener::bind(wanted[0].address()).unwrap();
        let taken =
            format!("tcp port {host} of this computer is taken, or not ours to take: choose another one for --forward");
        assert_eq!(why(&wanted), taken);
    }

    #[test]
    fn as_the_emulator_takes_it() {
        let forward = Forward { protocol: Protocol::Udp, host: 4321, guest: 7 };
        assert_eq!(forward.to_string(), "hostfwd=udp:127.0.0.1:4321-:7");
        assert_eq!(forward.address().to_string(), "127.0.0.1:4321");
    }
}
