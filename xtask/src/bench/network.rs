//! The cost of a request for a machine: clients on this host, instructions counted in the emulator.
//!
//! The machine serves echo (UDP and TCP, port 7: RFC 862), an endless source of bytes (TCP, port 19, as RFC
//! 864 but for the pattern, which is free) and a web server (TCP, port 80) with a file of 1 KiB called [`PAGE`]. The clients know
//! nothing else of it: the same code measures Cairn and Linux.
//!
//! Each row is a number of exchanges, one after the other, on one connection; the count of all that the machine
//! executes meanwhile, timers included, is divided by their number. An exchange begins when the machine waits: going to
//! wait and coming back is part of it. (Sent one upon the other, some would come before the machine waits, how many
//! depends on how busy this host is, and that is a fifth of a figure.) After a batch to warm up there are
//! [`BATCHES`], and their median is the result.

use super::budget::Budget;
use super::client::{self, Web};
use super::machine::{MEMORY, NETWORK_SYSTEM, SECONDS};
use super::measurement::{Measurement, costly};
use super::show::grouped;
use crate::build::Checks;
use crate::counter::{Counter, Counts, Places, Plugin};
use crate::emulator::{self, Machine};
use crate::forward::{Forward, Protocol, WEB};
use crate::image::{self, Image, Size, System};
use crate::project::{Project, read, write};
use anyhow::{Context, Result, bail};
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// The server of the echoes and the bytes.
pub const NETWORK_COMMAND: &str = "echod";
/// Path of the file that the web server is asked for.
pub const PAGE: &str = "kibibyte";
/// Its length in bytes.
const PAGE_BYTES: usize = 1024;
/// A longer one, and its length.
pub const LONG_PAGE: &str = "kibibytes";
const LONG_KIB: u64 = 64;
/// Ports of the machine.
const ECHO: u16 = 7;
const SOURCE: u16 = 19;
const LOOPBACK: u16 = 20;

/// Batches that are counted.
const BATCHES: usize = 5;
/// Exchanges of a batch, and KiB of one from the source.
const EXCHANGES: u64 = 400;
const BULK_KIB: u64 = 4096;
/// Pages that are asked for at the same time.
const AT_ONCE: u64 = 4;
/// How long after the web server the other services may come.
const START: Duration = Duration::from_secs(30);
/// Between two tries to get the first response.
const PAUSE: Duration = Duration::from_millis(20);

/// The rows, as `tests/budgets.toml` names them, and their units.
pub const FIRST_RESPONSE: &str = "first-response";
pub const HTTP_GET: &str = "http-get";
/// The longer file; per KiB.
pub const HTTP_GET_LONG: &str = "http-get-64";
pub const UDP_ECHO: &str = "udp-echo";
pub const TCP_ECHO: &str = "tcp-echo";
pub const TCP_BULK: &str = "tcp-bulk";
/// Eight bytes to itself and back: measured from here only where a service does it when asked (port 20).
pub const TCP_LOOPBACK: &str = "tcp-loopback";
/// Four pages at a time, on as many connections; per page.
pub const HTTP_GET_4: &str = "http-get-4";
/// The rows measured from here on any system, and with a service for the loopback.
pub const ROWS: [&str; 6] = [FIRST_RESPONSE, HTTP_GET, HTTP_GET_LONG, UDP_ECHO, TCP_ECHO, TCP_BULK];

pub const ALL_ROWS: [&str; 7] = [FIRST_RESPONSE, HTTP_GET, HTTP_GET_LONG, UDP_ECHO, TCP_ECHO, TCP_BULK, TCP_LOOPBACK];

/// The bytes of the file that the web server is asked for.
pub fn page() -> Vec<u8> {
    (b'a'..=b'z').cycle().take(PAGE_BYTES).collect()
}

/// Those of the longer one.
pub fn long_page() -> Vec<u8> {
    (b'a'..=b'z').cycle().take(LONG_KIB as usize * PAGE_BYTES).collect()
}

/// Boots this image with all ports forwarded, and measures those rows that are wanted.
pub fn measure(
    mut image: Image,
    machine: Machine,
    plugin: &Plugin,
    limit: Duration,
    wanted: &(dyn Fn(&str) -> bool + Sync),
) -> Result<Vec<Measurement>> {
    let ports = Ports::free()?;
    image.forwards = Some(ports.forwards());
    let machine = Machine { counter: Some(plugin.argument()), ..machine };
    emulator::boot_for(image.isa, &emulator::arguments(&image, &machine), limit, |over| {
        let counter = plugin.connect(|| over.load(Ordering::Relaxed))?;
        Session { counter, ports: &ports, over }.rows(wanted)
    })
}

/// Ports of this host that lead to the machine's.
struct Ports {
    web: Forward,
    udp_echo: Forward,
    tcp_echo: Forward,
    source: Forward,
    loopback: Forward,
}

