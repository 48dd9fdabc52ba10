//! The host at the other end: router, servers, clients, and the machine's console, all turned by one thread.

use super::frames::{self, MACHINE, NAME_SERVER, OUR_HARDWARE, ROUTER, ROUTER_LINK, ROUTER_SIX};
use super::link::{Faults, Link};
use super::services::{self, Lease, Names};
use crate::conversation::Conversation;
use crate::test::random::Random;
use anyhow::{Context, Result, bail};
use smoltcp::iface::{Config, Interface, SocketHandle, SocketSet};
use smoltcp::socket::{tcp, udp};
use smoltcp::time::Instant as Time;
use smoltcp::wire::{EthernetAddress, HardwareAddress, IpAddress, IpCidr, IpEndpoint};
use std::net::IpAddr;
use std::thread;
use std::time::{Duration, Instant};

/// The port of the web server in the machine.
pub const WEB: u16 = 80;
/// How long nothing is done when there was nothing to do.
const PAUSE: Duration = Duration::from_micros(200);
/// Bytes of a connection's buffers here.
const BUFFER: usize = 1 << 15;
/// Nobody is there who does not answer so long, in seconds.
const START_SECONDS: u64 = 25;

/// See the module.
pub struct Host<'a> {
    /// The wire.
    pub link: Link,
    /// CPUs of the machine.
    pub cpus: u32,
    /// Numbers for scenarios.
    pub random: Random,
    /// The questions that the name server was asked.
    pub names: Names,
    /// How the DHCP server answers; `None` = not at all.
    pub lease: Option<Lease>,
    /// DHCP messages of the machine, the newest last.
    pub dhcp_seen: Vec<Vec<u8>>,
    /// Frames of the machine, if they are kept.
    pub seen: Option<Vec<Vec<u8>>>,
    console: &'a Conversation,
    interface: Interface,
    sockets: SocketSet<'static>,
    dhcp: SocketHandle,
    dns: SocketHandle,
    next_port: u16,
    commands: u32,
    start: Instant,
}

impl<'a> Host<'a> {
    /// The other end of this wire.
    pub fn new(mut link: Link, console: &'a Conversation, seed: u64, cpus: u32) -> Self {
        let mut config = Config::new(HardwareAddress::Ethernet(EthernetAddress(OUR_HARDWARE)));
        config.random_seed = seed;
        let mut interface = Interface::new(config, &mut link, Time::ZERO);
        interface.update_ip_addrs(|addresses| {
            let all: [(IpAddress, u8); 4] =
                [(ROUTER.into(), 24), (NAME_SERVER.into(), 24), (ROUTER_LINK.into(), 64), (ROUTER_SIX.into(), 64)];
            addresses.extend(all.map(|(address, bits)| IpCidr::new(address, bits)));
        });
        let mut sockets = SocketSet::new(Vec::new());
        let dhcp = sockets.add(services::udp_socket(67));
        let dns = sockets.add(services::udp_socket(53));
        Self {
            link,
            cpus,
            random: Random(seed ^ 0x5eed),
            names: Names::default(),
            lease: Some(Lease::Right),
            dhcp_seen: Vec::new(),
            seen: None,
            console,
            interface,
            sockets,
            dhcp,
            dns,
            next_port: 20_000,
            commands: 0,
            start: Instant::now(),
        }
    }

    fn now(&self) -> Time {
        Time::from_micros(self.start.elapsed().as_micros() as i64)
    }

    /// Does what there is to do once, or pauses.
    pub fn turn(&mut self) {
        let busy = self.link.turn();
        let mut wants_routers = false;
        for frame in &self.link.inbox {
            wants_routers |= services::asks_for_routers(frame);
            if let Some(seen) = &mut self.seen {
                seen.push(frame.clone());
            }
        }
        if wants_routers {
            self.link.inject(services::our_advertisement());
        }
        let now = self.now();
        self.interface.poll(now, &mut self.link, &mut self.sockets);
        self.serve();
        self.interface.poll(now, &mut self.link, &mut self.sockets);
        if !self.link.turn() && !busy {
            thread::sleep(PAUSE);
        }
    }

    fn serve(&mut self) {
        let socket = self.sockets.get_mut::<udp::Socket<'_>>(self.dhcp);
        while let Ok((message, _)) = socket.recv() {
            let message = message.to_vec();
            if let Some(answer) = self.lease.and_then(|lease| services::dhcp(&message, lease)) {
                let everybody = IpEndpoint::new(IpAddress::v4(255, 255, 255, 255), 68);
                let mut meta = udp::UdpMetadata::from(everybody);
                meta.local_address = Some(ROUTER.into());
                // Without room the answer is lost, and asked for again.
                let _ = socket.send_slice(&answer, meta);
            }
            self.dhcp_seen.push(message);
        }
        let socket = self.sockets.get_mut::<udp::Socket<'_>>(self.dns);
        while let Ok((query, from)) = socket.recv() {
            let mut meta = udp::UdpMetadata::from(from.endpoint);
            meta.local_address = from.local_address;
            let query = query.to_vec();
            for answer in self.names.answers(&query) {
                let _ = socket.send_slice(&answer, meta);
            }
        }
    }

