//! The nucleus does what the [specification](flow::specification) of labels says: domains with labels at random do steps at random, each in a
//! call of ours. The outcome of a step, and the labels afterwards, are compared. A step can be a call to another domain, which does a step.
//!
//! We own everything and accept everything, so we may always call them. Each CPU has a maker and its domains, at the same time.

use abi::Error;
use abi::layout::EXCEPTION;
use abi::op as numbers;
use abi::rights::{ALL, WRITE};
use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::Write;
use core::sync::atomic::{AtomicU64, Ordering};
use flow::specification::{self as rules, Admission, Label, Labels, Optional};
use flow::{Handle, Level};
use runtime::Entry;
use runtime::entry::Owned;
use runtime::op::{self, Schedule};
use runtime::serial::Serial;
use runtime::sync::Mutex;
use runtime::thread::Thread;

use crate::subject::{Answer, Outcome, Page, Subject, label_of, text};
use crate::table::places::{self, Prng};

/// Domains of a maker at a time.
const DOMAINS: usize = 3;
/// Semaphores that all of them have.
const SEMAPHORES: usize = 2;
/// Labels in the table of each.
const SLOTS: usize = 2;
/// Steps until there are other domains.
const EPISODE: u64 = 16;
/// Domains that a step goes through, at most.
const DEPTH: u64 = 3;
/// Handles that nobody names, in labels of some episodes: more than a leaf has room for.
const MANY: usize = 150;
/// Steps of a thread after which it prints how many it has done.
const PRINTED: u64 = 50_000;
/// Handles at a time, at most.
const HANDLES: usize = 6;
/// Frames of a domain's account.
const FRAMES: u64 = 128;

/// Where a domain has its first label, and the domain that it makes.
const FIRST_LABEL: u64 = 120;
const MADE: u64 = 122;
/// Where each has its port, and what that is.
const PORT: u64 = 123;
const MESSAGE_BYTES: u64 = 40;
const WAITING: usize = 3;
const BADGE: u64 = 0x1234_5678_9abc;
/// The label of what asks for nothing.
const OPEN: Label = Label::of(Level::Three);

/// A step of a domain.
#[derive(Clone, Debug)]
enum Step {
    /// It gets this one.
    NewHandle(Handle),
    Send(Handle, Level),
    Receive(Handle, Level),
    Explicit(bool),
    Levels(Handle),
    Put(usize, Handle, Level),
    Combine(usize, usize, bool),
    /// Its send label, its receive label, or one in its places.
    Read(usize),
    /// Asks whether its caller may observe and change an object with the label in this place.
    Caller(usize),
    P(usize),
    V(usize),
    /// Works on a domain.
    Info(usize),
    /// Makes a domain.
    Make,
    Call(usize, Box<Step>),
    /// Sends so many bytes to the port of a domain, with the labels in these places, if any: Cs, Ds, V, Dr.
    Message(usize, u64, [Option<usize>; 4]),
    /// Takes a message at its own port; the label in this place becomes V.
    Take(Option<usize>),
}

/// A message that waits.
#[derive(Clone, Debug)]
struct Message {
    bytes: u64,
    effective: Label,
    optional: Optional,
}

impl Step {
    /// Whether only its status is compared.
    fn says_nothing(&self) -> bool {
        matches!(self, Self::Info(_) | Self::P(_) | Self::V(_) | Self::Message(..))
    }
}

/// A domain as the specification has it.
#[derive(Clone, Debug)]
struct Model {
    labels: Labels,
    slots: [Label; SLOTS],
    /// The label of portals that lead to it.
    portal: Label,
    /// The domain that handles its exceptions.
    handler: Option<usize>,
    made: Option<Labels>,
    /// The label of its port, and what waits there.
    port: Label,
    messages: Vec<Message>,
}

/// A domain as it is: with entries of ours, and with indices of its own.
struct Actor {
    subject: Subject,
    calls: [u64; DOMAINS],
    domains: [u64; DOMAINS],
    semaphores: [u64; SEMAPHORES],
    ports: [u64; DOMAINS],
}

/// A call that is in flight.
struct Link {
    /// We, if it is none of them.
    from: Option<usize>,
    to: usize,
    is_cut: bool,
}

