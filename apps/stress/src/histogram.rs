//! How often which operation was answered how.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use runtime::abi::{Error, op};
use tool::println;
use tool::table::{Side, Table};

/// Rows: the operations, then semaphores (P, V) and what is none of these.
pub const ROWS: usize = op::NAMES.len() + 3;
/// Row of P.
pub const P: usize = op::NAMES.len();
/// Row of V.
pub const V: usize = P + 1;
/// Row of traversals of nothing in particular.
pub const OTHER: usize = V + 1;
/// Columns: success, then the errors by code.
pub const COLUMNS: usize = Error::ALL.len() + 1;

/// Operations that cannot succeed here, or are not tried, and why.
const UNREACHABLE: &[(usize, &str)] = &[
    (op::EXIT, "it ends the thread that should go on; threads of runs of their own do it"),
    (op::DRAW, "only sigma0 has the memory"),
    (op::INTERRUPT_BIND, "only drivers have an interrupt line"),
    (op::PORT, "only drivers have ports"),
    (op::DISPATCH, "only the scheduler's seat may"),
    (op::INFO, "only who has the machine may"),
    (op::MACHINE, "only who has the machine may, and it would stop it"),
    (op::IPC, "reserved"),
];

/// Errors that cannot come here, and why.
const NEVER_HERE: &[(Error, &str)] = &[
    (Error::NoFrames, "accounts promise no more frames than there are; only large tables in fragmented memory"),
    (Error::Flow, "all labels are equal until there are labels"),
    (Error::Again, "only the scheduler sees it"),
    (Error::NotRunnable, "only the scheduler sees it"),
];

fn name(row: usize) -> &'static str {
    match row {
        P => "P",
        V => "V",
        OTHER => "(calls)",
        row => op::NAMES[row],
    }
}

/// Counts.
pub struct Histogram([[u64; COLUMNS]; ROWS]);

impl Histogram {
    /// Nothing yet.
    pub fn new() -> Self {
        Self([[0; COLUMNS]; ROWS])
    }

    /// Counts a call.
    pub fn count(&mut self, row: usize, status: u64) {
        self.0[row][(status as usize).min(COLUMNS - 1)] += 1;
    }

    /// Counts several.
    pub fn add(&mut self, row: usize, status: u64, times: u64) {
        self.0[row][(status as usize).min(COLUMNS - 1)] += times;
    }

    /// What is missing: operations of which less than a tenth succeeded, errors that came too rarely.
    pub fn missing(&self, times: u64) -> Vec<String> {
        let mut missing = Vec::new();
        for (row, counts) in self.0.iter().enumerate() {
            let (done, calls) = (counts[0], counts.iter().sum::<u64>());
            let excuse = UNREACHABLE.iter().find(|(other, _)| *other == row);
            if excuse.is_none() && row < op::NAMES.len() + 2 && (calls == 0 || done * 10 < calls) {
                missing.push(alloc::format!("{}: {done} of {calls} succeeded", name(row)));
            }
        }
        for (column, error) in Error::ALL.iter().enumerate() {
            let came: u64 = self.0.iter().map(|counts| counts[column + 1]).sum();
            if came < times && !NEVER_HERE.iter().any(|(other, _)| other == error) {
                missing.push(alloc::format!("{error:?}: {came} times"));
            }
        }
        missing
    }

    /// Calls in all.
    pub fn calls(&self) -> u64 {
        self.0.iter().flatten().sum()
    }

    /// Writes it for the parent: row, column, count.
    pub fn print(&self) {
        for (row, counts) in self.0.iter().enumerate() {
            for (column, count) in counts.iter().enumerate().filter(|(_, count)| **count > 0) {
                println!("{row} {column} {count}");
            }
        }
        println!("end");
    }

    /// Adds what a child wrote; false if that is not complete.
    pub fn read(&mut self, text: &str) -> bool {
        for line in text.lines() {
            if line == "end" {
                return true;
            }
            let mut numbers = line.split(' ').map(|word| word.parse::<u64>().ok());
            let (Some(Some(row)), Some(Some(column)), Some(Some(count))) =
                (numbers.next(), numbers.next(), numbers.next())
            else {
                return false;
            };
            match self.0.get_mut(row as usize).and_then(|row| row.get_mut(column as usize)) {
                Some(place) => *place += count,
                None => return false,
            }
        }
        false
    }

    /// Shows it to a person: each operation, how much of it succeeded, and its errors.
    pub fn show(&self) {
        let mut table = Table::new(&[
            ("OPERATION", Side::Left),
            ("CALLS", Side::Right),
            ("DONE", Side::Right),
            ("%", Side::Right),
            ("REFUSED", Side::Left),
        ]);
        for (row, counts) in self.0.iter().enumerate() {
            let calls: u64 = counts.iter().sum();
            if calls == 0 {
                continue;
            }
            let mut errors = String::new();
            for (error, count) in Error::ALL.iter().zip(&counts[1..]).filter(|(_, count)| **count > 0) {
                errors.push_str(&alloc::format!("{error:?} {count}, "));
            }
            table.row([
                name(row).to_string(),
                calls.to_string(),
                counts[0].to_string(),
                (counts[0] * 100 / calls).to_string(),
                errors.trim_end_matches(", ").to_string(),
            ]);
        }
        table.print();
        println!();
        let mut errors = Table::new(&[("ERROR", Side::Left), ("TIMES", Side::Right)]);
        for (column, error) in Error::ALL.iter().enumerate() {
            let times: u64 = self.0.iter().map(|counts| counts[column + 1]).sum();
            errors.row([alloc::format!("{error:?}"), times.to_string()]);
        }
        errors.print();
        println!();
        for (row, why) in UNREACHABLE {
            println!("not asked of {}: {why}", name(*row));
        }
        for (error, why) in NEVER_HERE {
            println!("not asked for {error:?}: {why}");
        }
    }
}
