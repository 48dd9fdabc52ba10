//! The services of a network: addresses by DHCP and by router advertisements, names by DNS.

use super::frames::{
    self, MACHINE, MACHINE_HARDWARE, NAME_SERVER, OUR_HARDWARE, ROUTER, ROUTER_LINK, ROUTER_SIX, icmp_six, six,
};
use smoltcp::socket::udp;
use smoltcp::wire::{DhcpMessageType, DhcpPacket, DhcpRepr, EthernetAddress, Ipv4Address, Ipv6Address};
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, Ipv6Addr};

/// A router advertisement (RFC 4861, 4.2) with a prefix of so many bits.
pub fn advertisement(prefix: Ipv6Addr, bits: u8, router_seconds: u16) -> Vec<u8> {
    let all_nodes = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);
    let mut body = vec![64, 0];
    body.extend(router_seconds.to_be_bytes());
    body.extend([0; 8]);
    body.extend([1, 1]);
    body.extend(OUR_HARDWARE);
    body.extend([3, 4, bits, 0xc0]);
    body.extend(3600_u32.to_be_bytes());
    body.extend(1800_u32.to_be_bytes());
    body.extend([0; 4]);
    body.extend(prefix.octets());
    six(ROUTER_LINK, all_nodes, frames::ICMP_SIX, 255, &icmp_six(ROUTER_LINK, all_nodes, 134, 0, &body))
}

/// The advertisement that we mean.
pub fn our_advertisement() -> Vec<u8> {
    let mut prefix = ROUTER_SIX.octets();
    prefix[8..].fill(0);
    advertisement(prefix.into(), 64, 1800)
}

/// Whether a frame asks for routers.
pub fn asks_for_routers(frame: &[u8]) -> bool {
    frame.len() > 54 && frame[12..14] == [0x86, 0xdd] && frame[20] == frames::ICMP_SIX && frame[54] == 133
}

/// How the DHCP server answers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lease {
    /// With the machine's address and our router.
    Right,
    /// With this router.
    Router(Ipv4Addr),
}

/// The answer to a message of a DHCP client; `None` = none is due.
pub fn dhcp(message: &[u8], lease: Lease) -> Option<Vec<u8>> {
    let packet = DhcpPacket::new_checked(message).ok()?;
    let request = DhcpRepr::parse(&packet).ok()?;
    let message_type = match request.message_type {
        DhcpMessageType::Discover => DhcpMessageType::Offer,
        DhcpMessageType::Request => DhcpMessageType::Ack,
        _ => return None,
    };
    Some(dhcp_message(message_type, request.transaction_id, lease))
}

/// A message of a DHCP server.
pub fn dhcp_message(message_type: DhcpMessageType, transaction: u32, lease: Lease) -> Vec<u8> {
    let router = match lease {
        Lease::Right => ROUTER,
        Lease::Router(router) => router,
    };
    let answer = DhcpRepr {
        message_type,
        transaction_id: transaction,
        secs: 0,
        client_hardware_address: EthernetAddress(MACHINE_HARDWARE),
        client_ip: Ipv4Address::UNSPECIFIED,
        your_ip: MACHINE,
        server_ip: ROUTER,
        router: Some(router),
        subnet_mask: Some(Ipv4Address::new(255, 255, 255, 0)),
        relay_agent_ip: Ipv4Address::UNSPECIFIED,
        broadcast: false,
        requested_ip: None,
        client_identifier: None,
        server_identifier: Some(ROUTER),
        parameter_request_list: None,
        dns_servers: Some([NAME_SERVER].into_iter().collect()),
        max_size: None,
        lease_duration: Some(3600),
        renew_duration: None,
        rebind_duration: None,
        additional_options: &[],
    };
    let mut bytes = vec![0; answer.buffer_len()];
    // The buffer has the length that it asked for.
    let _ = answer.emit(&mut DhcpPacket::new_unchecked(&mut bytes));
    bytes
}

/// The names that the name server knows.
///
/// | name | |
/// |---|---|
/// | `four.test` | one IPv4 address |
/// | `both.test` | two IPv4 addresses, one of IPv6 |
/// | `six.test` | an IPv6 address only: ours |
/// | `web.test` | our IPv4 address |
/// | `alias.test` | another name of `four.test` |
/// | `silent.test` | no answer |
/// | `late.test` | the first query is lost |
/// | `wrong.test` | bytes that are no answer, and answers to what was not asked, with [`WRONG`] |
/// | all others | there is no such name |
#[derive(Default)]
pub struct Names {
    asked: BTreeMap<String, u32>,
}

/// An address that nobody may trust.
pub const WRONG: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 66);

const A: u16 = 1;
const AAAA: u16 = 28;
const ALIAS: u16 = 5;

impl Names {
    /// How often a name was asked for.
    pub fn count(&self, name: &str) -> u32 {
        self.asked.get(name).copied().unwrap_or_default()
    }