/// Outcomes of steps, counted.
struct Seen {
    done: AtomicU64,
    no_right: AtomicU64,
    flow: AtomicU64,
    raised: AtomicU64,
    cut: AtomicU64,
    taken: AtomicU64,
    vanished: AtomicU64,
}

static SEEN: Seen = Seen {
    done: AtomicU64::new(0),
    no_right: AtomicU64::new(0),
    flow: AtomicU64::new(0),
    raised: AtomicU64::new(0),
    cut: AtomicU64::new(0),
    taken: AtomicU64::new(0),
    vanished: AtomicU64::new(0),
};

fn count(of: &AtomicU64) {
    of.fetch_add(1, Ordering::Relaxed);
}

/// Domains, and what they are to be.
struct World {
    random: Prng,
    handles: Vec<Handle>,
    models: Vec<Model>,
    /// The label of each semaphore, and its count.
    semaphores: Vec<(Label, u64)>,
    actors: Vec<Actor>,
    /// Entries that are removed after the domains.
    things: Vec<Owned>,
    page: Page,
    /// Calls that were cut off in this step.
    cut: u32,
    /// V of the message that was taken.
    shown: Label,
}

/// Our labels.
fn maker() -> Labels {
    Labels { send: Label::of(Level::Star), receive: Label::of(Level::Three), is_explicit: false }
}

/// The specification's side. The last domain of a chain of calls does a step.
impl World {
    fn labels(&self, who: Option<usize>) -> Labels {
        who.map_or_else(maker, |who| self.models[who].labels.clone())
    }

    fn admits(&self, from: &Labels, to: &Labels) -> bool {
        rules::admit(from, to, &OPEN) == Admission::Admitted
    }

    /// A domain's labels become others. A call that they forbid is cut off, or forbids the change.
    fn change(&mut self, who: usize, next: Labels, cuts: bool, chain: &mut [Link]) -> Result<(), Error> {
        let model = &self.models[who];
        if next == model.labels {
            return Ok(());
        }
        let handles = |by: usize| {
            by == who || rules::admit(&next, &self.models[by].labels, &self.models[by].portal) == Admission::Admitted
        };
        let handled = model.handler.is_none_or(handles);
        let heard = model.made.as_ref().is_none_or(|made| rules::may_report(made, &next));
        if !handled || !heard {
            return Err(Error::Flow);
        }
        for link in chain.iter_mut() {
            let (from, to) = (link.from == Some(who), link.to == who);
            let stays = match (from, to) {
                (true, false) => self.admits(&next, &self.models[link.to].labels),
                (false, true) => self.admits(&self.labels(link.from), &next),
                _ => true,
            };
            if !stays && !cuts {
                return Err(Error::Flow);
            }
            link.is_cut |= !stays;
        }
        self.models[who].labels = next;
        Ok(())
    }

    /// A domain calls somebody with these labels by a portal of this label, or does something that is judged like that.
    fn judge(&mut self, who: usize, other: &Labels, portal: &Label, chain: &mut [Link]) -> Result<(), Error> {
        let own = self.models[who].labels.clone();
        match rules::admit(&own, other, portal) {
            Admission::Admitted => Ok(()),
            Admission::Refused => Err(Error::Flow),
            Admission::Raised(send) => {
                count(&SEEN.raised);
                self.change(who, Labels { send, ..own }, false, chain)?;
                self.judge(who, other, portal, chain)
            }
        }
    }

    fn judge_domain(&mut self, who: usize, other: usize, portal: &Label, chain: &mut [Link]) -> Result<(), Error> {
        if who == other { Ok(()) } else { self.judge(who, &self.models[other].labels.clone(), portal, chain) }
    }

    /// The last domain of the chain does a step.
    fn does(&mut self, step: &Step, chain: &mut Vec<Link>) -> Answer {
        let answer = self.tries(step, chain).unwrap_or_else(|error| [error as u64, 0, 0]);
        count(match answer[0] {
            0 => &SEEN.done,
            status if status == Error::Flow as u64 => &SEEN.flow,
            _ => &SEEN.no_right,
        });
        answer
    }

