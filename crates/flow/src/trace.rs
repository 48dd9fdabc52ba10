//! A sequence of events between domains, each judged by the engine and by the specification at once.
//!
//! Others can write the steps, too, with what came of each; [`World::step`] says where that is not what should have come.

use crate::rules::{self, Labels, Optional};
use crate::{Exhausted, Handle, Handles, Heap, Label, Level, Pool, specification as spec};
use chacha20::ChaCha20Rng;
use chacha20::rand_core::{Rng, SeedableRng};
use std::collections::BTreeMap;
use std::fmt;
use std::string::{String, ToString};
use std::vec::Vec;

/// A domain, by whatever number.
pub type Number = u64;

/// Something that is done.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Step {
    /// A domain begins, with S = {1} and R = {2}. One of this number that was there is gone, with its ports.
    NewDomain(Number),
    /// A domain gets a handle, and owns it.
    NewHandle(Number, Handle),
    /// A domain gets a port with this label, and owns its handle.
    NewPort(Number, Handle, spec::Label),
    /// A domain raises its send label for a handle, or tries to.
    RaiseSend(Number, Handle, Level),
    /// A domain lowers its receive label for a handle, or raises it, or tries to.
    LowerReceive(Number, Handle, Level),
    /// A domain sends a message to a port, which is taken at once or never.
    Send {
        /// The sender.
        from: Number,
        /// The port.
        port: Handle,
        /// The optional labels.
        optional: spec::Optional,
    },
}

/// The outcome of a message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Outcome {
    /// Whether it was taken.
    pub delivered: bool,
    /// The owner of the port. Nobody: there is none.
    pub to: Option<Number>,
    /// That domain's labels afterwards.
    pub labels: Option<(spec::Label, spec::Label)>,
}

/// Why a step cannot be made.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Mistake {
    /// Nobody made this domain.
    NoDomain(Number),
    /// The engine has no room for more labels.
    Exhausted,
    /// Engine and specification disagree: the subject, the engine's answer, and the specification's.
    Differs(&'static str, String, String),
}

impl fmt::Display for Mistake {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoDomain(domain) => write!(to, "there is no domain {domain}: new_domain makes it"),
            Self::Exhausted => write!(to, "there is no room for so many labels"),
            Self::Differs(what, engine, specification) => {
                write!(to, "{what}: the engine says {engine}, the specification {specification}")
            }
        }
    }
}

impl std::error::Error for Mistake {}

impl From<Exhausted> for Mistake {
    fn from(_: Exhausted) -> Self {
        Self::Exhausted
    }
}

/// A label as people read it: `{h5 ★, h7 3, 1}`, the default last.
impl fmt::Display for spec::Label {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "{{")?;
        for (handle, level) in &self.entries {
            write!(to, "h{} {level}, ", handle.number())?;
        }
        write!(to, "{}}}", self.default)
    }
}

impl fmt::Display for Level {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Star => write!(to, "★"),
            level => write!(to, "{}", level.number()),
        }
    }
}

/// The same thing as both have it.
struct Both<S, E> {
    specified: S,
    engine: E,
}

/// All domains and ports.
pub struct World {
    pool: Pool<Heap>,
    domains: BTreeMap<Number, Both<spec::Labels, Labels>>,
    ports: BTreeMap<Handle, (Number, Both<spec::Label, Label>)>,
}

impl Default for World {
    fn default() -> Self {
        Self::new()
    }
}

/// Nodes that are looked at in a step: few, so that steps are tried.
const STEP: u32 = 4;
/// Nodes of all labels together: a gigabyte.
const NODES: usize = 1 << 21;

impl World {
    /// Without domains.
    pub fn new() -> Self {
        Self { pool: Pool::new(Heap::new(NODES), 0), domains: BTreeMap::new(), ports: BTreeMap::new() }
    }

    /// The domains that there are.
    pub fn domains(&self) -> impl Iterator<Item = (Number, &spec::Labels)> {
        self.domains.iter().map(|(number, domain)| (*number, &domain.specified))
    }

