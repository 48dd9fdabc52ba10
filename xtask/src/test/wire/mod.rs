//! Boot tests in which this process is the other end of the emulated wire, frame by frame (key `wire` of a boot test).
//!
//! | module | what |
//! |---|---|
//! | [`link`] | the wire, and what happens to frames on it |
//! | [`frames`] | frames made by hand |
//! | [`services`] | DHCP, router advertisements, names |
//! | [`raw`] | a client of TCP made by hand |
//! | [`host`] | all of that with smoltcp's protocols, and the machine's console |
//! | [`loss`], [`flood`], [`hostile`], [`lies`], [`hostile_tcp`], [`tools`], [`tcp`], [`window`] | what is tried |
//!
//! The emulator passes frames as datagrams between two sockets of the file system; the machine sees an ordinary network
//! card. Everything here is drawn from one seed, which a failure names; `CAIRN_WIRE_SEED` sets it.
//! With `CAIRN_WIRE_SHOW` in the environment all frames are shown.

mod flood;
mod frames;
mod host;
mod hostile;
mod hostile_tcp;
mod lies;
mod link;
mod loss;
mod pages;
mod raw;
mod services;
mod tcp;
mod tools;
mod window;

use crate::conversation;
use crate::emulator::{self, Machine};
use crate::image::{Image, System};
use crate::project::{Project, Scratch, write};
use anyhow::{Context, Result, bail};
use host::Host;
use link::Link;
use pages::{PAGES, page};
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

/// Environment variable with the seed.
const SEED: &str = "CAIRN_WIRE_SEED";
/// Bytes of a path of a socket, at most (unix(7)).
const LONGEST_PATH: usize = 107;

/// The parts prepared for a run: pages, sockets.
pub struct Prepared {
    /// Holds the pages.
    _scratch: Scratch,
    folder: PathBuf,
}

impl Drop for Prepared {
    fn drop(&mut self) {
        // Remains of it are seen among temporary files.
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// Adds pages to the system's.
pub fn prepare(project: &Project, system: &mut System) -> Result<Prepared> {
    let scratch = project.scratch()?;
    for bytes in PAGES {
        let file = scratch.file(&format!("page-{bytes}"));
        write(&file, &page(bytes))?;
        system.add_file(&format!("www/page-{bytes}"), &file);
    }
    // Paths of sockets are short: those of a target folder may not be.
    let name = scratch
        .file("")
        .display()
        .to_string()
        .bytes()
        .fold(0, |sum: u64, byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
    let folder = std::env::temp_dir().join(format!("cairn-{}-{name:x}", std::process::id()));
    std::fs::create_dir(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    Ok(Prepared { _scratch: scratch, folder })
}

/// Runs a scenario; gives what the console printed.
pub fn run(name: &str, prepared: &Prepared, image: &Image, machine: Machine, limit: Duration) -> (Result<()>, String) {
    match start(name, prepared, image, machine, limit) {
        Ok(outcome) => outcome,
        Err(error) => (Err(error), String::new()),
    }
}

fn start(
    name: &str,
    prepared: &Prepared,
    image: &Image,
    machine: Machine,
    limit: Duration,
) -> Result<(Result<()>, String)> {
    let scenario: fn(&mut Host<'_>) -> Result<()> = match name {
        "flood" => flood::run,
        "loss" => loss::run,
        "hostile" => hostile::run,
        "hostile-tcp" => hostile_tcp::run,
        "idle" => tcp::idle,
        "tools" => tools::run,
        "tcp" => tcp::run,
        "window" => window::run,
        _ => bail!("there is no scenario `{name}` in xtask/src/test/wire"),
    };
    let seed = match std::env::var(SEED) {
        Ok(text) => text.parse().with_context(|| format!("{SEED} is a number, not {text}"))?,
        Err(_) => SystemTime::UNIX_EPOCH.elapsed().map_or(1, |time| time.as_micros() as u64 % 1_000_000),
    };
    println!("wire {name}: {SEED}={seed}");
    let (theirs, ours) = (prepared.folder.join("machine"), prepared.folder.join("host"));
    if theirs.as_os_str().len() > LONGEST_PATH {
        bail!("the path {} is too long for a socket: set TMPDIR to a shorter one", theirs.display());
    }
    let link = Link::open(&ours, &theirs, seed)?;
    let machine = Machine { wire: Some([theirs, ours]), ..machine };
    let (arguments, cpus) = (emulator::arguments(image, &machine), machine.cpus);
    Ok(conversation::converse(image.isa, &arguments, limit, |console| {
        let mut host = Host::new(link, console, seed, cpus);
        host.wait_for_machine()
            .and_then(|()| scenario(&mut host))
            .with_context(|| format!("{SEED}={seed}, {:?}", host.link.happened))
    }))
}
