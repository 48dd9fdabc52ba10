//! Spaces of good, odd and hostile functions.

use crate::region::{PAGE, masks, regions};
use crate::*;
use proptest::prelude::*;
use std::cell::RefCell;
use std::vec::Vec;

/// A function: words, which bits of each base register can be written, and what was written.
struct Function {
    words: RefCell<[u32; WORDS]>,
    writable: [u32; BASES],
    written: RefCell<Vec<(u8, u32)>>,
}

impl Function {
    fn new(bases: [u32; BASES], writable: [u32; BASES]) -> Self {
        let mut words = [0; WORDS];
        words[0] = 0x1041_1af4;
        words[1] = HAS_CAPABILITIES | MEMORY | MASTER;
        words[4..10].copy_from_slice(&bases);
        Self { words: RefCell::new(words), writable, written: RefCell::default() }
    }

    fn put(&self, register: u8, value: u32) -> &Self {
        self.words.borrow_mut()[usize::from(register / 4)] = value;
        self
    }
}

impl Configuration for Function {
    fn read(&self, register: u8) -> u32 {
        self.words.borrow()[usize::from(register / 4)]
    }

    fn write(&self, register: u8, value: u32) {
        self.written.borrow_mut().push((register, value));
        let word = &mut self.words.borrow_mut()[usize::from(register / 4)];
        match usize::from(register / 4).checked_sub(4).filter(|base| *base < BASES) {
            Some(base) => *word = *word & !self.writable[base] | value & self.writable[base],
            // Ones written to the status are taken away from it.
            None => *word = (*word & !value) & 0xffff_0000 | value & 0xffff,
        }
    }
}

fn virtio() -> Function {
    let function =
        Function::new([0, 0xfebd_1000, 0, 0, 0xfe00_000c, 0x7], [0, 0xffff_f000, 0, 0, 0xffff_c000, u32::MAX]);
    function.put(register::CAPABILITIES, 0x84);
    // MSI-X, then virtio's: notifications, then the common one behind base register 4.
    function.put(0x84, 0x0000_9811).put(0x98, 0x0214_a809).put(0xa8, 0x0110_0009);
    function.put(0xac, 4).put(0xb0, 0x1000).put(0xb4, 0x38);
    function
}

#[test]
fn a_device_as_the_emulator_has_it() {
    let copy = Copy::take(&virtio());
    assert_eq!(copy.region(1), Region::new(0xfebd_1000, 0x1000));
    assert_eq!(copy.region(4), Region::new(0x7_fe00_0000, 0x4000));
    assert_eq!(copy.regions().count(), 2);
    assert_eq!((copy.region(5), copy.region(6), copy.region(u64::MAX)), (None, None, None));
    assert_eq!(copy.virtio_status(), Some(VirtioStatus { base: 4, offset: 0x1014 }));
    assert_eq!(copy.all().count(), WORDS + BASES);
}

#[test]
fn measuring_leaves_everything_as_it_was_and_nothing_answers_meanwhile() {
    let function = virtio();
    let before = *function.words.borrow();
    masks(&function);
    assert_eq!(*function.words.borrow(), before);
    let written = function.written.borrow();
    assert_eq!(written[0].0, register::COMMAND);
    assert_eq!(written[0].1 & (PORTS | MEMORY), 0);
    assert_eq!(written.last(), Some(&(register::COMMAND, before[1] & 0xffff)));
    assert!(written.iter().all(|(register, _)| (0x10..0x28).contains(register) || *register == register::COMMAND));
}

#[test]
fn bridges_are_not_touched() {
    for (register, value) in [(register::HEADER, 1 << 16), (register::HEADER, 2 << 16), (register::CLASS, 0x0601_0000)]
    {
        let function = virtio();
        function.put(register, value);
        assert_eq!(Copy::take(&function).regions().count(), 0);
        assert!(function.written.borrow().is_empty());
    }
    // Several functions are no other kind of header.
    let several = virtio();
    several.put(register::HEADER, 1 << 23);
    assert_eq!(Copy::take(&several).regions().count(), 2);
}

