//! A web server: files of `/www` by HTTP/1.1 (RFC 9110, RFC 9112) on port 80.
//!
//! # One thread
//! All connections are served by one thread that never waits for one of them: it waits for events of the network and
//! goes on with those that have one. A connection costs a record here and its buffers in the network, no stack.
//!
//! # Limits
//! Requests are of bounded size; a client that is slow to send a request, to take an answer, or has nothing to ask is
//! given up after a while; one that sends many requests at once takes turns with the others. The memory for requests and
//! answers is bounded for all together: with many connections, nothing is kept that can be read from a file again. With
//! [`clients::MAX_CLIENTS`] connections the one that has been idle longest makes room for the next.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

extern crate alloc;

mod answer;
mod client;
mod clients;
mod files;
mod server;
mod status;
mod time;

use runtime::thread;

runtime::entry!(main);

/// How long to wait before listening is tried again, in nanoseconds.
const PAUSE: u64 = 20_000_000;

fn main() -> u8 {
    let mut files = files::Files::new();
    let mut said = None;
    loop {
        // Ends when the network dies: the next one knows nothing of us.
        let cause = match server::serve(&mut files) {
            Ok(never) => match never {},
            Err(cause) => cause,
        };
        if said != Some(cause) {
            runtime::log!("the network is gone or refuses: {cause}; trying again");
            said = Some(cause);
        }
        let _ = thread::sleep(PAUSE);
    }
}
