//! The specified effect of a crossing, against that of the code: over random specifications, registers and obstacles.

use crate::common::*;
use portalgen::specification::REGISTER_WORDS;
use portalgen::{Extent, Letter, Specification};
use proptest::prelude::*;
use std::collections::BTreeSet;

/// Conditional branches that were executed: where each stands, and whether it was taken.
pub type Decisions = BTreeSet<(u64, bool)>;

/// A processor, and the code that is made for it.
pub trait Isa: Sized + Clone {
    /// Registers that a function preserves, besides the stack pointer.
    const PRESERVED: usize;
    /// A return uses some of them before it knows whether it can be made.
    const SPOILS: bool;
    /// Bytes are copied in a loop of instructions.
    const LOOPS: bool;
    /// How many other registers there are.
    const OTHERS: usize;
    /// Of the other registers, that of the control word.
    const CONTROL: usize;
    /// A callee gets the address of its message area in one of the preserved registers, if that is kept, or in one of the others.
    const AREA: (Option<usize>, Option<usize>);
    /// Words that travel in one of these.
    const WORDS_IN_PRESERVED: [Option<usize>; REGISTER_WORDS];

    fn write(specification: &Specification) -> (Vec<u8>, Extent);
    /// In the nucleus, with what a user had in registers.
    fn start(user: &Registers, entry_or_activation: u64, is_call: bool, time: u64) -> Self;
    fn run(&mut self, bytes: &[u8], at: usize, memory: &mut Memory) -> (End, usize);
    fn user(&self) -> Registers;
    fn decisions(&self) -> &Decisions;
    /// The page tables.
    fn root(&self) -> u64;
    /// The translation that was dropped by itself, and the one that must be for a window in this slot.
    fn dropped(&self) -> Option<u64>;
    fn must_drop(slot: u64) -> Option<u64>;
    /// A last-level entry.
    fn page(frame: u64, kind: Page) -> u64;
    /// That of a window on what `page` maps.
    fn window_page(page: u64, writes: bool) -> u64;
    fn saved_preserved(memory: &mut Memory, activation: u64) -> Vec<u64>;
    fn save_preserved(memory: &mut Memory, activation: u64, registers: &[u64]);
}

/// The state of a page, for a callee that wants a window on it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Page {
    Writable,
    ReadOnly,
    Registers,
    NotLent,
    None,
}

/// The control word's bit, and those of a window's word.
const WINDOW: u64 = 1 << 13;
const WRITES: u64 = 1 << 5;

/// Draws a window, or that there is none, in what the caller gives; gives its word.
fn draw_window<I: Isa>(
    random: &mut Random,
    letters: &portalgen::Letters,
    memory: &mut Memory,
    user: &mut Registers,
    obstacle: Obstacle,
) -> Option<u64> {
    let word = letters.window()?;
    if obstacle != Obstacle::Window && random.once_in(3) {
        if !letters.has_control() {
            user.words[word] = 0;
        }
        return None;
    }
    let (table, page, writes) = (random.below(512), random.below(512), random.once_in(2));
    let kind = if !writes && random.once_in(2) { Page::ReadOnly } else { Page::Writable };
    let frame = random.below(1 << 20);
    let entry = 7 | random.below(2) << 5;
    let mut window = table << 21 | page << 12 | if writes { WRITES } else { 0 } | 1;
    memory.set(LOW, 8 * table as i32, PAGES | entry);
    memory.set(DIRECT | PAGES, 8 * page as i32, I::page(frame, kind));
    if obstacle == Obstacle::Window {
        let wrong = |kind| I::page(frame, kind);
        match random.below(8) {
            0 => window = window.wrapping_add([u64::MAX, 1, 14, 15, 30][random.below(5) as usize]),
            1 => window |= 1 << (6 + random.below(6)),
            2 => window |= 1 << (30 + random.below(34)),
            3 => memory.set(LOW, 8 * table as i32, 0),
            4 => memory.set(DIRECT | PAGES, 8 * page as i32, wrong(Page::Registers)),
            5 => memory.set(DIRECT | PAGES, 8 * page as i32, wrong(Page::NotLent)),
            6 => memory.set(DIRECT | PAGES, 8 * page as i32, wrong(Page::None)),
            _ if writes => memory.set(DIRECT | PAGES, 8 * page as i32, wrong(Page::ReadOnly)),
            _ => memory.set(CALLEE, SHARE as i32 + OFFSETS.per_cpu_windows, 0),
        }
    }
    user.words[word] = window;
    if letters.has_control() {
        user.others[I::CONTROL] |= WINDOW;
    }
    Some(window)
}

