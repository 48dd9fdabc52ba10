//! What three domains can do with one handle by messages, calls, an object and their own labels, twice at once; nobody owns the
//! handle, a message is taken at once, and all are in explicit mode, or none. In one run there is a secret, in the other there is none. What a
//! domain sees is the same in both until something differs that it can see; until then it does the same in both. One that
//! neither accepts the handle's taint nor owns it must never see a difference.
//!
//! What a domain sees: its own labels, the results of what it does, messages that it takes, calls of it, their returns and that one
//! was cut off, and what stands in an object that it observes.

use flow::specification::{self as spec, Admission, Label, Labels, Optional};
use flow::{Handle, Level};
use std::collections::HashSet;

const DOMAINS: usize = 3;
/// The one with the secret, one that may take it, and one that may not.
const SECRET: usize = 0;
const BETWEEN: usize = 1;
const OUTSIDE: usize = 2;

/// What the nucleus does otherwise than it should.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Rule {
    AsItIs,
    /// A message that would forbid a call in flight cuts that off, instead of vanishing.
    ContaminationSplits,
}

/// What is the same in a whole exploration.
struct Setting {
    is_explicit: bool,
    rule: Rule,
    /// Of all ports and portals.
    port: Level,
    object: Level,
    /// What domains can do besides sending the secret on.
    does: Does,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Does {
    Everything,
    /// Only what is in flight comes back, and only the secret's holder sends messages.
    Returns,
}

/// One run.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Run {
    send: [Level; DOMAINS],
    receive: [Level; DOMAINS],
    /// Who calls whom.
    calls: [[bool; DOMAINS]; DOMAINS],
}

/// Both, and what is the same in them.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Both {
    runs: [Run; 2],
    /// What each domain has seen.
    same: [bool; DOMAINS],
    /// What stands in the object.
    same_object: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Action {
    Nothing,
    Raise(Level),
    Accept(Level),
    Send { to: usize, contaminate: Level, verify: Level },
    Call(usize),
    Return(usize),
    Change,
    Observe,
}

/// The effects of an action that others see, and its actor.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
struct Seen {
    /// By who does it: whether it was done.
    result: bool,
    /// Bits of who: somebody called it, its call came back, a message came, or a call with it was cut off.
    called: u8,
    returned: u8,
    taken: u8,
    cut: u8,
    /// What stands in the object is another.
    changed: bool,
    observed: bool,
}

fn handle() -> Handle {
    Handle::new(1).expect("a handle")
}

fn label(level: Level, default: Level) -> Label {
    Label::new(default, [(handle(), level)])
}

/// The specification's answers for one handle, each asked once.
struct Answers {
    deliver: Vec<Option<Level>>,
    admit: Vec<Option<Level>>,
    observe: Vec<Option<Level>>,
}

fn place(levels: &[Level]) -> usize {
    levels.iter().fold(0, |place, level| 5 * place + *level as usize)
}

fn all(count: u32) -> impl Iterator<Item = Vec<Level>> {
    (0..5usize.pow(count)).map(move |number| {
        let mut digits: Vec<Level> = (0..count).map(|digit| Level::ALL[number / 5usize.pow(digit) % 5]).collect();
        digits.reverse();
        digits
    })
}

impl Answers {
    fn new(is_explicit: bool) -> Self {
        let one = |level, default| label(level, default);
        let domain =
            |send, receive| Labels { send: one(send, Level::One), receive: one(receive, Level::Two), is_explicit };
        let deliver = all(5).map(|levels| {
            let [effective, verify, port, send, receive] = levels[..] else { unreachable!() };
            let optional = Optional { verify: one(verify, Level::Three), ..Optional::default() };
            let effective = one(effective, Level::One);
            let taken = spec::deliver(&effective, &optional, &one(port, Level::Three), &domain(send, receive));
            taken.map(|(send, _)| send.get(handle()))
        });
        let admit = all(5).map(|levels| {
            let [send, receive, other, accepts, port] = levels[..] else { unreachable!() };
            match spec::admit(&domain(send, receive), &domain(other, accepts), &one(port, Level::Three)) {
                Admission::Admitted => Some(send),
                Admission::Raised(raised) => Some(raised.get(handle())),
                Admission::Refused => None,
            }
        });
        let observe = all(3).map(|levels| {
            let [send, receive, object] = levels[..] else { unreachable!() };
            spec::observe(&domain(send, receive), &one(object, Level::One)).map(|send| send.get(handle()))
        });
        Self { deliver: deliver.collect(), admit: admit.collect(), observe: observe.collect() }
    }
}

impl Run {
    fn admitted(&self, answers: &Answers, setting: &Setting, from: usize, to: usize) -> Option<Level> {
        let levels = [self.send[from], self.receive[from], self.send[to], self.receive[to], setting.port];
        answers.admit[place(&levels)]
    }

