//! `./x bench --report`: the tables of the paper on Pebble ("The Pebble Component-Based Operating System", USENIX 1999), and the
//! same of Cairn, as a chapter of the book with plots.
//!
//! The paper counts cycles of a MIPS R5000, and we count instructions, so nothing here is judged: `tests/budgets.toml` does that. Of the
//! paper we have the text, in which the numbers of its tables are missing; the quotations are from its sentences.

use super::budget::Budget;
use super::measurement::{Measurement, find};
use super::plot::{Kind, Line, Plot, Scale};
use super::results::Results;
use super::show::{grouped, shown};
use crate::isa::Isa;
use crate::project::{Project, write};
use anyhow::{Context, Result};
use std::fmt::Write as _;

/// The chapter, and the folder of its pictures.
const CHAPTER: &str = "docs/book/paper-tables.md";
const PICTURES: &str = "docs/book/pictures";

/// A table of the paper's over a number of domains.
struct Group {
    title: &'static str,
    /// The beginning of the names of its rows, before a number of domains.
    name: &'static str,
    domains: &'static [&'static str],
    /// The quantity measured.
    what: &'static str,
    /// The paper's statement.
    paper: &'static str,
    /// A figure of the paper's that belongs to so many of the first places, in cycles.
    cycles: Option<(u64, usize)>,
}

const RING: &[&str] = &["2", "4", "8", "16", "32"];

const GROUPS: [Group; 4] = [
    Group {
        title: "Chains of calls",
        name: "chain",
        domains: &["2", "3", "4", "5", "6", "7", "8"],
        what: "A domain calls a second one, which calls a third one before it answers, and so on, through portals `npciii>i`. A leg is \
               one way, there or back, with the stub of the caller and what the domain does that is called.",
        paper: "Through portals `npciii` a leg takes about 114 cycles, which stays roughly constant with the number of domains. It \
                grows above 4 domains, because of cache misses; the amount is only in the figure. With a window that nobody uses it is \
                about 135 cycles. With a shared stack and without saved registers (`smciii`) it is about 20 cycles less.",
        cycles: Some((114, 3)),
    },
    Group {
        title: "Rings of yields",
        name: "yield-ring",
        domains: RING,
        what: "Each of the domains has one thread, and all of them yield in turn. The value is one switch.",
        paper: "A switch takes longer with more domains, because of cache misses: up to six of them, and with more it stays the same. OpenBSD's, \
                measured by a ring of pipes, levels off at four domains and roughly 2,200 cycles.",
        cycles: None,
    },
    Group {
        title: "Rings of semaphores",
        name: "semaphore-ring",
        domains: RING,
        what: "Each of the domains raises the semaphore of the next one, and waits for its own. The value is one hop, with the switch.",
        paper: "With two processes Pebble takes roughly 1,500 cycles less than OpenBSD, of which 1,000 are the switch. With more of \
                them the difference grows.",
        cycles: None,
    },
    Group {
        title: "Rings of pipes",
        name: "pipe-ring",
        domains: &["2", "4", "8"],
        what: "Each of the domains reads a byte from one pipe of the system and writes it to the next. The value is one hop, with the \
               switch. The limits on pipes and waiting calls of programs rule out larger rings: see [caveats](../caveats.md).",
        paper: "Beyond the switch a byte through a pipe takes roughly 2,000 cycles on OpenBSD, and about half as many on Pebble. OpenBSD's \
                time grows up to five domains.",
        cycles: None,
    },
];

/// Bytes from a client's memory to a server's, so many at once: by messages, by a window, or as pages that are torn away.
struct Passing {
    title: &'static str,
    /// For each way: how the names of its rows begin, before the number of bytes; its name in the plot; the first place in `bytes` for which
    /// it has a row.
    ways: [(&'static str, &'static str, usize); 3],
    bytes: &'static [&'static str],
}

const PASSING: Passing = Passing {
    title: "Bytes by messages, by a window, and on torn pages",
    ways: [("copy", "messages", 0), ("show", "a window", 0), ("tear", "torn pages, and back", 4)],
    bytes: &["16", "64", "256", "1024", "4096", "16384", "65536"],
};