    /// The ports that there are, and their owners.
    pub fn ports(&self) -> impl Iterator<Item = (Handle, Number)> {
        self.ports.iter().map(|(handle, (owner, _))| (*handle, *owner))
    }

    /// Makes a step. Of a message, what came of it.
    pub fn step(&mut self, step: &Step) -> Result<Option<Outcome>, Mistake> {
        match step {
            Step::NewDomain(number) => self.begin(*number),
            Step::NewHandle(number, handle) => self.change(*number, |pool, specified, engine| {
                specified.send.set(*handle, Level::Star);
                Ok((pool.set(engine.send, *handle, Level::Star)?, pool.keep(engine.receive)))
            })?,
            Step::NewPort(number, handle, label) => {
                self.step(&Step::NewHandle(*number, *handle))?;
                let mut label = label.clone();
                label.set(*handle, Level::Zero);
                let engine = self.made(&label)?;
                let old = self.ports.insert(*handle, (*number, Both { specified: label, engine }));
                old.into_iter().for_each(|(_, label)| self.pool.release(label.engine));
            }
            Step::RaiseSend(number, handle, level) => self.change(*number, |pool, specified, engine| {
                if let Some(raised) = spec::raised_at(&specified.send, *handle, *level) {
                    specified.send = raised;
                }
                let raised = rules::raised_at(pool, engine.send, *handle, *level)?;
                Ok((raised.unwrap_or_else(|| pool.keep(engine.send)), pool.keep(engine.receive)))
            })?,
            Step::LowerReceive(number, handle, level) => self.change(*number, |pool, specified, engine| {
                if let Some(accepted) = spec::accepted_at(specified, *handle, *level) {
                    specified.receive = accepted;
                }
                let accepted = rules::accepted_at(pool, engine, *handle, *level)?;
                Ok((pool.keep(engine.send), accepted.unwrap_or_else(|| pool.keep(engine.receive))))
            })?,
            Step::Send { from, port, optional } => return self.send(*from, *port, optional).map(Some),
        }
        Ok(None)
    }

    fn begin(&mut self, number: Number) {
        let gone: Vec<Handle> = self.ports().filter(|(_, owner)| *owner == number).map(|(handle, _)| handle).collect();
        for handle in gone {
            let port = self.ports.remove(&handle);
            port.into_iter().for_each(|(_, label)| self.pool.release(label.engine));
        }
        let [send, receive] = [Level::One, Level::Two];
        let specified =
            spec::Labels { send: spec::Label::of(send), receive: spec::Label::of(receive), is_explicit: false };
        let engine = Labels { send: Label::of(send), receive: Label::of(receive), is_explicit: false };
        if let Some(old) = self.domains.insert(number, Both { specified, engine }) {
            self.pool.release(old.engine.send);
            self.pool.release(old.engine.receive);
        }
    }

    /// Changes the labels of a domain, and compares both.
    fn change(
        &mut self,
        number: Number,
        work: impl FnOnce(&mut Pool<Heap>, &mut spec::Labels, &Labels) -> Result<(Label, Label), Exhausted>,
    ) -> Result<(), Mistake> {
        let domain = self.domains.get_mut(&number).ok_or(Mistake::NoDomain(number))?;
        let (send, receive) = work(&mut self.pool, &mut domain.specified, &domain.engine)?;
        self.pool.release(domain.engine.send);
        self.pool.release(domain.engine.receive);
        domain.engine.send = send;
        domain.engine.receive = receive;
        same("the send label", &from(&self.pool, send), &domain.specified.send)?;
        same("the receive label", &from(&self.pool, receive), &domain.specified.receive)
    }

