//! The engine against the specification, with all its memory and with too little.

use flow::rules::{self, Admission, Labels, Optional, Stop, Unfinished, Work};
use flow::specification as spec;
use flow::{Exhausted, Handle, Heap, Label, Level, Pool};
use proptest::prelude::*;
use proptest::sample::select;

/// Runs of each property; Miri is slow, and so is a build without optimisation. `FLOW_RUNS=200000` for a long one.
fn runs() -> ProptestConfig {
    let runs = std::env::var("FLOW_RUNS").ok().and_then(|runs| runs.parse().ok());
    ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(runs.unwrap_or(if cfg!(miri) { 4 } else { 600 }))
    }
}

const PLENTY: usize = 1 << 20;

fn handle(number: u64) -> Handle {
    Handle::new(number & (u64::MAX >> 3)).expect("61 bits")
}

fn level() -> impl Strategy<Value = Level> {
    select(&Level::ALL[..])
}

/// Handles in a row, such as differ in their highest bits only, or anywhere; so that two labels have some in common.
fn some_handle() -> impl Strategy<Value = Handle> {
    prop_oneof![
        (0u64..40).prop_map(handle),
        (0u64..200).prop_map(|number| handle(number << 53)),
        (0u64..1_000).prop_map(|number| handle(number.wrapping_mul(0x9e37_79b9_7f4a_7c15))),
        any::<u64>().prop_map(handle),
        select(&[0, u64::MAX][..]).prop_map(handle),
    ]
}

fn label() -> impl Strategy<Value = spec::Label> {
    let entries = prop_oneof![
        3 => prop::collection::vec((some_handle(), level()), 0..6),
        2 => prop::collection::vec((some_handle(), level()), 0..70),
        1 => prop::collection::vec((some_handle(), level()), 0..1_000),
    ];
    // Labels of few levels meet each other's bounds.
    let narrow =
        (level(), prop::collection::vec(some_handle(), 0..300), level()).prop_map(|(default, handles, level)| {
            spec::Label::new(default, handles.into_iter().map(|handle| (handle, level)))
        });
    prop_oneof![2 => (level(), entries).prop_map(|(default, entries)| spec::Label::new(default, entries)), 1 => narrow]
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
}

