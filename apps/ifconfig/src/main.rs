//! `ifconfig`: network interfaces, their addresses and counters, and the holders of the network's sessions.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use tool::{Arguments, print};

runtime::entry!(main);

const HELP: &str = "\
usage: ifconfig

Shows the network interfaces: hardware address, addresses, frames. Addresses come by
DHCP (IPv4) and from the router's advertisements (IPv6); there is nothing to set.
Then what components and programs hold of the network, and the most they may hold.
";

fn main() -> u8 {
    let arguments = Arguments::new("ifconfig", HELP);
    if !arguments.none() {
        return tool::USAGE;
    }
    let mut bytes = [0; 2048];
    let mut position = 0;
    loop {
        match sockets::NET.interfaces(position, &mut bytes) {
            Ok(0) => return 0,
            Ok(count) => {
                print!("{}", text(&bytes[..count]));
                position += count as u64;
            }
            Err(cause) => return arguments.fail("the network", cause),
        }
    }
}

/// The network's report is ASCII.
fn text(bytes: &[u8]) -> &str {
    core::str::from_utf8(bytes).unwrap_or("?\n")
}