/// A word that travels in a preserved register is what that has.
fn align<I: Isa>(user: &mut Registers) {
    for (word, place) in I::WORDS_IN_PRESERVED.iter().enumerate() {
        if let Some(place) = place {
            user.preserved[*place] = user.words[word];
        }
    }
}

/// Any registers of a user.
fn any_user<I: Isa>(random: &mut Random) -> Registers {
    let mut user = Registers {
        pc: random.any() >> 20,
        sp: random.any(),
        status: random.any(),
        words: [0; REGISTER_WORDS].map(|_| random.any()),
        preserved: (0..I::PRESERVED).map(|_| random.any()).collect(),
        others: (0..16).map(|_| random.any()).collect(),
        pointer: random.any(),
    };
    align::<I>(&mut user);
    user
}

/// Whether a preserved register has a word for the other side.
fn carries<I: Isa>(letters: &portalgen::Letters, place: usize) -> bool {
    I::WORDS_IN_PRESERVED[..letters.in_registers()].contains(&Some(place))
}

/// Draws lengths and entries that can be passed, or cannot.
fn draw_words<I: Isa>(random: &mut Random, letters: &portalgen::Letters, user: &mut Registers, obstacle: Obstacle) {
    if letters.has_control() {
        user.others[I::CONTROL] = match obstacle {
            Obstacle::Entry => {
                [4097, 4097 + random.below(4096), 1 << 16 | 5, 1 << 48, u64::MAX, 4097 + random.any() % (1 << 52)]
                    [random.below(6) as usize]
            }
            _ => [0, 1, 4096, random.below(65), random.below(4097)][random.below(5) as usize],
        };
    }
    let user = &mut user.words;
    if let Some(word) = letters.bytes() {
        let room = 4096 - 8 * letters.in_area() as u64;
        user[word] = match random.below(3) {
            0 => random.below(room + 1),
            1 => random.below(65.min(room + 1)),
            _ => room,
        };
        if obstacle == Obstacle::Long {
            user[word] = [room + 1, 1 << 32, u64::MAX, room + 1 + random.any() % 5000][random.below(4) as usize];
        }
    }
    if let Some(word) = letters.for_nucleus() {
        user[word] = if obstacle == Obstacle::Entry { random.any() | 1 } else { 0 };
    }
}

/// Bytes that go along in the message area.
fn bytes_of<I: Isa>(letters: &portalgen::Letters, user: &Registers) -> u64 {
    if letters.has_control() {
        user.others[I::CONTROL] & (WINDOW - 1)
    } else {
        letters.bytes().map_or(0, |word| user.words[word])
    }
}

/// Message bytes that may be touched.
fn reach(letters: &portalgen::Letters, bytes: u64) -> u64 {
    8 * letters.in_area() as u64 + bytes.min(4096).next_multiple_of(8)
}

/// One of the obstacles that there can be with these letters, in half of the cases.
fn draw_obstacle(random: &mut Random, letters: &portalgen::Letters, all: &[Obstacle]) -> Obstacle {
    let drawn = if random.once_in(2) { Obstacle::None } else { all[random.below(all.len() as u64) as usize] };
    match drawn {
        Obstacle::Long if letters.bytes().is_none() => Obstacle::None,
        Obstacle::Entry if letters.for_nucleus().is_none() && !letters.has_control() => Obstacle::None,
        Obstacle::Window if letters.window().is_none() => Obstacle::None,
        drawn => drawn,
    }
}

fn same(found: &Memory, expected: &Memory, what: &str) {
    let differences = found.differences(expected);
    assert!(differences.is_empty(), "{what}: {differences:#?}");
}

/// Another control word than this.
fn unexpected(random: &mut Random, control: u64) -> u64 {
    let drawn = match random.below(4) {
        0 => random.any(),
        1 => random.below(4097),
        2 => control ^ 1 << random.below(64),
        _ => u64::MAX - random.below(256),
    };
    if drawn == control { unexpected(random, control) } else { drawn }
}

