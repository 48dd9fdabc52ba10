//! A tree of files goes from a machine of one ISA to one of another, and back: each packs what it has with `archive`, and its
//! web server gives it to this computer, which packs it into the boot archive of the other.

use super::load;
use super::report::Report;
use crate::build::Checks;
use crate::emulator::{self, Console, End, Machine, Step, Work};
use crate::image::{self, Size, System};
use crate::install;
use crate::isa::Isa;
use crate::project::{Project, write};
use anyhow::{Context, Result, bail, ensure};
use cpio::{Archive, Kind};
use regex::bytes::Regex;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Name of the group and of its test.
pub const NAME: &str = "travel";

/// Time for one machine.
const LIMIT: Duration = Duration::from_secs(60);

/// Makes a tree with what there can be: text, bytes of all values, a file of many pages, an empty one, a program, an empty
/// directory, deep and strange names.
const MAKE: &str = "mkdir -p '/tmp/tree/a/b c/d' /tmp/tree/empty; echo 'brought along: äöü' > /tmp/tree/a/text; \
    random 5000 > '/tmp/tree/a/b c/numbers'; cp /bin/fuzzer /tmp/tree/a/large; cp /bin/true /tmp/tree/program; \
    cp /etc/motd /tmp/tree/readable; echo -n > /tmp/tree/nothing";
/// Packs it for the web server.
const PACK: &str = "archive -c /tmp/tree > /www/tree.cpio";

/// Runs the test.
pub fn check(project: &Project, report: &mut Report) {
    report.run(NAME, || {
        let [first, second] = Isa::ALL;
        for isa in Isa::ALL {
            install::emulator(isa)?;
        }
        travel(project, first, second).and_then(|()| travel(project, second, first))
    });
}

/// A tree made on one ISA is the same on the other, to the byte; its program is none there.
fn travel(project: &Project, from: Isa, to: Isa) -> Result<()> {
    let made = machine(&project.on(from), MAKE, None).with_context(|| format!("on {}", from.name()))?.0;
    judge(&made)?;
    let unpack = "mkdir /tmp/tree; archive -x /tmp/tree < /home/tree.cpio; cat /tmp/tree/a/text; /tmp/tree/program";
    let (again, output) = machine(&project.on(to), unpack, Some(&made)).with_context(|| format!("on {}", to.name()))?;
    ensure!(again == made, "{} bytes of {} came as {} on {}", made.len(), from.name(), again.len(), to.name());
    for line in ["brought along: äöü", "shell: /tmp/tree/program: not a program for this machine"] {
        ensure!(output.lines().any(|found| found.trim_end().ends_with(line)), "`{line}` did not come in\n{output}");
    }
    Ok(())
}

/// Has a machine pack an archive after these commands, with an archive at `/home/tree.cpio`; gives it and the output.
fn machine(project: &Project, commands: &str, brought: Option<&[u8]>) -> Result<(Vec<u8>, String)> {
    let mut system = System::read(project, Path::new("systems/default.toml"))?;
    let scratch = project.scratch()?;
    if let Some(bytes) = brought {
        let file = scratch.file("tree.cpio");
        write(&file, bytes)?;
        system.add_file("home/tree.cpio", &file);
    }
    let memory = "64M";
    let image = image::make(project, &system, Checks::On, Size::of(memory, 1)?, None)?;
    let port = image.web().context("the system has no web server")?.host;
    let fetched = Arc::new(Mutex::new(None));
    let place = fetched.clone();
    let work = Work(Arc::new(move |watch| {
        let answer = load::page(port, "/tree.cpio", watch.until);
        *place.lock().unwrap_or_else(PoisonError::into_inner) = Some(answer);
        String::new()
    }));
    let step = |after: &str, send: String, work| -> Result<Step> {
        Ok(Step { after: Regex::new(after)?, send: send.into_bytes(), fetch: None, work })
    };
    let steps = [
        step(r"cairn:/\$ ", format!("{commands}; {PACK}; echo pack'ed'\r"), None)?,
        step("packed", "exit\r".into(), Some(work))?,
    ];
    let machine = Machine::new(memory);
    let (end, output) = emulator::boot(&image, &machine, Console::Steps { steps: &steps, echo: false }, Some(LIMIT))?;
    let output = String::from_utf8_lossy(&output).into_owned();
    if end != End::Status(0) {
        bail!("the machine ended with {end:?}\n{output}");
    }
    let answer = fetched.lock().unwrap_or_else(PoisonError::into_inner).take();
    let bytes = answer.context("nothing was fetched")?.with_context(|| output.clone())?;
    Ok((bytes, output))
}

/// The archive has what was made.
fn judge(bytes: &[u8]) -> Result<()> {
    let archive = Archive::new(bytes);
    archive.check()?;
    let entry = |name: &str| archive.find(name)?.with_context(|| format!("the archive has no {name}"));
    ensure!(entry("a/text")?.data == "brought along: äöü\n".as_bytes(), "a/text");
    ensure!(entry("a/large")?.data.len() > 16 * 4096, "a/large is {} bytes", entry("a/large")?.data.len());
    let numbers = entry("a/b c/numbers")?.data.len();
    ensure!(numbers > 4096 && entry("a/b c/d")?.kind == Kind::Folder, "a/b c/numbers is {numbers} bytes");
    ensure!(entry("nothing")?.data.is_empty() && entry("empty")?.kind == Kind::Folder, "an empty file and folder");
    ensure!(entry("program")?.executable && !entry("readable")?.executable, "the mark of programs");
    Ok(())
}
