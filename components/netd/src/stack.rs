//! The protocols, sockets and sessions, behind one lock; and the main thread, which waits for frames and time.
//!
//! # Two interfaces
//! `links` has both: one leads through the driver, one is loopback. A connection belongs to one of them from its
//! beginning.
//!
//! # One set of sockets for each connection
//! smoltcp asks each socket of a set whether a packet is for it, and whether it has something to send. So every
//! connection has a set of its own, and [`crate::demux`] finds it: the cost of a packet does not grow with the number of
//! connections. The rest (DHCP, names, UDP, ICMP) is in one common set.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use protocols::net::{NetError, READABLE};
use protocols::nic::NicError;
use runtime::idl::Failure;
use runtime::sync::{Mutex, MutexGuard};
use runtime::window::Page;
use runtime::{op, thread};
use smoltcp::iface::{Config, Interface, PollResult, SocketHandle, SocketSet};
use smoltcp::socket::{dhcpv4, dns, icmp, udp};
use smoltcp::time::{Duration, Instant};
use smoltcp::wire::{
    EthernetAddress, HardwareAddress, IpAddress, IpCidr, Ipv4Address, Ipv4Cidr, Ipv6Address, Ipv6Cidr,
};

use crate::client::{COMPONENTS, Client};
use crate::demux::{self, Class, Key};
use crate::failure::failed;
use crate::ingress_filter;
use crate::limits::{self, Holders};
use crate::link::{self, Ethernet, Link, Links, Loopback, Medium};
use crate::pages::Common;
use crate::random;
use crate::session::Session;
use crate::slots::{Number, Slots};
use crate::socket::{Kind, Socket, What};

/// How long nothing happens at most, in nanoseconds.
const LONGEST_WAIT: u64 = 60_000_000_000;
/// How often clients that are gone are looked for.
const SWEEP: u64 = 500_000_000;
/// How soon an address is asked for again: after as long as it was asked for already, but no sooner and no later than
/// this (RFC 2131, 4.1).
const ASK_AGAIN: core::ops::RangeInclusive<Duration> = Duration::from_millis(250)..=Duration::from_secs(10);
/// When frames for which the device had no room are sent again, in nanoseconds.
const PAUSE_FOR_ROOM: u64 = 200_000;
/// How long a driver that is not there is left alone.
const PAUSE: u64 = 2_000_000;
/// The limits of clients do not let their tables fill.
const NO_MEMORY: &str = "no memory for one more";

/// The counters.
#[derive(Default)]
pub struct Counters {
    /// Frames that came.
    pub received: u64,
    /// Connections that found no room.
    pub refused: u64,
}

/// See the module.
pub struct Stack {
    /// When the work at hand began, in nanoseconds since boot. Asked for once: each question is a system call.
    pub time: u64,
    /// Through the driver, and loopback.
    pub links: Links,
    /// The sockets without a connection.
    pub common: Common,
    /// No socket: packets passed with it are answered as nobody's.
    nothing: SocketSet<'static>,
    dhcp: SocketHandle,
    /// Asks for names.
    pub dns: SocketHandle,
    /// Name servers.
    pub dns_servers: usize,
    /// Since when there is no address.
    asks_since: Instant,
    common_deadline: u64,
    next_sweep: u64,
    /// Until when the main thread waits.
    waits_until: u64,
    /// Clients.
    pub sessions: Slots<Session>,
    /// How much of it they have.
    pub holders: Holders,
    /// Their sockets.
    pub sockets: Slots<Socket>,
    /// Connections by their ends.
    pub flows: BTreeMap<Key, Number>,
    /// Listeners by their ports.
    pub listeners: BTreeMap<u16, Number>,
    /// Sockets in the common set.
    pub others: Vec<Number>,
    /// Those with a UDP port.
    pub ports: BTreeMap<u16, Number>,
    /// When which connection wants to be asked.
    pub timers: BTreeSet<(u64, Number)>,
    /// Closed by their clients, oldest first.
    pub lingering: alloc::collections::VecDeque<(Client, Number)>,
    /// Connections to poll: clients wrote to them, or segments came for them.
    to_poll: Vec<Number>,
    /// See there.
    pub counters: Counters,
}

