//! The wire itself: frames are datagrams between the emulator's socket and ours. Its faults are drawn from a
//! seeded generator: it loses, doubles and delays frames, in both directions.

use crate::test::random::Random;
use anyhow::{Context, Result};
use smoltcp::phy::{Device, DeviceCapabilities, Medium, RxToken, TxToken};
use smoltcp::time::Instant as Time;
use smoltcp::wire::{EthernetFrame, PrettyPrinter};
use std::collections::VecDeque;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Bytes of the longest frame of Ethernet, without its checksum.
const FRAME: usize = 1514;
/// Bytes of the longest datagram that is read.
const LONGEST: usize = 1 << 16;

/// The faults of frames, each in percent.
#[derive(Clone, Copy, Default, Debug)]
pub struct Faults {
    /// Lost.
    pub lost: u64,
    /// Arriving twice.
    pub doubled: u64,
    /// Coming late, so that others overtake them.
    pub late: u64,
}

/// How often each happened.
#[derive(Clone, Copy, Default, Debug)]
pub struct Happened {
    /// Frames, without those that were made here.
    pub frames: u64,
    /// See [`Faults::lost`].
    pub lost: u64,
    /// See [`Faults::doubled`].
    pub doubled: u64,
    /// See [`Faults::late`].
    pub late: u64,
}

#[derive(Clone, Copy, PartialEq)]
enum Way {
    Here,
    There,
}

/// See the module.
pub struct Link {
    socket: UnixDatagram,
    machine: PathBuf,
    /// Frames for us.
    pub inbox: VecDeque<Vec<u8>>,
    outbox: VecDeque<Vec<u8>>,
    late: Vec<(Instant, Way, Vec<u8>)>,
    /// The faults of frames from now on.
    pub faults: Faults,
    /// The faults that happened.
    pub happened: Happened,
    random: Random,
    /// Frames are shown.
    shown: Option<Instant>,
}

/// Environment variable: if it is there, all frames are shown.
const SHOW: &str = "CAIRN_WIRE_SHOW";

impl Link {
    /// Our end of the wire.
    pub fn open(here: &Path, machine: &Path, seed: u64) -> Result<Self> {
        let socket = UnixDatagram::bind(here).with_context(|| format!("cannot make {}", here.display()))?;
        socket.set_nonblocking(true).context("a socket that waits")?;
        let (inbox, outbox) = Default::default();
        Ok(Self {
            socket,
            machine: machine.into(),
            inbox,
            outbox,
            late: Vec::new(),
            faults: Faults::default(),
            happened: Happened::default(),
            random: Random(seed),
            shown: std::env::var_os(SHOW).map(|_| Instant::now()),
        })
    }

    /// Sends a frame as it is, whatever it is.
    pub fn inject(&mut self, frame: Vec<u8>) {
        self.outbox.push_back(frame);
    }

    /// Frames that the machine has not taken yet.
    pub fn waiting(&self) -> usize {
        self.outbox.len()
    }

    /// Moves frames; whether there were any.
    pub fn turn(&mut self) -> bool {
        let mut busy = false;
        let now = Instant::now();
        let mut place = 0;
        while let Some((due, ..)) = self.late.get(place) {
            if *due > now {
                place += 1;
                continue;
            }
            let (_, way, frame) = self.late.swap_remove(place);
            self.deliver(way, frame);
        }
        let mut bytes = [0; LONGEST];
        while let Ok(count) = self.socket.recv(&mut bytes) {
            self.show("<", &bytes[..count]);
            self.pass(Way::Here, bytes[..count].to_vec());
            busy = true;
        }
        while let Some(frame) = self.outbox.front() {
            // One that the machine has no room for now is sent again; before it is there, frames are lost.
            match self.socket.send_to(frame, &self.machine) {
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => break,
                _ => self.show(">", frame),
            }
            self.outbox.pop_front();
            busy = true;
        }
        busy
    }

    fn show(&self, way: &str, frame: &[u8]) {
        if let Some(start) = self.shown {
            let text = PrettyPrinter::<EthernetFrame<&[u8]>>::new("", &frame);
            println!("{:8.4} {way} {text}", start.elapsed().as_secs_f64());
        }
    }

    fn pass(&mut self, way: Way, frame: Vec<u8>) {
        self.happened.frames += 1;
        let Faults { lost, doubled, late } = self.faults;
        if self.random.below(100) < lost {
            self.happened.lost += 1;
            return;
        }
        if self.random.below(100) < doubled {
            self.happened.doubled += 1;
            self.deliver(way, frame.clone());
        }
        if self.random.below(100) < late {
            self.happened.late += 1;
            let due = Instant::now() + Duration::from_micros(500 + self.random.below(8_000));
            return self.late.push((due, way, frame));
        }
        self.deliver(way, frame);
    }

    fn deliver(&mut self, way: Way, frame: Vec<u8>) {
        match way {
            Way::Here => self.inbox.push_back(frame),
            Way::There => self.outbox.push_back(frame),
        }
    }
}

/// A frame that came.
pub struct Arrived(Vec<u8>);

impl RxToken for Arrived {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, work: F) -> R {
        work(&self.0)
    }
}

/// Room for a frame that goes out.
pub struct Leaving<'a>(&'a mut Link);

impl TxToken for Leaving<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, length: usize, work: F) -> R {
        let mut frame = vec![0; length];
        let outcome = work(&mut frame);
        self.0.pass(Way::There, frame);
        outcome
    }
}

impl Device for Link {
    type RxToken<'a> = Arrived;
    type TxToken<'a> = Leaving<'a>;

    fn receive(&mut self, _: Time) -> Option<(Arrived, Leaving<'_>)> {
        let frame = self.inbox.pop_front()?;
        Some((Arrived(frame), Leaving(self)))
    }

    fn transmit(&mut self, _: Time) -> Option<Leaving<'_>> {
        Some(Leaving(self))
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        capabilities.medium = Medium::Ethernet;
        capabilities.max_transmission_unit = FRAME;
        capabilities
    }
}
