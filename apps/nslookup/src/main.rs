//! `nslookup`: the addresses of a name.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use core::net::{IpAddr, Ipv4Addr};

use idl::Failure;
use runtime::op;
use sockets::{NetError, Refusal, Session};
use tool::{Arguments, println};

runtime::entry!(main);

const HELP: &str = "\
usage: nslookup NAME

Asks the name servers from DHCP for the addresses of NAME, IPv4 and IPv6.
";

const PATIENCE: u64 = 10_000_000_000;

fn main() -> u8 {
    let arguments = Arguments::new("nslookup", HELP);
    let Some(name) = arguments.one("NAME") else { return tool::USAGE };
    match look_up(name) {
        Ok(()) => 0,
        Err(cause) => arguments.fail(name, cause),
    }
}

fn look_up(name: &str) -> Result<(), Refusal> {
    let session = Session::open()?;
    let mut refusal = None;
    let mut count = 0;
    for six in [false, true] {
        let mut found = [IpAddr::V4(Ipv4Addr::UNSPECIFIED); 8];
        match session.resolve(name, six, op::clock() + PATIENCE, &mut found) {
            Ok(addresses) => {
                for address in &found[..addresses] {
                    println!("{name} {address}");
                }
                count += addresses;
            }
            Err(other @ Failure::Refused(NetError::NotFound | NetError::TimedOut)) => refusal = Some(other),
            Err(other) => return Err(other),
        }
    }
    match refusal {
        Some(refusal) if count == 0 => Err(refusal),
        _ if count == 0 => Err(Failure::Refused(NetError::NotFound)),
        _ => Ok(()),
    }
}