static STACK: Mutex<Option<Box<Stack>>> = Mutex::new(None);

/// The stack, locked. It is open before anybody can call.
pub fn lock() -> MutexGuard<'static, Option<Box<Stack>>> {
    STACK.lock()
}

/// A time in nanoseconds since boot as smoltcp has it.
pub fn instant(nanoseconds: u64) -> Instant {
    Instant::from_micros((nanoseconds / 1_000) as i64)
}

/// A time of smoltcp's in nanoseconds since boot, a little after `time` at least.
pub fn nanoseconds(at: Option<Instant>, time: u64) -> u64 {
    at.map_or(u64::MAX, |at| (at.total_micros() as u64).saturating_mul(1_000).max(time + 1_000_000))
}

/// Asks the driver for its address and makes everything.
pub fn open() -> Result<(), Failure<NicError>> {
    let address = loop {
        match link::driver().address() {
            Ok(address) => break address.to_le_bytes(),
            Err(Failure::Transport(_)) => drop(thread::sleep(PAUSE)),
            Err(other) => return Err(other),
        }
    };
    let address = EthernetAddress([address[0], address[1], address[2], address[3], address[4], address[5]]);
    let mut link = Ethernet::new();
    let mut loopback = Loopback::new();
    let mut config = Config::new(address.into());
    config.random_seed = loop {
        match random::number() {
            Some(number) => break number,
            // Without it there is no connection that is safe to begin.
            None => drop(random::wait()),
        }
    };
    config.slaac = true;
    let mut ethernet = Interface::new(config, &mut link, instant(op::clock()));
    ethernet.update_ip_addrs(|addresses| {
        const LINK: Ipv6Cidr = Ipv6Cidr::new(Ipv6Address::new(0xfe80, 0, 0, 0, 0, 0, 0, 0), 64);
        if let Some(own) = smoltcp::wire::Ipv6Cidr::from_link_prefix(&LINK, HardwareAddress::Ethernet(address)) {
            let _ = addresses.push(IpCidr::Ipv6(own));
        }
    });
    let local = Interface::new(Config::new(HardwareAddress::Ip), &mut loopback, instant(op::clock()));
    let mut common = SocketSet::new(Vec::new());
    let dhcp = common.add(dhcpv4::Socket::new());
    let dns = common.add(dns::Socket::new(&[], Vec::new()));
    runtime::log!("interface {address}");
    let mut stack = Box::new(Stack {
        time: op::clock(),
        links: Links {
            ethernet: Link { interface: ethernet, device: link },
            loopback: Link { interface: local, device: loopback },
        },
        common: Common::new(common),
        nothing: SocketSet::new(Vec::new()),
        dhcp,
        dns,
        dns_servers: 0,
        asks_since: instant(op::clock()),
        common_deadline: 0,
        next_sweep: 0,
        waits_until: 0,
        sessions: Slots::new(limits::all(What::Session)),
        holders: Holders::new(),
        sockets: Slots::new(limits::SOCKETS),
        flows: BTreeMap::new(),
        listeners: BTreeMap::new(),
        others: Vec::new(),
        ports: BTreeMap::new(),
        timers: BTreeSet::new(),
        lingering: Default::default(),
        to_poll: Vec::new(),
        counters: Counters::default(),
    });
    stack.addresses_changed();
    *STACK.lock() = Some(stack);
    Ok(())
}

impl Stack {
    /// When the work at hand began, as smoltcp has it.
    pub fn now(&self) -> Instant {
        instant(self.time)
    }

    /// A frame came.
    fn arrived(&mut self) {
        self.counters.received += 1;
        let ethernet = &self.links.ethernet.interface;
        if ingress_filter::refuses(self.links.ethernet.device.frame(), |address| ethernet.has_ip_addr(address)) {
            self.links.ethernet.device.arrived = 0..0;
            return;
        }
        match demux::frame(self.links.ethernet.device.frame()) {
            Class::Segment(key, opens) => self.segment(key, opens, Medium::Ethernet),
            Class::Datagram(port) if self.ports.contains_key(&port) => {
                self.links.ingress(Medium::Ethernet, self.now(), &mut self.common.set);
                self.report_to_other(self.ports[&port]);
            }
            class => {
                self.links.ingress(Medium::Ethernet, self.now(), &mut self.common.set);
                self.poll_common();
                if class == Class::Neighbor {
                    self.poll_waiting();
                }
            }
        }
    }

