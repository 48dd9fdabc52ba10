//! Trees that are as they should be, and all kinds that are not.

use devicetree::{Error, MAX_BYTES, MAX_DEPTH, Memory, Range, Tree, total_bytes};
use proptest::prelude::*;

/// Writes a tree.
#[derive(Default)]
struct Writer {
    structure: Vec<u8>,
    strings: Vec<u8>,
}

impl Writer {
    fn word(&mut self, word: u32) {
        self.structure.extend_from_slice(&word.to_be_bytes());
    }

    fn pad(&mut self) {
        while !self.structure.len().is_multiple_of(4) {
            self.structure.push(0);
        }
    }

    fn begin(mut self, name: &str) -> Self {
        self.word(1);
        self.structure.extend_from_slice(name.as_bytes());
        self.structure.push(0);
        self.pad();
        self
    }

    fn end(mut self) -> Self {
        self.word(2);
        self
    }

    fn bytes(mut self, name: &str, value: &[u8]) -> Self {
        self.word(3);
        self.word(value.len() as u32);
        self.word(self.strings.len() as u32);
        self.strings.extend_from_slice(name.as_bytes());
        self.strings.push(0);
        self.structure.extend_from_slice(value);
        self.pad();
        self
    }

    fn cells(self, name: &str, cells: &[u32]) -> Self {
        let value: Vec<u8> = cells.iter().flat_map(|cell| cell.to_be_bytes()).collect();
        self.bytes(name, &value)
    }

    /// The whole tree.
    fn finish(mut self) -> Vec<u8> {
        self.word(9);
        let (structure, strings) = (self.structure.len() as u32, self.strings.len() as u32);
        let total = 56 + structure + strings;
        let header = [0xd00d_feed, total, 56, 56 + structure, 40, 17, 16, 0, strings, structure];
        let mut tree: Vec<u8> = header.iter().flat_map(|word| word.to_be_bytes()).collect();
        tree.extend_from_slice(&[0; 16]);
        tree.extend_from_slice(&self.structure);
        tree.extend_from_slice(&self.strings);
        tree
    }
}

/// A board with a bus whose addresses are moved, a serial line on it, and a PCI host.
fn board() -> Vec<u8> {
    Writer::default()
        .begin("")
        .cells("#address-cells", &[2])
        .cells("#size-cells", &[2])
        .begin("chosen")
        .bytes("bootargs", b"one two\0")
        .end()
        .begin("memory@40000000")
        .bytes("device_type", b"memory\0")
        .cells("reg", &[0, 0x4000_0000, 0, 0x1000_0000, 1, 0, 0, 0x2000_0000])
        .end()
        .begin("gic@8000000")
        .cells("phandle", &[7])
        .cells("#address-cells", &[2])
        .cells("#interrupt-cells", &[3])
        .end()
        .begin("soc")
        .cells("#address-cells", &[1])
        .cells("#size-cells", &[1])
        .cells("ranges", &[0x7e00_0000, 0, 0xfe00_0000, 0x100_0000])
        .begin("serial@7e201000")
        .bytes("compatible", b"maker,uart\0arm,pl011\0")
        .cells("reg", &[0x7e20_1000, 0x200, 0x7f00_0000, 0x200])
        .cells("interrupts", &[0, 33, 4])
        .end()
        .begin("off@7e300000")
        .bytes("status", b"disabled\0")
        .end()
        .end()
        .begin("closed")
        .begin("device@1000")
        .cells("reg", &[0x1000, 0x10])
        .end()
        .end()
        .begin("pcie@10000000")
        .cells("#address-cells", &[3])
        .cells("#size-cells", &[2])
        .cells(
            "ranges",
            &[
                0x0100_0000,
                0,
                0,
                0,
                0x3eff_0000,
                0,
                0x1_0000,
                0x0200_0000,
                0,
                0x1000_0000,
                0,
                0x1000_0000,
                0,
                0x2eff_0000,
            ],
        )
        .cells("interrupt-map-mask", &[0x1800, 0, 0, 7])
        .cells("interrupt-map", &[0, 0, 0, 1, 7, 0, 0, 0, 3, 4, 0x800, 0, 0, 1, 7, 0, 0, 0, 4, 4])
        .end()
        .end()
        .finish()
}

