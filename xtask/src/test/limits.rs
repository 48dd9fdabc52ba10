//! The figures of the tables of limits in `docs/caveats.md`, and of sizes and addresses in `docs/book/memory.md`, are those of
//! the code.
//!
//! Each row of a table is listed here, in its order, with the figures that follow from constants. Another figure may stand in a
//! row only if the test says why no constant gives it. Figures from several constants are computed here as the code does.

use super::constants::Constants;
use super::parity::root;
use super::promises::cells;
use crate::bench::show::grouped;
use crate::project::read_text;
use abi::{boot, info, layout, window};
use anyhow::{Context, Result, bail};
use toml::Value;

/// The expected contents of a row of a table.
struct Row {
    /// Words of the row, to find it by.
    what: &'static str,
    /// Texts with figures of the code.
    figures: Vec<String>,
    /// Why other figures of the row do not follow from a constant; empty if there are none.
    others: &'static str,
}

/// A row whose figures all follow from constants.
fn row<const COUNT: usize>(what: &'static str, figures: [String; COUNT]) -> Row {
    Row { what, figures: figures.to_vec(), others: "" }
}

/// The rows of all tables of a chapter's section, each as one text.
fn section(page: &str, heading: &str) -> Vec<String> {
    let from = page.lines().skip_while(|line| *line != heading).skip(1);
    let lines: Vec<&str> = from.take_while(|line| !line.starts_with("## ")).collect();
    cells(&lines.join("\n")).into_iter().map(|(_, cells)| cells.join(" | ")).collect()
}

/// Mistakes in the rows of a section.
fn mistakes(found: &[String], expected: &[Row]) -> Vec<String> {
    let mut wrong = Vec::new();
    if found.len() != expected.len() {
        wrong.push(format!("{} rows, and {} are listed in the test", found.len(), expected.len()));
    }
    for (text, row) in found.iter().zip(expected) {
        if !text.contains(row.what) {
            wrong.push(format!("`{text}` stands where the test has the row `{}`", row.what));
            continue;
        }
        let mut rest = text.clone();
        for figure in &row.figures {
            if rest.contains(figure) {
                rest = rest.replacen(figure, " ", 1);
            } else {
                wrong.push(format!("`{}`: the code says {figure}", row.what));
            }
        }
        // Names such as `sigma0` end in a digit; a figure begins with one.
        let mut words = rest.split(|c: char| !c.is_alphanumeric());
        let is_left = words.any(|word| word.starts_with(|c: char| c.is_ascii_digit()));
        if is_left && row.others.is_empty() {
            wrong.push(format!("`{}`: a figure is compared with no constant: {rest}", row.what));
        }
        if !is_left && !row.others.is_empty() {
            wrong.push(format!("`{}`: no figure is left, but the test says why one is", row.what));
        }
    }
    wrong
}

/// An address as the book writes it: groups of four digits.
fn address(address: u64) -> String {
    let digits = format!("{address:x}");
    let mut text = "`0x".to_string();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(4) {
            text.push('_');
        }
        text.push(digit);
    }
    text + "`"
}

fn range(start: u64, end: u64) -> String {
    format!("{}–{}", address(start), address(end))
}

const KIB: u64 = 1 << 10;
const PAGE: u64 = abi::PAGE_BYTES as u64;

/// The constants behind what grows with memory.
struct Growth {
    room: Constants,
    protocols: Constants,
}

impl Growth {
    fn read() -> Result<Self> {
        let files = ["components/roottask/src/room.rs", "components/roottask/src/numbers.rs", "crates/abi/src/lib.rs"];
        let protocols = ["sigma0", "names", "parent"].map(|name| format!("crates/protocols/src/{name}.rs"));
        let protocols: Vec<&str> = protocols.iter().map(String::as_str).collect();
        Ok(Self { room: Constants::of_files(&files)?, protocols: Constants::of_files(&protocols)? })
    }

