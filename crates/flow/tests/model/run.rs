//! One run: three domains, the messages, calls, windows and pages between them, and the effect of each operation. Every decision about
//! labels is the specification's, handle by handle; each answer is computed once.

use flow::specification::{self as spec, Admission, Label, Labels, Optional};
use flow::{Handle, Level};
use std::sync::LazyLock;

pub const DOMAINS: usize = 3;

/// A level for each of the handles.
pub type Levels<const H: usize> = [Level; H];

/// The rule, or a change to it that leaks: the model must find each of these.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rule {
    AsItIs,
    /// A message that would forbid a call in flight cuts that off, instead of vanishing.
    ContaminationSplits,
    /// A domain's own raise leaves its calls in flight.
    CallsStay,
    /// A call that is cut off leaves its window open.
    WindowsStay,
    /// A domain's own raise leaves its pages writable.
    WritesStay,
    /// A page is mapped if both domains may call each other, whatever its own label.
    PagesHaveNoLabel,
    /// A queued message is judged by the receiver's labels at the time it is sent.
    JudgedWhenSent,
    /// The sender learns whether its message was queued or taken.
    SenderIsTold,
    /// All senders share the places of one port. That is no mistake of the nucleus: docs/caveats.md.
    OnePort,
    /// Any sender may decontaminate.
    NobodyAsksForOwnership,
    /// Owners decontaminate domains that know the secret, and give up their ownership when they know it. That is declassification.
    OwnersDeclassify,
}

/// The kinds of operation in an exploration.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Does {
    /// Messages, taken at once unless there are queues.
    Messages,
    /// The same, sent by the holder of the secret only.
    SecretMessages,
    /// Messages wait in a port, with one place for each sender, until their receiver takes them.
    Queues,
    /// Messages with V.
    Verification,
    /// Messages with Ds and Dr.
    Decontamination,
    /// Calls; each has a window, which both sides write and read until it returns.
    Calls,
    Returns,
    /// Changes and observations of an object.
    Objects,
    /// A page that domains map to each other.
    Pages,
    /// The same page is unmapped, from the domain itself or another. Labels forbid none of that: docs/caveats.md.
    Unmapping,
    /// Changes of a domain's own labels.
    Labels,
}

/// Constants of an exploration.
pub struct Setting<const H: usize> {
    pub is_explicit: bool,
    pub rule: Rule,
    /// The label of all ports and portals.
    pub port: Levels<H>,
    /// The label of the object, and of the account that pays for the page.
    pub object: Levels<H>,
    pub does: &'static [Does],
    /// Domains choose from these.
    pub levels: &'static [Level],
}

impl<const H: usize> Setting<H> {
    pub fn does(&self, what: Does) -> bool {
        self.does.contains(&what)
    }
}

/// A message that was sent.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Message<const H: usize> {
    pub effective: Levels<H>,
    pub optional: Options<H>,
}

/// Optional labels of a message.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Options<const H: usize> {
    pub contaminate: Levels<H>,
    pub decontaminate_send: Levels<H>,
    pub verify: Levels<H>,
    pub decontaminate_receive: Levels<H>,
}

/// `[from][to]`: at most one call of each domain to each is in flight.
pub type Calls = [[bool; DOMAINS]; DOMAINS];
const NONE: Calls = [[false; DOMAINS]; DOMAINS];