/// Rows without a number of domains, and what the paper says of each.
const SINGLE: [(&str, &str); 14] = [
    ("short-circuit", "in a figure: \"the minimum time required to enter and leave the nucleus\""),
    (
        "portal-of-new-shape",
        "in a table; a large fixed part is for interpreting the specification, and for flushing the cache",
    ),
    ("portal-of-known-shape", "Pebble makes code for each portal"),
    (
        "window",
        "`npcwii` with a window that nobody uses: a leg takes about 135 cycles, where `npciii` takes 114; `smcwii` shares a stack, which no portal here does (decision 022)",
    ),
    ("window-written", "a window of one page that is used: about 50 cycles more than one that is not"),
    ("torn-page", "tear-away of a page; not reported"),
    ("open-close", "opening a file makes a portal"),
    ("file-read", "not reported"),
    ("page-message", "not reported; Pebble passes windows"),
    ("page-window", "a window of one page that is used: about 50 cycles more than one that is not"),
    ("shape-code", "not reported"),
    ("entry", "not reported"),
    ("empty-domain", "not reported; each thread has three stacks, a page each"),
    (
        "resident",
        "about 70 pages of 8 KiB, which are 573,440 bytes: nucleus, interrupts, scheduler, portals, clock, console",
    ),
];

/// Writes the chapter and its pictures.
pub fn write_all(project: &Project, all: &[Results]) -> Result<()> {
    for group in &GROUPS {
        let path = project.root.join(PICTURES).join(picture(group));
        write(&path, group.plot(all)?.as_bytes())?;
    }
    write(&project.root.join(PICTURES).join(PASSING_PICTURE), PASSING.plot(all)?.as_bytes())?;
    write(&project.root.join(CHAPTER), chapter(all)?.as_bytes())?;
    println!("{CHAPTER} has the tables, {PICTURES} the plots");
    Ok(())
}

fn picture(group: &Group) -> String {
    format!("pebble-{}.svg", group.name)
}

/// A row on an ISA: what was measured, and what it may cost.
fn row<'r>(all: &'r [Results], isa: Isa, name: &str) -> Result<(&'r Measurement, &'r Budget)> {
    let results = all.iter().find(|results| results.isa == isa).context("the report takes both ISAs")?;
    let found = find(&results.measured, name);
    let budget = results.budgets.iter().find(|budget| budget.name == name);
    found.zip(budget).with_context(|| format!("{name} was not measured on {}: there is no report", isa.name()))
}

/// A value as the chapter shows it, beside its budget.
fn cells((found, budget): (&Measurement, &Budget)) -> String {
    format!("{} | {}", grouped(found.value), grouped(budget.budget))
}

/// The measurements of others on x86-64.
fn peers(budget: &Budget) -> String {
    let peers: Vec<String> = budget.peers.iter().map(super::Peer::shown).collect();
    if peers.is_empty() { "–".into() } else { peers.join(", ") }
}

impl Group {
    /// The names of its rows.
    fn rows(&self) -> impl Iterator<Item = String> {
        self.domains.iter().map(|domains| format!("{}-{domains}", self.name))
    }

    fn values(&self, all: &[Results], isa: Isa) -> Result<Vec<u64>> {
        self.rows().map(|name| Ok(row(all, isa, &name)?.0.value)).collect()
    }

    fn plot(&self, all: &[Results]) -> Result<String> {
        let mut lines = Vec::new();
        for (isa, kind) in [(Isa::X86_64, Kind::One), (Isa::Aarch64, Kind::Two)] {
            let values = self.values(all, isa)?.into_iter().map(Some).collect();
            lines.push(Line { name: isa.title().into(), values, kind });
        }
        if let Some((cycles, places)) = self.cycles {
            let values = (0..self.domains.len()).map(|place| (place < places).then_some(cycles)).collect();
            lines.push(Line { name: "Pebble, cycles".into(), values, kind: Kind::Other });
        }
        let linux: Vec<Option<u64>> =
            self.rows().map(|name| Ok(row(all, Isa::X86_64, &name)?.1.best_peer())).collect::<Result<_>>()?;
        if linux.iter().flatten().count() > 1 {
            lines.push(Line { name: "Linux on x86-64".into(), values: linux, kind: Kind::Other });
        }
        let unit = if self.name == "chain" { "instructions of a leg" } else { "instructions of a hop" };
        Ok(Plot { title: self.title, unit, axis: "domains", places: self.domains, scale: Scale::Even, lines }.draw())
    }

