//! Walks: twenty operations at random, with three handles, all kinds of operation, and labels of ports and objects at random. The secret is
//! tainted with the first handle.

use crate::both::{Both, SECRETS, Verdict};
use crate::run::{Access, Action, DOMAINS, Does, Levels, Options, Rule, Run, Setting};
use crate::{BETWEEN, OUTSIDE, SECRET};
use chacha20::ChaCha20Rng;
use chacha20::rand_core::{Rng, SeedableRng};
use flow::Level;
use std::io::Write as _;

const HANDLES: usize = 3;
/// Operations of a walk.
const STEPS: usize = 20;

const EVERYTHING: &[Does] =
    &[Does::Messages, Does::Verification, Does::Decontamination, Does::Calls, Does::Objects, Does::Pages, Does::Labels];
const EVERYTHING_QUEUED: &[Does] = &[
    Does::Messages,
    Does::Verification,
    Does::Decontamination,
    Does::Queues,
    Does::Calls,
    Does::Objects,
    Does::Pages,
    Does::Labels,
];

/// Levels by how often each is drawn.
const SENDS: &[Level] = &[Level::One, Level::One, Level::One, Level::Three, Level::Star, Level::Two, Level::Zero];
const RECEIVES: &[Level] = &[Level::Three, Level::Three, Level::Three, Level::Two, Level::One];
const PORTS: &[Level] = &[Level::Three, Level::Three, Level::Three, Level::Three, Level::Two, Level::One];
const OBJECTS: &[Level] = &[Level::One, Level::One, Level::One, Level::Two, Level::Three];

struct Walker(ChaCha20Rng);

impl Walker {
    fn below(&mut self, end: usize) -> usize {
        self.0.next_u32() as usize % end
    }

    fn one<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }

    fn levels(&mut self, of: &[Level]) -> Levels<HANDLES> {
        core::array::from_fn(|_| self.one(of))
    }

    fn setting(&mut self, is_explicit: bool, rule: Rule) -> Setting<HANDLES> {
        let (port, object) = (self.levels(PORTS), self.levels(OBJECTS));
        let does = self.one(&[EVERYTHING, EVERYTHING_QUEUED]);
        Setting { is_explicit, rule, port, object, does, levels: &Level::ALL }
    }

    /// The first domain is tainted with the secret, or owns its handle; the last does neither, nor accepts it.
    fn first(&mut self, setting: &Setting<HANDLES>) -> Both<HANDLES> {
        let mut run =
            Run::new(core::array::from_fn(|_| self.levels(SENDS)), core::array::from_fn(|_| self.levels(RECEIVES)));
        run.send[SECRET][SECRETS] = self.one(&[Level::Three, Level::Three, Level::Star]);
        run.receive[SECRET][SECRETS] = Level::Three;
        run.send[BETWEEN][SECRETS] = self.one(&[Level::One, Level::Three, Level::Two, Level::Star]);
        run.receive[BETWEEN][SECRETS] = Level::Three;
        run.send[OUTSIDE][SECRETS] = self.one(&[Level::One, Level::One, Level::Zero]);
        run.receive[OUTSIDE][SECRETS] = self.one(&[Level::Two, Level::Two, Level::One]);
        let owner = self.below(DOMAINS);
        run.pages[owner] = Access::Write;
        // Something is under way before there is a secret.
        for _ in 0..4 {
            let (who, to) = (self.below(DOMAINS), self.below(DOMAINS));
            if who != to {
                run.act(setting, who, &Action::Call(to));
                run.act(setting, owner, &Action::Map { to, writes: self.below(2) == 0 });
            }
        }
        Both::new(run)
    }

    /// Mostly such as this domain may send.
    fn options(&mut self, run: &Run<HANDLES>, who: usize) -> Options<HANDLES> {
        let mut options = Options {
            contaminate: [Level::Star; HANDLES],
            decontaminate_send: [Level::Three; HANDLES],
            verify: [Level::Three; HANDLES],
            decontaminate_receive: [Level::Star; HANDLES],
        };
        for handle in 0..HANDLES {
            if self.below(4) == 0 {
                options.contaminate[handle] = self.one(&[Level::Three, Level::Two]);
            }
            if self.below(8) == 0 {
                options.verify[handle] = self.one(&Level::ALL);
            }
            if self.below(3) == 0 && (run.owns(who, handle) || self.below(16) == 0) {
                options.decontaminate_send[handle] = self.one(&[Level::Star, Level::Zero, Level::One]);
            }
            if self.below(3) == 0 && (run.owns(who, handle) || self.below(16) == 0) {
                options.decontaminate_receive[handle] = Level::Three;
            }
        }
        options
    }

    /// Something that this domain might do, more often what may succeed.
    fn action(&mut self, setting: &Setting<HANDLES>, run: &Run<HANDLES>, who: usize) -> Action<HANDLES> {
        let other = (who + 1 + self.below(DOMAINS - 1)) % DOMAINS;
        match self.below(32) {
            0 => Action::Nothing,
            1..4 => Action::Raise(self.below(HANDLES), self.one(&[Level::Three, Level::Three, Level::Two, Level::One])),
            4..6 => Action::Accept(self.below(HANDLES), self.one(&Level::ALL)),
            6..14 if setting.does(Does::Queues) && self.below(2) == 0 => Action::Take(self.below(DOMAINS)),
            6..14 => Action::Send { to: other, options: self.options(run, who) },
            14..18 => Action::Call(other),
            18..20 => Action::Return(other),
            20..22 => Action::Show(other),
            22 => Action::Change,
            23 => Action::Observe,
            24..27 => Action::Map { to: other, writes: self.below(2) == 0 },
            27 => Action::Grant(other),
            28 => Action::Protect,
            29..31 => Action::WritePage,
            _ => Action::ReadPage,
        }
    }

    /// Whether somebody sees in a walk what it may not see, and whether a domain that may learn the secret does.
    fn walk(&mut self, is_explicit: bool, rule: Rule) -> (bool, bool) {
        let setting = self.setting(is_explicit, rule);
        let mut state = self.first(&setting);
        for _ in 0..STEPS {
            let who = self.below(DOMAINS);
            let one = self.action(&setting, &state.runs[0], who);
            let other = if state.does_the_same(who) { one } else { self.action(&setting, &state.runs[1], who) };
            match state.step(&setting, who, [&one, &other]) {
                (_, Verdict::Leak) => return (true, true),
                (_, Verdict::Declassified) => {}
                (next, Verdict::Fine) => state = next,
            }
        }
        (false, !state.same[BETWEEN])
    }
}

