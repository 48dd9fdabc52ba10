//! The engine against the specification, with all its memory and with too little. Each property has some hundred cases; `--soak` adds a million.

mod properties;

use flow::rules::{self, Admission, Labels, Stop, Unfinished, Work};
use flow::specification as spec;
use flow::{Exhausted, Handle, Heap, Label, Level, Pool};
use std::io::Write as _;

/// Cases of each property; Miri is slow.
const CASES: u32 = if cfg!(miri) { 4 } else { 600 };

/// Whether operations are also tried with too little memory.
#[derive(Clone, Copy)]
enum Memory {
    Scarce,
    Plentiful,
}

const PLENTY: usize = 1 << 20;

fn handle(number: u64) -> Handle {
    Handle::new(number & (u64::MAX >> 3)).expect("61 bits")
}

fn pool() -> Pool<Heap> {
    Pool::new(Heap::new(PLENTY), 0)
}

fn into(pool: &mut Pool<Heap>, label: &spec::Label) -> Label {
    let mut made = Label::of(label.default);
    for (handle, level) in &label.entries {
        let next = pool.set(made, *handle, *level).expect("room");
        pool.release(made);
        made = next;
    }
    made
}

fn from(pool: &Pool<Heap>, label: Label) -> spec::Label {
    let mut entries = Vec::new();
    pool.each(label, |handle, level| entries.push((handle, level)));
    assert!(entries.iter().all(|(_, level)| *level != label.default));
    assert_eq!(entries.len(), pool.entries(label) as usize);
    spec::Label::new(label.default, entries)
}

/// All labels of a case in a pool; in the end nothing may be left.
struct Case {
    pool: Pool<Heap>,
    made: Vec<Label>,
    memory: Memory,
}

impl Case {
    fn new(memory: Memory) -> Self {
        Self { pool: pool(), made: Vec::new(), memory }
    }

    fn label(&mut self, label: &spec::Label) -> Label {
        let made = into(&mut self.pool, label);
        self.made.push(made);
        made
    }

    /// A result is what the specification says, has the form that it would have if it had been put together, and goes.
    fn check(&mut self, made: Label, right: &spec::Label) {
        assert_eq!(from(&self.pool, made), *right);
        let again = into(&mut self.pool, right);
        assert_eq!(self.pool.nodes(made), self.pool.nodes(again), "the same label has another form");
        self.pool.release(made);
        self.pool.release(again);
    }

    /// The same with less and less memory: nothing is left behind when there is no room.
    fn scarce<T>(&mut self, work: impl Fn(&mut Pool<Heap>) -> Result<T, Exhausted>, mut end: impl FnMut(&mut Self, T)) {
        assert!(self.pool.tidy(usize::MAX));
        let before = self.pool.memory().used();
        let least = match self.memory {
            Memory::Scarce => 0,
            Memory::Plentiful => PLENTY - before,
        };
        for room in least.. {
            self.pool.memory_mut().limit(before + room);
            let outcome = work(&mut self.pool);
            self.pool.memory_mut().limit(PLENTY);
            let is_enough = outcome.is_ok();
            if let Ok(made) = outcome {
                end(self, made);
            }
            assert!(self.pool.tidy(usize::MAX));
            assert_eq!(self.pool.memory().used(), before, "with room for {room}");
            if is_enough {
                return;
            }
        }
    }

    fn end(mut self) {
        self.made.drain(..).for_each(|label| self.pool.release(label));
        assert!(self.pool.tidy(usize::MAX));
        assert_eq!(self.pool.memory().used(), 0, "something was kept");
    }
}

#[test]
fn order_and_bounds_are_those_of_the_levels() {
    properties::order_and_bounds_are_those_of_the_levels(CASES, Memory::Scarce);
}

#[test]
fn bounds_are_bounds() {
    properties::bounds_are_bounds(CASES, Memory::Scarce);
}

#[test]
fn levels_are_what_they_were_set_to() {
    properties::levels_are_what_they_were_set_to(CASES, Memory::Scarce);
}

#[test]
fn messages() {
    properties::messages(CASES, Memory::Scarce);
}

#[test]
fn calls_objects_and_children() {
    properties::calls_objects_and_children(CASES, Memory::Scarce);
}