    /// The section of the chapter.
    fn section(&self, all: &[Results]) -> Result<String> {
        let Self { title, name, what, paper, .. } = self;
        let mut text = format!("## {title}\n\n{}\n\n{}\n\n", wrapped(what), wrapped(&format!("*The paper:* {paper}")));
        let _ = writeln!(text, "![{title}: instructions over the number of domains](pictures/{})\n", picture(self));
        let _ = writeln!(text, "`./x bench --filter {name}` prints these:\n");
        let [one, two] = [Isa::X86_64, Isa::Aarch64].map(Isa::title);
        let _ = writeln!(
            text,
            "| row | {one} | budget | root writes | {two} | budget | root writes | others on {one} |\n|---|--:|--:|--:|--:|--:|--:|---|"
        );
        for name in self.rows() {
            let [one, two] = [row(all, Isa::X86_64, &name)?, row(all, Isa::Aarch64, &name)?];
            let [first, second] = [one, two].map(|row| format!("{} | {}", cells(row), root_writes(row.0)));
            let _ = writeln!(text, "| {name} | {first} | {second} | {} |", peers(one.1));
        }
        let flat = format!("{name}-flat");
        let [one, two] = [row(all, Isa::X86_64, &flat)?, row(all, Isa::Aarch64, &flat)?].map(cells);
        let _ = writeln!(text, "| {flat}, percent | {one} | | {two} | | |");
        Ok(text)
    }
}

impl Passing {
    fn rows(&self) -> impl Iterator<Item = String> {
        self.bytes.iter().enumerate().flat_map(|(place, bytes)| {
            let ways = self.ways.into_iter().filter(move |(_, _, first)| place >= *first);
            ways.map(move |(name, ..)| format!("{name}-{bytes}"))
        })
    }

    fn plot(&self, all: &[Results]) -> Result<String> {
        let mut lines = Vec::new();
        for (isa, kind) in [(Isa::X86_64, Kind::One), (Isa::Aarch64, Kind::Two)] {
            for (name, what, first) in self.ways {
                let value = |(place, bytes): (usize, &&str)| match place < first {
                    true => Ok(None),
                    false => Ok(Some(row(all, isa, &format!("{name}-{bytes}"))?.0.value)),
                };
                let values: Result<Vec<_>> = self.bytes.iter().enumerate().map(value).collect();
                lines.push(Line { name: format!("{}, {what}", isa.title()), values: values?, kind });
            }
        }
        let (title, places) = (self.title, self.bytes);
        Ok(Plot { title, unit: "instructions", axis: "bytes", places, scale: Scale::Tenfold, lines }.draw())
    }

    /// The section of the chapter.
    fn section(&self, all: &[Results]) -> Result<String> {
        let title = self.title;
        let mut text = format!("## {title}\n\n{PASSING_HEAD}\n");
        let _ = writeln!(text, "![{title}: instructions over the number of bytes](pictures/{PASSING_PICTURE})\n");
        let [one, two] = [Isa::X86_64, Isa::Aarch64].map(Isa::title);
        let _ = writeln!(
            text,
            "| row | {one} | budget | invalidations | {two} | budget | invalidations |\n|---|--:|--:|--:|--:|--:|--:|"
        );
        for name in self.rows() {
            let cells = |isa| row(all, isa, &name).map(|row| format!("{} | {}", cells(row), invalidations(row.0)));
            let _ = writeln!(text, "| {name} | {} | {} |", cells(Isa::X86_64)?, cells(Isa::Aarch64)?);
        }
        Ok(text)
    }
}

/// Invalidations of translations that one operation takes.
fn invalidations(found: &Measurement) -> String {
    found.costly.map_or_else(|| "–".into(), |(costly, _)| shown(costly[1]))
}

/// Writes of the page-table root that one operation takes.
fn root_writes(found: &Measurement) -> String {
    found.costly.map_or_else(|| "–".into(), |(costly, _)| shown(costly[0]))
}

