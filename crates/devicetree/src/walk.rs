//! Walking a device tree, with the buses above each node.

use crate::cells::{Range, cell, number};
use crate::{MAX_DEPTH, Token, Tree};

/// A node with its properties, and how the buses above it translate addresses.
#[derive(Clone, Copy)]
pub struct Found<'a> {
    tree: Tree<'a>,
    /// Where its properties begin.
    at: usize,
    name: &'a [u8],
    /// The nodes above, the root first.
    above: [Bus<'a>; MAX_DEPTH],
    depth: usize,
}

/// A node's description of the addresses of the nodes below it (2.3.5, 2.3.8).
#[derive(Clone, Copy, Default)]
struct Bus<'a> {
    name: &'a [u8],
    address_cells: usize,
    size_cells: usize,
    /// `None`: nodes below cannot be reached by the CPU. Empty: addresses are the same.
    ranges: Option<&'a [u8]>,
}

impl<'a> Tree<'a> {
    /// Shows each node until `look` gives something.
    pub fn walk<T>(&self, mut look: impl FnMut(&Found<'a>) -> Option<T>) -> Option<T> {
        let mut found = Found { tree: *self, at: 0, name: &[], above: [Bus::default(); MAX_DEPTH], depth: 0 };
        let mut at = 0;
        // The tree was looked at: no token is wrong.
        while let Ok(token) = self.token(&mut at) {
            match token {
                Token::Begin { name } => {
                    found.at = at;
                    found.name = name;
                    if let Some(value) = look(&found) {
                        return Some(value);
                    }
                    *found.above.get_mut(found.depth)? = found.bus();
                    found.depth += 1;
                }
                Token::End => found.depth = found.depth.saturating_sub(1),
                Token::Property { .. } => {}
                Token::Last => break,
            }
        }
        None
    }

    /// The node at a path such as `/chosen`; units (`@0`) may be left out.
    pub fn find(&self, path: &str) -> Option<Found<'a>> {
        self.walk(|found| found.is_at(path.as_bytes()).then_some(*found))
    }
}

/// Whether a node's name is the wanted one, which may leave out the unit.
fn is_called(name: &[u8], wanted: &[u8]) -> bool {
    name == wanted || name.strip_prefix(wanted).is_some_and(|rest| rest.first() == Some(&b'@'))
}

impl<'a> Found<'a> {
    /// Its name, with the unit.
    pub fn name(&self) -> &'a [u8] {
        self.name
    }

    /// How many nodes are above it.
    pub fn depth(&self) -> usize {
        self.depth
    }

    /// Cells of an address on the bus that it is on.
    pub(crate) fn parent_address_cells(&self) -> usize {
        self.above[..self.depth].last().map_or(2, |bus| bus.address_cells)
    }

    /// Whether the node right above it is called so.
    pub fn is_below(&self, name: &str) -> bool {
        self.above[..self.depth].last().is_some_and(|bus| is_called(bus.name, name.as_bytes()))
    }

    fn is_at(&self, path: &[u8]) -> bool {
        let mut parts = path.split(|byte| *byte == b'/').filter(|part| !part.is_empty());
        let above = self.above[..self.depth].iter().skip(1).map(|bus| bus.name);
        let own = (self.depth > 0).then_some(self.name);
        let mut nodes = above.chain(own);
        loop {
            match (parts.next(), nodes.next()) {
                (None, None) => return true,
                (Some(part), Some(node)) if is_called(node, part) => {}
                _ => return false,
            }
        }
    }

    /// The value of a property.
    pub fn property(&self, wanted: &str) -> Option<&'a [u8]> {
        let mut at = self.at;
        while let Ok(Token::Property { name, value }) = self.tree.token(&mut at) {
            if name == wanted.as_bytes() {
                return Some(value);
            }
        }
        None
    }

    /// A property of one or two cells as number.
    pub fn number(&self, wanted: &str) -> Option<u64> {
        let value = self.property(wanted)?;
        matches!(value.len(), 4 | 8).then(|| number(value, 0, value.len() / 4)).flatten()
    }

    /// Cell number `index` of a property.
    pub fn cell(&self, wanted: &str, index: usize) -> Option<u32> {
        cell(self.property(wanted)?, 4 * index)
    }

    /// The strings of a property.
    pub fn strings(&self, wanted: &str) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let value = self.property(wanted).unwrap_or_default();
        value.split(|byte| *byte == 0).filter(|text| !text.is_empty())
    }

    /// Whether it is, or is like, one of these devices (2.3.1).
    pub fn is_compatible(&self, devices: &[&str]) -> bool {
        self.strings("compatible").any(|text| devices.iter().any(|device| device.as_bytes() == text))
    }

    /// Whether it may be used (2.3.4).
    pub fn is_enabled(&self) -> bool {
        self.strings("status").next().is_none_or(|status| status == b"okay" || status == b"ok")
    }

    fn bus(&self) -> Bus<'a> {
        let cells = |name, usual| self.cell(name, 0).map_or(usual, |cells| cells.min(4) as usize);
        // Addresses of nodes below the root need no translation.
        let ranges = if self.depth == 0 { Some(&[][..]) } else { self.property("ranges") };
        Bus { name: self.name, address_cells: cells("#address-cells", 2), size_cells: cells("#size-cells", 1), ranges }
    }

    /// The number of a CPU: the first address of `reg`, which is no memory (3.8.1).
    pub fn registers_of_cpu(&self) -> Option<u64> {
        number(self.property("reg")?, 0, self.above[..self.depth].last()?.address_cells)
    }

    /// Range number `index` of `reg`, as the CPU sees it.
    pub fn registers(&self, index: usize) -> Option<Range> {
        let bus = self.above[..self.depth].last()?;
        let value = self.property("reg")?;
        let bytes = 4 * (bus.address_cells + bus.size_cells);
        let at = index.checked_mul(bytes)?;
        let start = number(value, at, bus.address_cells)?;
        let range = Range { start, bytes: number(value, at + 4 * bus.address_cells, bus.size_cells)? };
        range.start.checked_add(range.bytes)?;
        // From the bus it is on up to the root.
        (1..self.depth)
            .rev()
            .try_fold(range, |range, level| translate(range, &self.above[level], self.above[level - 1].address_cells))
    }
}

/// An address of a bus as one of the bus above it, whose addresses have `parent_cells` (2.3.8).
fn translate(range: Range, bus: &Bus<'_>, parent_cells: usize) -> Option<Range> {
    let ranges = bus.ranges?;
    if ranges.is_empty() {
        return Some(range);
    }
    let entry = 4 * (bus.address_cells + parent_cells + bus.size_cells);
    if entry == 0 {
        return None;
    }
    (0..ranges.len() / entry).find_map(|index| {
        let at = index * entry;
        let child = number(ranges, at, bus.address_cells)?;
        let parent = number(ranges, at + 4 * bus.address_cells, parent_cells)?;
        let length = number(ranges, at + 4 * (bus.address_cells + parent_cells), bus.size_cells)?;
        let offset = range.start.checked_sub(child)?;
        let is_inside = offset.checked_add(range.bytes)? <= length;
        is_inside.then_some(Range { start: parent.checked_add(offset)?, bytes: range.bytes })
    })
}