    fn tries(&mut self, step: &Step, chain: &mut Vec<Link>) -> Result<Answer, Error> {
        let Some(Link { from, to: who, .. }) = chain.last() else { return Err(Error::BadArgument) };
        let (caller, who) = (self.labels(*from), *who);
        let own = self.models[who].labels.clone();
        let mut word = 0;
        match step {
            Step::NewHandle(made) => {
                self.models[who].labels.send.set(*made, Level::Star);
                word = made.number();
            }
            Step::Send(handle, level) => {
                let send = rules::raised_at(&own.send, *handle, *level).ok_or(Error::NotOwned)?;
                self.change(who, Labels { send, ..own }, true, chain)?;
            }
            Step::Receive(handle, level) => {
                let receive = rules::accepted_at(&own, *handle, *level).ok_or(Error::NotOwned)?;
                self.change(who, Labels { receive, ..own }, true, chain)?;
            }
            Step::Explicit(is) => self.models[who].labels.is_explicit = *is,
            Step::Levels(handle) => word = own.send.get(*handle) as u64 | (own.receive.get(*handle) as u64) << 3,
            Step::Put(slot, handle, level) => self.models[who].slots[*slot].set(*handle, *level),
            Step::Combine(slot, with, is_lower) => {
                let slots = &mut self.models[who].slots;
                slots[*slot] = Label::each([&slots[*slot], &slots[*with]], |[one, other]| match is_lower {
                    true => one.min(other),
                    false => one.max(other),
                });
            }
            Step::Read(place) => {
                let label = [&own.send, &own.receive].into_iter().chain(&self.models[who].slots).nth(*place);
                let label = label.ok_or(Error::BadIndex)?;
                word = label.entries.len() as u64 | (label.default as u64) << 32;
            }
            Step::Caller(slot) => {
                let (observe, change) = rules::caller_may(&caller, &self.models[who].slots[*slot]);
                word = u64::from(observe) | u64::from(change) << 1;
            }
            Step::P(number) => {
                let label = self.semaphores[*number].0.clone();
                let both = Labels { send: label.clone(), receive: label, is_explicit: false };
                self.judge(who, &both, &OPEN, chain)?;
                let count = &mut self.semaphores[*number].1;
                *count = count.checked_sub(1).ok_or(Error::Timeout)?;
            }
            Step::V(number) => {
                let (label, count) = &mut self.semaphores[*number];
                if !rules::caller_may(&own, label).1 {
                    return Err(Error::Flow);
                }
                *count += 1;
            }
            Step::Info(other) => self.judge_domain(who, *other, &OPEN, chain)?,
            Step::Make => {
                let (send, receive) = rules::inherited(&own);
                self.models[who].made = Some(Labels { send, receive, is_explicit: own.is_explicit });
                word = MADE;
            }
            Step::Call(other, then) => {
                let portal = self.models[*other].portal.clone();
                self.judge_domain(who, *other, &portal, chain)?;
                chain.push(Link { from: Some(who), to: *other, is_cut: false });
                let [status, word, _] = self.does(then, chain);
                if chain.pop().is_none_or(|link| link.is_cut) {
                    count(&SEEN.cut);
                    self.cut += 1;
                    return Err(Error::Flow);
                }
                return Ok([0, status, if status == 0 { word } else { 0 }]);
            }
            Step::Message(to, bytes, places) => {
                let optional = self.optional(who, places);
                if !rules::may_send(&own.send, &optional) {
                    return Err(Error::NotOwned);
                }
                let effective = rules::effective(&own.send, &optional);
                let messages = &mut self.models[*to].messages;
                if messages.len() < WAITING {
                    messages.push(Message { bytes: *bytes, effective, optional });
                }
            }
            Step::Take(shown) => {
                word = self.takes(who, chain)?;
                let verify = core::mem::replace(&mut self.shown, OPEN);
                if let Some(place) = shown {
                    self.models[who].slots[*place] = verify;
                }
            }
        }
        Ok([0, word, 0])
    }
}

/// Messages.
impl World {
    fn optional(&self, who: usize, places: &[Option<usize>; 4]) -> Optional {
        let [least, most] = [Level::Star, Level::Three].map(Label::of);
        let usual = [least.clone(), most.clone(), most, least];
        let mut labels = usual.into_iter().zip(places).map(|(usual, place)| match place {
            Some(place) => self.models[who].slots[*place].clone(),
            None => usual,
        });
        let mut next = || labels.next().unwrap_or(OPEN);
        Optional { contaminate: next(), decontaminate_send: next(), verify: next(), decontaminate_receive: next() }
    }

