//! The first program of the Linux that Cairn is compared with: `./x bench --peer linux`.
//!
//! It loads the modules that `/modules` names, gives the network its address, and starts nginx and the
//! services below, each a process of its own: the same program, with the name of the service as its argument.
//! Tasks that need more than Rust's library are left to Debian's busybox. When one of them ends, so does the machine.
//!
//! | service | port | what |
//! |---|---|---|
//! | `udp-echo` | UDP 7 | each datagram comes back (RFC 862) |
//! | `tcp-echo` | TCP 7 | what comes on a connection goes back (RFC 862) |
//! | `source` | TCP 19 | bytes without end (RFC 864, but for the pattern) |
//! | `loopback` | TCP 20 | a number of four bytes, big-endian, comes: so many times eight bytes go to `tcp-echo` and back; then the number goes back |
//!
//! Each serves one connection after the other: one is open at a time, and nothing is cheaper than a call that blocks.
#![forbid(unsafe_code)]

use std::fs;
use std::io::{Error, ErrorKind, Read, Result, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream, UdpSocket};
use std::process::{Child, Command};
use std::thread;
use std::time::Duration;

/// Where everything is.
const ITSELF: &str = "/init";
const BUSYBOX: &str = "/bin/busybox";
const NGINX: &str = "/usr/sbin/nginx";
/// Names of files, in the order in which they are loaded.
const MODULES: &str = "/modules";
const SERVICES: [&str; 4] = ["udp-echo", "tcp-echo", "source", "loopback"];
/// Commands of busybox: folders of the kernel, then the addresses that the emulator's network gives out.
const BEFORE: [&str; 2] = ["mount -t devtmpfs dev /dev", "mount -t proc proc /proc"];
const NETWORK: [&str; 4] = [
    "ip link set lo up",
    "ip address add 10.0.2.15/24 dev eth0",
    "ip link set eth0 up",
    "ip route add default via 10.0.2.2",
];
/// Between two looks whether all processes live: long, because it costs what is measured.
const PAUSE: Duration = Duration::from_secs(10);

const ECHO: u16 = 7;
const SOURCE: u16 = 19;
const LOOPBACK: u16 = 20;
/// Most bytes of a datagram, and bytes read or written at once.
const PIECE: usize = 64 * 1024;

fn main() {
    let service = std::env::args().nth(1);
    let result = match service.as_deref() {
        None => boot(),
        Some("udp-echo") => udp_echo(),
        Some("tcp-echo") => each_connection(ECHO, tcp_echo),
        Some("source") => each_connection(SOURCE, source),
        Some("loopback") => each_connection(LOOPBACK, loopback),
        Some(other) => Err(Error::other(format!("no such service: {other}"))),
    };
    if let Err(error) = result {
        eprintln!("{}: {error}", service.as_deref().unwrap_or(ITSELF));
        std::process::exit(1);
    }
}

/// Starts all, and comes back when something failed; the kernel panics then.
fn boot() -> Result<()> {
    BEFORE.iter().try_for_each(|command| busybox(command))?;
    for module in fs::read_to_string(MODULES)?.lines() {
        busybox(&format!("insmod {module}"))?;
    }
    NETWORK.iter().try_for_each(|command| busybox(command))?;
    let services = SERVICES.iter().map(|service| Ok((*service, Command::new(ITSELF).arg(service).spawn()?)));
    let mut processes = services.collect::<Result<Vec<(&str, Child)>>>()?;
    processes.push((NGINX, Command::new(NGINX).spawn()?));
    loop {
        for (name, process) in &mut processes {
            if let Some(status) = process.try_wait()? {
                return Err(Error::other(format!("{name} ended: {status}")));
            }
        }
        thread::sleep(PAUSE);
    }
}

fn busybox(command: &str) -> Result<()> {
    let status = Command::new(BUSYBOX).args(command.split(' ')).status()?;
    if status.success() { Ok(()) } else { Err(Error::other(format!("`{command}`: {status}"))) }
}

fn udp_echo() -> Result<()> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, ECHO))?;
    let mut bytes = vec![0; PIECE];
    loop {
        let (count, from) = socket.recv_from(&mut bytes)?;
        socket.send_to(&bytes[..count], from)?;
    }
}

/// Serves one connection after the other; that one ends with an error is its client's business.
fn each_connection(port: u16, serve: fn(TcpStream) -> Result<()>) -> Result<()> {
    let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, port))?;
    loop {
        let (stream, _) = listener.accept()?;
        stream.set_nodelay(true)?;
        let _ = serve(stream);
    }
}

fn tcp_echo(mut stream: TcpStream) -> Result<()> {
    let mut bytes = vec![0; PIECE];
    loop {
        match stream.read(&mut bytes)? {
            0 => return Ok(()),
            count => stream.write_all(&bytes[..count])?,
        }
    }
}

fn source(mut stream: TcpStream) -> Result<()> {
    let bytes = vec![b'x'; PIECE];
    loop {
        stream.write_all(&bytes)?;
    }
}

fn loopback(mut client: TcpStream) -> Result<()> {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, ECHO))?;
    stream.set_nodelay(true)?;
    let mut number = [0; 4];
    loop {
        client.read_exact(&mut number)?;
        for turn in 0..u64::from(u32::from_be_bytes(number)) {
            let (sent, mut back) = (turn.to_be_bytes(), [0; 8]);
            stream.write_all(&sent)?;
            stream.read_exact(&mut back)?;
            if back != sent {
                return Err(Error::new(ErrorKind::InvalidData, "not what was sent"));
            }
        }
        client.write_all(&number)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A connection to something that serves it.
    fn served(serve: fn(TcpStream) -> Result<()>) -> TcpStream {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        thread::spawn(move || serve(listener.accept().unwrap().0));
        stream
    }

    #[test]
    fn echoed_bytes_come_back() {
        let mut stream = served(tcp_echo);
        stream.write_all(b"there").unwrap();
        let mut back = [0; 5];
        stream.read_exact(&mut back).unwrap();
        assert_eq!(&back, b"there");
    }

    #[test]
    fn the_source_does_not_end() {
        let mut bytes = vec![0; 3 * PIECE];
        served(source).read_exact(&mut bytes).unwrap();
        assert!(bytes.iter().all(|&byte| byte == b'x'));
    }
}
