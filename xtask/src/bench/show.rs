//! Numbers and tables, as people read them.

use comfy_table::{CellAlignment, Table};

/// A count per operation: whole, or with a decimal if it is small.
pub fn shown(count: f64) -> String {
    match count {
        0.05..9.95 if (count - count.round()).abs() >= 0.05 => format!("{count:.1}"),
        _ => grouped(count.round() as u64),
    }
}

/// Sets columns flush right.
pub fn right(table: &mut Table, columns: &[usize]) {
    for &column in columns {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
}

/// A number with its thousands apart.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
