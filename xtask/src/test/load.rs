//! The other end of the network: a client on the host, while the machine runs.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// How long a client waits for an answer, and between two tries.
const PATIENCE: Duration = Duration::from_millis(500);
const PAUSE: Duration = Duration::from_millis(10);

/// Asks for the first page again and again, each time on a connection of its own; gives how often it came.
pub fn pages(port: u16, over: &AtomicBool) -> usize {
    let mut count = 0;
    while !over.load(Ordering::Relaxed) {
        match page(port) {
            Ok(answer) if answer.starts_with("HTTP/1.1 200 ") && answer.trim_end().ends_with("</html>") => count += 1,
            _ => thread::sleep(PAUSE),
        }
    }
    count
}

fn page(port: u16) -> std::io::Result<String> {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")?;
    stream.shutdown(std::net::Shutdown::Write)?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}