    /// Numbers of threads with so many MiB of memory, of which the nucleus has taken some at boot.
    fn threads(&self, mib: u64) -> Result<u64> {
        let [few, each] = [self.room.number("FRAMES_OF_FEW")?, self.room.number("FRAMES_OF_A_THREAD")?];
        let frames = mib * self.room.number("FRAMES_OF_A_MIB")? - 1;
        let step = abi::THREADS_OF_A_PAGE as u64;
        let wanted = step + frames.saturating_sub(few) / each;
        Ok(wanted.min(abi::MAX_THREADS as u64) / step * step)
    }

    fn tickets(&self, mib: u64) -> Result<u64> {
        let more = (self.threads(mib)? - self.room.number("FEWEST")?) / self.room.number("THREADS_OF_A_TICKET")?;
        Ok((self.protocols.number("FEWEST_TICKETS")? + more).min(self.protocols.number("MOST_TICKETS")?))
    }

    fn names(&self, mib: u64) -> Result<u64> {
        let more = (self.threads(mib)? - self.room.number("FEWEST")?) / self.room.number("THREADS_OF_A_NAME")?;
        Ok((self.protocols.number("FEWEST_OF_PROGRAMS")? + more).min(self.protocols.number("MOST_OF_PROGRAMS")?))
    }
}

/// The value of a component's key in the default system.
fn described(component: &str, key: &str) -> Result<Value> {
    let system: toml::Table = toml::from_str(&read_text(&root().join("systems/default.toml"))?)?;
    let all = system.get("component").and_then(Value::as_array).into_iter().flatten();
    let mut all = all.filter(|one| one.get("name").and_then(Value::as_str) == Some(component));
    let value = all.next().and_then(|one| one.get(key)).cloned();
    value.with_context(|| format!("the default system says no `{key}` of {component}"))
}

/// The rows of what domains, threads and memory can have.
fn limits_of_the_nucleus(growth: &Growth) -> Result<Vec<Row>> {
    let proc = Constants::of_files(&["components/proc/src/child.rs"])?;
    let tables = Constants::of_files(&["nucleus/src/memory/tables.rs", "crates/abi/src/lib.rs"])?;
    let ram = Constants::of_files(&["nucleus/src/objects/page.rs"])?;
    let number = |limit: usize| grouped(limit as u64);
    let [few, more, most] = [growth.threads(64)?, growth.threads(256)?, growth.threads(576)?];
    let of_proc = described("proc", "threads")?.as_integer().unwrap_or_default() as u64;
    let own = proc.number("OWN_THREADS")?;
    let log = info::LOG_PARTS.map(|bytes| bytes as u64 / KIB);
    Ok(vec![
        row(
            "threads",
            [
                format!(
                    "{} at 64 MiB of memory, {} at 256 MiB, {} from 576 MiB on",
                    grouped(few - 1),
                    grouped(more - 1),
                    grouped(most - 1)
                ),
                format!("{} domains at most", grouped(tables.number("COUNT")?)),
                format!(
                    "a program has {}, all programs {} of {few} ({own} fewer than `proc`)",
                    proc.number("THREADS")?,
                    of_proc - own
                ),
            ],
        ),
        row("activations of a domain", [number(layout::MAX_ACTIVATIONS)]),
        row("activations in a chain", [number(abi::MAX_DEPTH)]),
        row("derivations", [number(abi::MAX_DERIVATION)]),
        row("activations of a domain that takes windows", [number(window::SLOTS)]),
        row("pages of a window", [number(window::MAX_PAGES)]),
        row("times that a window is handed on", [number(window::MAX_HANDED_ON)]),
        row("accounts in accounts", [number(abi::MAX_ACCOUNT_DEPTH)]),
        row("domains made by domains", [number(abi::MAX_NESTING)]),
        row("entries of a table", [number(layout::MAX_TABLE_ENTRIES)]),
        row(
            "kernel log",
            [
                format!("{} KiB of nucleus and components", log[0]),
                format!("{} KiB of programs", log[1]),
                format!("{} KiB of what labels forbade", log[2]),
            ],
        ),
        row("regions of RAM", [number(boot::MAX_REGIONS)]),
        row("RAM", [format!("{} GiB", ram.number("RAM_END")? >> 30)]),
    ])
}

