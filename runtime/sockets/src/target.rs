//! From what a person writes to an address.

use core::net::{IpAddr, Ipv4Addr};

use idl::Failure;

use crate::{Endpoint, NetError, Refusal, Session};

/// How long a name is asked for, in nanoseconds.
const PATIENCE: u64 = 8_000_000_000;

/// The first address of a name, or the address that it is: `localhost`, `10.0.2.2`, `fe80::1`, `[fe80::1]`, a name.
/// IPv4 is asked for first.
pub fn address(session: &Session, name: &str) -> Result<IpAddr, Refusal> {
    let plain = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
    if let Ok(address) = plain.parse() {
        return Ok(address);
    }
    if name == "localhost" {
        return Ok(Ipv4Addr::LOCALHOST.into());
    }
    let mut found = [IpAddr::V4(Ipv4Addr::UNSPECIFIED)];
    let deadline = runtime::op::clock() + PATIENCE;
    for six in [false, true] {
        match session.resolve(name, six, deadline, &mut found) {
            Ok(1..) => return Ok(found[0]),
            Ok(0) | Err(Failure::Refused(NetError::NotFound)) => {}
            Err(refusal) => return Err(refusal),
        }
    }
    Err(Failure::Refused(NetError::NotFound))
}

/// A name and a port.
pub fn endpoint(session: &Session, name: &str, port: u16) -> Result<Endpoint, Refusal> {
    address(session, name).map(|address| Endpoint::new(address, port))
}