fn walker(seed: u64) -> Walker {
    Walker(ChaCha20Rng::seed_from_u64(seed))
}

/// Walks in explicit mode, none of which may leak; gives the number of those in which a domain that may learn the secret does.
fn walk(walker: &mut Walker, walks: usize) -> usize {
    let mut learned = 0;
    for number in 0..walks {
        let (leaks, learns) = walker.walk(true, Rule::AsItIs);
        assert!(!leaks, "walk {number}");
        learned += usize::from(learns);
    }
    learned
}

#[test]
fn no_walk_leaks() {
    const WALKS: usize = 100_000;
    let learned = walk(&mut walker(1), WALKS);
    // Else there would be nothing to leak.
    assert!(learned > WALKS / 50, "{learned}");
}

#[test]
#[ignore = "ten million walks: with --soak"]
fn ten_million_walks_do_not_leak() {
    const PARTS: usize = 100;
    let mut walker = walker(2);
    for part in 1..=PARTS {
        walk(&mut walker, 10_000_000 / PARTS);
        // Past the test harness, which keeps other output until the end.
        let _ = writeln!(
            std::io::stderr(),
            "flow::model::walks::ten_million_walks_do_not_leak: {} walks",
            part * 10_000_000 / PARTS
        );
    }
}

/// The control: walks find each change to the rule that leaks, and labels that float.
#[test]
fn walks_find_each_leak() {
    let rules = [
        (true, Rule::ContaminationSplits),
        (true, Rule::CallsStay),
        (true, Rule::WindowsStay),
        (true, Rule::WritesStay),
        (true, Rule::PagesHaveNoLabel),
        (true, Rule::JudgedWhenSent),
        (true, Rule::SenderIsTold),
        (true, Rule::OnePort),
        (true, Rule::NobodyAsksForOwnership),
        (true, Rule::OwnersDeclassify),
        (false, Rule::AsItIs),
    ];
    for (is_explicit, rule) in rules {
        let mut walker = walker(3);
        assert!((0..2_000_000).any(|_| walker.walk(is_explicit, rule).0), "{rule:?}");
    }
}