/// The chapter as text.
fn chapter(all: &[Results]) -> Result<String> {
    let mut text = String::from(HEAD);
    for group in &GROUPS {
        text += &group.section(all)?;
        text.push('\n');
    }
    text += &PASSING.section(all)?;
    text.push('\n');
    text += SINGLE_HEAD;
    for (name, paper) in SINGLE {
        let [one, two] = [row(all, Isa::X86_64, name)?, row(all, Isa::Aarch64, name)?];
        let (what, unit) = (&one.1.text, &one.1.unit);
        let (first, second) = (cells(one), cells(two));
        let _ = writeln!(text, "| {name}: {what} | {unit} | {first} | {second} | {} | {paper} |", peers(one.1));
    }
    Ok(text)
}

/// Lines of a paragraph, as long as those of the book.
fn wrapped(paragraph: &str) -> String {
    const MOST: usize = 130;
    let mut lines: Vec<String> = vec![String::new()];
    for word in paragraph.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.is_empty() => line.push_str(word),
            Some(line) if line.chars().count() + 1 + word.chars().count() <= MOST => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.into()),
        }
    }
    lines.join("\n")
}

const HEAD: &str = "\
# Pebble's tables, and Cairn's

<!-- `./x bench --report` writes this file and its pictures. -->

The [paper on Pebble](what-cairn-is.md) (USENIX 1999) measures chains of calls, rings of domains, the making of portals, and memory. `./x bench
--report` runs the same measurements on Cairn and writes this chapter: run it again for the figures of this tree. How each row is measured stands in
[benchmarks](benchmarks.md).

- Pebble's unit is a cycle of a MIPS R5000 with 166 MHz. Cairn's is an instruction in an emulator, which has no caches. The two are not to be
  compared with each other; what can be compared is how each grows with the number of domains.
- Our copy of the paper lacks the numbers of its tables and figures. The figures quoted here come from its sentences.
- Linux, NOVA and seL4 were measured in the same way; their figures for x86-64 are shown.
- *Flat*: what a hop of the largest ring, or a leg of the longest chain, takes in per cent of one between two domains.

";