    /// Whether a call in flight would still be admitted without anything being raised.
    fn is_forbidden(&self, answers: &Answers, setting: &Setting, from: usize, to: usize) -> bool {
        self.admitted(answers, setting, from, to) != Some(self.send[from])
    }

    /// Cuts off what is in flight and forbidden; those of both sides.
    fn cut(&mut self, answers: &Answers, setting: &Setting) -> u8 {
        let mut sides = 0;
        for from in 0..DOMAINS {
            for to in 0..DOMAINS {
                if self.calls[from][to] && self.is_forbidden(answers, setting, from, to) {
                    self.calls[from][to] = false;
                    sides |= 1 << from | 1 << to;
                }
            }
        }
        sides
    }

    fn act(&mut self, answers: &Answers, setting: &Setting, who: usize, action: Action) -> Seen {
        let mut seen = Seen::default();
        match action {
            Action::Nothing => {}
            Action::Raise(level) => {
                if level >= self.send[who] {
                    self.send[who] = level;
                    seen.result = true;
                    seen.cut = self.cut(answers, setting);
                }
            }
            Action::Accept(level) => {
                if level <= self.receive[who] || self.send[who] == Level::Star {
                    self.receive[who] = level;
                    seen.result = true;
                    seen.cut = self.cut(answers, setting);
                }
            }
            Action::Send { to, contaminate, verify } => {
                // The sender learns nothing.
                seen.result = true;
                let effective = self.send[who].max(contaminate);
                let levels = [effective, verify, setting.port, self.send[to], self.receive[to]];
                if let Some(send) = answers.deliver[place(&levels)] {
                    let mut after = *self;
                    after.send[to] = send;
                    let cut = after.cut(answers, setting);
                    if cut == 0 || setting.rule == Rule::ContaminationSplits {
                        *self = after;
                        seen.taken = 1 << to;
                        seen.cut = cut;
                    }
                }
            }
            Action::Call(to) => {
                if !self.calls[who][to]
                    && let Some(send) = self.admitted(answers, setting, who, to)
                {
                    let mut after = *self;
                    after.send[who] = send;
                    after.calls[who][to] = true;
                    // Raising the caller must not cut its other calls off, nor be of no use for this one.
                    if after.cut(answers, setting) == 0 {
                        *self = after;
                        seen.result = true;
                        seen.called = 1 << to;
                    }
                }
            }
            Action::Return(to) => {
                if self.calls[to][who] {
                    self.calls[to][who] = false;
                    seen.result = true;
                    seen.returned = 1 << to;
                }
            }
            Action::Change => {
                seen.result = self.send[who] <= setting.object;
                seen.changed = seen.result;
            }
            Action::Observe => {
                let levels = [self.send[who], self.receive[who], setting.object];
                if let Some(send) = answers.observe[place(&levels)] {
                    let mut after = *self;
                    after.send[who] = send;
                    if after.cut(answers, setting) == 0 {
                        *self = after;
                        seen.result = true;
                        seen.observed = true;
                    }
                }
            }
        }
        seen
    }
}

fn actions(setting: &Setting, who: usize) -> Vec<Action> {
    let mut actions = vec![Action::Nothing];
    let others = (0..DOMAINS).filter(|other| *other != who);
    for to in others {
        actions.push(Action::Return(to));
        if setting.does == Does::Everything {
            actions.push(Action::Call(to));
        }
        if setting.does == Does::Everything || who == SECRET {
            for contaminate in [Level::Star, Level::Two, Level::Three] {
                for verify in [Level::Star, Level::One, Level::Three] {
                    actions.push(Action::Send { to, contaminate, verify });
                }
            }
        }
    }
    if setting.does == Does::Everything {
        actions.extend([Action::Change, Action::Observe]);
        actions.extend(Level::ALL.map(Action::Raise));
        actions.extend(Level::ALL.map(Action::Accept));
    }
    actions
}

/// Whether somebody who may not see a difference can; and how many states there are.
fn explore(setting: &Setting, first: Run) -> (bool, usize) {
    let answers = Answers::new(setting.is_explicit);
    let actions: [Vec<Action>; DOMAINS] = core::array::from_fn(|who| actions(setting, who));
    let begin = Both { runs: [first; 2], same: [false, true, true], same_object: true };
    let (mut known, mut left) = (HashSet::from([begin]), vec![begin]);
    while let Some(state) = left.pop() {
        for (who, actions) in actions.iter().enumerate() {
            let [ones, others] = state.runs.map(|run| -> Vec<(Run, Seen)> {
                let act = |action: &Action| {
                    let mut run = run;
                    let seen = run.act(&answers, setting, who, *action);
                    (run, seen)
                };
                actions.iter().map(act).collect()
            });
            // Whoever has seen the same does the same.
            let pairs: HashSet<[(Run, Seen); 2]> = if state.same[who] {
                ones.into_iter().zip(others).map(|(one, other)| [one, other]).collect()
            } else {
                let [ones, others] = [ones, others].map(|runs| runs.into_iter().collect::<HashSet<_>>());
                ones.iter().flat_map(|one| others.iter().map(|other| [*one, *other])).collect()
            };
            for pair in pairs {
                let next = after(state, who, pair);
                if !next.same[OUTSIDE] {
                    return (true, known.len());
                }
                if known.insert(next) {
                    left.push(next);
                }
            }
        }
    }
    (false, known.len())
}