    /// A domain takes the oldest message of its port that it may take; those before it vanish.
    fn takes(&mut self, who: usize, chain: &mut [Link]) -> Result<u64, Error> {
        loop {
            let own = self.models[who].labels.clone();
            if self.models[who].messages.is_empty() {
                return Err(Error::Timeout);
            }
            let Message { bytes, effective, optional } = self.models[who].messages.remove(0);
            let port = self.models[who].port.clone();
            let is_taken = match rules::deliver(&effective, &optional, &port, &own) {
                Some((send, receive)) => self.change(who, Labels { send, receive, ..own }, false, chain).is_ok(),
                None => false,
            };
            if is_taken {
                count(&SEEN.taken);
                self.shown = optional.verify;
                return Ok(bytes | BADGE << 16);
            }
            count(&SEEN.vanished);
        }
    }
}

/// At random.
impl World {
    fn is_one_in(&mut self, count: u64) -> bool {
        self.random.below(count) == 0
    }

    fn below(&mut self, limit: usize) -> usize {
        self.random.below(limit as u64) as usize
    }

    fn level(&mut self) -> Level {
        Level::ALL[self.below(Level::ALL.len())]
    }

    /// Now and then one that no label has.
    fn handle(&mut self) -> Handle {
        if self.is_one_in(16) {
            let number = self.random.below(1 << 31) << 29 | self.random.below(1 << 29);
            return Handle::new(number).unwrap_or(self.handles[0]);
        }
        let place = self.below(self.handles.len());
        self.handles[place]
    }

    fn label(&mut self, usual: Level) -> Label {
        let default = if self.is_one_in(8) { self.level() } else { usual };
        self.label_like(&Label::of(default))
    }

    /// The label, but for a handle or two.
    fn label_like(&mut self, label: &Label) -> Label {
        let mut label = label.clone();
        for handle in self.handles.clone() {
            if self.is_one_in(4) {
                // High levels in receive labels refuse nothing.
                let level = self.level();
                label.set(handle, level.max(if label.default >= Level::Two { Level::One } else { Level::Star }));
            }
        }
        label
    }

    fn step(&mut self, who: usize, depth: u64) -> Step {
        match self.below(if depth < DEPTH { 42 } else { 32 }) {
            0..=3 => Step::Send(self.handle(), self.level()),
            4..=6 => Step::Receive(self.handle(), self.level()),
            7 => Step::Explicit(self.is_one_in(4)),
            8 => Step::Levels(self.handle()),
            9 => Step::Put(self.below(SLOTS), self.handle(), self.level()),
            10 => Step::Combine(self.below(SLOTS), self.below(SLOTS), self.is_one_in(2)),
            11 => Step::Read(self.below(2 + SLOTS)),
            12 => Step::Caller(self.below(SLOTS)),
            13 | 14 => Step::P(self.below(SEMAPHORES)),
            15 => Step::V(self.below(SEMAPHORES)),
            16 if self.models[who].made.is_none() && self.is_one_in(4) => Step::Make,
            16 | 17 => Step::Info(self.below(DOMAINS)),
            18..=24 => {
                let places = core::array::from_fn(|_| self.is_one_in(8).then(|| self.below(SLOTS)));
                Step::Message(self.below(DOMAINS), self.random.below(MESSAGE_BYTES + 1), places)
            }
            25..=31 => Step::Take(self.is_one_in(4).then(|| self.below(SLOTS))),
            _ => {
                let other = self.below(DOMAINS);
                Step::Call(other, Box::new(self.step(other, depth + 1)))
            }
        }
    }
}

/// In the machine.
impl World {
    fn new(seed: u64, page: Page) -> Self {
        Self {
            random: Prng::new(seed),
            handles: Vec::new(),
            models: Vec::new(),
            semaphores: Vec::new(),
            actors: Vec::new(),
            things: Vec::new(),
            page,
            cut: 0,
            shown: OPEN,
        }
    }

