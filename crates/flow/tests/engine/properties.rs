//! Properties of the engine, and the labels and domains that they are tried with.

use crate::{Case, Memory, handle};
use flow::rules::{self, Admission, Labels, Optional};
use flow::specification as spec;
use flow::{Handle, Heap, Label, Level, Pool};
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::{RngAlgorithm, TestCaseResult, TestRunner};

/// Holds a property to so many cases.
fn hold<S: Strategy>(
    cases: u32,
    memory: Memory,
    strategy: &S,
    property: impl Fn(&mut Case, S::Value) -> TestCaseResult,
) {
    let config = ProptestConfig {
        failure_persistence: None,
        // Each of several choices has a generator of its own, and making one for ChaCha would take most of the time.
        rng_algorithm: RngAlgorithm::XorShift,
        ..ProptestConfig::with_cases(cases)
    };
    let outcome = TestRunner::new(config).run(strategy, |value| {
        let mut case = Case::new(memory);
        property(&mut case, value)?;
        case.end();
        Ok(())
    });
    outcome.unwrap_or_else(|error| panic!("{error}"));
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

pub fn order_and_bounds_are_those_of_the_levels(cases: u32, memory: Memory) {
    hold(cases, memory, &(any_label(), any_label()), |case, (one, other)| {
        let [a, b] = [&one, &other].map(|label| case.label(label));
        prop_assert_eq!(case.pool.is_below(a, b), spec::always([&one, &other], |[one, other]| one <= other));
        let higher = spec::Label::each([&one, &other], |[one, other]| one.max(other));
        let lower = spec::Label::each([&one, &other], |[one, other]| one.min(other));
        case.scarce(|pool| pool.higher(a, b), |case, made| case.check(made, &higher));
        case.scarce(|pool| pool.lower(a, b), |case, made| case.check(made, &lower));
        Ok(())
    });
}

pub fn bounds_are_bounds(cases: u32, memory: Memory) {
    hold(cases, memory, &(any_label(), any_label(), any_label()), |case, (one, other, third)| {
        let [a, b, c] = [&one, &other, &third].map(|label| case.label(label));
        let (higher, lower) = (case.pool.higher(a, b).expect("room"), case.pool.lower(a, b).expect("room"));
        let pool = &case.pool;
        prop_assert!(pool.is_below(a, higher) && pool.is_below(b, higher));
        prop_assert!(pool.is_below(lower, a) && pool.is_below(lower, b));
        prop_assert_eq!(pool.is_below(higher, c), pool.is_below(a, c) && pool.is_below(b, c));
        prop_assert_eq!(pool.is_below(c, lower), pool.is_below(c, a) && pool.is_below(c, b));
        prop_assert_eq!(pool.is_below(a, b) && pool.is_below(b, a), one == other);
        case.made.extend([higher, lower]);
        Ok(())
    });
}

pub fn levels_are_what_they_were_set_to(cases: u32, memory: Memory) {
    hold(
        cases,
        memory,
        &(prop::collection::vec((some_handle(), level()), 0..400), level()),
        |case, (changes, default)| {
            let mut right = spec::Label::of(default);
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
            Ok(())
        },
    );
}

pub fn messages(cases: u32, memory: Memory) {
    hold(
        cases,
        memory,
        &(any_domain(), any_domain(), any_label(), optional(), effort()),
        |case, (sender, receiver, port, optional, effort)| {
            let (p, q) = (case.domain(&sender), case.domain(&receiver));
            let (o, label) = (case.optional(&optional), case.label(&port));
            let may_send = case.pool.finish(effort, |pool, work| rules::may_send(pool, work, p.send, &o));
            prop_assert_eq!(may_send, Ok(spec::may_send(&sender.send, &optional)));
            let effective = spec::effective(&sender.send, &optional);
            let e = case.label(&effective);
            case.scarce(
                |pool| pool.finish(effort, |pool, work| rules::effective(pool, work, p.send, &o)),
                |case, made| case.check(made, &effective),
            );
            let waits = spec::Optional { contaminate: effective.clone(), ..optional.clone() };
            case.scarce(
                |pool| pool.finish(effort, |pool, work| rules::sent(pool, work, p.send, &o)),
                |case, made| {
                    assert_eq!(made.is_some(), may_send == Ok(true));
                    for (made, right) in made.iter().flat_map(Optional::all).zip(waits.all()) {
                        case.check(made, right);
                    }
                },
            );
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
            Ok(())
        },
    );
}

pub fn calls_objects_and_children(cases: u32, memory: Memory) {
    hold(
        cases,
        memory,
        &(any_domain(), any_domain(), any_label(), effort()),
        |case, (caller, callee, object, effort)| {
            let (p, q, label) = (case.domain(&caller), case.domain(&callee), case.label(&object));
            let right = spec::admit(&caller, &callee, &object);
            case.scarce(
                |pool| pool.finish(effort, |pool, work| rules::admit(pool, work, &p, &q, label)),
                |case, made| match (made, &right) {
                    (Admission::Raised(made), spec::Admission::Raised(right)) => case.check(made, right),
                    (Admission::Admitted, spec::Admission::Admitted)
                    | (Admission::Refused, spec::Admission::Refused) => {}
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
            case.scarce(
                |pool| pool.finish(effort, |pool, work| rules::caller_may(pool, work, &p, label)),
                |_, made| assert_eq!(made, right),
            );
            let right = spec::may_make(&caller, &callee);
            case.scarce(
                |pool| pool.finish(effort, |pool, work| rules::may_make(pool, work, &p, &q)),
                |_, made| assert_eq!(made, right),
            );
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
            let inherit = |pool: &mut Pool<Heap>| {
                pool.finish(effort, |pool, work| rules::inherited_by_object(pool, work, p.send))
            };
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
            let give = |pool: &mut Pool<Heap>| {
                pool.finish(effort, |pool, work| rules::given_to_object(pool, work, p.send, label))
            };
            case.scarce(give, |case, made| match made {
                Ok(made) if may_change => case.check(made, &object),
                made => assert_eq!(made.map(drop), if may_change { Ok(()) } else { Err(rules::NotGiven::Flow) }),
            });
            for is_lower in [false, true] {
                let right =
                    spec::Label::each(
                        [&caller.send, &object],
                        |[one, other]| if is_lower { one.min(other) } else { one.max(other) },
                    );
                let bound = |pool: &mut Pool<Heap>| {
                    pool.finish(effort, |pool, work| rules::bound(pool, work, p.send, label, is_lower))
                };
                case.scarce(bound, |case, made| case.check(made, &right));
            }
            let (observes, changes) = spec::caller_may(&caller, &spec::Label::new(Level::One, []));
            prop_assert_eq!(rules::may_change_plain(&case.pool, &p), changes);
            prop_assert_eq!(rules::may_use_plain(&case.pool, &p), observes && changes);
            let right = spec::raised(&caller.send, &object);
            case.scarce(
                |pool| pool.finish(effort, |pool, work| rules::raised(pool, work, p.send, label)),
                |case, made| case.check(made, &right),
            );
            Ok(())
        },
    );
}

pub fn own_labels(cases: u32, memory: Memory) {
    hold(cases, memory, &(any_domain(), (0u64..8).prop_map(handle), level()), |case, (domain, handle, level)| {
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
        Ok(())
    });
}

/// More taint is never accepted where less is refused, and leaves a receiver no less tainted. More acceptance takes no less.
pub fn rules_are_monotone(cases: u32, memory: Memory) {
    let strategy = (likely(), likely(), any_label(), optional(), any_label(), effort());
    hold(cases, memory, &strategy, |case, (sender, receiver, port, optional, more, effort)| {
        let (p, q, o) = (case.domain(&sender), case.domain(&receiver), case.optional(&optional));
        let (port, more) = (case.label(&port), case.label(&more));
        let pool = &mut case.pool;
        let mut higher = |label| {
            let made = pool.higher(label, more).expect("room");
            case.made.push(made);
            made
        };
        let tainted = higher(p.send);
        let (accepting, wide) = (Labels { receive: higher(q.receive), ..q }, higher(port));
        let caller = Labels { receive: higher(p.receive), ..p };
        let proves_less = Optional { verify: higher(o.verify), ..o };
        let may_send = |pool: &mut Pool<Heap>, send| {
            pool.finish(effort, |pool, work| rules::may_send(pool, work, send, &o)).expect("room")
        };
        prop_assert!(may_send(pool, p.send) || !may_send(pool, tainted));
        let [less, most] = [p.send, tainted].map(|send| {
            let made = pool.finish(effort, |pool, work| rules::effective(pool, work, send, &o)).expect("room");
            case.made.push(made);
            made
        });
        prop_assert!(pool.is_below(less, most));
        let [usual, of_more, to_more] =
            [(less, &o, port, &q), (most, &o, port, &q), (less, &proves_less, wide, &accepting)].map(
                |(effective, optional, port, receiver)| {
                    let taken = pool
                        .finish(effort, |pool, work| rules::deliver(pool, work, effective, optional, port, receiver))
                        .expect("room");
                    case.made.extend(taken.iter().flat_map(|(send, receive)| [*send, *receive]));
                    taken
                },
            );
        prop_assert!(usual.is_some() || of_more.is_none());
        prop_assert!(to_more.is_some() || usual.is_none());
        if let (Some(usual), Some(of_more)) = (usual, of_more) {
            prop_assert!(pool.is_below(usual.0, of_more.0) && pool.is_below(usual.1, of_more.1));
        }
        if let (Some(usual), Some(to_more)) = (usual, to_more) {
            prop_assert!(pool.is_below(usual.0, to_more.0) && pool.is_below(usual.1, to_more.1));
        }
        let mut is_admitted = |caller: &Labels, callee: &Labels, portal| {
            let judged =
                pool.finish(effort, |pool, work| rules::admit(pool, work, caller, callee, portal)).expect("room");
            if let Admission::Raised(send) = judged {
                case.made.push(send);
            }
            !matches!(judged, Admission::Refused)
        };
        prop_assert!(is_admitted(&caller, &accepting, wide) || !is_admitted(&p, &q, port));
        let mut may = |domain: &Labels, thing| {
            pool.finish(effort, |pool, work| rules::caller_may(pool, work, domain, thing)).expect("room")
        };
        let ((observes, changes), (_, changes_more)) = (may(&q, port), may(&q, wide));
        prop_assert!(changes_more || !changes);
        prop_assert!(may(&accepting, port).0 || !observes);
        let tainted = Labels { send: tainted, ..p };
        prop_assert!(may(&p, port).1 || !may(&tainted, port).1);
        Ok(())
    });
}