#[test]
fn own_labels() {
    properties::own_labels(CASES, Memory::Scarce);
}

#[test]
fn rules_are_monotone() {
    properties::rules_are_monotone(CASES, Memory::Scarce);
}

/// With all its memory, which is faster, and tried above.
#[test]
#[ignore = "a million cases: with --soak"]
fn a_million_cases() {
    const PARTS: u32 = 100;
    let all = [
        properties::order_and_bounds_are_those_of_the_levels,
        properties::bounds_are_bounds,
        properties::levels_are_what_they_were_set_to,
        properties::messages,
        properties::calls_objects_and_children,
        properties::own_labels,
        properties::rules_are_monotone,
    ];
    let cases = 1_000_000_u32.div_ceil(PARTS * all.len() as u32);
    for part in 1..=PARTS {
        all.iter().for_each(|property| property(cases, Memory::Plentiful));
        // Past the test harness, which keeps other output until the end.
        let _ = writeln!(std::io::stderr(), "flow::engine::a_million_cases: {} cases", part * cases * all.len() as u32);
    }
}

/// A thousand handles of one part of all make a deep tree, which works as any other.
#[test]
fn handles_that_share_their_low_bits() {
    let mut case = Case::new(Memory::Scarce);
    let one = spec::Label::new(Level::One, (0..1_000).map(|number| (handle(number << 40 | 5), Level::Three)));
    let other = spec::Label::new(Level::Two, (500..1_500).map(|number| (handle(number << 40 | 5), Level::Star)));
    let (a, b) = (case.label(&one), case.label(&other));
    let right = spec::Label::each([&one, &other], |[one, other]| one.min(other));
    let made = case.pool.lower(a, b).expect("room");
    case.check(made, &right);
    assert!(!case.pool.is_below(a, b) && !case.pool.is_below(b, a));
    case.end();
}

/// Labels that differ in one handle share all but a path; a label is found to be below one that it shares nearly all with by
/// looking at that path.
#[test]
fn labels_that_differ_a_little_share_the_rest() {
    let mut case = Case::new(Memory::Scarce);
    let entries = (0..10_000u64).map(|number| (handle(number.wrapping_mul(0x9e37_79b9_7f4a_7c15)), Level::Three));
    let large = case.label(&spec::Label::new(Level::One, entries));
    let used = case.pool.memory().used();
    let more = case.pool.set(large, handle(77), Level::Three).expect("room");
    case.made.push(more);
    assert!(case.pool.memory().used() - used < 10, "{}", case.pool.memory().used() - used);
    assert!(case.pool.nodes(more) as usize > used - 10, "each is charged as if it were alone");
    let before = case.pool.looked_at();
    assert!(case.pool.is_below(large, more) && !case.pool.is_below(more, large));
    assert!(case.pool.looked_at() - before < 300, "{}", case.pool.looked_at() - before);
    case.end();
}

/// Calls of domains with the usual labels, but for one handle, which has each level in each label; through a portal of each level, too.
#[test]
fn calls_with_all_levels_of_one_handle() {
    let mut case = Case::new(Memory::Plentiful);
    let all = |default| Level::ALL.map(|level| spec::Label::new(default, [(handle(5), level)]));
    let kinds = [Level::One, Level::Two, Level::One, Level::Two, Level::Three].map(all);
    let made = kinds.each_ref().map(|labels| labels.each_ref().map(|label| case.label(label)));
    for number in 0..2 * 5_usize.pow(5) {
        let level = |kind: u32| number / 2 / 5_usize.pow(kind) % 5;
        let is_explicit = number % 2 == 1;
        let domain = |kind: usize| Labels {
            send: made[kind][level(kind as u32)],
            receive: made[kind + 1][level(kind as u32 + 1)],
            is_explicit,
        };
        let of = |kind: usize| kinds[kind][level(kind as u32)].clone();
        let right_domain = |kind: usize| spec::Labels { send: of(kind), receive: of(kind + 1), is_explicit };
        let (caller, callee, portal) = (domain(0), domain(2), made[4][level(4)]);
        let admission = case.pool.finish(1, |pool, work| rules::admit(pool, work, &caller, &callee, portal));
        match (admission, spec::admit(&right_domain(0), &right_domain(2), &of(4))) {
            (Ok(Admission::Raised(made)), spec::Admission::Raised(right)) => case.check(made, &right),
            (Ok(Admission::Admitted), spec::Admission::Admitted)
            | (Ok(Admission::Refused), spec::Admission::Refused) => {}
            other => panic!("{other:?}: {:?}, {:?}, {:?}", right_domain(0), right_domain(2), of(4)),
        }
    }
    case.end();
}

