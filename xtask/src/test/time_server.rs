//! A time server on this host, for a boot test: it says that it is the year 2035.

use anyhow::{Context, Result};
use std::net::{Ipv4Addr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// In a test's commands: the server's port.
pub const PLACEHOLDER: &str = "TIME_PORT";
/// 2035-01-01, 00:00, in seconds since 1900, where NTP's time begins.
const BEGIN: u64 = 4_260_211_200;
/// Bytes of a request and of a reply (RFC 5905, figure 8), and where they have their times.
const PACKET_BYTES: usize = 48;
const ORIGINATE: usize = 24;
const RECEIVE: usize = 32;
const TRANSMIT: usize = 40;

/// The server.
pub struct TimeServer {
    socket: UdpSocket,
    begun: Instant,
}

impl TimeServer {
    /// At a free port.
    pub fn open() -> Result<Self> {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).context("no UDP port of this host is free")?;
        socket.set_read_timeout(Some(Duration::from_millis(50)))?;
        Ok(Self { socket, begun: Instant::now() })
    }

    /// Its port.
    pub fn port(&self) -> Result<u16> {
        Ok(self.socket.local_addr().context("a port without a number")?.port())
    }

    /// Answers until it is over. Before each answer come two that must not be accepted: one to a request that nobody
    /// made, and one that is cut off.
    pub fn serve(&self, over: &AtomicBool) {
        let mut request = [0; 512];
        while !over.load(Ordering::Relaxed) {
            let Ok((PACKET_BYTES, from)) = self.socket.recv_from(&mut request) else { continue };
            let good = reply(&request[..PACKET_BYTES], self.begun.elapsed(), BEGIN);
            let mut forged = reply(&request[..PACKET_BYTES], self.begun.elapsed(), BEGIN + 1_000_000);
            forged[ORIGINATE] ^= 1;
            for bytes in [&forged[..], &good[..PACKET_BYTES - 1], &good[..]] {
                // A guest that is gone asks no more.
                let _ = self.socket.send_to(bytes, from);
            }
        }
    }
}

/// The reply at this time after `begin`.
fn reply(request: &[u8], passed: Duration, begin: u64) -> [u8; PACKET_BYTES] {
    let mut reply = [0; PACKET_BYTES];
    // Version 4, of a server; stratum 1; exact to 2^-20 s.
    (reply[0], reply[1], reply[3]) = (4 << 3 | 4, 1, (-20i8) as u8);
    let fraction = (u64::from(passed.subsec_nanos()) << 32) / 1_000_000_000;
    let time = (begin + passed.as_secs()) << 32 | fraction;
    reply[ORIGINATE..RECEIVE].copy_from_slice(&request[TRANSMIT..]);
    reply[RECEIVE..TRANSMIT].copy_from_slice(&time.to_be_bytes());
    reply[TRANSMIT..].copy_from_slice(&time.to_be_bytes());
    reply
}
