//! Two runs at once, which differ in a secret. A domain that has seen the same in both does the same in both. A domain that has seen a
//! difference *knows*, and does whatever it likes in each.
//!
//! An owner of the handle is trusted. Even if it knows, it does the same in both runs, and lets the secret out only in a message that is
//! tainted with 3. It does not decontaminate a domain that knows, nor give up its ownership unless it stays tainted. Data that it lets out all the
//! same, because a domain that knows changed its labels or its page, counts as declassified: labels cannot stop it.

use crate::run::{Action, DOMAINS, Rule, Run, Seen, Setting};
use flow::Level;

/// The handle that the secret is tainted with.
pub const SECRETS: usize = 0;

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Both<const H: usize> {
    pub runs: [Run<H>; 2],
    /// Each domain has seen the same in both.
    pub same: [bool; DOMAINS],
    /// The object, the page and each queued message have the same content in both.
    pub same_object: bool,
    pub same_page: bool,
    pub same_queues: [[bool; DOMAINS]; DOMAINS],
}

/// The verdict on a step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    Fine,
    /// A domain that neither accepts nor owns the handle sees a difference.
    Leak,
    /// An owner lets the secret go. Explorations do not continue from there.
    Declassified,
}

impl<const H: usize> Both<H> {
    /// Nothing has happened yet; the first domain knows the secret.
    pub fn new(run: Run<H>) -> Self {
        Self {
            runs: [run; 2],
            same: [false, true, true],
            same_object: true,
            same_page: true,
            same_queues: [[true; DOMAINS]; DOMAINS],
        }
    }

    fn is_trusted(&self, who: usize) -> bool {
        self.runs.iter().all(|run| run.owns(who, SECRETS))
    }

    /// Whether a domain does the same in both runs.
    pub fn does_the_same(&self, who: usize) -> bool {
        self.same[who] || self.is_trusted(who)
    }

    /// Has a domain do something in each run.
    pub fn step(&self, setting: &Setting<H>, who: usize, actions: [&Action<H>; 2]) -> (Self, Verdict) {
        let mut runs = self.runs;
        let [one, other] = &mut runs;
        let seen = [one.act(setting, who, actions[0]), other.act(setting, who, actions[1])];
        self.after(setting, who, runs, seen)
    }

    /// The state after a step of a domain.
    pub fn after(&self, setting: &Setting<H>, who: usize, runs: [Run<H>; 2], seen: [Seen<H>; 2]) -> (Self, Verdict) {
        let mut next = Self { runs, ..*self };
        let [one, other] = &seen;
        let knows = !self.same[who];
        let says_the_secret = knows && !self.is_trusted(who);
        let sends_the_secret = says_the_secret || knows && one.is_tainted;
        let takes_the_secret = match (one.left, other.left) {
            (Some(place), Some(others)) => place != others || !self.same_queues[place.0][place.1],
            _ => sends_the_secret,
        };
        let mut differs = [false; DOMAINS];
        differs[who] |= one.result != other.result || one.verify != other.verify;
        differs[who] |= !self.same_object && (one.observed || other.observed);
        differs[who] |= !self.same_page && (one.page_read || other.page_read);
        for (domain, differs) in differs.iter_mut().enumerate() {
            let bit = |byte: u8| byte >> domain & 1 == 1;
            *differs |= (0..DOMAINS).any(|with| {
                [[domain, with], [with, domain]].iter().any(|[from, to]| one.cut[*from][*to] != other.cut[*from][*to])
            });
            for (in_one, in_other, is_secret) in [
                (one.called, other.called, says_the_secret),
                (one.returned, other.returned, says_the_secret),
                (one.shown, other.shown, says_the_secret),
                (one.taken, other.taken, takes_the_secret),
                (one.unmapped, other.unmapped, false),
            ] {
                // It comes in one run only, or with another content.
                *differs |= bit(in_one) != bit(in_other) || bit(in_one) && is_secret;
            }
            // Its own labels.
            *differs |=
                runs[0].send[domain] != runs[1].send[domain] || runs[0].receive[domain] != runs[1].receive[domain];
        }
        (0..DOMAINS).for_each(|domain| next.same[domain] &= !differs[domain]);
        let stays_the_same = |in_one: bool, in_other: bool| in_one == in_other && !(in_one && says_the_secret);
        next.same_object &= stays_the_same(one.changed, other.changed);
        next.same_page &= stays_the_same(one.page_written, other.page_written);
        next.queue(seen, sends_the_secret);
        (next, self.verdict(setting, who, &next))
    }

    fn queue(&mut self, [one, other]: [Seen<H>; 2], is_secret: bool) {
        for (to, place) in [one.queued, other.queued].into_iter().flatten() {
            self.same_queues[to][place] = one.queued == other.queued && !is_secret;
        }
        for (to, places) in self.same_queues.iter_mut().enumerate() {
            for (place, same) in places.iter_mut().enumerate() {
                // A message that is in one run only has no other to differ from.
                *same |= self.runs.iter().any(|run| run.queues[to][place].is_none());
            }
        }
    }

    fn verdict(&self, setting: &Setting<H>, actor: usize, next: &Self) -> Verdict {
        let may_know = |run: &Run<H>, who: usize| run.receive[who][SECRETS] == Level::Three || run.owns(who, SECRETS);
        let learns = |who: usize| self.same[who] && !next.same[who];
        let is_leak = |who: usize| learns(who) && !next.runs.iter().all(|run| may_know(run, who));
        let lets_go = |before: &Run<H>, after: &Run<H>, who: usize| {
            let [before, after] = [before, after].map(|run| run.send[who][SECRETS]);
            after < before || before == Level::Star && !matches!(after, Level::Star | Level::Three)
        };
        // The callees open to an owner then depend on the secret: docs/caveats.md.
        let is_led = |who: usize| {
            let [one, other] = next.runs.map(|run| (run.send[who], run.receive[who], run.pages[who]));
            next.is_trusted(who) && one != other
        };
        let is_let_go = |who: usize| {
            !self.same[who] && (0..2).any(|run| lets_go(&self.runs[run], &next.runs[run], who)) || is_led(who)
        };
        let leaks = (0..DOMAINS).any(is_leak);
        let is_owners = !self.same[actor] && self.is_trusted(actor);
        if setting.rule != Rule::OwnersDeclassify && (leaks && is_owners || !leaks && (0..DOMAINS).any(is_let_go)) {
            Verdict::Declassified
        } else if leaks {
            Verdict::Leak
        } else {
            Verdict::Fine
        }
    }
}