#[test]
fn nodes_and_their_properties() {
    let bytes = board();
    let tree = Tree::new(&bytes).unwrap();
    let chosen = tree.find("/chosen").unwrap();
    assert_eq!(chosen.strings("bootargs").next(), Some(&b"one two"[..]));
    let memory = tree.find("/memory").unwrap();
    assert_eq!(memory.registers(0), Some(Range { start: 0x4000_0000, bytes: 0x1000_0000 }));
    assert_eq!(memory.registers(1), Some(Range { start: 1 << 32, bytes: 0x2000_0000 }));
    assert_eq!(memory.registers(2), None);
    assert!(tree.find("/soc/off").is_some_and(|off| !off.is_enabled()));
    assert!(tree.find("/soc/on").is_none() && tree.find("/serial").is_none());
    assert_eq!(Tree::used_bytes(&bytes), bytes.len());
}

#[test]
fn addresses_are_those_of_the_cpu() {
    let bytes = board();
    let tree = Tree::new(&bytes).unwrap();
    let serial = tree.walk(|found| found.is_compatible(&["arm,pl011"]).then_some(*found)).unwrap();
    assert_eq!(serial.registers(0), Some(Range { start: 0xfe20_1000, bytes: 0x200 }));
    // Beyond what the bus passes on.
    assert_eq!(serial.registers(1), None);
    assert_eq!(serial.cell("interrupts", 1), Some(33));
    assert!(serial.is_below("soc"));
    // A bus that says nothing of ranges is not reached.
    assert_eq!(tree.find("/closed/device").unwrap().registers(0), None);
}

#[test]
fn pci_hosts() {
    let bytes = board();
    let tree = Tree::new(&bytes).unwrap();
    let host = tree.find("/pcie").unwrap();
    let memory = host.windows().find(|window| window.space == 2).unwrap();
    assert_eq!((memory.bus, memory.cpu), (0x1000_0000, Range { start: 0x1000_0000, bytes: 0x2eff_0000 }));
    assert_eq!(host.interrupt_of(&tree, 0, 1), Some([0, 3, 4]));
    assert_eq!(host.interrupt_of(&tree, 5, 1), Some([0, 4, 4]));
    assert_eq!(host.interrupt_of(&tree, 0, 2), None);
}

#[test]
fn malformed_trees_are_refused() {
    let good = board();
    let with = |at: usize, word: u32| {
        let mut bytes = good.clone();
        bytes[at..at + 4].copy_from_slice(&word.to_be_bytes());
        bytes
    };
    let error = |bytes: &[u8]| Tree::new(bytes).err();
    assert_eq!(error(&[]), Some(Error::NoTree));
    assert_eq!(error(&with(0, 0xd00d_feee)), Some(Error::NoTree));
    assert_eq!(error(&with(4, 39)), Some(Error::Size));
    assert_eq!(error(&with(4, MAX_BYTES as u32 + 1)), Some(Error::Size));
    assert_eq!(error(&with(4, u32::MAX)), Some(Error::Size));
    assert_eq!(error(&with(24, 18)), Some(Error::Version));
    assert_eq!(error(&with(8, u32::MAX)), Some(Error::CutOff));
    assert_eq!(error(&with(36, u32::MAX)), Some(Error::CutOff));
    assert_eq!(error(&with(32, 1)), Some(Error::CutOff));
    assert_eq!(error(&with(56, 7)), Some(Error::Token));
    // The first node ends before anything stood in it, and another begins.
    assert_eq!(error(&Writer::default().begin("").end().begin("").end().finish()), Some(Error::Token));
    assert_eq!(error(&Writer::default().finish()), Some(Error::Token));
    let late = Writer::default().begin("").begin("a").end().cells("x", &[1]).end();
    assert_eq!(error(&late.finish()), Some(Error::Token));
    let mut deep = Writer::default();
    for _ in 0..=MAX_DEPTH {
        deep = deep.begin("n");
    }
    assert_eq!(error(&deep.finish()), Some(Error::TooDeep));
    assert_eq!(total_bytes(&good[..8]), Ok(good.len()));
}