    fn send(&mut self, from: Number, port: Handle, optional: &spec::Optional) -> Result<Outcome, Mistake> {
        let sender = self.domains.get(&from).ok_or(Mistake::NoDomain(from))?;
        let Some((to, label)) = self.ports.get(&port) else {
            return Ok(Outcome { delivered: false, to: None, labels: None });
        };
        let (to, port, send) = (*to, label.engine, sender.engine.send);
        let receiver = self.domains.get(&to).ok_or(Mistake::NoDomain(to))?;
        let right = if spec::may_send(&sender.specified.send, optional) {
            let effective = spec::effective(&sender.specified.send, optional);
            spec::deliver(&effective, optional, &label.specified, &receiver.specified)
        } else {
            None
        };
        let receiver = receiver.engine;
        let Optional { contaminate, decontaminate_send, verify, decontaminate_receive } = self.optional(optional)?;
        let engine = Optional { contaminate, decontaminate_send, verify, decontaminate_receive };
        let pool = &mut self.pool;
        let made = if pool.finish(STEP, |pool, work| rules::may_send(pool, work, send, &engine))? {
            let effective = pool.finish(STEP, |pool, work| rules::effective(pool, work, send, &engine))?;
            let made = pool.finish(STEP, |pool, work| rules::deliver(pool, work, effective, &engine, port, &receiver));
            pool.release(effective);
            made?
        } else {
            None
        };
        for label in [contaminate, decontaminate_send, verify, decontaminate_receive] {
            self.pool.release(label);
        }
        same("whether the message is taken", &made.is_some(), &right.is_some())?;
        if let (Some(made), Some((send, receive))) = (made, right) {
            self.change(to, |_, specified, _| {
                specified.send = send;
                specified.receive = receive;
                Ok(made)
            })?;
        }
        let receiver = self.domains.get(&to).ok_or(Mistake::NoDomain(to))?;
        let labels = (receiver.specified.send.clone(), receiver.specified.receive.clone());
        Ok(Outcome { delivered: made.is_some(), to: Some(to), labels: Some(labels) })
    }

    fn optional(&mut self, optional: &spec::Optional) -> Result<Optional, Mistake> {
        Ok(Optional {
            contaminate: self.made(&optional.contaminate)?,
            decontaminate_send: self.made(&optional.decontaminate_send)?,
            verify: self.made(&optional.verify)?,
            decontaminate_receive: self.made(&optional.decontaminate_receive)?,
        })
    }

    fn made(&mut self, label: &spec::Label) -> Result<Label, Mistake> {
        let mut made = Label::of(label.default);
        for (handle, level) in &label.entries {
            let next = self.pool.set(made, *handle, *level);
            self.pool.release(made);
            made = next?;
        }
        Ok(made)
    }
}

fn same<T: PartialEq + ToString>(what: &'static str, engine: &T, specified: &T) -> Result<(), Mistake> {
    if engine == specified {
        return Ok(());
    }
    Err(Mistake::Differs(what, engine.to_string(), specified.to_string()))
}

fn from(pool: &Pool<Heap>, label: Label) -> spec::Label {
    let mut entries = Vec::new();
    pool.each(label, |handle, level| entries.push((handle, level)));
    spec::Label::new(label.default, entries)
}

/// Steps at random: a few domains, handles and ports, most messages between them such as may be taken.
pub struct Script {
    random: ChaCha20Rng,
    handles: Handles,
    /// Handles that were given out.
    known: Vec<Handle>,
}

/// Domains and handles of a script, at most.
const DOMAINS: usize = 8;
const KNOWN: usize = 300;
/// Levels that let most messages through, and such as most receivers accept.
const HIGH: [Level; 3] = [Level::One, Level::Two, Level::Three];
const LOW: [Level; 4] = [Level::Star, Level::Zero, Level::One, Level::Two];

impl Script {
    /// The same steps for the same seed.
    pub fn new(seed: u64) -> Self {
        let mut random = ChaCha20Rng::seed_from_u64(seed);
        let key = [random.next_u64(), random.next_u64()];
        Self { random, handles: Handles::new(key), known: Vec::new() }
    }

    /// A number below.
    fn below(&mut self, end: usize) -> usize {
        (self.random.next_u64() % end as u64) as usize
    }