impl Case {
    fn new() -> Self {
        Self { pool: pool(), made: Vec::new() }
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
        for room in 0.. {
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

fn optional() -> impl Strategy<Value = spec::Optional> {
    let one = |default: Level| prop_oneof![2 => Just(spec::Label::of(default)), 1 => label(), 3 => few(default, 0..4)];
    (one(Level::Star), one(Level::Three), one(Level::Three), one(Level::Star)).prop_map(
        |(contaminate, decontaminate_send, verify, decontaminate_receive)| spec::Optional {
            contaminate,
            decontaminate_send,
            verify,
            decontaminate_receive,
        },
    )
}

fn domain() -> impl Strategy<Value = spec::Labels> {
    (label(), label(), any::<bool>()).prop_map(|(send, receive, is_explicit)| spec::Labels {
        send,
        receive,
        is_explicit,
    })
}

/// A default, and some of few handles.
fn few(default: Level, count: core::ops::Range<usize>) -> impl Strategy<Value = spec::Label> {
    let entries = prop::collection::vec(((0u64..6).prop_map(handle), level()), count);
    entries.prop_map(move |entries| spec::Label::new(default, entries))
}

/// Domains as they are: mostly defaults, and a few handles; and such as accept nearly all.
fn likely() -> impl Strategy<Value = spec::Labels> {
    let receive = prop_oneof![few(Level::Two, 0..5), few(Level::Three, 0..2)];
    (few(Level::One, 0..5), receive, any::<bool>()).prop_map(|(send, receive, is_explicit)| spec::Labels {
        send,
        receive,
        is_explicit,
    })
}

fn any_domain() -> impl Strategy<Value = spec::Labels> {
    prop_oneof![1 => domain(), 3 => likely()]
}

fn any_label() -> impl Strategy<Value = spec::Label> {
    prop_oneof![1 => label(), 1 => likely().prop_map(|domain| domain.send), 2 => likely().prop_map(|domain| domain.receive)]
}

impl Case {
    fn domain(&mut self, domain: &spec::Labels) -> Labels {
        let (send, receive) = (self.label(&domain.send), self.label(&domain.receive));
        Labels { send, receive, is_explicit: domain.is_explicit }
    }

    fn optional(&mut self, optional: &spec::Optional) -> Optional {
        Optional {
            contaminate: self.label(&optional.contaminate),
            decontaminate_send: self.label(&optional.decontaminate_send),
            verify: self.label(&optional.verify),
            decontaminate_receive: self.label(&optional.decontaminate_receive),
        }
    }
}

/// Nodes that are looked at in a step: as few as can be, some, and all at once.
fn effort() -> impl Strategy<Value = u32> {
    select(&[0, 1, 5, u32::MAX][..])
}

proptest! {
    #![proptest_config(runs())]

    #[test]
    fn order_and_bounds_are_those_of_the_levels(one in any_label(), other in any_label()) {
        let mut case = Case::new();
        let [a, b] = [&one, &other].map(|label| case.label(label));
        prop_assert_eq!(case.pool.is_below(a, b), spec::always([&one, &other], |[one, other]| one <= other));
        let higher = spec::Label::each([&one, &other], |[one, other]| one.max(other));
        let lower = spec::Label::each([&one, &other], |[one, other]| one.min(other));
        case.scarce(|pool| pool.higher(a, b), |case, made| case.check(made, &higher));
        case.scarce(|pool| pool.lower(a, b), |case, made| case.check(made, &lower));
        case.end();
    }

    #[test]
    fn bounds_are_bounds(one in any_label(), other in any_label(), third in any_label()) {
        let mut case = Case::new();
        let [a, b, c] = [&one, &other, &third].map(|label| case.label(label));
        let (higher, lower) = (case.pool.higher(a, b).expect("room"), case.pool.lower(a, b).expect("room"));
        let pool = &case.pool;
        prop_assert!(pool.is_below(a, higher) && pool.is_below(b, higher));
        prop_assert!(pool.is_below(lower, a) && pool.is_below(lower, b));
        prop_assert_eq!(pool.is_below(higher, c), pool.is_below(a, c) && pool.is_below(b, c));
        prop_assert_eq!(pool.is_below(c, lower), pool.is_below(c, a) && pool.is_below(c, b));
        prop_assert_eq!(pool.is_below(a, b) && pool.is_below(b, a), one == other);
        case.made.extend([higher, lower]);
        case.end();
    }

    #[test]
    fn levels_are_what_they_were_set_to(changes in prop::collection::vec((some_handle(), level()), 0..400), default in level()) {
        let (mut case, mut right) = (Case::new(), spec::Label::of(default));
        let mut made = Label::of(default);
        for (handle, level) in &changes {
            right.set(*handle, *level);
            let next = case.pool.set(made, *handle, *level).expect("room");
            case.pool.release(made);
            made = next;
            prop_assert_eq!(case.pool.get(made, *handle), *level);
        }
        changes.iter().for_each(|(handle, _)| assert_eq!(case.pool.get(made, *handle), right.get(*handle)));
        let levels = right.entries.values().copied().chain([default]);
        let bounds = (levels.clone().min().expect("one"), levels.max().expect("one"));
        prop_assert_eq!((case.pool.bounds(made).least, case.pool.bounds(made).most), bounds);
        case.check(made, &right);
        case.end();
    }

    #[test]
    fn messages(sender in any_domain(), receiver in any_domain(), port in any_label(), optional in optional(), effort in effort()) {
        let mut case = Case::new();
        let (p, q) = (case.domain(&sender), case.domain(&receiver));
        let (o, label) = (case.optional(&optional), case.label(&port));
        let may_send = case.pool.finish(effort, |pool, work| rules::may_send(pool, work, p.send, &o));
        prop_assert_eq!(may_send, Ok(spec::may_send(&sender.send, &optional)));
        let effective = spec::effective(&sender.send, &optional);
        let e = case.label(&effective);
        case.scarce(|pool| pool.finish(effort, |pool, work| rules::effective(pool, work, p.send, &o)), |case, made| case.check(made, &effective));
        let right = spec::deliver(&effective, &optional, &port, &receiver);
        case.scarce(
            |pool| pool.finish(effort, |pool, work| rules::deliver(pool, work, e, &o, label, &q)),
            |case, made| match (made, &right) {
                (Some((send, receive)), Some(right)) => {
                    case.check(send, &right.0);
                    case.check(receive, &right.1);
                }
                (made, right) => assert_eq!(made.is_some(), right.is_some()),
            },
        );
        case.end();
    }

    #[test]
    fn calls_objects_and_children(caller in any_domain(), callee in any_domain(), object in any_label(), effort in effort()) {
        let mut case = Case::new();
        let (p, q, label) = (case.domain(&caller), case.domain(&callee), case.label(&object));
        let right = spec::admit(&caller, &callee, &object);
        case.scarce(
            |pool| pool.finish(effort, |pool, work| rules::admit(pool, work, &p, &q, label)),
            |case, made| match (made, &right) {
                (Admission::Raised(made), spec::Admission::Raised(right)) => case.check(made, right),
                (Admission::Admitted, spec::Admission::Admitted) | (Admission::Refused, spec::Admission::Refused) => {}
                other => panic!("{other:?}"),
            },
        );
        if let Some(is_admitted) = rules::admit_plain(&p, &q) {
            let right = spec::admit(&caller, &callee, &spec::Label::of(Level::Three));
            prop_assert_eq!(is_admitted, matches!(right, spec::Admission::Admitted));
        }
        let right = spec::observe(&caller, &object);
        case.scarce(
            |pool| pool.finish(effort, |pool, work| rules::observe(pool, work, &p, label)),
            |case, made| match (made, &right) {
                (Some(made), Some(right)) => case.check(made, right),
                (made, right) => assert_eq!(made.is_some(), right.is_some()),
            },
        );
        let right = spec::caller_may(&caller, &object);
        let may_change = case.pool.finish(effort, |pool, work| rules::may_change(pool, work, p.send, label));
        prop_assert_eq!(may_change, Ok(right.1));
        case.scarce(|pool| pool.finish(effort, |pool, work| rules::caller_may(pool, work, &p, label)), |_, made| assert_eq!(made, right));
        let right = spec::may_make(&caller, &callee);
        case.scarce(|pool| pool.finish(effort, |pool, work| rules::may_make(pool, work, &p, &q)), |_, made| assert_eq!(made, right));
        let right = spec::inherited(&caller);
        let child = spec::Labels { send: right.0.clone(), receive: right.1.clone(), is_explicit: true };
        prop_assert!(spec::may_make(&caller, &child));
        case.scarce(
            |pool| pool.finish(effort, |pool, work| rules::inherited(pool, work, &p)),
            |case, made| {
                case.check(made.send, &right.0);
                case.check(made.receive, &right.1);
            },
        );
        let inherit = |pool: &mut Pool<Heap>| pool.finish(effort, |pool, work| rules::inherited_by_object(pool, work, p.send));
        case.scarce(inherit, |case, made| case.check(made, &right.0));
        let reports = spec::may_report(&caller, &callee);
        let ask = |pool: &mut Pool<Heap>| pool.finish(effort, |pool, work| rules::may_report(pool, work, &p, &q));
        case.scarce(ask, |_, made| assert_eq!(made, reports));
        let right = match (spec::may_make(&caller, &callee), spec::may_report(&callee, &caller)) {
            (true, true) => Ok(()),
            (true, false) => Err(rules::NotGiven::Flow),
            (false, _) => Err(rules::NotGiven::NotOwned),
        };
        let give = |pool: &mut Pool<Heap>| pool.finish(effort, |pool, work| rules::given(pool, work, &p, &q));
        case.scarce(give, |case, made| {
            assert_eq!(made.map(drop), right);
            if let Ok(made) = made {
                case.check(made.send, &callee.send);
                case.check(made.receive, &callee.receive);
            }
        });
        let may_change = spec::caller_may(&caller, &object).1;
        let give = |pool: &mut Pool<Heap>| pool.finish(effort, |pool, work| rules::given_to_object(pool, work, p.send, label));
        case.scarce(give, |case, made| match made {
            Ok(made) if may_change => case.check(made, &object),
            made => assert_eq!(made.map(drop), if may_change { Ok(()) } else { Err(rules::NotGiven::Flow) }),
        });
        for is_lower in [false, true] {
            let right = spec::Label::each([&caller.send, &object], |[one, other]| if is_lower { one.min(other) } else { one.max(other) });
            let bound = |pool: &mut Pool<Heap>| pool.finish(effort, |pool, work| rules::bound(pool, work, p.send, label, is_lower));
            case.scarce(bound, |case, made| case.check(made, &right));
        }
        let (observes, changes) = spec::caller_may(&caller, &spec::Label::new(Level::One, []));
        prop_assert_eq!(rules::may_change_plain(&case.pool, &p), changes);
        prop_assert_eq!(rules::may_use_plain(&case.pool, &p), observes && changes);
        let right = spec::raised(&caller.send, &object);
        case.scarce(|pool| pool.finish(effort, |pool, work| rules::raised(pool, work, p.send, label)), |case, made| case.check(made, &right));
        case.end();
    }

    #[test]
    fn own_labels(domain in any_domain(), handle in (0u64..8).prop_map(handle), level in level()) {
        let mut case = Case::new();
        let own = case.domain(&domain);
        for (made, right) in [
            (rules::raised_at(&mut case.pool, own.send, handle, level), spec::raised_at(&domain.send, handle, level)),
            (rules::accepted_at(&mut case.pool, &own, handle, level), spec::accepted_at(&domain, handle, level)),
        ] {
            match (made.expect("room"), right) {
                (Some(made), Some(right)) => case.check(made, &right),
                (made, right) => prop_assert_eq!(made.is_some(), right.is_some()),
            }
        }
        case.end();
    }
}

/// A thousand handles of one part of all make a deep tree, which works as any other.
#[test]
fn handles_that_share_their_low_bits() {
    let mut case = Case::new();
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
    let mut case = Case::new();
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

/// Labels of ten thousand handles: no step looks at much more than it may, and what comes of all is right.
#[test]
fn long_operations_stop_on_their_way() {
    const EFFORT: u32 = 8;
    const MOST: u64 = 300;
    let mut case = Case::new();
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
fn what_is_made_belongs_to_who_pays() {
    let [mine, yours] = [0, 1];
    let mut case = Case::new();
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

/// What was found out of some labels is no answer about others, and goes with the next question, or when its owner does.
#[test]
fn a_question_that_is_not_at_its_end() {
    let mut case = Case::new();
    // Levels that take turns, so that a look at the smallest and the largest is not enough.
    let mut label = |even, odd| {
        let level = |number: u64| if number.is_multiple_of(2) { even } else { odd };
        let entries = (0..100).map(|number| (handle(number << 40 | number), level(number)));
        case.label(&spec::Label::new(Level::One, entries))
    };
    let low = label(Level::Zero, Level::Two);
    let high = label(Level::One, Level::Three);
    let lowest = label(Level::Zero, Level::One);
    // May it tell? The first may, the others not: by what the other accepts, and by how tainted the other is.
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