/// Memory that overlaps, and is reserved by a block before the nodes and by nodes.
#[test]
fn memory_that_overlaps_and_is_reserved() {
    let memory = |name: &str, cells: &[u32], writer: Writer| {
        writer.begin(name).bytes("device_type", b"memory\0").cells("reg", cells).end()
    };
    let reserved = |ranges: bool| {
        let writer = Writer::default().begin("").cells("#address-cells", &[1]).cells("#size-cells", &[1]);
        let writer = memory("memory@1000", &[0x1000, 0x3000, 0x2000, 0x4000], writer);
        let writer = memory("memory@5000", &[0x5000, 0x3000], writer);
        let writer = writer.begin("reserved-memory").cells("#address-cells", &[1]).cells("#size-cells", &[1]);
        let writer = if ranges { writer.bytes("ranges", &[]) } else { writer };
        writer.begin("a@2000").cells("reg", &[0x2000, 0x800]).end().end().end().finish()
    };
    let mut bytes = reserved(true);
    // The block of reservations: one entry, and its end.
    let block = bytes.len() as u32;
    bytes[16..20].copy_from_slice(&block.to_be_bytes());
    bytes.extend([0x7000u64, 0x1000, 0, 0].iter().flat_map(|word| word.to_be_bytes()));
    let total = bytes.len() as u32;
    bytes[4..8].copy_from_slice(&total.to_be_bytes());
    let found = Memory::of(&Tree::new(&bytes).unwrap(), 0x1800..0x7800).unwrap();
    let mut ranges = found.ranges().to_vec();
    ranges.sort_by_key(|range| range.start);
    let bytes_of = ranges.iter().map(|range| range.bytes).sum::<u64>();
    assert!(ranges.windows(2).all(|two| two[0].end() <= two[1].start));
    assert_eq!((ranges[0], bytes_of), (Range { start: 0x1800, bytes: 0x800 }, 0x6000 - 0x800 - 0x800));
    assert_eq!(found.left_out(), 0x800 + 0x800);
    let unreadable = reserved(false);
    assert_eq!(Memory::of(&Tree::new(&unreadable).unwrap(), 0..u64::MAX).err(), Some(Error::Reserved));
}

#[test]
fn a_damaged_tree_can_be_read_in_part() {
    let mut bytes = board();
    // A token that there is not, in place of the end of the last node but one.
    let last = bytes.len() - 4;
    let end = bytes[..last].windows(4).rposition(|word| word == 2u32.to_be_bytes()).unwrap();
    bytes[end..end + 4].copy_from_slice(&[0, 0, 0, 7]);
    assert_eq!(Tree::new(&bytes).err(), Some(Error::Token));
    let remains = Tree::remains(&bytes).unwrap();
    assert!(
        remains.walk(|found| found.is_compatible(&["arm,pl011"]).then_some(found.registers(0))).flatten().is_some()
    );
    assert!(Tree::remains(&[]).is_none() && Tree::remains(&bytes[4..]).is_none());
}

#[test]
fn no_part_of_a_tree_is_one() {
    let good = board();
    for length in 0..good.len() {
        // The last strings are names of properties; without one of them the tree is cut off, too.
        assert!(Tree::new(&good[..length]).is_err(), "{length} bytes");
    }
}

/// Asks for everything; nothing may panic or run for ever.
fn ask(tree: &Tree<'_>) {
    let _ = (Memory::of(tree, 0..u64::MAX).map(|memory| memory.ranges().len()), tree.reservations().count());
    let _ = (tree.find("/chosen"), tree.with_phandle(7));
    tree.walk(|found| {
        for name in ["reg", "ranges", "compatible", "interrupt-map", "interrupts", "#address-cells"] {
            let _ = (found.property(name), found.number(name), found.cell(name, 2), found.strings(name).count());
        }
        let _ = (found.registers(0), found.registers(3), found.registers(usize::MAX), found.registers_of_cpu());
        let _ = (found.windows().count(), found.interrupt_of(tree, 1, 1), found.is_enabled());
        None::<()>
    });
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn damaged_trees_do_no_harm(changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..12)) {
        let mut bytes = board();
        for (place, value) in changes {
            let place = place.index(bytes.len());
            bytes[place] = value;
        }
        if let Ok(tree) = Tree::new(&bytes) {
            ask(&tree);
        }
        if let Some(remains) = Tree::remains(&bytes) {
            ask(&remains);
        }
    }

    #[test]
    fn words_of_all_kinds_do_no_harm(words in proptest::collection::vec(0u32..12, 0..60)) {
        let mut writer = Writer::default();
        words.iter().for_each(|word| writer.word(*word));
        writer.strings.push(0);
        let bytes = writer.finish();
        if let Ok(tree) = Tree::new(&bytes) {
            ask(&tree);
        }
        if let Some(remains) = Tree::remains(&bytes) {
            ask(&remains);
        }
    }
}
