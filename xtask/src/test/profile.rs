//! Does a profile report every instruction once, in a function that is known? And is it of what `./x bench` measures?

use super::cases;
use super::report::Report;
use crate::bench;
use crate::code;
use crate::forward::{Forward, Protocol};
use crate::install;
use crate::isa::Isa;
use crate::profile::{self, Done, Names, Profile, Sent, Work};
use crate::project::{Project, read};
use anyhow::{Result, bail, ensure};
use std::time::Duration;

/// The group.
pub const NAME: &str = "profile";
/// Time for a machine.
const LIMIT: Duration = Duration::from_secs(120);
/// A command that prints and fails.
const COMMAND: &str = "ls /www | wc -l; false";
const FAILED: u8 = 1;
/// The port of `echod`.
const ECHO: u16 = 7;
/// How far a request may be from the row of `./x bench`, which is the mean of 400: percent.
const TOLERANCE: u64 = 10;

/// Runs it.
pub fn check(project: &Project, isas: &[Isa], report: &mut Report) {
    for isa in isas {
        report.run(&cases::on(*isa, NAME), || on(&project.on(*isa)));
    }
}

fn on(project: &Project) -> Result<()> {
    install::emulator(project.isa)?;
    let row = bench::http_get(project)?;
    let (system, mut image) = bench::system_of_requests(project, None)?;
    let echo = |protocol| Ok(Sent { forward: Forward::any(protocol, ECHO)?, text: b"a text" });
    let echoes: Result<Vec<Sent>> = [Protocol::Tcp, Protocol::Udp].into_iter().map(echo).collect();
    let [tcp, udp] = echoes?[..] else { bail!("two protocols") };
    image.forwards.get_or_insert_default().extend([tcp.forward, udp.forward]);
    let works = [
        Work::Page(bench::PAGE),
        Work::Page("nothing"),
        Work::Text(Some("echod &"), tcp),
        Work::Text(None, udp),
        Work::Command(COMMAND),
    ];
    let done = profile::boot(project, &image, bench::MEMORY, LIMIT, |session| {
        works.iter().map(|work| session.profile(*work)).collect::<Result<Vec<_>>>()
    })?;
    let files = code::files(project, &system, read(&image.elf)?)?;
    let names = Names::of(&files);
    let mut profiles = Vec::new();
    for (done, record) in &done {
        let profile = profile::made(&names, project.isa, record, done)?;
        complete(&profile, done)?;
        profiles.push(profile);
    }
    let [page, _, tcp, udp, command] = profiles.as_slice() else { bail!("{} profiles were made", profiles.len()) };
    for program in ["netd", "httpd", "virtio-net", "sched"] {
        ensure!(page.programs.iter().any(|(name, own, _)| name == program && *own > 0), "{program} never ran");
    }
    for echo in [tcp, udp] {
        ensure!(echo.programs.iter().any(|(name, own, _)| name == "echod" && *own > 0), "echod never ran");
    }
    let total = page.total();
    ensure!(
        total.abs_diff(row) * 100 <= row * TOLERANCE,
        "a request takes {total} instructions, and `./x bench` counts {row}"
    );
    ensure!(command.programs.iter().any(|(name, _, _)| name == "ls"), "{COMMAND}: no instruction is of ls");
    let expected = [
        ("200 OK, 1024 bytes", 0),
        ("404 ", 0),
        ("6 bytes came back", 0),
        ("6 bytes came back", 0),
        ("status 1", FAILED),
    ];
    for ((done, _), (reported, status)) in done.iter().zip(expected) {
        let (found, ended) = (&done.reported, done.status);
        ensure!(found.starts_with(reported) && ended == status, "`{found}`, {ended} and not `{reported}`, {status}");
    }
    let printed = done.last().map_or("", |(done, _)| done.printed.trim());
    ensure!(printed.parse::<u32>().is_ok_and(|lines| lines > 1), "{COMMAND} printed `{printed}`");
    Ok(())
}

/// Each instruction of the window once, in a function, on a stack of its program.
fn complete(profile: &Profile, done: &Done) -> Result<()> {
    let paths: u64 = profile.paths.iter().map(|(_, instructions)| instructions).sum();
    let programs: u64 = profile.programs.iter().map(|(_, own, of_nucleus)| own + of_nucleus).sum();
    let sums = [profile.total(), paths, programs];
    ensure!(sums == [done.window.1; 3], "sums are {sums:?}, and {} instructions were counted", done.window.1);
    let unknown = profile.functions.iter().find(|(program, function, _)| program == "?" || function == "?");
    ensure!(unknown.is_none(), "nobody knows whose these are: {unknown:?}");
    Ok(())
}