/// A call of a portal of this specification; gives its decisions.
fn one_call<I: Isa>(mut random: Random, text: &str) -> Decisions {
    let specification = Specification::parse(text.as_bytes()).expect("a specification");
    let letters = &specification.call;
    use Obstacle::*;
    let obstacle =
        match draw_obstacle(&mut random, letters, &[Flow, NoActivation, Deep, Long, Entry, Unexpected, Window]) {
            Unexpected if expecting(&specification).is_none() => None,
            obstacle => obstacle,
        };
    let mut memory = prepare(&mut random);
    let mut user = any_user::<I>(&mut random);
    draw_words::<I>(&mut random, letters, &mut user, obstacle);
    let window = draw_window::<I>(&mut random, letters, &mut memory, &mut user, obstacle);
    align::<I>(&mut user);
    if let Some(control) = expecting(&specification) {
        user.others[I::CONTROL] = match obstacle {
            Unexpected => unexpected(&mut random, control),
            _ => control,
        };
    }
    let o = &OFFSETS;
    match obstacle {
        Obstacle::Flow => {
            let (object, field) =
                [(CALLER, o.domain_as_caller), (CALLEE, o.domain_as_callee), (ENTRY, o.entry_versions)]
                    [random.below(3) as usize];
            let value = memory.get(object, field) ^ 1 << random.below(64);
            memory.set(object, field, value);
            let mark = memory.get(CALLER, o.domain_as_caller) | memory.get(CALLEE, o.domain_as_callee);
            if mark == memory.get(ENTRY, o.entry_versions) {
                // The bit was set on the other side, too.
                return Decisions::new();
            }
        }
        Obstacle::NoActivation => memory.set(CALLEE, SHARE as i32 + o.per_cpu_pool, 0),
        Obstacle::Deep => memory.set(BELOW, o.activation_frame, 1 << 8 | 31 << 16),
        _ => {}
    }
    let before = memory.clone();
    let (bytes, extent) = I::write(&specification);
    let time = random.any();
    let mut processor = I::start(&user, ENTRY, true, time);
    memory.reach = reach(letters, bytes_of::<I>(letters, &user));
    let (end, _) = processor.run(&bytes, extent.call, &mut memory);
    assert!(memory.wrong.is_empty(), "{text}: {:?}", memory.wrong);
    memory.reach = 4096;

    let mut expected = before.clone();
    if matches!(obstacle, Long | Unexpected) {
        let refusal = if matches!(obstacle, Long) { REFUSE_CALL } else { REFUSE_CONTROL };
        assert_eq!(end, End::Jumped(refusal), "{text}");
        same(&memory, &before, text);
        let left = processor.user();
        assert_eq!((left.words, &left.preserved, left.sp), (user.words, &user.preserved, user.sp), "{text}: refused");
        return processor.decisions().clone();
    }
    // The registers that the caller keeps.
    expected.set(BELOW, o.activation_pc, user.pc);
    expected.set(BELOW, o.activation_sp, user.sp);
    let kept = I::saved_preserved(&mut memory, BELOW);
    if keeps(&specification) {
        assert_eq!(kept, user.preserved, "{text}: saved");
    }
    I::save_preserved(&mut expected, BELOW, &kept);
    let pointer = memory.get(BELOW, o.activation_pointer);
    if user.pointer != 0 && pointer == user.pointer {
        expected.set(BELOW, o.activation_pointer, pointer);
    }
    if obstacle != Obstacle::None {
        let target = if letters.has_control() { CALL_WITH_CONTROL } else { CALL_SLOWLY };
        assert_eq!(end, End::Jumped(target), "{text}: {obstacle:?}");
        same(&memory, &expected, text);
        assert_eq!(processor.user().words[..5], user.words[..5], "{text}: words for the slow path");
        keeps_control(&processor, &user, letters, text);
        return processor.decisions().clone();
    }
    let End::Left(left) = end else { panic!("{text}: {end:x?}") };
    let constant = memory.get(ENTRY, o.entry_word1);
    // The objects of the nucleus.
    let next = expected.get(ABOVE, o.activation_next);
    let frame = expected.get(BELOW, o.activation_frame);
    let crossings = expected.get(CALLER, SHARE as i32 + o.per_cpu_crossings).wrapping_add(1);
    let [table, limit, root] =
        [o.domain_table, o.domain_limit, SHARE as i32 + o.per_cpu_root].map(|field| expected.get(CALLEE, field));
    for (object, field, value) in [
        (CALLEE, SHARE as i32 + o.per_cpu_pool, next),
        (CALLER, SHARE as i32 + o.per_cpu_crossings, crossings),
        (ABOVE, o.activation_caller, BELOW),
        (ABOVE, o.activation_thread, THREAD),
        (ABOVE, o.activation_back, CODE + extent.back as u64),
        (BELOW, o.activation_callee, ABOVE),
        (THREAD, o.thread_top, ABOVE),
        (CPU, o.cpu_activation, ABOVE),
        (CPU, o.cpu_domain, CALLEE),
        (CPU, o.cpu_table, table),
        (CPU, o.cpu_limit, limit),
    ] {
        expected.set(object, field, value);
    }
    expected.write(ABOVE + o.activation_frame as u64, 4, (frame & 0xffff_ffff) + (1 << 16));
    expected.write(BELOW + o.activation_frame as u64, 2, CALLING.into());
    pass_area(&mut expected, letters, bytes_of::<I>(letters, &user), AREA_BELOW, AREA_ABOVE);
    let mut seen = Option::None;
    if let (Some(window), Some(word)) = (window, letters.window()) {
        let page = memory.get(DIRECT | PAGES, (window >> 9 & 0xff8) as i32);
        expected.set(SLOTS, PLACE as i32, I::window_page(page, window & WRITES != 0));
        expected.set(ABOVE, o.activation_window, window);
        seen = Some((word, SLOT | window & (WRITES | 0x1f)));
    }
    same(&memory, &expected, text);
    assert_eq!(processor.root(), root, "{text}: the page tables");
    // The callee's registers.
    let mut arrive = passed(letters, user.words, constant, time);
    if let Some((word, window)) = seen {
        arrive[word] = window;
    }
    let minimal = !keeps(&specification);
    let mut expected = Registers {
        pc: memory.get(ENTRY, o.entry_word0),
        sp: memory.get(ABOVE, o.activation_stack),
        status: if letters.has_badge() { constant } else { 0 },
        words: arrive,
        preserved: (0..I::PRESERVED).map(|_| 0).collect(),
        others: others::<I>(letters, &user),
        pointer: 0,
    };
    let area = memory.get(ABOVE, o.activation_message);
    I::AREA.0.into_iter().filter(|_| !minimal).for_each(|place| expected.preserved[place] = area);
    I::AREA.1.into_iter().for_each(|place| expected.others[place] = area);
    compare_users::<I>(&left, expected, letters, minimal.then_some(&user.preserved), text);
    processor.decisions().clone()
}