fn after(mut state: Both, who: usize, [(one_run, one), (other_run, other)]: [(Run, Seen); 2]) -> Both {
    state.runs = [one_run, other_run];
    let knows = !state.same[who];
    let mut differs = [false; DOMAINS];
    differs[who] |= one.result != other.result;
    // Who observes sees what stands there.
    differs[who] |= !state.same_object && (one.observed || other.observed);
    for (domain, differs) in differs.iter_mut().enumerate() {
        let bit = |byte: u8| byte >> domain & 1 == 1;
        *differs |= bit(one.cut) != bit(other.cut);
        for (in_one, in_other) in [(one.called, other.called), (one.returned, other.returned), (one.taken, other.taken)]
        {
            // It comes in one run only, or with what its sender knows.
            *differs |= bit(in_one) != bit(in_other) || bit(in_one) && knows;
        }
        // Its own labels.
        *differs |= one_run.send[domain] != other_run.send[domain];
        *differs |= one_run.receive[domain] != other_run.receive[domain];
    }
    if one.changed || other.changed {
        state.same_object &= !(one.changed != other.changed || knows);
    }
    (0..DOMAINS).for_each(|domain| state.same[domain] &= !differs[domain]);
    state
}

/// The secret's holder is tainted with 3; the one between accepts that, and the one outside does not.
fn runs() -> impl Iterator<Item = Run> {
    let outside = [Level::Star, Level::Zero, Level::One, Level::Two];
    outside.into_iter().flat_map(|accepts| {
        [Level::One, Level::Two, Level::Three].map(|taint| {
            Run {
                send: [Level::Three, Level::One, Level::One.min(accepts).max(Level::Zero)],
                receive: [Level::Three, Level::Three, accepts],
                calls: [[false; DOMAINS]; DOMAINS],
            }
            .between(taint)
        })
    })
}

impl Run {
    fn between(mut self, taint: Level) -> Self {
        self.send[BETWEEN] = taint;
        self
    }
}

/// The one outside accepts a little, and the one between is not tainted yet.
fn untainted() -> Run {
    runs().find(|run| run.receive[OUTSIDE] == Level::Two && run.send[BETWEEN] == Level::One).expect("one")
}

/// All, if `FLOW_RUNS` is set; else those in which most is possible.
fn settings() -> Vec<Setting> {
    let (ports, objects) = match std::env::var_os("FLOW_RUNS") {
        Some(_) => (&[Level::One, Level::Two, Level::Three][..], &Level::ALL[..]),
        None => (&[Level::Three][..], &[Level::One, Level::Three][..]),
    };
    let setting =
        |port, object| Setting { is_explicit: true, rule: Rule::AsItIs, port, object, does: Does::Everything };
    ports.iter().flat_map(|port| objects.iter().map(|object| setting(*port, *object))).collect()
}

#[test]
fn nothing_leaks_in_explicit_mode() {
    let mut states = 0;
    for setting in settings() {
        for run in runs() {
            let (leaks, count) = explore(&setting, run);
            assert!(!leaks, "port {:?}, object {:?}, {run:?}", setting.port, setting.object);
            states += count;
        }
    }
    assert!(states > 100_000, "{states}");
}

/// Asbestos's own channel: who is contaminated by a secret is silent afterwards, and that is heard.
#[test]
fn labels_that_float_leak() {
    let setting = Setting {
        is_explicit: false,
        rule: Rule::AsItIs,
        port: Level::Three,
        object: Level::One,
        does: Does::Everything,
    };
    for run in runs() {
        // One that could not tell the one outside before is no more silent afterwards.
        let can = run.send[BETWEEN] <= run.receive[OUTSIDE];
        assert_eq!(explore(&setting, run).0, can, "{run:?}");
    }
}

/// A call between the one that accepts and the one outside is in flight when the secret comes.
#[test]
fn splitting_on_contamination_would_leak() {
    for (rule, leaks) in [(Rule::AsItIs, false), (Rule::ContaminationSplits, true)] {
        let setting = Setting { is_explicit: false, rule, port: Level::Three, object: Level::One, does: Does::Returns };
        let mut first = untainted();
        first.calls[OUTSIDE][BETWEEN] = true;
        assert_eq!(explore(&setting, first).0, leaks, "{}", leaks);
    }
}