impl Ports {
    fn free() -> Result<Self> {
        let tcp = |guest| Forward::any(Protocol::Tcp, guest);
        Ok(Self {
            web: tcp(WEB)?,
            udp_echo: Forward::any(Protocol::Udp, ECHO)?,
            tcp_echo: tcp(ECHO)?,
            source: tcp(SOURCE)?,
            loopback: tcp(LOOPBACK)?,
        })
    }

    fn forwards(&self) -> Vec<Forward> {
        vec![self.web, self.udp_echo, self.tcp_echo, self.source, self.loopback]
    }
}

/// A machine that runs and is counted.
struct Session<'a> {
    counter: Counter<UnixStream>,
    ports: &'a Ports,
    over: &'a AtomicBool,
}

impl Session<'_> {
    fn rows(&mut self, wanted: &dyn Fn(&str) -> bool) -> Result<Vec<Measurement>> {
        let mut rows = Vec::new();
        let mut add = |name: &str, share: Share, unit: &str| {
            if wanted(name) {
                let costly = Some(costly(&share.0, share.1));
                let (value, counts) = (share.0.instructions.div_ceil(share.1), BTreeMap::new());
                rows.push(Measurement {
                    name: name.into(),
                    value,
                    unit: unit.into(),
                    counts,
                    costly,
                    ..Measurement::default()
                });
            }
        };
        // Without it nothing is known to be up.
        add(FIRST_RESPONSE, Share(self.first_response()?, 1), "instructions");
        if wanted(HTTP_GET) {
            add(HTTP_GET, self.http_get().context("GET on a kept connection")?, "instructions");
        }
        if wanted(HTTP_GET_LONG) {
            add(HTTP_GET_LONG, self.http_get_long().context("GET of 64 KiB")?, "instructions/KiB");
        }
        if wanted(HTTP_GET_4) {
            add(HTTP_GET_4, self.http_get_4().context("four GETs at once on kept connections")?, "instructions");
        }
        if wanted(UDP_ECHO) {
            add(UDP_ECHO, self.udp_echo().context("echo by UDP")?, "instructions");
        }
        if wanted(TCP_ECHO) {
            add(TCP_ECHO, self.tcp_echo().context("echo by TCP")?, "instructions");
        }
        if wanted(TCP_BULK) {
            add(TCP_BULK, self.tcp_bulk().context("bytes from the source")?, "instructions/KiB");
        }
        if wanted(TCP_LOOPBACK) {
            add(TCP_LOOPBACK, self.tcp_loopback().context("echo inside the machine")?, "instructions");
        }
        Ok(rows)
    }

    /// Asks, each time on a connection of its own, until the page comes; gives the count since power-on.
    ///
    /// A try before the machine listens costs it nothing or a refusal: the emulator takes the connection, asks for the
    /// machine's address, and gives up when nobody answers.
    fn first_response(&mut self) -> Result<Counts> {
        let expected = page();
        loop {
            let response = Web::connect(self.ports.web.address()).and_then(|mut web| web.get(PAGE));
            let counts = self.counter.counts()?;
            match response {
                Ok(body) if body == expected => return Ok(counts),
                Ok(body) => bail!("/{PAGE} is {} bytes long and not as it was packed", body.len()),
                Err(error) if self.over.load(Ordering::Relaxed) => {
                    let count = grouped(counts.instructions);
                    return Err(error.context(format!("no page came until the end, after {count} instructions")));
                }
                Err(_) => thread::sleep(PAUSE),
            }
        }
    }

    fn http_get(&mut self) -> Result<Share> {
        let mut web = Web::connect(self.ports.web.address())?;
        self.each(|| web.get(PAGE).map(drop))
    }

    fn http_get_long(&mut self) -> Result<Share> {
        const TIMES: u64 = 40;
        let mut web = Web::connect(self.ports.web.address())?;
        let expected = long_page();
        let Share(counts, times) = self.batches(TIMES, |counter| {
            (0..TIMES).try_for_each(|_| {
                counter.wait_for_rest()?;
                if web.get(LONG_PAGE)? == expected { Ok(()) } else { bail!("/{LONG_PAGE} is not as it was packed") }
            })
        })?;
        Ok(Share(counts, times * LONG_KIB))
    }

    fn http_get_4(&mut self) -> Result<Share> {
        let address = self.ports.web.address();
        let mut webs = (0..AT_ONCE).map(|_| Web::connect(address)).collect::<Result<Vec<_>>>()?;
        let Share(counts, rounds) = self.each(|| {
            webs.iter_mut().try_for_each(|web| web.ask(PAGE))?;
            webs.iter_mut().try_for_each(|web| web.answer().map(drop))
        })?;
        Ok(Share(counts, rounds * AT_ONCE))
    }

    fn udp_echo(&mut self) -> Result<Share> {
        let address = self.ports.udp_echo.address();
        let mut stream = self.once_up(|| client::Datagrams::connect(address).and_then(answering(first_echo)))?;
        self.each_echo(&mut stream)
    }

    fn tcp_echo(&mut self) -> Result<Share> {
        let address = self.ports.tcp_echo.address();
        let mut stream = self.once_up(|| client::tcp(address).and_then(answering(first_echo)))?;
        self.each_echo(&mut stream)
    }

    fn tcp_bulk(&mut self) -> Result<Share> {
        let address = self.ports.source.address();
        let mut stream = self.once_up(|| client::tcp(address).and_then(answering(|stream| client::skip(stream, 1))))?;
        self.batches(BULK_KIB, |_| client::skip(&mut stream, BULK_KIB))
    }

    fn tcp_loopback(&mut self) -> Result<Share> {
        let address = self.ports.loopback.address();
        let one = |stream: &mut TcpStream| client::on_behalf(stream, 1);
        let mut stream = self.once_up(|| client::tcp(address).and_then(answering(one)))?;
        self.batches(EXCHANGES, |_| client::on_behalf(&mut stream, EXCHANGES))
    }

    /// Tries until a service answers: that the web server does means little for the others.
    fn once_up<S>(&self, mut open: impl FnMut() -> Result<S>) -> Result<S> {
        let start = Instant::now();
        loop {
            match open() {
                Err(_) if !self.over.load(Ordering::Relaxed) && start.elapsed() < START => thread::sleep(PAUSE),
                result => return result,
            }
        }
    }

    /// Eight bytes there and back.
    fn each_echo(&mut self, stream: &mut (impl Read + Write)) -> Result<Share> {
        let mut number = 0_u64;
        self.each(|| {
            number += 1;
            client::echo(stream, number)
        })
    }

    /// The cost of one exchange.
    fn each(&mut self, mut exchange: impl FnMut() -> Result<()>) -> Result<Share> {
        self.batches(EXCHANGES, |counter| {
            (0..EXCHANGES).try_for_each(|_| {
                counter.wait_for_rest()?;
                exchange()
            })
        })
    }

    /// The cost of one of the `number` parts of a batch.
    fn batches(&mut self, number: u64, mut batch: impl FnMut(&mut Counter<UnixStream>) -> Result<()>) -> Result<Share> {
        batch(&mut self.counter)?;
        let counts = (0..BATCHES).map(|_| self.counter.during(&mut batch)).collect::<Result<Vec<_>>>()?;
        Ok(Share(median(counts), number))
    }
}