/// A domain's mapping of the page.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Hash, Debug)]
pub enum Access {
    None,
    Read,
    Write,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Run<const H: usize> {
    pub send: [Levels<H>; DOMAINS],
    pub receive: [Levels<H>; DOMAINS],
    pub calls: Calls,
    /// The window of that call is open.
    pub windows: Calls,
    /// `queues[to][place]`. The place is the sender's.
    pub queues: [[Option<Message<H>>; DOMAINS]; DOMAINS],
    pub pages: [Access; DOMAINS],
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Action<const H: usize> {
    Nothing,
    /// Raises the send label for a handle, or gives up its ownership.
    Raise(usize, Level),
    /// Changes the receive label for a handle.
    Accept(usize, Level),
    Send {
        to: usize,
        options: Options<H>,
    },
    /// Takes the message in this place of the own port.
    Take(usize),
    Call(usize),
    Return(usize),
    /// Writes into the window of a call with this domain.
    Show(usize),
    Change,
    Observe,
    Map {
        to: usize,
        writes: bool,
    },
    /// Gives the page away.
    Grant(usize),
    /// Gives up its own right to write the page.
    Protect,
    Unmap(usize),
    WritePage,
    ReadPage,
}

/// The effects of an action that domains see.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Seen<const H: usize> {
    /// Seen by the actor: whether it was done.
    pub result: bool,
    /// Bits of domains: each was called or mapped a page; its call returned; its window was written; it took a message; its page went.
    pub called: u8,
    pub returned: u8,
    pub shown: u8,
    pub taken: u8,
    pub unmapped: u8,
    /// `cut[from][to]`: this call was cut off, which both sides see.
    pub cut: Calls,
    /// The receiver and the place of a message that was queued, or that left the queue.
    pub queued: Option<(usize, usize)>,
    pub left: Option<(usize, usize)>,
    /// Seen by the actor, which took a message: V.
    pub verify: Option<Levels<H>>,
    /// The message that was sent is tainted with 3 for the secret's handle.
    pub is_tainted: bool,
    pub changed: bool,
    pub observed: bool,
    pub page_written: bool,
    pub page_read: bool,
}

/// The specification's answers for one handle.
struct Answers {
    deliver: Vec<Option<(Level, Level)>>,
    admit: Vec<Option<Level>>,
    observe: Vec<Option<Level>>,
    may: Vec<(bool, bool)>,
    may_send: Vec<bool>,
    raise: Vec<Option<Level>>,
    accept: Vec<Option<Level>>,
}

fn place<const N: usize>(levels: [Level; N]) -> usize {
    levels.iter().fold(0, |place, level| 5 * place + *level as usize)
}

/// An answer for each combination of levels, in the order of [`place`].
fn table<const N: usize, T>(answer: impl Fn([Level; N]) -> T) -> Vec<T> {
    let level = |number: usize, digit: usize| Level::ALL[number / 5usize.pow((N - 1 - digit) as u32) % 5];
    (0..5usize.pow(N as u32)).map(|number| answer(core::array::from_fn(|digit| level(number, digit)))).collect()
}

impl Answers {
    fn new(is_explicit: bool) -> Self {
        let handle = Handle::new(1).expect("a handle");
        let one = |level| Label::new(Level::One, [(handle, level)]);
        let or = |level, default| Label::new(default, [(handle, level)]);
        let domain = |send, receive| Labels { send: one(send), receive: or(receive, Level::Two), is_explicit };
        let both = |(send, receive): (Label, Label)| (send.get(handle), receive.get(handle));
        Self {
            deliver: table(|[effective, ds, verify, dr, port, send, receive]| {
                let optional = Optional {
                    decontaminate_send: or(ds, Level::Three),
                    verify: or(verify, Level::Three),
                    decontaminate_receive: or(dr, Level::Star),
                    ..Optional::default()
                };
                spec::deliver(&one(effective), &optional, &or(port, Level::Three), &domain(send, receive)).map(both)
            }),
            admit: table(|[send, receive, other, accepts, port]| {
                match spec::admit(&domain(send, receive), &domain(other, accepts), &or(port, Level::Three)) {
                    Admission::Admitted => Some(send),
                    Admission::Raised(raised) => Some(raised.get(handle)),
                    Admission::Refused => None,
                }
            }),
            observe: table(|[send, receive, object]| {
                spec::observe(&domain(send, receive), &one(object)).map(|send| send.get(handle))
            }),
            may: table(|[send, receive, object]| spec::caller_may(&domain(send, receive), &one(object))),
            may_send: table(|[send, ds, dr]| {
                let (decontaminate_send, decontaminate_receive) = (or(ds, Level::Three), or(dr, Level::Star));
                spec::may_send(
                    &one(send),
                    &Optional { decontaminate_send, decontaminate_receive, ..Optional::default() },
                )
            }),
            raise: table(|[send, level]| spec::raised_at(&one(send), handle, level).map(|raised| raised.get(handle))),
            accept: table(|[send, receive, level]| {
                spec::accepted_at(&domain(send, receive), handle, level).map(|accepted| accepted.get(handle))
            }),
        }
    }
}

static ANSWERS: [LazyLock<Answers>; 2] = [LazyLock::new(|| Answers::new(false)), LazyLock::new(|| Answers::new(true))];

fn answers<const H: usize>(setting: &Setting<H>) -> &'static Answers {
    &ANSWERS[usize::from(setting.is_explicit)]
}