    /// Other domains, with other labels, and a page on which they see steps.
    fn begin(&mut self) -> Outcome<()> {
        self.actors.clear();
        self.models.clear();
        self.semaphores.clear();
        self.things.clear();
        self.handles.clear();
        for _ in 0..3 {
            let number = op::label_handle().map_err(text)?;
            self.handles.push(Handle::new(number).ok_or("a handle of too many bits")?);
        }
        // Everybody may read what has this label.
        let free = self.account(FRAMES, &Label::of(Level::Star))?;
        self.page.draw(free)?;
        let mut semaphores = Vec::new();
        for _ in 0..SEMAPHORES {
            let label = self.label(Level::One);
            let account = self.account(4, &label)?;
            let semaphore = Owned::new(op::semaphore_new(account, 1).map_err(text)?);
            semaphores.push(semaphore.entry());
            self.things.push(semaphore);
            self.semaphores.push((label, 1));
        }
        let mut labels = [self.label(Level::One), self.label(Level::Three)];
        if self.is_one_in(8) {
            // More than a leaf of them.
            for _ in 0..MANY {
                let number = self.random.below(1 << 31) << 29 | self.random.below(1 << 29);
                let handle = Handle::new(number).ok_or("a handle of too many bits")?;
                let [low, high] = [[Level::Zero, Level::Two], [Level::Two, Level::Three]];
                labels[0].set(handle, low[self.below(2)]);
                labels[1].set(handle, high[self.below(2)]);
            }
        }
        for _ in 0..DOMAINS {
            let (actor, model) = self.domain(free, &labels)?;
            self.actors.push(actor);
            self.models.push(model);
        }
        for who in 0..DOMAINS {
            for other in 0..DOMAINS {
                let (actor, other_actor) = (&self.actors[who], &self.actors[other]);
                let portal =
                    op::portal_new(actor.subject.domain.entry(), other_actor.subject.service.entry(), 0, Entry(0), 0);
                let domain = op::entry_copy(
                    Entry::OWN,
                    other_actor.subject.domain.entry(),
                    actor.subject.domain.entry(),
                    Entry(0),
                    ALL,
                );
                let (portal, domain) = (portal.map_err(text)?.0 as u64, domain.map_err(text)?.0 as u64);
                self.actors[who].calls[other] = portal;
                self.actors[who].domains[other] = domain;
            }
            for (number, semaphore) in semaphores.iter().enumerate() {
                let copy =
                    op::entry_copy(Entry::OWN, *semaphore, self.actors[who].subject.domain.entry(), Entry(0), ALL);
                self.actors[who].semaphores[number] = copy.map_err(text)?.0 as u64;
            }
            for other in 0..DOMAINS {
                let (from, to) = (self.actors[other].subject.domain.entry(), self.actors[who].subject.domain.entry());
                let copy = op::entry_copy(from, Entry(PORT as usize), to, Entry(0), WRITE);
                self.actors[who].ports[other] = copy.map_err(text)?.0 as u64;
            }
            if self.is_one_in(3) {
                let by = self.below(DOMAINS);
                let (domain, service) = (&self.actors[who].subject.domain, &self.actors[by].subject.service);
                op::portal_new(domain.entry(), service.entry(), 0, Entry(EXCEPTION), 0).map_err(text)?;
                self.models[who].handler = Some(by);
            }
        }
        Ok(())
    }

    /// An account whose objects have this label. It goes after the domains.
    fn account(&mut self, frames: u64, label: &Label) -> Outcome<Entry> {
        let label = label_of(label)?;
        let account = Owned::new(op::account_new_labelled(Entry::OWN, frames, 0, label.entry()).map_err(text)?);
        let entry = account.entry();
        self.things.push(account);
        Ok(entry)
    }