/// Labels of ten thousand handles: no step looks at much more than it may, and what comes of all is right.
#[test]
fn long_operations_stop_on_their_way() {
    const EFFORT: u32 = 8;
    const MOST: u64 = 300;
    let mut case = Case::new(Memory::Scarce);
    let many = |factor: u64, level| {
        let handles = (1..=10_000u64).map(move |number| handle(number.wrapping_mul(factor)));
        spec::Label::new(Level::One, handles.map(move |handle| (handle, level)))
    };
    let (one, other) = (many(0x9e37_79b9_7f4a_7c15, Level::Three), many(0xc2b2_ae3d_27d4_eb4f, Level::Star));
    // The callee is tainted as the caller is, and owns as much besides.
    let other = spec::Label::new(Level::One, one.entries.clone().into_iter().chain(other.entries));
    let (a, b) = (case.label(&one), case.label(&other));
    let domain = |send| Labels { send, receive: Label::of(Level::Three), is_explicit: false };
    let (caller, callee) = (domain(a), domain(b));
    let mut work = Work::new();
    let (mut steps, mut most) = (0, 0);
    let admission = loop {
        work.resume(EFFORT);
        let before = case.pool.looked_at();
        let outcome = rules::admit(&mut case.pool, &mut work, &caller, &callee, Label::of(Level::Three));
        most = most.max(case.pool.looked_at() - before);
        match outcome {
            Err(Stop::Again) => steps += 1,
            Err(Stop::Exhausted) => panic!("there is room"),
            Ok(admission) => break admission,
        }
    };
    work.end(&mut case.pool);
    let right = spec::admit(
        &spec::Labels { send: one, receive: spec::Label::of(Level::Three), is_explicit: false },
        &spec::Labels { send: other, receive: spec::Label::of(Level::Three), is_explicit: false },
        &spec::Label::of(Level::Three),
    );
    assert!(matches!((admission, &right), (Admission::Admitted, spec::Admission::Admitted)), "{right:?}");
    assert!(steps > 30 && most < MOST, "{steps} steps of {most} nodes at most");
    case.end();
}

/// Somebody else's labels are copied by what is made of them: no node is left in the hands of two. A copy is known to be one without a look at its
/// entries.
#[test]
fn new_labels_belong_to_their_payer() {
    let [mine, yours] = [0, 1];
    let mut case = Case::new(Memory::Scarce);
    let many = |first: u64, count: u64, level| {
        let handles = (first..first + count).map(|number| handle(number.wrapping_mul(0x9e37_79b9_7f4a_7c15)));
        spec::Label::new(Level::One, handles.map(move |handle| (handle, level)))
    };
    let (few, much) = (many(0, 30, Level::Three), many(0, 10_000, Level::Three));
    let more = many(9_990, 20, Level::Star);
    let [a, b, c] = [&few, &much, &more].map(|label| case.label(label));
    case.pool.pay(yours);
    let used = case.pool.memory().used_by(yours);
    assert_eq!(used, 0);
    let mut copies = Vec::new();
    for (label, right) in [(a, &few), (b, &much)] {
        let copy = case.pool.finish(1, |pool, work| rules::copied(pool, work, label)).expect("room");
        assert_eq!(from(&case.pool, copy), spec::Label::each([right], |[level]| level));
        assert_eq!(case.pool.name(copy), case.pool.name(label), "a copy has the identity of what it is of");
        copies.push(copy);
    }
    let nodes: u32 = copies.iter().map(|copy| case.pool.nodes(*copy)).sum();
    case.pool.tidy(usize::MAX);
    assert_eq!(case.pool.memory().used_by(yours), nodes as usize);
    let before = case.pool.looked_at();
    assert!(case.pool.is_below(a, copies[0]) && case.pool.is_below(copies[0], a));
    assert!(case.pool.looked_at() - before < 8, "a copy of a leaf is known");
    let changed = case.pool.set(b, handle(5), Level::Zero).expect("room");
    let mixed = case.pool.lower(b, c).expect("room");
    let right = spec::Label::each([&much, &more], |[one, other]| one.min(other));
    assert_eq!(from(&case.pool, mixed), right);
    let before = case.pool.memory().used_by(mine);
    case.made.drain(..).for_each(|label| case.pool.release(label));
    assert!(case.pool.tidy(usize::MAX) && before > 0);
    assert_eq!(case.pool.memory().used_by(mine), 0, "something of mine is in what you made");
    assert_eq!(from(&case.pool, mixed), right);
    copies.extend([changed, mixed]);
    case.made = copies;
    case.end();
}