/// Something that must hold for each handle.
fn each<T: Copy, const H: usize>(one: impl Fn(usize) -> Option<T>) -> Option<[T; H]> {
    let each: [Option<T>; H] = core::array::from_fn(one);
    each.iter().all(Option::is_some).then(|| each.map(|one| one.expect("looked at")))
}

impl<const H: usize> Run<H> {
    /// Domains with these labels, and nothing between them.
    pub fn new(send: [Levels<H>; DOMAINS], receive: [Levels<H>; DOMAINS]) -> Self {
        Self {
            send,
            receive,
            calls: NONE,
            windows: NONE,
            queues: [[None; DOMAINS]; DOMAINS],
            pages: [Access::None; DOMAINS],
        }
    }

    pub fn owns(&self, who: usize, handle: usize) -> bool {
        self.send[who][handle] == Level::Star
    }

    /// The caller's send label for a call, if it is admitted.
    fn admitted(&self, setting: &Setting<H>, from: usize, to: usize) -> Option<Levels<H>> {
        each(|h| {
            let levels =
                [self.send[from][h], self.receive[from][h], self.send[to][h], self.receive[to][h], setting.port[h]];
            answers(setting).admit[place(levels)]
        })
    }

    /// Whether a domain may observe, and change, something with the object's label.
    fn may(&self, setting: &Setting<H>, who: usize) -> (bool, bool) {
        let may = |h: usize| answers(setting).may[place([self.send[who][h], self.receive[who][h], setting.object[h]])];
        ((0..H).all(|h| may(h).0), (0..H).all(|h| may(h).1))
    }

    fn delivered(&self, setting: &Setting<H>, to: usize, message: &Message<H>) -> Option<[(Level, Level); H]> {
        let Options { decontaminate_send: ds, verify, decontaminate_receive: dr, .. } = message.optional;
        each(|h| {
            let own = [self.send[to][h], self.receive[to][h]];
            let levels = [message.effective[h], ds[h], verify[h], dr[h], setting.port[h], own[0], own[1]];
            answers(setting).deliver[place(levels)]
        })
    }

    /// Cuts off the calls in flight that would have to be judged otherwise.
    fn cut(&mut self, setting: &Setting<H>) -> Calls {
        let mut cut = NONE;
        for [from, to] in (0..DOMAINS).flat_map(|from| (0..DOMAINS).map(move |to| [from, to])) {
            if self.calls[from][to] && self.admitted(setting, from, to) != Some(self.send[from]) {
                self.calls[from][to] = false;
                self.windows[from][to] &= setting.rule == Rule::WindowsStay;
                cut[from][to] = true;
            }
        }
        cut
    }

    fn is_alone(&self, who: usize) -> bool {
        (0..DOMAINS).all(|other| (self.pages[other] != Access::None) == (other == who))
    }