    /// Handles a packet that is for no socket of ours.
    pub fn ingress_of_nobody(&mut self, medium: Medium) {
        self.links.ingress(medium, self.now(), &mut self.nothing);
    }

    /// Notes a connection to poll. So several packets that come together take one poll.
    pub fn poll_later(&mut self, number: Number) {
        if self.to_poll.last() != Some(&number) {
            self.to_poll.push(number);
        }
    }

    /// Polls the connections that were noted, and delivers loopback packets, until there are none.
    pub fn poll_pending(&mut self) {
        loop {
            while let Some(number) = self.to_poll.pop() {
                self.poll(number);
            }
            let Some(packet) = self.links.loopback.device.advance() else { return };
            match demux::packet(packet) {
                Class::Segment(key, opens) => self.segment(key, opens, Medium::Loopback),
                _ => self.ingress_of_nobody(Medium::Loopback),
            }
        }
    }

    /// Polls the connections that wait for a neighbour: it may have been found.
    fn poll_waiting(&mut self) {
        let waiting: Vec<Number> = self
            .sockets
            .from(0)
            .filter_map(|(number, socket)| match &socket.kind {
                Kind::Flow(flow) if flow.medium == Medium::Ethernet && flow.waits() => Some(number),
                _ => None,
            })
            .collect();
        for number in waiting {
            self.poll(number);
        }
    }