/// The registers that have no words: clear, but for the control word.
fn others<I: Isa>(letters: &portalgen::Letters, user: &Registers) -> Vec<u64> {
    let control = |place| if place == I::CONTROL && letters.has_control() { user.others[place] } else { 0 };
    (0..I::OTHERS).map(control).collect()
}

/// Compares what arrives; `through` are preserved registers that are neither kept nor cleared.
fn compare_users<I: Isa>(
    left: &Registers,
    mut expected: Registers,
    letters: &portalgen::Letters,
    through: Option<&Vec<u64>>,
    text: &str,
) {
    for place in 0..I::PRESERVED {
        if let Some(values) = through {
            expected.preserved[place] = values[place];
        }
        if carries::<I>(letters, place) {
            let word = I::WORDS_IN_PRESERVED.iter().position(|other| *other == Some(place)).expect("carries");
            expected.preserved[place] = expected.words[word];
        } else if let Some(word) = I::WORDS_IN_PRESERVED.iter().position(|other| *other == Some(place)) {
            expected.words[word] = expected.preserved[place];
        }
    }
    assert_eq!(left, &expected, "{text}");
}

/// The slow path finds the control word.
fn keeps_control<I: Isa>(processor: &I, user: &Registers, letters: &portalgen::Letters, text: &str) {
    if letters.has_control() {
        assert_eq!(processor.user().others[I::CONTROL], user.others[I::CONTROL], "{text}: the control word");
    }
}