#[test]
fn registers_that_cannot_be_there_are_none() {
    let one = |base, mask| regions([base, 0, 0, 0, 0, 0], [mask, 0, 0, 0, 0, 0])[0];
    assert_eq!(one(0xfebd_1000, 0xffff_f000), Region::new(0xfebd_1000, 0x1000));
    // Ports; not there; without an address; of a kind that there is not.
    assert_eq!(one(0xc001, 0xffff_ffe1), None);
    assert_eq!(one(0xfebd_1000, 0), None);
    assert_eq!(one(0, 0xffff_f000), None);
    assert_eq!(one(0xfebd_1002, 0xffff_f002), None);
    // A size with holes; an address that is no multiple of the size; over the interrupt controllers.
    assert_eq!(one(0xfebd_1000, 0xffff_0f00), None);
    assert_eq!(one(0xfebd_1000, 0xffff_0000), None);
    for base in [0xfec0_0000, 0xfee0_0000, 0xfed0_0000] {
        assert_eq!(one(base, 0xffff_f000), None);
    }
    assert_eq!(one(0xf000_0000, 0xf000_0000), None);
    // 64 bits: over the end; in the last register, which has no other half.
    assert_eq!(regions([4, 0, 0, 0, 0, 0], [4, 0x8000_0000, 0, 0, 0, 0])[0], None);
    assert_eq!(regions([0, 0, 0, 0, 0, 0x8000_0004], [0, 0, 0, 0, 0, 0xffff_f004])[5], None);
    assert_eq!(regions([4, 0x8000_0000, 0, 0, 0, 0], [4, 0x8000_0000, 0, 0, 0, 0])[0], None);
    // The upper half is no register of its own.
    let pair = regions([0x8000_0004, 0xfebd_1000, 0, 0, 0, 0], [0xffff_f004, 0xffff_f000, 0, 0, 0, 0]);
    assert_eq!(pair[1], None);
}

#[test]
fn pages_that_others_share_are_not_given() {
    let region = |start, bytes| Region::new(start, bytes).unwrap();
    let ours = region(0x8000_0000, 0x2000);
    assert!(ours.alone([region(0x8000_2000, 0x1000), region(0x7fff_f000, 0x1000)]));
    assert!(!ours.alone([region(0x8000_1800, 0x100)]));
    assert!(!ours.alone([region(0x8000_0000, 0x1_0000)]));
    // Small ones: each page has one of them at most, and it must begin there.
    let small = region(0x8000_0000, 0x100);
    assert!(small.alone([region(0x8000_1000, 0x100)]));
    assert!(!small.alone([region(0x8000_0f00, 0x100)]));
    assert!(!region(0x8000_0100, 0x100).alone([]));
    assert!(Region::new(u64::MAX - PAGE + 1, PAGE).is_none());
}

#[test]
fn status_registers_that_lead_nowhere_are_none() {
    let with = |changes: &[(u8, u32)]| {
        let function = virtio();
        for (register, value) in changes {
            function.put(*register, *value);
        }
        Copy::take(&function).virtio_status()
    };
    assert!(with(&[]).is_some());
    assert_eq!(with(&[(0, 0x1041_8086)]), None);
    assert_eq!(with(&[(register::COMMAND, 0)]), None);
    // Past the end of the memory, or of no memory at all.
    assert_eq!(with(&[(0xb0, 0x4000 - 20)]), None);
    assert!(with(&[(0xb0, 0x4000 - 21)]).is_some());
    assert_eq!(with(&[(0xb0, u32::MAX)]), None);
    for base in [0, 5, 6, 255] {
        assert_eq!(with(&[(0xac, base)]), None, "{base}");
    }
    // A capability that is too short, and lists that run into themselves.
    assert_eq!(with(&[(0xa8, 0x0108_0009)]), None);
    assert_eq!(with(&[(0x98, 0x0214_9809)]), None);
    assert_eq!(with(&[(0x98, 0x0214_8409)]), None);
    assert_eq!(with(&[(register::CAPABILITIES, 0x3c)]), None);
}

#[test]
fn commands_change_nothing_but_the_activity() {
    for before in [0, u32::MAX, 0x0010_0107, 0x0140] {
        for activity in [Activity::Off, Activity::Answers, Activity::Works] {
            let after = activity.command(before);
            let changed = PORTS | MEMORY | MASTER | NO_INTERRUPT;
            assert_eq!(after & !changed, before & 0xffff & !changed);
            assert_eq!(after & MASTER != 0, activity == Activity::Works);
            assert_eq!(after & MEMORY != 0, activity != Activity::Off);
            assert_eq!(after & NO_INTERRUPT == 0, activity == Activity::Works);
        }
    }
}

#[test]
fn lines_of_interrupts() {
    assert_eq!([line(2, 1), line(3, 1), line(2, 4)], [Some(22), Some(23), Some(21)]);
    for (device, pin) in [(2, 0), (2, 5), (2, 255), (25, 1), (31, 1)] {
        assert_eq!(line(device, pin), None);
    }
}

proptest! {
    #[test]
    fn no_space_makes_it_panic(words in proptest::collection::vec(any::<u32>(), WORDS), masks: [u32; BASES]) {
        let mut words: [u32; WORDS] = words.try_into().unwrap();
        words[0] = words[0] & 0xffff_0000 | 0x1af4;
        words[1] |= HAS_CAPABILITIES;
        let copy = Copy::new(words, masks);
        prop_assert!(copy.capabilities().count() <= 48);
        for region in copy.regions() {
            prop_assert!(region.start.checked_add(region.bytes).is_some() && region.start % region.bytes == 0);
        }
        if let Some(status) = copy.virtio_status() {
            prop_assert!(status.offset < copy.region(status.base as u64).unwrap().bytes);
        }
        let _ = line(words[2], copy.pin());
    }
}
