//! The shortest way from one list of lines to another: Myers, "An O(ND) Difference Algorithm and Its Variations" (Algorithmica 1986), in
//! the form that takes linear space (section 4b).
//!
//! Lines that only one side has are changed in any case, and are set aside first. A search that takes very long ends early, at the point
//! that it has come farthest to: the result is right then, but there may be a shorter one.

use alloc::vec::Vec;

use crate::memory::{self, NoMemory};

/// Which lines of both sides are not in the other one.
#[derive(Debug)]
pub struct Changes {
    /// Those of the first.
    pub removed: Vec<bool>,
    /// Those of the second.
    pub added: Vec<bool>,
}

/// Edits after which a search ends early.
pub const PATIENCE: usize = 1000;

/// The lines of a text, with what ends them.
pub fn lines(text: &[u8]) -> Result<Vec<&[u8]>, NoMemory> {
    let mut lines = Vec::new();
    memory::reserve(&mut lines, text.iter().filter(|byte| **byte == b'\n').count() + 1)?;
    text.split_inclusive(|byte| *byte == b'\n').try_for_each(|line| memory::push(&mut lines, line))?;
    Ok(lines)
}

/// The differences between two lists of lines.
pub fn changes(one: &[&[u8]], other: &[&[u8]], patience: usize) -> Result<Changes, NoMemory> {
    let (numbers, mut changes) = number(one, other)?;
    let (first, second) = numbers.split_at(one.len());
    let first = kept(first, &changes.removed)?;
    let second = kept(second, &changes.added)?;
    let mut search = Search::new(&first, &second, patience)?;
    let mut ahead = Vec::new();
    memory::push(&mut ahead, Part { one: (0, first.len()), other: (0, second.len()) })?;
    while let Some(part) = ahead.pop() {
        let part = search.trimmed(part);
        if part.one.0 == part.one.1 || part.other.0 == part.other.1 {
            first[part.one.0..part.one.1].iter().for_each(|line| changes.removed[line.at] = true);
            second[part.other.0..part.other.1].iter().for_each(|line| changes.added[line.at] = true);
            continue;
        }
        let (x, y) = search.middle(part);
        memory::push(&mut ahead, Part { one: (part.one.0, x), other: (part.other.0, y) })?;
        memory::push(&mut ahead, Part { one: (x, part.one.1), other: (y, part.other.1) })?;
    }
    Ok(changes)
}

/// A line that both sides have.
#[derive(Clone, Copy)]
struct Line {
    /// The same for equal lines.
    number: u32,
    /// Where it stands.
    at: usize,
}

/// Numbers for all lines, the same for equal ones; and as changed those that only one side has.
fn number(one: &[&[u8]], other: &[&[u8]]) -> Result<(Vec<u32>, Changes), NoMemory> {
    let count = one.len() + other.len();
    let line = |at: u32| if (at as usize) < one.len() { one[at as usize] } else { other[at as usize - one.len()] };
    let mut sorted: Vec<u32> = Vec::new();
    memory::reserve(&mut sorted, count)?;
    sorted.extend(0..memory::place(count)?);
    sorted.sort_unstable_by(|a, b| line(*a).cmp(line(*b)));
    let mut numbers = filled(count, 0)?;
    let mut changes = Changes { removed: filled(one.len(), false)?, added: filled(other.len(), false)? };
    for (number, equal) in sorted.chunk_by(|a, b| line(*a) == line(*b)).enumerate() {
        let of_first = equal.iter().filter(|at| (**at as usize) < one.len()).count();
        let in_both = of_first > 0 && of_first < equal.len();
        for at in equal.iter().map(|at| *at as usize) {
            numbers[at] = number as u32;
            match at.checked_sub(one.len()) {
                None => changes.removed[at] = !in_both,
                Some(at) => changes.added[at] = !in_both,
            }
        }
    }
    Ok((numbers, changes))
}

fn filled<T: Clone>(count: usize, value: T) -> Result<Vec<T>, NoMemory> {
    let mut vector = Vec::new();
    memory::reserve(&mut vector, count)?;
    vector.resize(count, value);
    Ok(vector)
}

fn kept(numbers: &[u32], changed: &[bool]) -> Result<Vec<Line>, NoMemory> {
    let mut lines = Vec::new();
    for (at, number) in numbers.iter().enumerate().filter(|(at, _)| !changed[*at]) {
        memory::push(&mut lines, Line { number: *number, at })?;
    }
    Ok(lines)
}

/// A part of both sides: from, to.
#[derive(Clone, Copy)]
struct Part {
    one: (usize, usize),
    other: (usize, usize),
}

/// How far a path has come on each diagonal, from the start and from the end of a part; [`NOWHERE`] if none is there.
struct Search<'l> {
    one: &'l [Line],
    other: &'l [Line],
    forward: Vec<i32>,
    backward: Vec<i32>,
    patience: usize,
}

