//! `./x lines`: how much of Cairn is shared by all ISAs, and how much each has for itself, as appendix A of "Information
//! flow control for portable devices" asks of Asbestos.
//!
//! A line counts if something other than a comment stands on it. Lines of tests do not count, nor does what runs on the
//! computer where Cairn is built. A folder or a file with the name of an ISA belongs to that ISA.

mod count;
mod tree;

use crate::command_line::LinesOptions;
use crate::isa::Isa;
use crate::project::{Project, read_text};
use crate::test::STUBS;
use crate::workspace::Workspace;
use anyhow::{Result, bail};
use comfy_table::{CellAlignment, Table, presets};
use std::collections::BTreeMap;
use tree::{Module, about, modules};

/// Lines of something: those that all ISAs share, and those of each, in the order of [`Isa::ALL`].
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
struct Lines {
    shared: usize,
    own: [usize; Isa::ALL.len()],
}

impl Lines {
    fn add(&mut self, isa: Option<Isa>, lines: usize) {
        match isa.and_then(|isa| Isa::ALL.iter().position(|other| *other == isa)) {
            Some(index) => self.own[index] += lines,
            None => self.shared += lines,
        }
    }

    fn add_all(&mut self, other: Lines) {
        self.shared += other.shared;
        for (sum, lines) in self.own.iter_mut().zip(other.own) {
            *sum += lines;
        }
    }

    fn cells(self) -> Vec<String> {
        [self.shared]
            .into_iter()
            .chain(self.own)
            .map(|lines| if lines == 0 { "-".into() } else { lines.to_string() })
            .collect()
    }
}

fn sum(modules: &[Module]) -> Lines {
    let mut sum = Lines::default();
    for module in modules {
        sum.add(module.isa, module.lines);
    }
    sum
}

/// Prints the tables.
pub fn lines(project: &Project, options: &LinesOptions) -> Result<u8> {
    let workspace = Workspace::read(project)?;
    let is_shipped = |place: &&crate::workspace::Package| !workspace.place(place).starts_with("xtask");
    let mut crates = BTreeMap::new();
    for package in workspace.packages.iter().filter(is_shipped) {
        crates.insert(workspace.place(package).display().to_string(), package.folder().to_path_buf());
    }
    let Some(name) = &options.name else {
        let mut all = Vec::new();
        for (name, folder) in crates {
            all.push((name, sum(&modules(&folder)?)));
        }
        print!("{}", overview(&all));
        return Ok(0);
    };
    let Some(folder) = crates.get(name).or_else(|| crates.get(&format!("components/{name}"))) else {
        bail!("there is no crate in the folder {name}; ./x lines lists them");
    };
    let mut modules = modules(folder)?;
    for module in modules.iter_mut().filter(|module| module.isa.is_some()) {
        // The stubs say it of all ISAs.
        let below = module.name.trim_start_matches("arch/");
        let stub = project.root.join(STUBS).join(name).join(format!("{below}.rs"));
        if stub.is_file() {
            module.about = about(&read_text(&stub)?);
        }
    }
    print!("{}", modules_of(&modules));
    Ok(0)
}

fn table(first: &str, columns: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING);
    table.set_header([first].iter().chain(columns));
    for index in 1..=columns.len() {
        if let Some(column) = table.column_mut(index) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}

/// One row per crate, and the sum.
fn overview(crates: &[(String, Lines)]) -> String {
    let columns: Vec<&str> = ["shared"].into_iter().chain(Isa::ALL.map(Isa::name)).collect();
    let mut table = table("crate", &columns);
    let mut all = Lines::default();
    // The nucleus first, as it stands above all others.
    let (first, rest): (Vec<_>, Vec<_>) = crates.iter().partition(|(name, _)| !name.contains('/'));
    for (name, lines) in first.into_iter().chain(rest) {
        all.add_all(*lines);
        table.add_row([vec![name.clone()], lines.cells()].concat());
    }
    table.add_row([vec!["all".into()], all.cells()].concat());
    let mut text = format!("{table}\n");
    for (isa, own) in Isa::ALL.into_iter().zip(all.own) {
        let system = all.shared + own;
        let share = if system == 0 { 0.0 } else { 100.0 * own as f64 / system as f64 };
        text += &format!("{}: {own} of {system} lines are its own, {share:.1} %\n", isa.name());
    }
    text
}

/// The files of one crate: what each ISA has for itself, what chooses between them, what they share.
fn modules_of(modules: &[Module]) -> String {
    let mut separate: BTreeMap<&str, (&str, [usize; Isa::ALL.len()])> = BTreeMap::new();
    for module in modules {
        if let Some(index) = module.isa.and_then(|isa| Isa::ALL.iter().position(|other| *other == isa)) {
            let (about, lines) = separate.entry(&module.name).or_default();
            lines[index] += module.lines;
            if about.is_empty() {
                *about = &module.about;
            }
        }
    }
    let mut text = String::new();
    if !separate.is_empty() {
        let mut own = table("separate", &Isa::ALL.map(Isa::name));
        own.set_header(["separate"].into_iter().chain(Isa::ALL.map(Isa::name)).chain(["what it is"]));
        for (name, (about, lines)) in separate {
            let lines = lines.map(|lines| if lines == 0 { "-".to_string() } else { lines.to_string() });
            own.add_row([&[name.to_string()], &lines[..], &[about.to_string()]].concat());
        }
        text += &format!("{own}\n\n");
    }
    for (title, chooses) in [("chooses between ISAs", true), ("shared", false)] {
        let rows: Vec<_> = modules.iter().filter(|module| module.isa.is_none() && module.chooses == chooses).collect();
        if rows.is_empty() {
            continue;
        }
        let mut shared = table(title, &["lines"]);
        shared.set_header([title, "lines", "what it is"]);
        for module in rows {
            shared.add_row([&module.name, &module.lines.to_string(), &module.about]);
        }
        text += &format!("{shared}\n\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn module(name: &str, isa: Option<Isa>, lines: usize) -> Module {
        Module { name: name.into(), about: "a part".into(), isa, chooses: name == "arch/mod.rs", lines }
    }

    #[test]
    fn sums_are_per_isa() {
        let modules = [
            module("a.rs", None, 5),
            module("b", Some(Isa::X86_64), 7),
            module("b", Some(Isa::Aarch64), 9),
            module("c.rs", None, 1),
        ];
        assert_eq!(sum(&modules), Lines { shared: 6, own: [7, 9] });
        let text = overview(&[("nucleus".into(), sum(&modules)), ("apps/x".into(), Lines { shared: 4, own: [3, 0] })]);
        assert!(text.contains("x86_64: 10 of 20 lines are its own, 50.0 %"), "{text}");
        assert!(text.contains("aarch64: 9 of 19 lines are its own, 47.4 %"), "{text}");
    }

    #[test]
    fn files_of_a_crate_are_distinguished() {
        let modules = [
            module("main.rs", None, 50),
            module("arch/mod.rs", None, 8),
            module("trap", Some(Isa::X86_64), 7),
            module("trap", Some(Isa::Aarch64), 9),
        ];
        let text = modules_of(&modules);
        let rows = |name: &str| text.lines().filter(|line| line.trim_start().starts_with(name)).count();
        assert_eq!(
            (rows("trap"), rows("main.rs"), rows("arch/mod.rs"), rows("separate"), rows("shared")),
            (1, 1, 1, 1, 1)
        );
    }
}
