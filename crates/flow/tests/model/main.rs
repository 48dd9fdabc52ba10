//! Three domains and a secret. Two runs differ in the secret only. A domain that neither accepts the taint of the secret's handle nor owns
//! the handle must never see a difference, whatever all domains do. `run` has the operations, and `both` has what domains see. This file
//! explores all states that can be reached with one handle. `walks` has more handles and all operations at once, at random.
//!
//! A domain sees its own labels, the results of its operations, the messages it takes, calls of it, their returns, what is written into
//! windows, that a call was cut off, and what the object and the page contain when it reads them.
//!
//! All operations at once have too many states, so there are several explorations. Each is exhaustive, and each has controls: changes to
//! the rule that leak, which it must find.
//!
//! | exploration | operations |
//! |---|---|
//! | calls | messages with Cs and V, taken at once; calls with windows; an object; own labels |
//! | owners | the domain that made the handle, or another owner; messages with Cs, Ds and Dr, taken at once; calls; own labels |
//! | queues | messages with Cs that wait until they are taken; own labels |
//! | pages | a page that domains map and grant to each other, write, read and protect; messages with Cs; own labels |
//!
//! Left out: domains that begin and end, handlers of faults, semaphores and threads that wait, accounts and memory that run out, time.
//! All domains are in explicit mode, or none.

// Plain code without `unsafe`, and hours of it under Miri.
#![cfg(not(miri))]

mod both;
mod run;
mod walks;

use both::{Both, Verdict};
use flow::Level;
use run::{Access, Action, DOMAINS, Does, Options, Rule, Run, Seen, Setting};
use std::collections::{HashSet, VecDeque};

/// The one with the secret, one that may take it, and one that may not.
const SECRET: usize = 0;
const BETWEEN: usize = 1;
const OUTSIDE: usize = 2;

const CALLS: &[Does] = &[Does::Messages, Does::Verification, Does::Calls, Does::Objects, Does::Labels];
const OWNERS: &[Does] = &[Does::Messages, Does::Decontamination, Does::Calls, Does::Labels];
const QUEUES: &[Does] = &[Does::Messages, Does::Queues, Does::Labels];
const PAGES: &[Does] = &[Does::Messages, Does::Pages, Does::Labels];
const PAGES_THAT_END: &[Does] = &[Does::Messages, Does::Pages, Does::Unmapping, Does::Labels];
const RETURNS: &[Does] = &[Does::SecretMessages, Does::Verification, Does::Returns];

/// Untainted and tainted, which is enough where there are many states.
const TWO_LEVELS: &[Level] = &[Level::One, Level::Three];

/// In explicit mode, with a port that takes everything and an object of no secret.
fn setting(does: &'static [Does], rule: Rule) -> Setting<1> {
    let levels = if does == CALLS || does == RETURNS { &Level::ALL[..] } else { TWO_LEVELS };
    Setting { is_explicit: true, rule, port: [Level::Three], object: [Level::One], does, levels }
}

/// Optional labels of messages.
fn options(setting: &Setting<1>) -> Vec<Options<1>> {
    let choices = |usual: Level, levels: &[Level], does: Does| match setting.does(does) {
        true => levels.iter().copied().filter(|level| *level != usual).chain([usual]).collect(),
        false => vec![usual],
    };
    let high: Vec<Level> = setting.levels.iter().copied().filter(|level| *level >= Level::Two).collect();
    let low = [Level::Star, Level::One];
    let mut options = Vec::new();
    for contaminate in [&high[..], &[Level::Star]].concat() {
        for verify in choices(Level::Three, &low, Does::Verification) {
            for decontaminate_send in choices(Level::Three, &low, Does::Decontamination) {
                for decontaminate_receive in choices(Level::Star, &high, Does::Decontamination) {
                    options.push(Options {
                        contaminate: [contaminate],
                        decontaminate_send: [decontaminate_send],
                        verify: [verify],
                        decontaminate_receive: [decontaminate_receive],
                    });
                }
            }
        }
    }
    options
}

