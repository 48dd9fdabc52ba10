//! Tables and numbers for people.

use alloc::string::String;
use alloc::vec::Vec;

use crate::println;

/// Which side of its column a text stands at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Side {
    /// Texts.
    Left,
    /// Numbers.
    Right,
}

/// Rows of texts.
pub struct Table {
    columns: Vec<(&'static str, Side)>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with these columns.
    pub fn new(columns: &[(&'static str, Side)]) -> Self {
        Self { columns: columns.to_vec(), rows: Vec::new() }
    }

    /// Adds a row.
    pub fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().collect());
    }

    /// Prints it, each column as wide as it must be.
    pub fn print(&self) {
        self.lines().iter().for_each(|line| println!("{line}"));
    }

    /// Its lines, each column as wide as it must be.
    pub fn lines(&self) -> Vec<String> {
        let widths: Vec<usize> = (0..self.columns.len())
            .map(|column| {
                let cells = self.rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count());
                cells.chain([self.columns[column].0.len()]).max().unwrap_or(0)
            })
            .collect();
        let heads = self.columns.iter().map(|(head, _)| String::from(*head)).collect();
        let line = |row: &Vec<String>| {
            let mut line = String::new();
            for ((cell, width), (_, side)) in row.iter().zip(&widths).zip(&self.columns) {
                if !line.is_empty() {
                    line.push_str("  ");
                }
                let width = *width;
                match side {
                    Side::Left => line.push_str(&alloc::format!("{cell:<width$}")),
                    Side::Right => line.push_str(&alloc::format!("{cell:>width$}")),
                }
            }
            String::from(line.trim_end())
        };
        core::iter::once(&heads).chain(&self.rows).map(line).collect()
    }
}

/// Frames as kibibytes.
pub fn kibibytes(frames: u64) -> String {
    alloc::format!("{}K", frames.saturating_mul(4))
}

/// A time: `1.234 s`.
pub fn seconds(nanoseconds: u64) -> String {
    alloc::format!("{}.{:03} s", nanoseconds / 1_000_000_000, nanoseconds / 1_000_000 % 1000)
}