    /// Changes a domain's labels by its own will: ends what they forbid, and gives the calls that it cuts off. Refused if the domain
    /// has a page that it could not read any more.
    fn change(&mut self, setting: &Setting<H>, who: usize, [send, receive]: [Levels<H>; 2]) -> Option<Calls> {
        let mut after = *self;
        after.send[who] = send;
        after.receive[who] = receive;
        if after.pages[who] != Access::None && !after.is_alone(who) {
            let (reads, writes) = after.may(setting, who);
            if !reads {
                return None;
            }
            if !writes && setting.rule != Rule::WritesStay {
                after.pages[who] = Access::Read;
            }
        }
        let cut = if setting.rule == Rule::CallsStay { NONE } else { after.cut(setting) };
        *self = after;
        Some(cut)
    }

    /// Changes a domain's labels by what it takes, calls or observes: refused if anything would have to end.
    fn contaminate(&mut self, setting: &Setting<H>, who: usize, labels: [Levels<H>; 2]) -> Option<Calls> {
        let mut after = *self;
        let cut = after.change(setting, who, labels)?;
        let splits = setting.rule == Rule::ContaminationSplits;
        (after.pages == self.pages && cut == NONE || splits).then(|| {
            *self = after;
            cut
        })
    }

    /// Gives a domain a message, and the calls that this cuts off. None: the message vanishes.
    fn take(&mut self, setting: &Setting<H>, to: usize, message: &Message<H>) -> Option<Calls> {
        match self.delivered(setting, to, message) {
            Some(labels) => self.contaminate(setting, to, [labels.map(|both| both.0), labels.map(|both| both.1)]),
            None => (setting.rule == Rule::JudgedWhenSent && setting.does(Does::Queues)).then_some(NONE),
        }
    }

    fn send(&mut self, setting: &Setting<H>, who: usize, to: usize, optional: Options<H>) -> Seen<H> {
        let Options { contaminate, decontaminate_send: ds, decontaminate_receive: dr, .. } = optional;
        let may_send = |h: usize| answers(setting).may_send[place([self.send[who][h], ds[h], dr[h]])];
        if !(0..H).all(may_send) && setting.rule != Rule::NobodyAsksForOwnership {
            return Seen::default();
        }
        let effective = core::array::from_fn(|h| self.send[who][h].max(contaminate[h]));
        // The receiver gets no more than what Cs came to.
        let message = Message { effective, optional: Options { contaminate: [Level::Star; H], ..optional } };
        let mut seen = Seen { result: true, is_tainted: effective[0] == Level::Three, ..Seen::default() };
        let is_known;
        if setting.does(Does::Queues) {
            let place = if setting.rule == Rule::OnePort { 0 } else { who };
            let vanishes = setting.rule == Rule::JudgedWhenSent && self.delivered(setting, to, &message).is_none();
            is_known = self.queues[to][place].is_none() && !vanishes;
            if is_known {
                self.queues[to][place] = Some(message);
                seen.queued = Some((to, place));
            }
        } else {
            let cut = self.take(setting, to, &message);
            is_known = cut.is_some();
            seen.taken = u8::from(is_known) << to;
            seen.cut = cut.unwrap_or(NONE);
        }
        seen.result = is_known || setting.rule != Rule::SenderIsTold;
        seen
    }

    /// Gives another domain the page too, or instead.
    fn map(&mut self, setting: &Setting<H>, [who, to]: [usize; 2], writes: bool, grants: bool) -> bool {
        let has = self.pages[who] != Access::None && self.pages[to] == Access::None;
        let access = if writes { Access::Write } else { Access::Read };
        let mut after = *self;
        let Some(send) = self.admitted(setting, who, to).filter(|_| has && access <= self.pages[who]) else {
            return false;
        };
        if after.contaminate(setting, who, [send, self.receive[who]]).is_none() {
            return false;
        }
        if grants {
            if !self.is_alone(who) {
                return false;
            }
            after.pages[who] = Access::None;
        } else if setting.rule != Rule::PagesHaveNoLabel {
            let [(reads, may_write), (others_reads, other_may_write)] = [who, to].map(|one| after.may(setting, one));
            let is_writable = self.pages[who] == Access::Write;
            if !(reads && others_reads && (may_write || !is_writable) && (other_may_write || !writes)) {
                return false;
            }
        }
        after.pages[to] = access;
        *self = after;
        true
    }