fn actions(setting: &Setting<1>, who: usize) -> Vec<Action<1>> {
    let mut actions = vec![Action::Nothing];
    let sends = setting.does(Does::Messages) || setting.does(Does::SecretMessages) && who == SECRET;
    for to in (0..DOMAINS).filter(|other| *other != who) {
        // A domain that knows everything learns nothing from a queue.
        if sends && !(to == SECRET && setting.does(Does::Queues)) {
            actions.extend(options(setting).into_iter().map(|options| Action::Send { to, options }));
        }
        if setting.does(Does::Calls) {
            actions.push(Action::Call(to));
        }
        if setting.does(Does::Calls) || setting.does(Does::Returns) {
            actions.extend([Action::Return(to), Action::Show(to)]);
        }
        if setting.does(Does::Pages) {
            actions.extend([Action::Map { to, writes: false }, Action::Map { to, writes: true }, Action::Grant(to)]);
        }
    }
    if setting.does(Does::Unmapping) {
        actions.extend((0..DOMAINS).map(Action::Unmap));
    }
    if setting.does(Does::Queues) {
        actions.extend((0..DOMAINS).map(Action::Take));
    }
    if setting.does(Does::Objects) {
        actions.extend([Action::Change, Action::Observe]);
    }
    if setting.does(Does::Pages) {
        actions.extend([Action::WritePage, Action::ReadPage, Action::Protect]);
    }
    if setting.does(Does::Labels) {
        actions.extend(setting.levels.iter().flat_map(|level| [Action::Raise(0, *level), Action::Accept(0, *level)]));
    }
    actions
}

/// Whether a domain sees a difference that may not, and the number of states until then. The shortest way is found first.
fn explore(setting: &Setting<1>, first: Run<1>) -> (bool, usize) {
    let first = Both::new(first);
    let actions: [Vec<Action<1>>; DOMAINS] = core::array::from_fn(|who| actions(setting, who));
    let (mut known, mut left) = (HashSet::from([first]), VecDeque::from([first]));
    while let Some(state) = left.pop_front() {
        for (who, actions) in actions.iter().enumerate() {
            let [ones, others] = state.runs.map(|run| -> Vec<(Run<1>, Seen<1>)> {
                let act = |action: &Action<1>| {
                    let mut run = run;
                    let seen = run.act(setting, who, action);
                    (run, seen)
                };
                actions.iter().map(act).collect()
            });
            let pairs: Vec<_> = if state.does_the_same(who) {
                ones.into_iter().zip(others).collect()
            } else {
                let [ones, others] = [ones, others].map(|all| all.into_iter().collect::<HashSet<_>>());
                ones.iter().flat_map(|one| others.iter().map(|other| (*one, *other))).collect()
            };
            for (one, other) in pairs {
                match state.after(setting, who, [one.0, other.0], [one.1, other.1]) {
                    (_, Verdict::Leak) => return (true, known.len()),
                    (next, Verdict::Fine) if next != state && known.insert(next) => left.push_back(next),
                    _ => {}
                }
            }
        }
    }
    (false, known.len())
}

/// The secret's holder is tainted with 3; the one between accepts that, and the one outside does not.
fn runs() -> impl Iterator<Item = Run<1>> {
    let outside = [Level::Star, Level::Zero, Level::One, Level::Two];
    outside.into_iter().flat_map(|accepts| {
        [Level::One, Level::Two, Level::Three].map(|taint| {
            Run::new(
                [[Level::Three], [taint], [Level::One.min(accepts).max(Level::Zero)]],
                [[Level::Three], [Level::Three], [accepts]],
            )
        })
    })
}

/// The domain outside accepts a little, and the one between has this send label.
fn with_between(send: Level) -> Run<1> {
    let mut run = runs().find(|run| run.receive[OUTSIDE] == [Level::Two]).expect("one");
    run.send[BETWEEN] = [send];
    run
}

/// This domain has a page that no other has.
fn with_page(who: usize) -> Run<1> {
    let mut run = with_between(Level::One);
    run.pages[who] = Access::Write;
    run
}