    /// A domain with labels like these.
    fn domain(&mut self, free: Entry, [send, receive]: &[Label; 2]) -> Outcome<(Actor, Model)> {
        let (send, receive) = (self.label_like(send), self.label_like(receive));
        let labels = Labels { send, receive, is_explicit: self.is_one_in(8) };
        let portal_label = if self.is_one_in(2) { self.label(Level::Three) } else { OPEN };
        let subject = Subject::new(&self.page, free, FRAMES, &labels, &portal_label)?;
        let actor = Actor { subject, calls: [0; _], domains: [0; _], semaphores: [0; _], ports: [0; _] };
        let mut slots = [const { Label::of(Level::One) }; SLOTS];
        for (number, slot) in slots.iter_mut().enumerate() {
            let (from, label) = match self.below(7) {
                5 => (5, labels.send.clone()),
                6 => (6, labels.receive.clone()),
                level => (level as u64, Label::of(Level::ALL[level])),
            };
            *slot = label;
            let made = actor.subject.enters(
                &self.page,
                numbers::LABEL,
                [numbers::LABEL_NEW, from, FIRST_LABEL + number as u64, 0, 0, 0],
            );
            if made?[0] != 0 {
                return Err("no label".into());
            }
        }
        let port = if self.is_one_in(2) { slots[0].clone() } else { OPEN };
        let label = if port == OPEN { 0 } else { FIRST_LABEL };
        let size = MESSAGE_BYTES | (WAITING as u64) << 16;
        if actor.subject.enters(&self.page, numbers::PORT_NEW, [0, size, PORT, label, 0, BADGE])?[0] != 0 {
            return Err("no port".into());
        }
        let messages = Vec::new();
        Ok((actor, Model { labels, slots, portal: portal_label, handler: None, made: None, port, messages }))
    }

    /// Writes a step, and those that it leads to, in the places from this one on.
    fn write(&self, who: usize, step: &Step, place: usize) {
        let actor = &self.actors[who];
        let label = |words: [u64; 4]| (numbers::LABEL as u64, [words[0], words[1], words[2], words[3], 0, 0]);
        let slot = |number: &usize| FIRST_LABEL + *number as u64;
        let (index, words) = match step {
            Step::NewHandle(_) => label([numbers::LABEL_HANDLE, 0, 0, 0]),
            Step::Send(handle, level) => label([numbers::LABEL_SEND, handle.number(), *level as u64, 0]),
            Step::Receive(handle, level) => label([numbers::LABEL_RECEIVE, handle.number(), *level as u64, 0]),
            Step::Explicit(is) => label([numbers::LABEL_EXPLICIT, (*is).into(), 0, 0]),
            Step::Levels(handle) => label([numbers::LABEL_LEVELS, handle.number(), 0, 0]),
            Step::Put(place, handle, level) => label([numbers::LABEL_PUT, slot(place), handle.number(), *level as u64]),
            Step::Combine(place, with, is_lower) => {
                label([numbers::LABEL_COMBINE, slot(place), slot(with), (*is_lower).into()])
            }
            Step::Read(place) => {
                let which = if *place < 2 { *place as u64 } else { slot(&(place - 2)) };
                label([numbers::LABEL_READ, which, 0, 0])
            }
            Step::Caller(place) => label([numbers::LABEL_CALLER, slot(place), 0, 0]),
            Step::P(number) => (actor.semaphores[*number], [numbers::P, 0, 0, 0, 0, 0]),
            Step::V(number) => (actor.semaphores[*number], [numbers::V, 0, 0, 0, 0, 0]),
            Step::Info(other) => {
                (numbers::ENTRY_INFO as u64, [actor.domains[*other], numbers::CLOCK as u64, 0, 0, 0, 0])
            }
            Step::Make => (numbers::DOMAIN_NEW as u64, [0, 0, MADE, 0, 0, 0]),
            Step::Message(to, bytes, places) => {
                let [cs, ds, v, dr] = places.map(|place| place.map_or(0, |place| FIRST_LABEL + place as u64));
                (actor.ports[*to], [numbers::SEND | bytes << 8, cs | ds << 32, v | dr << 32, 0, 0, 0])
            }
            Step::Take(shown) => (PORT, [numbers::RECEIVE, 0, shown.as_ref().map_or(0, slot), 0, 0, 0]),
            Step::Call(other, then) => {
                self.write(*other, then, place + 1);
                (actor.calls[*other], [Page::address(place + 1), 0, 0, 0, 0, 0])
            }
        };
        self.page.put(place, index, words);
    }

