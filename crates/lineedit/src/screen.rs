//! Drawing: one row, of which a window of the line is shown.

use alloc::string::String;
use alloc::vec::Vec;

/// Columns that a character takes: 2 for East Asian wide ones and most pictures, 0 for combining
/// marks, else 1. The ranges are the common ones of Unicode's `EastAsianWidth.txt`.
pub fn character_width(character: char) -> usize {
    match character as u32 {
        0x300..=0x36f | 0x200b..=0x200f | 0x20d0..=0x20ff | 0xfe00..=0xfe0f => 0,
        0x1100..=0x115f | 0x2e80..=0xa4cf | 0xac00..=0xd7a3 | 0xf900..=0xfaff | 0xfe30..=0xfe6f => 2,
        0xff00..=0xff60 | 0xffe0..=0xffe6 | 0x1f300..=0x1f64f | 0x1f900..=0x1f9ff | 0x2_0000..=0x3_fffd => 2,
        _ => 1,
    }
}

/// Columns of characters.
pub fn width(characters: &[char]) -> usize {
    characters.iter().map(|c| character_width(*c)).sum()
}

/// Columns of a text.
pub fn text_width(text: &str) -> usize {
    text.chars().map(character_width).sum()
}

/// A text without control characters, cut at its beginning to at most `columns`.
pub fn shortened(text: &str, columns: usize) -> String {
    let visible: Vec<char> = text.chars().filter(|c| !c.is_control()).collect();
    let mut start = 0;
    // A combining mark does not come first: it would join what stands left of the row.
    let is_mark = |at: usize| visible.get(at).is_some_and(|c| character_width(*c) == 0);
    while width(&visible[start..]) > columns || start > 0 && is_mark(start) {
        start += 1;
    }
    visible[start..].iter().collect()
}

/// First character to show so that the cursor is inside `room` columns and, if possible, nothing
/// moves (`before` was shown first until now).
pub fn window(line: &[char], cursor: usize, before: usize, room: usize) -> usize {
    let mut first = before.min(cursor);
    while width(&line[first..cursor]) > room {
        first += 1;
    }
    // After a deletion: use the room on the right again.
    while first > 0 && width(&line[first - 1..]) <= room {
        first -= 1;
    }
    first
}

/// Characters of `line` that fit into `room` columns.
pub fn visible(line: &[char], room: usize) -> usize {
    let mut used = 0;
    line.iter()
        .take_while(|c| {
            used += character_width(**c);
            used <= room
        })
        .count()
}

/// Draws the row: prompt, as much of `line` as fits, cursor.
pub fn draw(prompt: &str, line: &[char], cursor: usize, room: usize, output: &mut Vec<u8>) {
    output.push(b'\r');
    output.extend_from_slice(prompt.as_bytes());
    let shown = visible(line, room);
    for character in &line[..shown] {
        output.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
    }
    output.extend_from_slice(b"\x1b[K");
    if cursor < shown {
        let column = text_width(prompt) + width(&line[..cursor]);
        output.push(b'\r');
        if column > 0 {
            output.extend_from_slice(b"\x1b[");
            decimal(column, output);
            output.push(b'C');
        }
    }
}

/// Writes candidates in columns, sorted downwards.
pub fn columns(candidates: &[String], columns: usize, output: &mut Vec<u8>) {
    let widest = candidates.iter().map(|c| text_width(c)).max().unwrap_or(0) + 2;
    let per_row = (columns / widest).max(1);
    let rows = candidates.len().div_ceil(per_row);
    for row in 0..rows {
        for candidate in candidates.iter().skip(row).step_by(rows) {
            output.extend(candidate.chars().filter(|c| !c.is_control()).collect::<String>().bytes());
            output.extend(core::iter::repeat_n(b' ', widest - text_width(candidate)));
        }
        output.extend_from_slice(b"\r\n");
    }
}

fn decimal(number: usize, output: &mut Vec<u8>) {
    if number >= 10 {
        decimal(number / 10, output);
    }
    output.push(b'0' + (number % 10) as u8);
}