    /// Does something, and gives what is seen of it.
    pub fn act(&mut self, setting: &Setting<H>, who: usize, action: &Action<H>) -> Seen<H> {
        let mut seen = Seen::default();
        let (mut send, mut receive) = (self.send[who], self.receive[who]);
        match *action {
            Action::Nothing => {}
            Action::Raise(h, level) => {
                if let Some(raised) = answers(setting).raise[place([send[h], level])] {
                    send[h] = raised;
                    let cut = self.change(setting, who, [send, receive]);
                    seen.result = cut.is_some();
                    seen.cut = cut.unwrap_or(NONE);
                }
            }
            Action::Accept(h, level) => {
                if let Some(accepted) = answers(setting).accept[place([send[h], receive[h], level])] {
                    receive[h] = accepted;
                    let cut = self.change(setting, who, [send, receive]);
                    seen.result = cut.is_some();
                    seen.cut = cut.unwrap_or(NONE);
                }
            }
            Action::Send { to, options } => seen = self.send(setting, who, to, options),
            Action::Take(place) => {
                if let Some(message) = self.queues[who][place].take() {
                    seen.left = Some((who, place));
                    if let Some(cut) = self.take(setting, who, &message) {
                        seen.result = true;
                        seen.taken = 1 << who;
                        seen.cut = cut;
                        seen.verify = Some(message.optional.verify);
                    }
                }
            }
            Action::Call(to) => {
                if !self.calls[who][to]
                    && let Some(send) = self.admitted(setting, who, to)
                {
                    let mut after = *self;
                    after.calls[who][to] = true;
                    after.windows[who][to] = true;
                    // Raising the caller must not cut its other calls off, nor be of no use for this one.
                    if after.contaminate(setting, who, [send, receive]).is_some() {
                        *self = after;
                        seen.result = true;
                        seen.called = 1 << to;
                    }
                }
            }
            Action::Return(to) => {
                if self.calls[to][who] {
                    self.calls[to][who] = false;
                    self.windows[to][who] = false;
                    seen.result = true;
                    seen.returned = 1 << to;
                }
            }
            Action::Show(with) => {
                seen.result = self.windows[who][with] || self.windows[with][who];
                seen.shown = u8::from(seen.result) << with;
            }
            Action::Change => {
                seen.result = self.may(setting, who).1;
                seen.changed = seen.result;
            }
            Action::Observe => {
                let observe = |h: usize| answers(setting).observe[place([send[h], receive[h], setting.object[h]])];
                if let Some(send) = each(observe) {
                    seen.observed = self.contaminate(setting, who, [send, receive]).is_some();
                    seen.result = seen.observed;
                }
            }
            Action::Map { to, writes } => {
                seen.result = self.map(setting, [who, to], writes, false);
                seen.called = u8::from(seen.result) << to;
            }
            Action::Grant(to) => {
                seen.result = self.map(setting, [who, to], self.pages[who] == Access::Write, true);
                seen.called = u8::from(seen.result) << to;
            }
            Action::Protect => {
                if self.pages[who] == Access::Write {
                    self.pages[who] = Access::Read;
                    seen.result = true;
                }
            }
            Action::Unmap(of) => {
                if self.pages[of] != Access::None && self.pages[who] != Access::None {
                    self.pages[of] = Access::None;
                    seen.result = true;
                    seen.unmapped = 1 << of;
                }
            }
            Action::WritePage => {
                seen.result = self.pages[who] == Access::Write;
                seen.page_written = seen.result;
            }
            Action::ReadPage => {
                seen.result = self.pages[who] != Access::None;
                seen.page_read = seen.result;
            }
        }
        seen
    }
}