    /// A domain does a step; the answer must be that of the specification.
    fn compare(&mut self, who: usize, step: Step) -> Outcome<()> {
        self.write(who, &step, 0);
        let reported = self.actors[who].subject.asks()?;
        let mut step = step;
        if let Step::NewHandle(made) = &mut step {
            *made = Handle::new(reported[1]).ok_or("a handle of too many bits")?;
            self.handles.push(*made);
        }
        let mut chain = Vec::from([Link { from: None, to: who, is_cut: false }]);
        let before = self.models.clone();
        self.cut = 0;
        let mut due = self.does(&step, &mut chain);
        // It called its caller, and both calls are cut off, one after the other: the lower one may return in between.
        let upper = [0, Error::Flow as u64, 0];
        if self.cut == 2 && reported == upper {
            due = upper;
        }
        let counts = match (&step, due[0]) {
            (_, 1..) => 1,
            (step, _) if step.says_nothing() => 1,
            (Step::Call(_, then), _) if due[1] != 0 || then.says_nothing() => 2,
            _ => 3,
        };
        if reported[..counts] != due[..counts] {
            let again = self.actors[who].subject.asks()?;
            return Err(format!(
                "domain {who}, {step:?}: {reported:?} instead of {due:?}, and then {again:?}; before: {before:?}"
            ));
        }
        Ok(())
    }

    /// The levels of a handle must be those of the specification.
    fn look(&mut self, who: usize, handle: Handle) -> Outcome<()> {
        self.compare(who, Step::Levels(handle))
    }

    fn run(&mut self, steps: u64) -> Outcome<()> {
        for number in 0..steps {
            if number % EPISODE == 0 {
                self.begin()?;
            }
            if number % PRINTED == PRINTED - 1 {
                let _ = writeln!(Serial::new(), "rules: {} of {steps} steps", number + 1);
            }
            let who = self.below(DOMAINS);
            let step = match self.handles.len() < HANDLES && self.is_one_in(16) {
                true => Step::NewHandle(self.handles[0]),
                false => self.step(who, 1),
            };
            let said = format!("{step:?}");
            let of = |why: String| format!("step {number}, domain {who}, {said}: {why}");
            self.compare(who, step).map_err(of)?;
            // A domain that changed its labels and cut a call off continues without the caller's thread, some time later. Until then other
            // domains' changes are checked against its old labels, too. A call to it completes the change.
            if self.cut > 0 {
                for other in 0..DOMAINS {
                    self.look(other, self.handles[0]).map_err(of)?;
                }
            }
            let (other, handle) = (self.below(DOMAINS), self.handle());
            self.look(other, handle).map_err(of)?;
            if number % EPISODE == EPISODE - 1 {
                for handle in self.handles.clone() {
                    for who in 0..DOMAINS {
                        self.look(who, handle).map_err(of)?;
                    }
                }
            }
        }
        Ok(())
    }
}

/// The arguments of [`work`], and the failures that it found.
static SEED: AtomicU64 = AtomicU64::new(0);
static COUNT: AtomicU64 = AtomicU64::new(0);
static WRONG: Mutex<Vec<String>> = Mutex::new(Vec::new());

fn work(number: usize) {
    let seed = SEED.load(Ordering::Relaxed) + number as u64;
    if let Err(why) = World::new(seed, Page::of(number)).run(COUNT.load(Ordering::Relaxed)) {
        WRONG.lock().push(format!("seed {seed}, {why}"));
    }
}

/// Does so many steps in all, on all CPUs; the line that counts the outcomes.
pub fn line(seed: u64, steps: u64) -> Result<String, String> {
    let cpus = places::cpus()?;
    SEED.store(seed, Ordering::Relaxed);
    COUNT.store(steps / cpus as u64, Ordering::Relaxed);
    let schedule = Schedule { priority: 12, slice: 10_000 };
    let threads: Vec<_> = (0..cpus).map(|number| Thread::start_with(work, number, schedule)).collect();
    for thread in threads {
        thread.map_err(text)?.join();
    }
    if let Some(why) = WRONG.lock().pop() {
        return Err(why);
    }
    let [done, no_right, flow, raised, cut, taken, vanished] =
        [&SEEN.done, &SEEN.no_right, &SEEN.flow, &SEEN.raised, &SEEN.cut, &SEEN.taken, &SEEN.vanished]
            .map(|count| count.load(Ordering::Relaxed));
    Ok(format!(
        "rules: {steps} steps, seed {seed}: done {done}, refused {no_right} without labels, {flow} by labels, raised {raised}, cut off {cut}, messages taken {taken}, vanished {vanished}\n"
    ))
}