/// A return from a portal of this specification; gives its decisions.
fn one_return<I: Isa>(mut random: Random, text: &str) -> Decisions {
    let specification = Specification::parse(text.as_bytes()).expect("a specification");
    let letters = &specification.result;
    let obstacle = draw_obstacle(&mut random, letters, &[Obstacle::Special, Obstacle::Long, Obstacle::Entry]);
    let obstacle = match specification.call.window() {
        Some(_) if random.once_in(4) => Obstacle::Window,
        _ => obstacle,
    };
    let o = &OFFSETS;
    let mut memory = prepare(&mut random);
    let mut is_open = false;
    if specification.call.window().is_some() {
        let page = random.any() << 12;
        is_open = obstacle == Obstacle::Window || random.once_in(2);
        let pages = if obstacle == Obstacle::Window { 2 + random.below(15) } else { 1 };
        memory.set(ABOVE, o.activation_window, if is_open { page | random.below(2) << 5 | pages } else { 0 });
        memory.set(SLOTS, PLACE as i32, random.any());
    }
    let pool = if random.once_in(2) { NEXT } else { 0 };
    for (object, field, value) in [
        (CPU, o.cpu_domain, CALLEE),
        (CPU, o.cpu_activation, ABOVE),
        (CALLEE, SHARE as i32 + o.per_cpu_pool, pool),
        (ABOVE, o.activation_caller, BELOW),
        (ABOVE, o.activation_frame, 1 << 8 | 3 << 16),
        (BELOW, o.activation_frame, CALLING as u64 | 2 << 16),
        (BELOW, o.activation_callee, ABOVE),
    ] {
        memory.set(object, field, value);
    }
    if obstacle == Obstacle::Special {
        let domain = [CALLER, CALLEE][random.below(2) as usize];
        memory.write(domain + o.domain_slow as u64, 1, 1 << random.below(8));
    }
    let caller = any_user::<I>(&mut random);
    memory.set(BELOW, o.activation_pc, caller.pc);
    memory.set(BELOW, o.activation_sp, caller.sp);
    memory.set(BELOW, o.activation_pointer, caller.pointer);
    I::save_preserved(&mut memory, BELOW, &caller.preserved);
    let mut user = any_user::<I>(&mut random);
    draw_words::<I>(&mut random, letters, &mut user, obstacle);
    align::<I>(&mut user);
    let before = memory.clone();
    let (bytes, extent) = I::write(&specification);
    let time = random.any();
    let mut processor = I::start(&user, ABOVE, false, time);
    memory.reach = reach(letters, bytes_of::<I>(letters, &user));
    let (end, _) = processor.run(&bytes, extent.back, &mut memory);
    assert!(memory.wrong.is_empty(), "{text}: {:?}", memory.wrong);
    memory.reach = 4096;
    let mut expected = before.clone();
    match obstacle {
        Obstacle::Long | Obstacle::Entry | Obstacle::Window => {
            let target = if obstacle == Obstacle::Long { REFUSE_RETURN } else { RETURN_SLOWLY };
            assert_eq!(end, End::Jumped(target), "{text}");
            same(&memory, &before, text);
            let left = processor.user();
            assert_eq!((left.words, &left.preserved, left.sp), (user.words, &user.preserved, user.sp), "{text}");
            return processor.decisions().clone();
        }
        Obstacle::Special => {
            let target = match keeps(&specification) {
                _ if !I::SPOILS => RETURN_SLOWLY,
                _ if letters.has_control() => RETURN_WITH_CONTROL,
                true => RETURN_SPOILED,
                false => RETURN_KEPT,
            };
            assert_eq!(end, End::Jumped(target), "{text}");
            let kept = if letters.has_control() { 5 } else { REGISTER_WORDS };
            assert_eq!(processor.user().words[..kept], user.words[..kept], "{text}: words for the slow path");
            keeps_control(&processor, &user, letters, text);
            let kept = I::saved_preserved(&mut memory, ABOVE);
            I::save_preserved(&mut expected, ABOVE, &kept);
            same(&memory, &expected, text);
            return processor.decisions().clone();
        }
        _ => {}
    }
    let End::Left(left) = end else { panic!("{text}: {end:x?}") };
    let kept = I::saved_preserved(&mut memory, ABOVE);
    I::save_preserved(&mut expected, ABOVE, &kept);
    let [table, limit, root] =
        [o.domain_table, o.domain_limit, SHARE as i32 + o.per_cpu_root].map(|field| expected.get(CALLER, field));
    for (object, field, value) in [
        (ABOVE, o.activation_next, pool),
        (CALLEE, SHARE as i32 + o.per_cpu_pool, ABOVE),
        (THREAD, o.thread_top, BELOW),
        (CPU, o.cpu_activation, BELOW),
        (CPU, o.cpu_domain, CALLER),
        (CPU, o.cpu_table, table),
        (CPU, o.cpu_limit, limit),
    ] {
        expected.set(object, field, value);
    }
    expected.write(ABOVE + o.activation_state as u64, 1, FREE.into());
    expected.write(BELOW + o.activation_state as u64, 1, TOP.into());
    pass_area(&mut expected, letters, bytes_of::<I>(letters, &user), AREA_ABOVE, AREA_BELOW);
    if is_open {
        expected.set(SLOTS, PLACE as i32, 0);
        expected.set(ABOVE, o.activation_window, 0);
    }
    assert_eq!(processor.dropped(), I::must_drop(SLOT).filter(|_| is_open), "{text}: the translation of the window");
    same(&memory, &expected, text);
    assert_eq!(processor.root(), root, "{text}: the page tables");
    let minimal = !keeps(&specification);
    let expected = Registers {
        pc: caller.pc,
        sp: caller.sp,
        status: 0,
        words: passed(letters, user.words, 0, time),
        preserved: caller.preserved.clone(),
        others: others::<I>(letters, &user),
        pointer: left.pointer,
    };
    compare_users::<I>(&left, expected, letters, minimal.then_some(&user.preserved), text);
    processor.decisions().clone()
}