/// Labels without entries are judged at once, whatever their levels.
#[test]
fn labels_without_entries() {
    let plain = |number: usize, is_explicit| {
        let [send, receive] = [Level::ALL[number / 5], Level::ALL[number % 5]];
        let engine = Labels { send: Label::of(send), receive: Label::of(receive), is_explicit };
        (engine, spec::Labels { send: spec::Label::of(send), receive: spec::Label::of(receive), is_explicit })
    };
    for number in 0..2 * 25 * 25 {
        let ((caller, specified), (callee, other)) =
            (plain(number % 25, number >= 625), plain(number / 25 % 25, false));
        let right = match spec::admit(&specified, &other, &spec::Label::of(Level::Three)) {
            spec::Admission::Admitted => Some(true),
            spec::Admission::Refused => Some(false),
            spec::Admission::Raised(_) => None,
        };
        let (send, receive) = spec::inherited(&specified);
        let child = rules::inherit_plain(&caller).expect("no entries");
        assert_eq!((child.send, child.receive), (Label::of(send.default), Label::of(receive.default)));
        let judged = rules::admit_plain(&caller, &callee);
        assert!(judged == right || judged.is_none() && right == Some(false), "{specified:?} to {other:?}: {judged:?}");
    }
}

/// A result for some labels is no answer about others. It goes with the next question, or with its owner.
#[test]
fn a_question_that_is_not_at_its_end() {
    let mut case = Case::new(Memory::Scarce);
    // Levels that take turns, so that a look at the smallest and the largest is not enough.
    let mut label = |even, odd| {
        let level = |number: u64| if number.is_multiple_of(2) { even } else { odd };
        let entries = (0..100).map(|number| (handle(number << 40 | number), level(number)));
        case.label(&spec::Label::new(Level::One, entries))
    };
    let low = label(Level::Zero, Level::Two);
    let high = label(Level::One, Level::Three);
    let lowest = label(Level::Zero, Level::One);
    // May it report? The first may, the others not: by what the other accepts, and by how tainted the other is.
    let asked = [(low, high, high, true), (high, high, low, false), (low, lowest, high, false)];
    let mut place = Unfinished::NONE;
    let mut ask = |pool: &mut Pool<Heap>, send, other, receive| {
        let from = Labels { send, receive: Label::of(Level::Three), is_explicit: true };
        let to = Labels { send: other, receive, is_explicit: true };
        let mut answer = false;
        let outcome = place.step(pool, 1, &[send, other, receive], (1, false), &mut |pool, work| {
            answer = rules::may_report(pool, work, &from, &to)?;
            Ok(())
        });
        outcome.map(|()| answer)
    };
    let mut most = 0;
    for (before, steps) in asked.iter().flat_map(|before| (1..100).map(move |steps| (before, steps))) {
        for (send, other, receive, right) in asked {
            // Some steps towards another answer, or the same.
            let unfinished =
                (0..steps).take_while(|_| ask(&mut case.pool, before.0, before.1, before.2) == Err(Stop::Again));
            most = most.max(unfinished.count());
            let answer = loop {
                match ask(&mut case.pool, send, other, receive) {
                    Err(Stop::Again) => {}
                    Err(Stop::Exhausted) => panic!("there is room"),
                    Ok(answer) => break answer,
                }
            };
            assert_eq!(answer, right, "after {steps} steps");
        }
    }
    assert!((2..99).contains(&most), "answers take {most} steps and one more");
    case.end();
}