/// An exploration must find a leak where the rule has been changed, and none where it is as it is.
fn finds(does: &'static [Does], rules: &[Rule], first: &[Run<1>]) {
    for run in first {
        let (leaks, states) = explore(&setting(does, Rule::AsItIs), *run);
        assert!(!leaks && states > 1_000, "{run:?}: {states} states");
        for rule in rules {
            assert!(explore(&setting(does, *rule), *run).0, "{rule:?}, {run:?}");
        }
    }
}

/// No exploration of calls leaks, with these labels of ports and objects.
fn no_call_leaks(ports: &[Level], objects: &[Level]) {
    let mut states = 0;
    for (port, object) in ports.iter().flat_map(|port| objects.iter().map(move |object| ([*port], [*object]))) {
        for run in runs() {
            let (leaks, count) = explore(&Setting { port, object, ..setting(CALLS, Rule::AsItIs) }, run);
            assert!(!leaks, "port {port:?}, object {object:?}, {run:?}");
            states += count;
        }
    }
    assert!(states > 100_000, "{states}");
}

/// With the labels with which most is possible.
#[test]
fn nothing_leaks_in_explicit_mode() {
    no_call_leaks(&[Level::Three], &[Level::One, Level::Three]);
}

#[test]
#[ignore = "all labels of ports and objects: with --soak"]
fn nothing_leaks_by_any_port_or_object() {
    no_call_leaks(&[Level::One, Level::Two, Level::Three], &Level::ALL);
}

/// Asbestos's own channel: a domain that is contaminated by a secret is silent afterwards, and that is heard.
#[test]
fn labels_that_float_leak() {
    for run in runs() {
        // A domain that could not reach the one outside before is no more silent afterwards.
        let can = run.send[BETWEEN] <= run.receive[OUTSIDE];
        assert_eq!(explore(&Setting { is_explicit: false, ..setting(CALLS, Rule::AsItIs) }, run).0, can, "{run:?}");
    }
}

/// A call between the domain that accepts the secret and the one outside is in flight when the secret comes.
#[test]
fn splitting_on_contamination_would_leak() {
    for (rule, leaks) in [(Rule::AsItIs, false), (Rule::ContaminationSplits, true)] {
        let mut first = with_between(Level::One);
        first.calls[OUTSIDE][BETWEEN] = true;
        let setting = Setting { is_explicit: false, ..setting(RETURNS, rule) };
        assert_eq!(explore(&setting, first).0, leaks, "{rule:?}");
    }
}

#[test]
fn calls_and_windows_that_outlive_a_raise_would_leak() {
    for rule in [Rule::CallsStay, Rule::WindowsStay, Rule::SenderIsTold] {
        assert!(explore(&setting(CALLS, rule), with_between(Level::One)).0, "{rule:?}");
    }
}

/// The first domain has just made the handle; or the one between owns it.
#[test]
fn owners_alone_let_a_secret_out() {
    let made = Run::new([[Level::Star], [Level::One], [Level::One]], [[Level::Two]; DOMAINS]);
    let rules = [Rule::NobodyAsksForOwnership, Rule::OwnersDeclassify];
    finds(OWNERS, &rules, &[made, with_between(Level::Star)]);
}

#[test]
fn queues_leak_nothing_while_senders_share_none() {
    let rules = [Rule::JudgedWhenSent, Rule::SenderIsTold, Rule::OnePort];
    finds(QUEUES, &rules, &[with_between(Level::One), with_between(Level::Three)]);
}

#[test]
fn pages_leak_nothing_while_they_stay() {
    finds(PAGES, &[], &[with_page(SECRET)]);
    finds(PAGES, &[Rule::WritesStay, Rule::PagesHaveNoLabel], &[with_page(BETWEEN), with_page(OUTSIDE)]);
    // docs/caveats.md: the end of a mapping is seen, whatever the labels.
    for who in [BETWEEN, OUTSIDE] {
        assert!(explore(&setting(PAGES_THAT_END, Rule::AsItIs), with_page(who)).0);
    }
}