/// The rows of what servers give to their clients.
fn limits_of_servers(growth: &Growth) -> Result<Vec<Row>> {
    let sigma0 = Constants::of_files(&["components/sigma0/src/tickets.rs"])?;
    let netd = Constants::of_files(&["components/netd/src/limits.rs"])?;
    let child = Constants::of_files(&["components/proc/src/child.rs"])?;
    let waits = Constants::of_files(&["components/proc/src/table.rs"])?;
    let pipes = Constants::of_files(&["components/ramfs/src/pipes.rs"])?;
    let console = Constants::of_files(&["components/console/src/main.rs"])?;
    let of_roottask = sigma0.numbers("COMPONENTS")?[1];
    // Of so many places: those of one component, of all components, and of all programs.
    let parts = |places: u64| -> Result<[u64; 3]> {
        let further = places - growth.protocols.number("FEWEST_TICKETS")?;
        let of_programs =
            sigma0.number("FEWEST_OF_PROGRAMS")? + further / sigma0.number("PLACES_FOR_ONE_OF_PROGRAMS")?;
        let of_components = places - of_programs - of_roottask;
        Ok([of_components - sigma0.number("LEFT_BY_COMPONENT")?, of_components, of_programs])
    };
    let [few, more] = [parts(growth.tickets(64)?)?, parts(growth.tickets(256)?)?];
    // The third number of a list is of connections that linger.
    let network = |name: &str| -> Result<String> {
        let counts: Vec<String> = netd.numbers(name)?.into_iter().map(grouped).collect();
        let [sessions, connections, _, listeners, ports, queries] = &counts[..] else {
            bail!("{name} has {} numbers", counts.len())
        };
        Ok(format!(
            "{sessions} sessions, {connections} connections, {listeners} listeners, \
             {ports} UDP ports and echo sockets, {queries} queries"
        ))
    };
    let of_programs =
        described("proc", "threads")?.as_integer().unwrap_or_default() as u64 - child.number("OWN_THREADS")?;
    let vault = described("ramfs", "vault")?.as_str().unwrap_or_default().replace('M', " MiB");
    let rest = described("ramfs", "vault_rest")?.as_integer().unwrap_or_default();
    let main_stack = layout::MAIN_STACK_TOP - layout::MAIN_STACK_START;
    Ok(vec![
        row(
            "names",
            [
                format!("{} of components", system::MAX_SERVICES),
                format!("{} of each program", growth.protocols.number("MAX_PROGRAM_SERVICES")?),
                format!("{} at 64 MiB of memory to {} at 576 MiB", growth.names(64)?, growth.names(576)?),
            ],
        ),
        row(
            "tickets of `sigma0`",
            [
                format!("{of_roottask} of `roottask`; {} of a program", sigma0.number("MOST_OF_PROGRAM")?),
                format!(
                    "at 64 MiB of memory {} of a component and {} of all of them, {} of all programs",
                    few[0], few[1], few[2]
                ),
                format!("at 256 MiB {}, {} and {}", grouped(more[0]), grouped(more[1]), more[2]),
            ],
        ),
        row("the network, for a program", [network("OF_PROGRAM")?]),
        row("the network, for all programs", [network("OF_PROGRAMS")?]),
        row("the network, for components", [network("OF_COMPONENTS")?]),
        Row {
            what: "processes of `proc`",
            figures: vec![
                format!("{} that run at 64 MiB of memory", of_programs / 2),
                format!("{} to {} waits", waits.number("FEWEST_WAITS")?, waits.number("MOST_WAITS")?),
            ],
            others: "how many run at 256 MiB is what the boot test `processes` counts",
        },
        Row {
            what: "pipes",
            figures: vec![
                format!("{} at 64 MiB of memory", pipes.number("FEWEST")?),
                format!("of {} KiB", pipes.number("CAPACITY")? / KIB),
                format!("{} to {} waits", pipes.number("FEWEST_WAITS")?, most_waits_in_pipes()?),
            ],
            others: "those at 256 MiB follow from what `roottask` has left for the account of `ramfs`",
        },
        row("waiting reads of `console`", [console.number("MAX_WAITING")?.to_string()]),
        row("room for files", [format!("{vault}, and {rest} of 100 ")]),
        row(
            "commands that can start",
            [format!("{} MiB", (child.number("KEPT_FRAMES")? * PAGE) as f64 / (1 << 20) as f64)],
        ),
        row(
            "stack of a thread",
            [format!("{} KiB (the first: {} KiB)", (layout::STACK_BYTES - PAGE) / KIB, (main_stack - PAGE) / KIB)],
        ),
    ])
}

