//! The rows of `tests/budgets.toml`, and what becomes of them on each ISA.

use super::show::grouped;
use crate::isa::Isa;
use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

/// The limit of a measurement, and its cost elsewhere.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Budget {
    pub name: String,
    pub text: String,
    pub unit: String,
    pub budget: u64,
    /// On AArch64, where the rule does not serve.
    aarch64_budget: Option<u64>,
    /// No more than so many times the best of the peers.
    pub times_peer: Option<f64>,
    /// The measurements of others on this ISA; in the file on x86-64.
    #[serde(default)]
    pub peers: Vec<Peer>,
    /// The measurements of others on AArch64.
    #[serde(default)]
    aarch64_peers: Vec<Peer>,
}

/// Somebody else, and what it costs there.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Peer {
    who: String,
    value: u64,
}

/// A fast path of AArch64 may take so many instructions more: loads take the place of x86-64's operands in memory.
const FAST_PATHS_TAKE_MORE: u64 = 10;
/// The limit of a fast path: a row whose budget on x86-64 is below this, in instructions.
const SHORT: u64 = 60;
/// All other rows of AArch64 may take so many per cent of what they may on x86-64.
const PER_CENT: u64 = 115;

impl Budget {
    /// The row on an ISA: the file says what it may cost on x86-64.
    fn on(self, isa: Isa) -> Self {
        match isa {
            Isa::X86_64 => self,
            Isa::Aarch64 => {
                let budget = self.aarch64_budget.unwrap_or(match self.unit.as_str() {
                    // One number of that ISA over another.
                    "percent" => self.budget,
                    "instructions" if self.budget < SHORT => self.budget + FAST_PATHS_TAKE_MORE,
                    _ => self.budget * PER_CENT / 100,
                });
                Self { budget, peers: self.aarch64_peers, aarch64_peers: Vec::new(), ..self }
            }
        }
    }

    /// The need of the best of the peers.
    pub fn best_peer(&self) -> Option<u64> {
        self.peers.iter().map(|peer| peer.value).min()
    }

    /// The complaint, if this is more than the peers allow.
    pub fn worse_than_peers(&self, value: u64) -> Option<String> {
        let (times, best) = (self.times_peer?, self.best_peer()?);
        let ratio = value as f64 / best as f64;
        (ratio > times).then(|| format!("{}: {ratio:.2} times the best peer, which may be {times:.2}", self.name))
    }
}

impl Peer {
    /// For a table.
    pub fn shown(&self) -> String {
        format!("{} {}", self.who, grouped(self.value))
    }
}

/// The rows of such a file on an ISA.
pub fn read(text: &str, isa: Isa) -> Result<Vec<Budget>> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct File {
        row: Vec<Budget>,
    }
    let file: File = toml::from_str(text).context("tests/budgets.toml")?;
    Ok(file.row.into_iter().map(|row| row.on(isa)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn budgets_of_the_tree_can_be_read() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/budgets.toml");
        let rows = read(&std::fs::read_to_string(path).unwrap(), Isa::X86_64).unwrap();
        assert!(rows.iter().any(|row| row.name == super::super::NUCLEUS));
        let mut names: Vec<_> = rows.iter().map(|row| &row.name).collect();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), rows.len());
    }

    #[test]
    fn rows_on_each_isa() {
        let row = |unit: &str, budget: u64| {
            let text = format!(
                "[[row]]\nname = \"r\"\ntext = \"t\"\nunit = \"{unit}\"\nbudget = {budget}\n\
                 peers = [{{ who = \"a\", value = 3 }}]\naarch64_peers = [{{ who = \"b\", value = 5 }}]\n"
            );
            Isa::ALL.map(|isa| read(&text, isa).unwrap().remove(0))
        };
        for (unit, x86_64, aarch64) in [
            ("instructions", 20, 30),
            ("instructions", 59, 69),
            ("instructions", 60, 69),
            ("instructions", 150, 172),
            ("instructions", 240, 276),
            ("instructions/KiB", 6000, 6900),
            ("bytes", 100_000, 115_000),
            ("percent", 105, 105),
        ] {
            let [first, second] = row(unit, x86_64);
            assert_eq!((first.budget, first.best_peer()), (x86_64, Some(3)), "{unit}");
            assert_eq!((second.budget, second.best_peer()), (aarch64, Some(5)), "{unit}");
        }
    }

    /// All rows, as the book shows them.
    fn table(text: &str) -> String {
        let [x86_64, aarch64] = Isa::ALL.map(|isa| read(text, isa).expect("budgets"));
        let cell = |row: &Budget| {
            let peers: Vec<String> = row.peers.iter().map(Peer::shown).collect();
            let times = row.times_peer.map_or(String::new(), |times| format!(", at most {times} times the best peer"));
            let peers = if peers.is_empty() { "–".to_string() } else { peers.join(", ") };
            format!("{}{times} | {peers}", grouped(row.budget))
        };
        let rows = x86_64
            .iter()
            .zip(&aarch64)
            .map(|(row, other)| format!("| {} | {} | {} | {} |\n", row.text, row.unit, cell(row), cell(other)));
        let head = "| row | unit | x86-64 | peers there | AArch64 | peers there |\n|---|---|---|---|---|---|\n";
        [head.to_string()].into_iter().chain(rows).collect()
    }

    #[test]
    fn the_book_has_the_budgets() {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the tree");
        let [budgets, path] = ["tests/budgets.toml", "docs/book/benchmarks.md"].map(|path| root.join(path));
        let [budgets, book] = [budgets, path.clone()].map(|path| std::fs::read_to_string(path).expect("a text"));
        let (before, rest) = book.split_once("<!-- budgets -->\n").expect("where the table begins");
        let (found, after) = rest.split_once("<!-- end -->").expect("where the table ends");
        let table = table(&budgets);
        if std::env::var_os("GOLDEN").is_some_and(|value| value == "write") {
            let book = format!("{before}<!-- budgets -->\n{table}<!-- end -->{after}");
            return std::fs::write(path, book).expect("the book");
        }
        for (found, right) in found.lines().zip(table.lines()) {
            assert_eq!(
                found, right,
                "`GOLDEN=write cargo test -p xtask the_book_has_the_budgets` writes the table again"
            );
        }
        assert_eq!(found.lines().count(), table.lines().count(), "rows");
    }
}
