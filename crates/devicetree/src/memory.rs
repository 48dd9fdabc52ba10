//! Memory that may be used: the regions of memory nodes, without those that others reserve (Devicetree Specification, 3.4, 3.5).

use core::ops;

use crate::{Error, Found, Range, Tree};

/// Ranges that are kept apart; of more the rest is left out.
pub const MAX_RANGES: usize = 16;
/// Ranges of one node that are looked at.
const OF_A_NODE: usize = 64;

/// Memory as ranges that have no byte in common.
#[derive(Clone, Copy, Default, Debug)]
pub struct Memory {
    ranges: [Range; MAX_RANGES],
    count: usize,
    left_out: u64,
}

impl Memory {
    /// The memory of a device tree within these addresses: nothing of it is reserved, and none stands there twice.
    pub fn of(tree: &Tree<'_>, within: ops::Range<u64>) -> Result<Self, Error> {
        let mut memory = Self::default();
        tree.walk(|found| {
            if found.strings("device_type").next() == Some(b"memory") && found.is_enabled() {
                ranges(found).for_each(|range| memory.add(range, &within));
            }
            None::<()>
        });
        tree.reservations().for_each(|range| memory.take(range));
        let unreadable = tree.walk(|found| {
            if found.depth() != 2 || !found.is_below("reserved-memory") || !found.is_enabled() {
                return None;
            }
            ranges(found).for_each(|range| memory.take(range));
            (found.property("reg").is_some() && found.registers(0).is_none()).then_some(Error::Reserved)
        });
        unreadable.map_or(Ok(memory), Err)
    }

    /// The ranges, none of them empty.
    pub fn ranges(&self) -> &[Range] {
        &self.ranges[..self.count]
    }

    /// Bytes that were given and that there is no room for, or no way to.
    pub fn left_out(&self) -> u64 {
        self.left_out
    }

    /// Whether all of a range is in one of them.
    pub fn holds(&self, range: Range) -> bool {
        let Some(end) = range.start.checked_add(range.bytes) else { return false };
        self.ranges().iter().any(|own| own.start <= range.start && end <= own.end())
    }

    /// Adds what of a range lies within these addresses and is not there yet.
    pub fn add(&mut self, range: Range, within: &ops::Range<u64>) {
        let start = range.start.max(within.start);
        let kept = Range { start, bytes: range.end().min(within.end).saturating_sub(start) };
        self.left_out = self.left_out.saturating_add(range.bytes - kept.bytes);
        self.take(kept);
        self.push(kept);
    }

    /// Takes a range out.
    pub fn take(&mut self, taken: Range) {
        let (start, end) = (taken.start, taken.end());
        if taken.bytes == 0 {
            return;
        }
        let before = *self;
        self.count = 0;
        for own in before.ranges() {
            self.push(Range { start: own.start, bytes: own.end().min(start).saturating_sub(own.start) });
            let rest = own.start.max(end);
            self.push(Range { start: rest, bytes: own.end().saturating_sub(rest) });
        }
    }

    fn push(&mut self, range: Range) {
        match self.ranges.get_mut(self.count) {
            _ if range.bytes == 0 => {}
            Some(place) => (*place, self.count) = (range, self.count + 1),
            None => self.left_out = self.left_out.saturating_add(range.bytes),
        }
    }
}

fn ranges(found: &Found<'_>) -> impl Iterator<Item = Range> {
    (0..OF_A_NODE).map_while(|index| found.registers(index))
}