/// Gives a stream on after this exchange.
fn answering<S>(exchange: impl Fn(&mut S) -> Result<()>) -> impl FnOnce(S) -> Result<S> {
    move |mut stream| exchange(&mut stream).map(|()| stream)
}

fn first_echo(stream: &mut (impl Read + Write)) -> Result<()> {
    client::echo(stream, 0)
}

/// The cost of so many of the same together.
struct Share(Counts, u64);

/// The counts with the median of instructions.
fn median(mut counts: Vec<Counts>) -> Counts {
    counts.sort_unstable_by_key(|counts| counts.instructions);
    counts.get(counts.len() / 2).copied().unwrap_or_default()
}

/// Measures those rows of the network that have a budget.
pub fn measure_on_cairn(project: &Project, budgets: &[Budget]) -> Result<Vec<Measurement>> {
    measure_rows(project, Machine::new(MEMORY), &|name| {
        ROWS.contains(&name) && budgets.iter().any(|budget| budget.name == name)
    })
}

/// Measures these rows of the network on such a machine.
pub fn measure_rows(
    project: &Project,
    machine: Machine,
    wanted: &(dyn Fn(&str) -> bool + Sync),
) -> Result<Vec<Measurement>> {
    if !ROWS.iter().any(|name| wanted(name)) {
        return Ok(Vec::new());
    }
    let (_, image) = system_of_requests(project, Some(NETWORK_COMMAND))?;
    let plugin = Plugin::make(project)?.watching(&Places::of_nucleus(&read(&image.elf)?)?)?;
    let limit = Duration::from_secs_f64(SECONDS);
    measure(image, machine, &plugin, limit, wanted)
}

/// The default system with what serves the clients of this module, once the commands run it.
pub fn system_of_requests(project: &Project, commands: Option<&str>) -> Result<(System, Image)> {
    let scratch = project.scratch()?;
    let file = scratch.file(PAGE);
    write(&file, &page())?;
    let long = scratch.file(LONG_PAGE);
    write(&long, &long_page())?;
    let mut system = System::read(project, Path::new(NETWORK_SYSTEM))?;
    system.add_file(&format!("www/{PAGE}"), &file);
    system.add_file(&format!("www/{LONG_PAGE}"), &long);
    let image = image::make(project, &system, Checks::Off, Size::of(MEMORY, 1)?, commands)?;
    Ok((system, image))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_result_is_the_median() {
        let counts = |instructions| Counts { instructions, ..Counts::default() };
        assert_eq!(median([900, 100, 301, 200, 800].map(counts).to_vec()), counts(301));
        assert_eq!(median(vec![counts(300)]), counts(300));
    }

    #[test]
    fn the_page_is_a_kibibyte() {
        assert_eq!(page().len(), 1024);
        assert!(page().starts_with(b"abc") && page().ends_with(b"hij"));
    }
}