    /// The answers to a query.
    pub fn answers(&mut self, query: &[u8]) -> Vec<Vec<u8>> {
        let Some((name, kind, question)) = question(query) else { return Vec::new() };
        let times = self.asked.entry(name.clone()).or_default();
        *times += 1;
        let first = *times == 1;
        let four = |last| (A, vec![192, 0, 2, last]);
        let records: Vec<(u16, Vec<u8>)> = match (name.as_str(), kind) {
            ("four.test", A) => vec![four(4)],
            ("both.test", A) => vec![four(5), four(6)],
            ("both.test", AAAA) => vec![(AAAA, Ipv6Address::new(0x2001, 0xdb8, 0, 9, 0, 0, 0, 5).octets().into())],
            ("six.test", AAAA) => vec![(AAAA, ROUTER_SIX.octets().into())],
            ("web.test", A) => vec![(A, ROUTER.octets().into())],
            ("alias.test", A) => vec![(ALIAS, b"\x04four\x04test\x00".into())],
            ("four.test" | "six.test" | "web.test" | "alias.test", _) => vec![],
            ("silent.test", _) => return Vec::new(),
            ("late.test", _) => {
                if first {
                    return Vec::new();
                }
                if kind == A { vec![four(7)] } else { vec![] }
            }
            ("wrong.test", _) => return wrong(query, &question, kind),
            _ => return vec![answer(query, &question, 3, &[])],
        };
        let mut all: Vec<_> = records.into_iter().map(|(kind, data)| (vec![0xc0, 12], kind, data)).collect();
        if name == "alias.test" && kind == A {
            all.push((b"\x04four\x04test\x00".into(), A, vec![192, 0, 2, 4]));
        }
        vec![answer(query, &question, 0, &all)]
    }
}

/// The name, type and bytes of a query's question.
fn question(query: &[u8]) -> Option<(String, u16, Vec<u8>)> {
    let mut name = String::new();
    let mut at = 12;
    loop {
        let length = usize::from(*query.get(at)?);
        let label = query.get(at + 1..at + 1 + length)?;
        at += 1 + length;
        if length == 0 {
            break;
        }
        if !name.is_empty() {
            name.push('.');
        }
        name.push_str(&String::from_utf8_lossy(label));
    }
    let kind = u16::from_be_bytes([*query.get(at)?, *query.get(at + 1)?]);
    Some((name, kind, query.get(12..at + 4)?.into()))
}

/// An answer with a status and records: the bytes of their names, types, data.
fn answer(query: &[u8], question: &[u8], status: u8, records: &[(Vec<u8>, u16, Vec<u8>)]) -> Vec<u8> {
    let mut bytes = query[..2].to_vec();
    bytes.extend([0x81, 0x80 | status, 0, 1]);
    bytes.extend((records.len() as u16).to_be_bytes());
    bytes.extend([0; 4]);
    bytes.extend(question);
    for (name, kind, data) in records {
        bytes.extend(name);
        bytes.extend(kind.to_be_bytes());
        bytes.extend([0, 1, 0, 0, 0, 60]);
        bytes.extend((data.len() as u16).to_be_bytes());
        bytes.extend(data);
    }
    bytes
}

/// No answers to this: cut off, with counts that lie, with reserved labels, with a name that points to itself; another
/// number, another question, a question.
fn wrong(query: &[u8], question: &[u8], kind: u16) -> Vec<Vec<u8>> {
    let mut all = vec![Vec::new(), query[..1].into(), query.into()];
    let head = |rest: &[u8]| [&query[..2], &[0x81, 0x80], rest].concat();
    all.push(head(&[]));
    all.push(head(&[0, 1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]));
    all.push([head(&[0, 1, 0, 1, 0, 0, 0, 0]), vec![0x80; 40]].concat());
    all.push([head(&[0, 1, 0, 9, 0, 0, 0, 0]), query[12..].into(), vec![0xff; 300]].concat());
    // The name of the answer is a pointer to itself (RFC 1035, 4.1.4).
    let pointer = (0xc000 | (12 + question.len() as u16)).to_be_bytes();
    all.push(answer(query, question, 0, &[(pointer.into(), kind, WRONG.octets().into())]));
    let right = answer(query, question, 0, &[(vec![0xc0, 12], A, WRONG.octets().into())]);
    for (place, change) in [(0, 0x55), (13, 1), (2, 0x80)] {
        let mut other = right.clone();
        other[place] ^= change;
        all.push(other);
    }
    all
}

/// A socket of the host for a port.
pub fn udp_socket(port: u16) -> udp::Socket<'static> {
    let buffer = || udp::PacketBuffer::new(vec![udp::PacketMetadata::EMPTY; 64], vec![0; 1 << 16]);
    let mut socket = udp::Socket::new(buffer(), buffer());
    // A new socket takes any port but 0.
    let _ = socket.bind(port);
    socket
}