/// The figures of a limit that grows with frames: the least, frames for one more, and the most.
fn at_most(constants: &Constants, names: [&str; 3]) -> Result<String> {
    let [least, frames, most] = names.map(|name| constants.number(name));
    Ok(format!("{} | 1 for {} frames, {} at most", least?, frames?, most?))
}

/// Waits in pipes of a large machine.
fn most_waits_in_pipes() -> Result<u64> {
    let others = Constants::of_files(&["components/ramfs/src/main.rs"])?.number("FILE_ACTIVATIONS")?;
    Ok(window::SLOTS as u64 - 1 - others)
}

/// The rows of the chapter's tables of what grows with memory.
fn growth(growth: &Growth) -> Result<Vec<Row>> {
    let [room, protocols] = [&growth.room, &growth.protocols];
    let waits = Constants::of_files(&["components/proc/src/table.rs"])?;
    let child = Constants::of_files(&["components/proc/src/child.rs"])?;
    let pipes = Constants::of_files(&["components/ramfs/src/pipes.rs"])?;
    let step = abi::THREADS_OF_A_PAGE as u64;
    Ok(vec![
        row(
            "numbers of threads",
            [
                format!("{step} | 1 for {} KiB", room.number("FRAMES_OF_A_THREAD")? * PAGE / KIB),
                format!("in steps of {step} | {}", grouped(abi::MAX_THREADS as u64)),
            ],
        ),
        row("`threads` of components", [grouped(abi::MAX_THREADS as u64 - room.number("LEFT_FOR_OTHERS")?)]),
        row(
            "tickets of `sigma0`",
            [format!(
                "{} | 1 for {} numbers of threads | {}",
                protocols.number("FEWEST_TICKETS")?,
                room.number("THREADS_OF_A_TICKET")?,
                grouped(protocols.number("MOST_TICKETS")?)
            )],
        ),
        row(
            "names of programs",
            [format!(
                "{} | 1 for {} numbers of threads | {}",
                protocols.number("FEWEST_OF_PROGRAMS")?,
                room.number("THREADS_OF_A_NAME")?,
                protocols.number("MOST_OF_PROGRAMS")?
            )],
        ),
        row("accounts and vaults", [format!("{} pages of a vault", room.number("PAGES_OF_A_FRAME")?)]),
        row(
            "processes",
            [format!(
                "{} and {} for {} frames",
                child.number("FEW")?,
                child.number("OF_A_FRAME")?,
                child.number("FRAMES_OF_OWN")?
            )],
        ),
        row("waits in `proc`", [at_most(&waits, ["FEWEST_WAITS", "FRAMES_OF_A_WAIT", "MOST_WAITS"])?]),
        row("pipes, and sessions of pipes", [at_most(&pipes, ["FEWEST", "FRAMES_OF_A_PIPE", "MOST_PIPES"])?]),
        row(
            "waits in pipes",
            [format!(
                "{} | 1 for {} frames, {} at most",
                pipes.number("FEWEST_WAITS")?,
                3 * pipes.number("FRAMES_OF_A_WAIT")?,
                most_waits_in_pipes()?
            )],
        ),
        Row {
            what: "pages of files",
            figures: Vec::new(),
            others: "what is left follows from the layout of `crates/filetree`, whose tests have it",
        },
    ])
}

fn page_faults() -> Vec<Row> {
    vec![
        row("heap", [address(layout::HEAP_END)]),
        row(
            "and the main stack",
            [range(layout::STACKS_START, layout::STARTUP_PAGE), format!("stacks of {} KiB", layout::STACK_BYTES / KIB)],
        ),
        row("more stacks", [range(layout::MORE_STACKS_START, layout::MORE_STACKS_END)]),
    ]
}