    fn one<T: Clone>(&mut self, of: &[T]) -> Option<T> {
        if of.is_empty() { None } else { Some(of[self.below(of.len())].clone()) }
    }

    fn level(&mut self) -> Level {
        Level::ALL[self.below(Level::ALL.len())]
    }

    /// A handle that was given out, or a new one; mostly one of the first.
    fn handle(&mut self) -> Handle {
        let is_new = self.known.len() < 8 || self.known.len() < KNOWN && self.below(8) == 0;
        if is_new && let Some(handle) = self.handles.next_handle() {
            self.known.push(handle);
            return handle;
        }
        let end = if self.below(2) == 0 { 8 } else { self.known.len() };
        let place = self.below(end);
        self.known[place]
    }

    /// A step in a world as it is now.
    pub fn next(&mut self, world: &World) -> Step {
        let domains: Vec<(Number, &spec::Labels)> = world.domains().collect();
        let ports: Vec<Handle> = world.ports().map(|(handle, _)| handle).collect();
        let Some((domain, labels)) = self.one(&domains) else { return Step::NewDomain(0) };
        match self.below(100) {
            0 => Step::NewDomain(self.below(DOMAINS) as Number),
            1..5 if domains.len() < DOMAINS => Step::NewDomain(domains.len() as Number),
            1..7 => Step::NewHandle(domain, self.handle()),
            7..12 => Step::NewPort(domain, self.handle(), self.accepting()),
            // The owner of a port's handle can send there.
            12..20 if !ports.is_empty() => Step::NewHandle(domain, ports[self.below(ports.len())]),
            12..26 => {
                let (handle, level) = (self.handle(), self.level());
                match self.below(2) {
                    0 => Step::RaiseSend(domain, handle, level),
                    _ => Step::LowerReceive(domain, handle, level),
                }
            }
            _ => {
                let is_open = |port: &Handle| labels.send.get(*port) <= Level::Zero;
                let open: Vec<Handle> = ports.iter().copied().filter(is_open).collect();
                let port = match self.below(8) {
                    0 => self.handle(),
                    1 => self.one(&ports).unwrap_or_else(|| self.handle()),
                    _ => self.one(&open).unwrap_or_else(|| self.handle()),
                };
                Step::Send { from: domain, port, optional: self.optional(labels) }
            }
        }
    }

    /// A label that accepts most of what there is.
    fn accepting(&mut self) -> spec::Label {
        let default = [Level::Two, Level::Three, Level::Three][self.below(3)];
        let known = self.known.clone();
        self.exceptions(default, &known, &HIGH)
    }

    /// A default with exceptions for some of these handles, now and then for many; mostly of these levels.
    fn exceptions(&mut self, default: Level, of: &[Handle], levels: &[Level]) -> spec::Label {
        let count = if self.below(20) == 0 { self.below(200) } else { self.below(4) };
        let is_any = self.below(4) == 0;
        let levels = if is_any { &Level::ALL[..] } else { levels };
        let entries: Vec<_> = (0..count).filter_map(|_| Some((self.one(of)?, self.one(levels)?))).collect();
        spec::Label::new(default, entries)
    }

    /// Mostly what this sender may say.
    fn optional(&mut self, sender: &spec::Labels) -> spec::Optional {
        let known = self.known.clone();
        let owned: Vec<Handle> =
            known.iter().copied().filter(|handle| sender.send.get(*handle) == Level::Star).collect();
        let mut optional = spec::Optional::default();
        let whose = if self.below(8) == 0 { &known } else { &owned };
        let parts = [
            (&mut optional.contaminate, &known, &LOW[..]),
            (&mut optional.verify, &known, &HIGH[..]),
            (&mut optional.decontaminate_send, whose, &Level::ALL[..]),
            (&mut optional.decontaminate_receive, whose, &HIGH[..]),
        ];
        for (label, handles, levels) in parts {
            if self.below(5) == 0 {
                let default = if self.below(10) == 0 { self.level() } else { label.default };
                *label = self.exceptions(default, handles, levels);
            }
        }
        optional
    }
}
