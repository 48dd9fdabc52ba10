//! Tables 6.1 (labels) and 6.2 (pages of 4 KiB) of the paper Asbestos on ARM, and the same of Cairn: the cost of their benchmarks on both
//! ISAs, and how many times as much on ARM.

use super::measurement::find;
use super::results::Results;
use super::show::{grouped, right};
use crate::isa::Isa;
use comfy_table::Table;
use comfy_table::presets::UTF8_HORIZONTAL_ONLY;

/// How many times as much a row may cost on AArch64 without a word in the book.
const UNEXPLAINED: f64 = 1.3;
/// Where it is explained: in a line that begins with the row's name in bold.
pub const BOOK: &str = "docs/book/benchmarks.md";

/// A row of a table of the paper's.
struct Theirs {
    /// Its name in the paper.
    what: &'static str,
    /// Our row that does the same.
    ours: &'static str,
    /// Thousands of cycles on a Pentium 4, and on an iPAQ with a PXA255 and its cache.
    x86: f64,
    arm: f64,
}

/// With labels of several hundred handles.
const LABELS: [Theirs; 5] = [
    Theirs { what: "Create", ours: "label-set", x86: 0.434, arm: 5.763 },
    Theirs { what: "Less than", ours: "label-below-alike", x86: 5.186, arm: 99.572 },
    Theirs { what: "Add", ours: "label-handle", x86: 1.072, arm: 17.850 },
    Theirs { what: "Minimum", ours: "label-lower", x86: 16.918, arm: 297.879 },
    Theirs { what: "Maximum", ours: "label-higher", x86: 18.965, arm: 345.543 },
];

const SYSTEM: [Theirs; 5] = [
    Theirs { what: "Null system call", ours: "short-circuit", x86: 1.420, arm: 13.946 },
    Theirs { what: "Memory alloc/read/write", ours: "memory", x86: 0.035, arm: 0.160 },
    Theirs { what: "Ping pong message", ours: "message-bytes", x86: 33.378, arm: 618.343 },
    Theirs { what: "File create, R/W, delete", ours: "file", x86: 1901.403, arm: 21001.248 },
    Theirs { what: "Spawn process", ours: "spawn", x86: 19247.662, arm: 83772.160 },
];

const TABLES: [(&str, &[Theirs]); 2] =
    [("Table 6.1 of Asbestos on ARM", &LABELS), ("Table 6.2 of Asbestos on ARM", &SYSTEM)];

/// The values of a row on both ISAs, if both measured it.
fn values(all: &[Results], name: &str) -> Option<[u64; 2]> {
    let value = |isa| {
        let results = all.iter().find(|results| results.isa == isa)?;
        Some(find(&results.measured, name)?.value)
    };
    Some([value(Isa::X86_64)?, value(Isa::Aarch64)?])
}

fn ratio([x86_64, aarch64]: [u64; 2]) -> f64 {
    aarch64 as f64 / x86_64.max(1) as f64
}

/// The tables of which a row was measured on both ISAs.
pub fn tables(all: &[Results]) -> impl Iterator<Item = Table> {
    TABLES.iter().filter_map(|(title, rows)| table(title, rows, all))
}

fn table(title: &str, rows: &[Theirs], all: &[Results]) -> Option<Table> {
    let mut table = Table::new();
    table.load_preset(UTF8_HORIZONTAL_ONLY);
    table.set_header([
        title,
        "row",
        Isa::X86_64.title(),
        Isa::Aarch64.title(),
        "ratio",
        "theirs: x86",
        "ARM, thousand cycles",
        "ratio",
    ]);
    for row in rows {
        let Some(values) = values(all, row.ours) else { continue };
        table.add_row([
            row.what.into(),
            row.ours.into(),
            grouped(values[0]),
            grouped(values[1]),
            format!("{:.2}", ratio(values)),
            format!("{:.3}", row.x86),
            format!("{:.3}", row.arm),
            format!("{:.2}", row.arm / row.x86),
        ]);
    }
    right(&mut table, &[2, 3, 4, 5, 6, 7]);
    (table.row_count() > 0).then_some(table)
}

/// Rows that cost much more on AArch64, of which the book has no word.
pub fn problems(all: &[Results], book: &str) -> Vec<String> {
    let mut problems = Vec::new();
    for row in TABLES.iter().flat_map(|(_, rows)| *rows) {
        let Some(values) = values(all, row.ours) else { continue };
        let explained =
            book.lines().any(|line| line.trim_start_matches("- ").starts_with(&format!("**{}**", row.ours)));
        if ratio(values) > UNEXPLAINED && !explained {
            let name = row.ours;
            problems.push(format!(
                "{name}: {:.2} times as much on AArch64 as on x86-64, and no line of {BOOK} begins with **{name}** and says why",
                ratio(values)
            ));
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::super::{budget, parse};
    use super::*;
    use crate::project::read_text;
    use std::path::Path;

    fn results(isa: Isa, value: u64) -> Results {
        let row = "[[row]]\nname = \"file\"\ntext = \"a file\"\nunit = \"instructions\"\nbudget = 9\n";
        let measured = parse(&format!("bench file {value} instructions")).unwrap();
        Results { isa, budgets: budget::read(row, isa).unwrap(), measured, notes: Vec::new() }
    }

    #[test]
    fn rows_of_both_are_compared() {
        let all = [results(Isa::X86_64, 1000), results(Isa::Aarch64, 1290)];
        let text: String = tables(&all).map(|table| table.to_string()).collect();
        for part in ["File create", "1,000", "1,290", "1.29", "11.05"] {
            assert!(text.contains(part), "{part} in\n{text}");
        }
        assert!(!text.contains("Spawn"), "{text}");
        assert!(!text.contains("6.1"), "{text}");
        assert_eq!(tables(&all[..1]).count(), 0);
        assert!(problems(&all, "").is_empty());
    }

    #[test]
    fn the_book_shows_the_cycles_of_each_operation_on_labels() {
        let book = read_text(&Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/..")).join(BOOK)).unwrap();
        for Theirs { what, ours, x86, .. } in LABELS {
            let row = format!("| {what} | {} | `{ours}` |", grouped((x86 * 1000.0).round() as u64));
            assert!(book.contains(&row), "{row}");
        }
    }

    #[test]
    fn large_differences_need_an_explanation() {
        let all = [results(Isa::X86_64, 1000), results(Isa::Aarch64, 1310)];
        assert_eq!(problems(&all, "- a file is dear").len(), 1);
        assert!(problems(&all, "text\n- **file**: for a reason").is_empty());
    }
}