    /// Goes on until `done` gives something, no longer than so many seconds.
    pub fn until<T>(&mut self, seconds: f64, mut done: impl FnMut(&mut Self) -> Result<Option<T>>) -> Result<T> {
        let start = Instant::now();
        loop {
            self.turn();
            if let Some(value) = done(self)? {
                return Ok(value);
            }
            if self.console.is_over() {
                bail!("the machine has ended, or the test's time is over");
            }
            if start.elapsed().as_secs_f64() >= seconds {
                bail!("it did not come within {seconds} seconds");
            }
        }
    }

    /// Goes on for a while.
    pub fn pass(&mut self, seconds: f64) -> Result<()> {
        let end = Instant::now() + Duration::from_secs_f64(seconds);
        self.until(seconds + 10.0, |_| Ok((Instant::now() >= end).then_some(())))
    }

    /// Waits until the machine has taken all frames.
    pub fn flush(&mut self) -> Result<()> {
        self.until(10.0, |host| Ok((host.link.waiting() == 0).then_some(()))).context("the machine takes no frames")
    }

    /// Sends frames as they are, no faster than the machine takes them.
    pub fn inject(&mut self, frames: impl IntoIterator<Item = Vec<u8>>) -> Result<()> {
        for frame in frames {
            self.link.inject(frame);
            if self.link.waiting() >= 16 {
                self.flush()?;
            }
        }
        self.flush()
    }

    /// Waits until the machine has an address, a prompt, and serves pages.
    pub fn wait_for_machine(&mut self) -> Result<()> {
        let console = self.console;
        self.until(START_SECONDS as f64, |_| Ok(console.since(0).contains("cairn:/$ ").then_some(())))
            .context("no prompt")?;
        let start = Instant::now();
        while self.get("/", 1.0).is_err() {
            if start.elapsed().as_secs() >= START_SECONDS || self.console.is_over() {
                bail!("no page came in {START_SECONDS} seconds");
            }
        }
        Ok(())
    }

    /// Runs a command in the machine's shell; its status and what it printed.
    pub fn shell(&mut self, command: &str, seconds: f64) -> Result<(u8, String)> {
        let from = self.begin(command)?;
        self.finish(from, seconds).with_context(|| format!("shell: {command}"))
    }

    /// Types a command; gives the argument of [`Self::finish`].
    pub fn begin(&mut self, command: &str) -> Result<usize> {
        self.commands += 1;
        let from = self.console.printed();
        // The marker is not what is typed.
        let separator = if command.ends_with('&') { "" } else { ";" };
        self.console.send(&format!("{command}{separator} echo do''ne-{} $?\r", self.commands))?;
        Ok(from)
    }

    /// Waits for the end of the command that was typed last.
    pub fn finish(&mut self, from: usize, seconds: f64) -> Result<(u8, String)> {
        let marker = format!("done-{} ", self.commands);
        let console = self.console;
        let found = self.until(seconds, |_| {
            let text = console.since(from);
            let Some((before, after)) = text.split_once(&marker) else { return Ok(None) };
            let Some((status, _)) = after.split_once('\n') else { return Ok(None) };
            let output = before.split_once('\n').map_or("", |(_, output)| output).to_string();
            Ok(Some((status.trim().parse().context("a status that is no number")?, output)))
        });
        found.with_context(|| format!("the console shows {:?}", console.since(from)))
    }

    /// How much the console has shown so far.
    pub fn printed(&self) -> usize {
        self.console.printed()
    }

    /// The console's output since then.
    pub fn printed_since(&self, from: usize) -> String {
        self.console.since(from)
    }

    /// Types text, for a command that reads.
    pub fn type_text(&self, text: &str) -> Result<()> {
        self.console.send(text)
    }

    /// Waits until the console shows a text that it did not show before `from`.
    pub fn shows(&mut self, from: usize, text: &str, seconds: f64) -> Result<()> {
        let console = self.console;
        self.until(seconds, |_| Ok(console.since(from).contains(text).then_some(())))
            .with_context(|| format!("{text:?} is not shown, but {:?}", console.since(from)))
    }

    /// A port of ours that was not used before.
    pub fn port(&mut self) -> u16 {
        self.next_port += 1;
        self.next_port
    }

    /// A TCP socket of ours.
    pub fn socket(&mut self) -> SocketHandle {
        let buffer = || tcp::SocketBuffer::new(vec![0; BUFFER]);
        let mut socket = tcp::Socket::new(buffer(), buffer());
        socket.set_nagle_enabled(false);
        self.sockets.add(socket)
    }