const NOWHERE: i32 = -1;

impl<'l> Search<'l> {
    fn new(one: &'l [Line], other: &'l [Line], patience: usize) -> Result<Self, NoMemory> {
        let count = one.len() + other.len();
        i32::try_from(count).map_err(|_| NoMemory)?;
        // Diagonals on both sides of that through the start, and one more beside the last ones.
        let size = 2 * (count.div_ceil(2).min(patience) + 1) + 1;
        Ok(Self { one, other, forward: filled(size, NOWHERE)?, backward: filled(size, NOWHERE)?, patience })
    }

    fn is_same(&self, x: usize, y: usize) -> bool {
        self.one[x].number == self.other[y].number
    }

    /// The part without what is the same at its start and end.
    fn trimmed(&self, Part { mut one, mut other }: Part) -> Part {
        while one.0 < one.1 && other.0 < other.1 && self.is_same(one.0, other.0) {
            one.0 += 1;
            other.0 += 1;
        }
        while one.0 < one.1 && other.0 < other.1 && self.is_same(one.1 - 1, other.1 - 1) {
            one.1 -= 1;
            other.1 -= 1;
        }
        Part { one, other }
    }

    /// A point on a shortest path through a trimmed part, neither its start nor its end. The lists are absolute, the search counts
    /// from the start of the part (`x`, `y`), backwards from its end.
    fn middle(&mut self, part: Part) -> (usize, usize) {
        let width = (part.one.1 - part.one.0) as i32;
        let height = (part.other.1 - part.other.0) as i32;
        let delta = width - height;
        let zero = self.forward.len() as i32 / 2;
        let place = |diagonal: i32| (zero + diagonal) as usize;
        let point = |x: i32, y: i32| (part.one.0 + x as usize, part.other.0 + y as usize);
        let most = (width + height + 1) / 2;
        for edits in 0..=most.min(self.patience as i32) {
            for reached in [&mut self.forward, &mut self.backward] {
                reached[place(-edits - 1)] = NOWHERE;
                reached[place(edits + 1)] = NOWHERE;
            }
            for diagonal in (-edits..=edits).step_by(2) {
                let x = step(&self.forward, place(diagonal), edits, width, height, diagonal);
                let x = self.slide(x, x - diagonal, |x, y| (part.one.0 + x, part.other.0 + y), width, height);
                self.forward[place(diagonal)] = x;
                let other = delta - diagonal;
                let meets = delta % 2 != 0 && other.abs() < edits;
                if meets && x >= 0 && self.backward[place(other)] >= 0 && x + self.backward[place(other)] >= width {
                    return point(x, x - diagonal);
                }
            }
            for diagonal in (-edits..=edits).step_by(2) {
                let x = step(&self.backward, place(diagonal), edits, width, height, diagonal);
                let (right, bottom) = (part.one.1, part.other.1);
                let x = self.slide(x, x - diagonal, |x, y| (right - 1 - x, bottom - 1 - y), width, height);
                self.backward[place(diagonal)] = x;
                let other = delta - diagonal;
                let meets = delta % 2 == 0 && other.abs() <= edits;
                if meets && x >= 0 && self.forward[place(other)] >= 0 && x + self.forward[place(other)] >= width {
                    return point(width - x, height - (x - diagonal));
                }
            }
        }
        // The farthest point of the last round.
        let last = most.min(self.patience as i32);
        let reached = (-last..=last).step_by(2).map(|diagonal| (self.forward[place(diagonal)], diagonal));
        let (x, diagonal) =
            reached.filter(|(x, _)| *x >= 0).max_by_key(|(x, diagonal)| 2 * x - diagonal).unwrap_or((1, 1));
        point(x, x - diagonal)
    }

    /// Goes on along a diagonal while lines are the same.
    fn slide(
        &self,
        mut x: i32,
        mut y: i32,
        at: impl Fn(usize, usize) -> (usize, usize),
        width: i32,
        height: i32,
    ) -> i32 {
        while x >= 0 && x < width && y < height {
            let (one, other) = at(x as usize, y as usize);
            if !self.is_same(one, other) {
                break;
            }
            x += 1;
            y += 1;
        }
        x
    }
}

/// How far one more edit comes on a diagonal, from the diagonals beside it.
fn step(reached: &[i32], place: usize, edits: i32, width: i32, height: i32, diagonal: i32) -> i32 {
    if edits == 0 {
        return 0;
    }
    let down = Some(reached[place + 1]).filter(|x| *x >= 0 && x - diagonal <= height);
    let right = Some(reached[place - 1]).filter(|x| *x >= 0 && *x < width).map(|x| x + 1);
    down.max(right).unwrap_or(NOWHERE)
}