const CASES: u32 = if cfg!(debug_assertions) { 1_000 } else { 40_000 };

pub fn calls<I: Isa>() {
    any_crossing(one_call::<I>);
}

pub fn returns<I: Isa>() {
    any_crossing(one_return::<I>);
}

/// Random crossings of random portals.
fn any_crossing(cross: fn(Random, &str) -> Decisions) {
    proptest!(ProptestConfig { cases: CASES, failure_persistence: None, ..ProptestConfig::default() }, |(seed: u64)| {
        let mut random = Random(seed);
        let text = any_specification(&mut random);
        cross(random, &text);
    });
}

/// Each conditional branch of these portals is taken in one crossing, and not in another: no specification decides it.
pub fn decided_by_crossings<I: Isa>(isa: listing::Isa) {
    for text in TABLE.map(String::from_utf8_lossy) {
        let specification = listing::specification(&text).expect("a specification");
        let both_ways = 2 * crate::branches::conditional(isa, &specification);
        let mut seen = Decisions::new();
        for seed in 0..5_000 {
            seen.extend(one_call::<I>(Random(seed), &text));
            seen.extend(one_return::<I>(Random(seed), &text));
            if seen.len() == both_ways {
                break;
            }
        }
        let always: Vec<_> = seen.iter().filter(|(at, taken)| !seen.contains(&(*at, !taken))).collect();
        assert!(seen.len() == both_ways, "{text}: {} of {both_ways}; only one way: {always:x?}", seen.len());
    }
}

/// A call executes the instructions of its listing and no others, if no bytes go along.
pub fn counted<I: Isa>(isa: &str) {
    for text in TABLE {
        let specification = Specification::parse(text).expect("a specification");
        let name = String::from_utf8_lossy(text).replace('>', "-");
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("golden/{isa}-{name}.txt"));
        let listing = std::fs::read_to_string(path).expect("a listing");
        let counts: Vec<usize> =
            listing.lines().filter_map(|line| line.trim().strip_suffix(" instructions")?.parse().ok()).collect();
        let mut random = Random(1);
        let mut memory = prepare(&mut random);
        let mut user = any_user::<I>(&mut random);
        for letters in [&specification.call, &specification.result] {
            draw_words::<I>(&mut random, letters, &mut user, Obstacle::None);
            let lengths = letters.iter().filter(|(_, letter)| *letter == Letter::Bytes);
            lengths.for_each(|(word, _)| user.words[word] = 8);
            if letters.has_control() {
                user.others[I::CONTROL] = 8;
            }
        }
        if let Some(control) = expecting(&specification) {
            user.others[I::CONTROL] = control;
        }
        // A listing counts what a window takes.
        while specification.call.window().is_some()
            && draw_window::<I>(&mut random, &specification.call, &mut memory, &mut user, Obstacle::None).is_none()
        {
        }
        let has_loop = |letters: &portalgen::Letters| I::LOOPS && (letters.bytes().is_some() || letters.has_control());
        let (bytes, extent) = I::write(&specification);
        let (end, count) = I::start(&user, ENTRY, true, 0).run(&bytes, extent.call, &mut memory);
        assert!(matches!(end, End::Left(_)), "{name}");
        assert!(count == counts[1] || has_loop(&specification.call), "{name}: call: {count}");
        if specification.result.has_control() {
            user.others[I::CONTROL] = 8;
        }
        let (end, count) = I::start(&user, ABOVE, false, 0).run(&bytes, extent.back, &mut memory);
        assert!(matches!(end, End::Left(_)), "{name}");
        assert!(count == counts[0] || has_loop(&specification.result), "{name}: return: {count}");
    }
}