    /// Connects to the machine.
    pub fn connect(&mut self, to: IpAddr, port: u16) -> Result<SocketHandle> {
        let handle = self.socket();
        let from = self.port();
        let socket = self.sockets.get_mut::<tcp::Socket<'_>>(handle);
        socket.connect(self.interface.context(), (IpAddress::from(to), port), from).context("cannot connect")?;
        Ok(handle)
    }

    /// Listens on a port of ours.
    pub fn listen(&mut self, port: u16) -> Result<SocketHandle> {
        let handle = self.socket();
        self.tcp(handle).listen(port).context("cannot listen")?;
        Ok(handle)
    }

    /// A UDP socket of ours.
    pub fn datagrams(&mut self, port: u16) -> SocketHandle {
        self.sockets.add(services::udp_socket(port))
    }

    /// A TCP socket.
    pub fn tcp(&mut self, handle: SocketHandle) -> &mut tcp::Socket<'static> {
        self.sockets.get_mut(handle)
    }

    /// A UDP socket.
    pub fn udp(&mut self, handle: SocketHandle) -> &mut udp::Socket<'static> {
        self.sockets.get_mut(handle)
    }

    /// Forgets a socket; a connection is reset.
    pub fn drop_socket(&mut self, handle: SocketHandle) {
        self.tcp(handle).abort();
        self.turn();
        self.sockets.remove(handle);
    }

    /// The body of a page of the machine.
    pub fn get(&mut self, path: &str, seconds: f64) -> Result<Vec<u8>> {
        let mut fetch = Fetch::new(self, MACHINE.into(), path)?;
        let result = self.until(seconds, |host| fetch.turn(host));
        fetch.end(self);
        result.with_context(|| format!("page {path}"))
    }

    /// From now on, this happens to frames.
    pub fn set_faults(&mut self, faults: Faults) {
        self.link.faults = faults;
    }
}

/// A page that is on its way.
pub struct Fetch {
    handle: SocketHandle,
    request: Vec<u8>,
    answer: Vec<u8>,
}

impl Fetch {
    /// Asks for a page.
    pub fn new(host: &mut Host<'_>, from: IpAddr, path: &str) -> Result<Self> {
        let handle = host.connect(from, WEB)?;
        let request = format!("GET {path} HTTP/1.1\r\nHost: cairn\r\nConnection: close\r\n\r\n").into_bytes();
        Ok(Self { handle, request, answer: Vec::new() })
    }

    /// The body, once it is there.
    pub fn turn(&mut self, host: &mut Host<'_>) -> Result<Option<Vec<u8>>> {
        let socket = host.tcp(self.handle);
        if socket.may_send() && !self.request.is_empty() {
            let sent = socket.send_slice(&self.request).context("cannot send")?;
            self.request.drain(..sent);
        }
        while socket.can_recv() {
            let taken = socket.recv(|bytes| (bytes.len(), bytes.to_vec())).context("cannot receive")?;
            self.answer.extend(taken);
        }
        if !socket.is_open() && self.answer.is_empty() {
            bail!("the connection was refused or reset");
        }
        if !self.request.is_empty() || socket.may_recv() {
            return Ok(None);
        }
        let end = self.answer.windows(4).position(|four| four == b"\r\n\r\n").context("an answer without head")?;
        let head = String::from_utf8_lossy(&self.answer[..end]).into_owned();
        if !head.starts_with("HTTP/1.1 200 ") {
            bail!("the answer is {}", head.lines().next().unwrap_or_default());
        }
        let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: "));
        let length: usize =
            length.context("an answer without length")?.parse().context("a length that is no number")?;
        let body = self.answer[end + 4..].to_vec();
        if body.len() != length {
            bail!("{} bytes came of {length}", body.len());
        }
        Ok(Some(body))
    }

    /// Finds out if the other end gave the connection up and that was lost.
    pub fn notice_death(&self, host: &mut Host<'_>) {
        host.tcp(self.handle).set_keep_alive(Some(smoltcp::time::Duration::from_secs(45)));
    }

    /// How far it came.
    pub fn state(&self, host: &mut Host<'_>) -> String {
        let socket = host.tcp(self.handle);
        let (state, unacknowledged) = (socket.state(), socket.send_queue());
        format!("{state}, {unacknowledged} bytes of the request not acknowledged, {} came", self.answer.len())
    }

    /// Forgets its connection.
    pub fn end(self, host: &mut Host<'_>) {
        host.drop_socket(self.handle);
    }
}

/// A text of frames that helps to see what was meant.
pub fn hex(frame: &[u8]) -> String {
    frame.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The frame of a UDP packet from us.
pub fn udp_frame(from: u16, to: u16, payload: &[u8]) -> Vec<u8> {
    let packet = frames::udp(ROUTER.into(), from, MACHINE.into(), to, payload);
    frames::Four::new(ROUTER, frames::UDP).frame(&packet)
}