const PASSING_PICTURE: &str = "passing.svg";
const PASSING_HEAD: &str = "\
A client passes bytes to a server, which copies them into memory of its own: `copy-N` in messages of 4 KiB at most, `show-N` by a window. A window
shows whole pages, so an interface takes it from 4,096 bytes on ([windows](passing-data.md#an-interface-with-windows)); what fewer would take is shown all the
same. `tear-N` are pages that the server gets for good, one in a call, and copies no more; so that the client has some to give, they come back
in the return, which is counted. `./x bench --filter copy-`, `--filter show-` and `--filter tear-` print these:
";

const SINGLE_HEAD: &str = "\
## Portals, files and memory

`./x bench --filter NAME` prints each.

| row | unit | x86-64 | budget | AArch64 | budget | others on x86-64 | the paper |
|---|---|--:|--:|--:|--:|---|---|
";

#[cfg(test)]
mod tests {
    use super::super::{budget, parse};
    use super::*;
    use crate::project::read_text;
    use std::path::PathBuf;

    /// All rows of the chapter.
    fn names() -> Vec<String> {
        let rows = GROUPS.iter().flat_map(|group| group.rows().chain([format!("{}-flat", group.name)]));
        rows.chain(SINGLE.map(|(name, _)| name.into())).chain(PASSING.rows()).collect()
    }

    fn root() -> PathBuf {
        PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
    }

    /// The line of the chapter that shows a row.
    fn line<'c>(chapter: &'c str, name: &str) -> &'c str {
        let is_it = |line: &&str| {
            let rest = line.strip_prefix("| ").and_then(|rest| rest.strip_prefix(name));
            rest.is_some_and(|rest| rest.starts_with([' ', ':', ',']))
        };
        chapter.lines().find(is_it).unwrap_or_else(|| panic!("{name} is not in\n{chapter}"))
    }

    /// Made-up results: the number of the row, and on AArch64 a thousand more.
    fn results(names: &[String]) -> Vec<Results> {
        let text: Vec<String> = names
            .iter()
            .map(|name| {
                format!(
                    "[[row]]\nname = \"{name}\"\ntext = \"text of {name}\"\nunit = \"instructions\"\nbudget = 7000\n\
                     peers = [{{ who = \"Linux\", value = 4321 }}]\n"
                )
            })
            .collect();
        let on = |(isa, more): (Isa, usize)| {
            let lines =
                names.iter().enumerate().map(|(number, name)| format!("bench {name} {} instructions\n", number + more));
            let measured = parse(&lines.collect::<String>()).unwrap();
            Results { isa, budgets: budget::read(&text.concat(), isa).unwrap(), measured, notes: Vec::new() }
        };
        [(Isa::X86_64, 100), (Isa::Aarch64, 1100)].map(on).into()
    }

    #[test]
    fn each_row_is_shown_with_both_figures_and_the_budget() {
        let names = names();
        let chapter = chapter(&results(&names)).unwrap();
        for (number, name) in names.iter().enumerate() {
            let row = line(&chapter, name);
            for value in [100 + number as u64, 1100 + number as u64, 7000, 8050] {
                assert!(row.contains(&format!("| {} |", grouped(value))), "{value} is not in {row}");
            }
        }
        assert!(chapter.contains("Linux 4,321"));
    }

    #[test]
    fn each_value_is_in_its_plot() {
        let names = names();
        let all = results(&names);
        for group in &GROUPS {
            let plot = group.plot(&all).unwrap();
            let others = group.cycles.map_or(0, |(_, places)| places) + group.domains.len();
            assert_eq!(plot.matches("<circle").count(), 2 * group.domains.len() + others, "{}", group.title);
        }
        let points: usize = PASSING.ways.iter().map(|(.., first)| PASSING.bytes.len() - first).sum();
        assert_eq!(PASSING.plot(&all).unwrap().matches("<circle").count(), 2 * points);
    }

    #[test]
    fn a_row_that_was_not_measured_is_named() {
        let all = results(&names()[1..]);
        let error = chapter(&all).expect_err("a row is missing").to_string();
        assert!(error.contains("chain-2") && error.contains("x86_64"), "{error}");
        assert!(chapter(&results(&names())[..1]).is_err(), "one ISA is not enough");
    }

    #[test]
    fn the_book_has_the_chapter_its_rows_and_its_plots() {
        let chapter = read_text(&root().join(CHAPTER)).unwrap();
        let [budgets, contents, about] = ["tests/budgets.toml", "docs/book/README.md", "docs/book/benchmarks.md"]
            .map(|path| read_text(&root().join(path)).unwrap());
        let budgets = Isa::ALL.map(|isa| budget::read(&budgets, isa).unwrap());
        assert!(chapter.starts_with(HEAD), "`./x bench --report` writes another beginning");
        assert!(contents.contains("](paper-tables.md)"));
        for name in names() {
            let row = line(&chapter, &name);
            let cells: Vec<&str> = row.split('|').map(str::trim).collect();
            for budgets in &budgets {
                let budget = budgets.iter().find(|budget| budget.name == name).expect("a row of the budgets").budget;
                let value = |cell: &str| cell.replace(',', "").parse().is_ok_and(|value: u64| value <= budget);
                let has_both = cells.windows(2).any(|pair| value(pair[0]) && pair[1] == grouped(budget));
                assert!(has_both, "no figure with the budget {budget}: {row}");
            }
        }
        for group in &GROUPS {
            let plot = read_text(&root().join(PICTURES).join(picture(group))).unwrap();
            assert!(chapter.contains(&format!("](pictures/{})", picture(group))));
            assert!(plot.contains(group.title));
            assert!(about.contains(&format!("`{}-", group.name)), "{} is not explained", group.name);
        }
        assert!(read_text(&root().join(PICTURES).join(PASSING_PICTURE)).unwrap().contains(PASSING.title));
    }

    #[test]
    fn paragraphs_are_wrapped() {
        let text = wrapped(&"word ".repeat(100));
        assert!(text.lines().count() > 3 && text.lines().all(|line| line.len() <= 130 && !line.ends_with(' ')));
        assert_eq!(text.split_whitespace().count(), 100);
    }
}