    /// Polls the sockets without a connection, and handles leases.
    pub fn poll_common(&mut self) {
        let time = self.now();
        self.ask_soon(time);
        self.links.ethernet.interface.poll_maintenance(time);
        while self.links.ethernet.egress(time, &mut self.common.set) == PollResult::SocketStateChanged {}
        match self.common.set.get_mut::<dhcpv4::Socket<'_>>(self.dhcp).poll() {
            Some(dhcpv4::Event::Configured(lease)) => {
                runtime::log!("address {}", lease.address);
                let servers: Vec<IpAddress> = lease.dns_servers.iter().map(|server| (*server).into()).collect();
                let (address, router) = (lease.address, lease.router);
                self.set_address(Some(address), router);
                self.dns_servers = servers.len();
                self.common.set.get_mut::<dns::Socket<'_>>(self.dns).update_servers(&servers);
            }
            Some(dhcpv4::Event::Deconfigured) => {
                self.asks_since = time;
                self.set_address(None, None);
            }
            None => {}
        }
        if self.links.loopback.interface.ip_addrs().len() != self.links.ethernet.interface.ip_addrs().len() + 2 {
            self.addresses_changed();
        }
        for place in 0..self.others.len() {
            self.report_to_other(self.others[place]);
        }
        self.common_deadline = nanoseconds(self.links.ethernet.interface.poll_at(time, &self.common.set), self.time);
    }

    /// How soon the next question for an address comes if this one is lost.
    fn ask_soon(&mut self, time: Instant) {
        let dhcp = self.common.set.get_mut::<dhcpv4::Socket<'_>>(self.dhcp);
        let mut config = dhcp.get_retry_config();
        config.discover_timeout = (time - self.asks_since).clamp(*ASK_AGAIN.start(), *ASK_AGAIN.end());
        config.initial_request_timeout = *ASK_AGAIN.start();
        dhcp.set_retry_config(config);
    }

    fn set_address(&mut self, address: Option<Ipv4Cidr>, router: Option<Ipv4Address>) {
        self.links.ethernet.interface.update_ip_addrs(|addresses| {
            addresses.retain(|address| matches!(address, IpCidr::Ipv6(_)));
            if let Some(address) = address {
                let _ = addresses.push(IpCidr::Ipv4(address));
            }
        });
        self.links.ethernet.interface.routes_mut().remove_default_ipv4_route();
        // To what is no host nothing can be sent.
        let is_host =
            |router: &Ipv4Address| !(router.is_unspecified() || router.is_broadcast() || router.is_multicast());
        if let Some(router) = router.filter(is_host) {
            let _ = self.links.ethernet.interface.routes_mut().add_default_ipv4_route(router);
        }
        self.addresses_changed();
    }

    /// Loopback has the addresses of the wire, too.
    fn addresses_changed(&mut self) {
        let own: Vec<IpAddress> = self.links.ethernet.interface.ip_addrs().iter().map(IpCidr::address).collect();
        self.links.loopback.interface.update_ip_addrs(|addresses| {
            addresses.clear();
            let _ = addresses.push(IpCidr::new(Ipv4Address::LOCALHOST.into(), 8));
            let _ = addresses.push(IpCidr::new(Ipv6Address::LOCALHOST.into(), 128));
            for address in own {
                let bits = if matches!(address, IpAddress::Ipv4(_)) { 32 } else { 128 };
                let _ = addresses.push(IpCidr::new(address, bits));
            }
        });
    }

    /// A datagram socket or query may have an event to report.
    fn report_to_other(&mut self, number: Number) {
        let Some(socket) = self.sockets.get_mut(number) else { return };
        let readable = match &socket.kind {
            Kind::Datagrams(port) => {
                self.common.set.get::<udp::Socket<'_>>(port.handle).can_recv() || !port.local.is_empty()
            }
            Kind::Echo(echo) => {
                self.common.set.get::<icmp::Socket<'_>>(echo.handle).can_recv() || !echo.local.is_empty()
            }
            // Whether it is answered can only be asked once: its client asks.
            Kind::Query(..) => true,
            _ => false,
        };
        if readable {
            self.report(number, READABLE);
        }
    }

    /// Notes an event, if the socket is armed for it.
    pub fn report(&mut self, number: Number, what: u32) {
        let Some(socket) = self.sockets.get_mut(number) else { return };
        let news = socket.armed & what;
        if news == 0 {
            return;
        }
        socket.armed &= !news;
        let known = socket.pending != 0;
        socket.pending |= news;
        let session = socket.session;
        if !known && let Some(session) = self.sessions.get_mut(session) {
            session.note(number);
            if session.is_dead() {
                self.sweep_soon();
            }
        }
    }

    /// Does what time demands; gives when it demands the next thing.
    fn run_timers(&mut self) -> u64 {
        let time = self.time;
        if self.common_deadline <= time {
            self.poll_common();
        }
        while let Some((deadline, number)) = self.timers.first().copied().filter(|(deadline, _)| *deadline <= time) {
            self.timers.remove(&(deadline, number));
            self.timer_fired(number);
        }
        self.poll_pending();
        if self.next_sweep <= time && self.sessions.len() > 0 {
            self.sweep();
            self.next_sweep = time + SWEEP;
        }
        let sweep = if self.sessions.len() > 0 { self.next_sweep } else { u64::MAX };
        let first = self.timers.first().map_or(u64::MAX, |(deadline, _)| *deadline);
        first.min(self.common_deadline).min(sweep).min(time + LONGEST_WAIT)
    }

    /// After a call: loopback packets arrive, frames leave, and the main thread is notified of timers that are
    /// due before it looks again.
    pub fn finish_call(&mut self) {
        self.poll_pending();
        let first = self.timers.first().map_or(u64::MAX, |(deadline, _)| *deadline).min(self.common_deadline);
        let first = first.min(self.flush()).min(if self.next_sweep == 0 { self.time } else { u64::MAX });
        if first < self.waits_until {
            self.waits_until = first;
            let _ = link::driver().wake();
        }
    }

    /// Frames leave; gives when to come back for those for which the device had no room.
    #[inline]
    fn flush(&mut self) -> u64 {
        let is_empty = self.links.ethernet.device.outgoing.flush();
        if is_empty { u64::MAX } else { self.time + PAUSE_FOR_ROOM }
    }

    /// Has the next look at the timers sweep: here, below a segment, that would take more stack than calls have.
    pub fn sweep_soon(&mut self) {
        self.next_sweep = 0;
    }

    /// Clients that are gone lose their sockets.
    pub fn sweep(&mut self) {
        let now = self.time;
        let gone: Vec<Number> =
            self.sessions.from(0).filter(|(_, session)| !session.lives(now)).map(|(number, _)| number).collect();
        for session in gone {
            self.close_session(session);
        }
    }

    /// Closes a session and its sockets; those closed before linger on, if there is something left to send.
    pub fn close_session(&mut self, session: Number) {
        let own: Vec<(Number, bool)> = self
            .sockets
            .from(0)
            .filter(|(_, socket)| socket.session == session && (!socket.lingers() || socket.is_over()))
            .map(|(number, socket)| (number, socket.is_over()))
            .collect();
        for (number, is_over) in own {
            match is_over {
                true => self.remove(number),
                false => self.abort(number),
            }
        }
        if let Some(session) = self.sessions.remove(session) {
            self.holders.remove(session.client, What::Session);
        }
    }

    /// Opens a session.
    pub fn open_session(&mut self, session: Session) -> Result<Number, NetError> {
        let client = session.client;
        self.have_room(client, What::Session)?;
        let number = self.sessions.insert(session).map_err(|_| failed("a session", NO_MEMORY))?;
        self.holders.add(client, What::Session);
        Ok(number)
    }

    /// Refuses a client that has as many as it may have.
    pub fn have_room(&mut self, client: Client, what: What) -> Result<(), NetError> {
        if self.holders.is_full(client, what) {
            // Somebody may be gone.
            self.sweep();
            // A socket that only lingers makes room: the client's own, or a program's if they all have too many.
            let is_own = self.holders.has_all(client, what);
            let mut lingering = self.lingering.iter().filter(|_| what == What::Flow);
            let oldest = lingering.find(|(other, _)| if is_own { *other == client } else { *other != COMPONENTS });
            if let Some((_, oldest)) = oldest.copied() {
                self.abort(oldest);
            }
        }
        self.holders.check(client, what)
    }

    /// The owner of the session, with the account's ticket, if it may have one more of these.
    pub fn claim(&mut self, session: Number, what: What) -> Result<(Client, u64), NetError> {
        let session = self.sessions.get(session).ok_or(NetError::NoSession)?;
        let (client, ticket) = (session.client, session.ticket);
        self.have_room(client, what)?;
        Ok((client, ticket))
    }

    /// Puts in a socket of a client that has room for it.
    pub fn insert(&mut self, socket: Socket) -> Result<Number, NetError> {
        let (client, what) = (socket.client, socket.kind.what());
        self.holders.check(client, what)?;
        let number = self.sockets.insert(socket).map_err(|_| failed("a socket", NO_MEMORY))?;
        self.holders.add(client, what);
        Ok(number)
    }

    /// Takes a socket out.
    pub fn take(&mut self, number: Number) -> Option<Socket> {
        let socket = self.sockets.remove(number)?;
        self.holders.remove(socket.client, socket.kind.what());
        if socket.pending != 0
            && let Some(session) = self.sessions.get_mut(socket.session)
        {
            session.forget(number);
        }
        Some(socket)
    }
}

/// The main thread.
pub fn run() -> ! {
    let mut batch = Box::new(Page::ZERO);
    let mut bytes = 0;
    loop {
        let mut deadline = 0;
        random::fill();
        if let Some(stack) = STACK.lock().as_mut() {
            stack.time = op::clock();
            core::mem::swap(&mut stack.links.ethernet.device.batch, &mut batch);
            let mut at = 0;
            while let Some(next) = stack.links.ethernet.device.advance(at, bytes) {
                stack.arrived();
                at = next;
            }
            stack.poll_pending();
            deadline = stack.run_timers().min(stack.flush());
            stack.waits_until = deadline;
        }
        bytes = match link::driver().receive(deadline, &mut batch.0) {
            Ok(bytes) => bytes,
            // A driver that died is opened again; lost packets come again.
            Err(_) => {
                let _ = thread::sleep(PAUSE);
                0
            }
        };
    }
}