fn addresses() -> Vec<Row> {
    vec![
        row("message areas", [range(layout::MESSAGE_START, layout::MESSAGE_END)]),
        row(
            "further threads and activations",
            [range(layout::STACKS_START, layout::WINDOW), format!("first {}", layout::NEAR_STACKS)],
        ),
        row("a window for pages", [range(layout::WINDOW, layout::MAIN_STACK_START)]),
        row("stack of the first thread", [range(layout::MAIN_STACK_START, layout::MAIN_STACK_TOP)]),
        row("startup page", [address(layout::STARTUP_PAGE)]),
        row("the program", [address(layout::PROGRAM_START)]),
        row("more stacks", [address(layout::MORE_STACKS_START)]),
        row("free: files", [address(layout::FREE_START)]),
        row("the boot archive", [range(layout::ARCHIVE, layout::ARCHIVE + (1 << 30))]),
        row("that callers open", [range(layout::WINDOWS, layout::WINDOWS_END)]),
        row("the last page of the lower half", [address(layout::USER_END)]),
    ]
}

#[test]
fn the_tables_have_what_the_code_has() -> Result<()> {
    let constants = Growth::read()?;
    let [caveats, memory] = ["docs/caveats.md", "docs/book/memory.md"].map(|page| (page, root().join(page)));
    let limits: Vec<Row> =
        limits_of_the_nucleus(&constants)?.into_iter().chain(limits_of_servers(&constants)?).collect();
    let mut wrong = Vec::new();
    for ((page, path), heading, rows) in [
        (&caveats, "## Limits", limits),
        (&memory, "## What grows with memory", growth(&constants)?),
        (&memory, "## Page faults", page_faults()),
        (&memory, "## The address space of a program", addresses()),
    ] {
        let found = section(&read_text(path)?, heading);
        wrong.extend(mistakes(&found, &rows).into_iter().map(|mistake| format!("{page}, {heading}: {mistake}")));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}

#[test]
fn the_short_slice_is_that_of_the_code() -> Result<()> {
    let constants = Constants::of_files(&["nucleus/src/control/dispatch.rs", "nucleus/src/control/seats.rs"])?;
    let microseconds = constants.number("PATIENCE_MICROSECONDS")? / constants.number("SHORT_SLICES")?;
    for page in ["docs/book/scheduling.md", "docs/book/cpus.md"] {
        let expected = format!("after {microseconds} µs");
        assert!(read_text(&root().join(page))?.contains(&expected), "{page} does not say `{expected}`");
    }
    Ok(())
}

#[test]
fn a_wrong_figure_is_noticed() {
    let table = |limit: &str| {
        let page =
            format!("# Page\n## Limits\n| what | limit |\n|---|---|\n| pages | {limit} |\n## Others\n| a | b |\n");
        let row = Row { what: "pages", figures: vec!["1,024".into()], others: "" };
        mistakes(&section(&page, "## Limits"), &[row])
    };
    assert_eq!(table("1,024 at most"), [""; 0]);
    assert_eq!(table("1,025")[0], "`pages`: the code says 1,024");
    assert_eq!(table("11,024"), ["`pages`: a figure is compared with no constant: pages | 1 "]);
    assert_eq!(table("1,024, and 5"), ["`pages`: a figure is compared with no constant: pages |  , and 5"]);
    let other = Row { what: "pages", figures: Vec::new(), others: "no reason" };
    let expected = "`pages`: no figure is left, but the test says why one is";
    assert_eq!(mistakes(&["pages | many".into()], &[other]), [expected]);
    assert_eq!(mistakes(&["a | 1".into()], &[row("b", [])]), ["`a | 1` stands where the test has the row `b`"]);
    assert_eq!(mistakes(&["a".into()], &[]), ["1 rows, and 0 are listed in the test"]);
}

#[test]
fn addresses_are_written_in_groups() {
    assert_eq!(range(0x1_0000, 0x7fff_ffff_f000), "`0x1_0000`–`0x7fff_ffff_f000`");
    assert_eq!(address(0xff), "`0xff`");
}
