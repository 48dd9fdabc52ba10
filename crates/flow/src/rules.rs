//! The rules of information flow, and their effects on labels: the design's formulas, one function each.
//!
//! Labels that are handed in stay their owner's; those that are given back are the caller's to [release](Pool::release). Labels may be large, so
//! a rule can [stop](Stop::Again) on its way; [`Pool::finish`] does all steps at once.

use crate::operations::{Relation, Rule, Task};
use crate::pool::{Exhausted, Label, Memory, Owner, Pool};
use crate::{Handle, Level};

/// Both labels of a domain, and whether its send label follows what it takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Labels {
    /// S: how tainted it is.
    pub send: Label,
    /// R: how much taint it accepts.
    pub receive: Label,
    /// Explicit mode: messages that would taint it are refused.
    pub is_explicit: bool,
}

/// The labels that a sender may add to a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Optional {
    /// Cs: taints the message.
    pub contaminate: Label,
    /// Ds: takes taint from the receiver.
    pub decontaminate_send: Label,
    /// V: the sender's credentials, proved by the message; shown to the receiver.
    pub verify: Label,
    /// Dr: has the receiver accept more.
    pub decontaminate_receive: Label,
}

impl Optional {
    /// Labels that change nothing.
    pub const NONE: Self = Self {
        contaminate: Label::of(Level::Star),
        decontaminate_send: Label::of(Level::Three),
        verify: Label::of(Level::Three),
        decontaminate_receive: Label::of(Level::Star),
    };

    /// All four.
    pub fn all(&self) -> [Label; 4] {
        [self.contaminate, self.decontaminate_send, self.verify, self.decontaminate_receive]
    }
}

impl Default for Optional {
    fn default() -> Self {
        Self::NONE
    }
}

/// L★ of a level: ownership stays, everything else is 3.
const OWNED: Rule = Rule::mapped([Level::Star, Level::Three, Level::Three, Level::Three, Level::Three]);
/// 3 where there is ownership, and nowhere else more than ★.
const THREE_IF_OWNED: Rule = Rule::mapped([Level::Three, Level::Star, Level::Star, Level::Star, Level::Star]);
/// 2 where there is ownership, and nowhere else less than 3.
const TWO_IF_OWNED: Rule = Rule::mapped([Level::Two, Level::Three, Level::Three, Level::Three, Level::Three]);
/// Nowhere less than 1.
const ONE_OR_MORE: Rule = Rule::mapped([Level::One, Level::One, Level::One, Level::Two, Level::Three]);

/// Why something that was begun is not done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stop {
    /// It took its effort: it is to be restarted with the same [`Work`], and goes on.
    Again,
    /// There is no room for another node.
    Exhausted,
}

impl From<Exhausted> for Stop {
    fn from(_: Exhausted) -> Self {
        Self::Exhausted
    }
}

/// Nodes that a step of a comparison looks at in any case.
const RELATED: u32 = 16;

/// The most findings that a rule can have.
const MOST: usize = 14;

/// The findings of a rule so far. A caller that wants to pause keeps it, and asks the same again: what was found out before is
/// not looked for again. It goes with [`Self::end`].
#[derive(Debug)]
pub struct Work {
    found: [Found; MOST],
    count: usize,
    /// Of these, so many were asked for since it was resumed.
    asked: usize,
    task: Task,
    effort: u32,
    /// Something was looked for since it was resumed.
    is_late: bool,
}

#[derive(Clone, Copy, Debug)]
enum Found {
    Label(Label),
    Truth(bool),
}

impl Default for Work {
    fn default() -> Self {
        Self::new()
    }
}

impl Work {
    /// Nothing is found out yet.
    pub const fn new() -> Self {
        Self { found: [Found::Truth(false); MOST], count: 0, asked: 0, task: Task::NEW, effort: 0, is_late: false }
    }

    /// Before the same is asked again: it may look at so many nodes of trees, and some more.
    pub const fn resume(&mut self, effort: u32) {
        self.asked = 0;
        self.is_late = false;
        self.effort = effort;
    }

    /// Lets go of what was made on the way; [`Pool::tidy`] frees it.
    #[inline(never)]
    pub fn end<M: Memory>(&mut self, pool: &mut Pool<M>) {
        for found in &self.found[..self.count] {
            if let Found::Label(label) = found {
                pool.release_later(*label);
            }
        }
        pool.abandon(&mut self.task);
        self.count = 0;
    }

    fn known(&mut self) -> Option<Found> {
        let known = self.found[..self.count].get(self.asked).copied();
        self.asked += usize::from(known.is_some());
        known
    }

    /// Before something is found out: it takes some of the effort, whatever the labels. The first of a step is always found out, or goes on.
    fn begin(&mut self) -> Result<(), Stop> {
        match self.effort.checked_sub(1) {
            Some(left) => self.effort = left,
            None if self.is_late => return Err(Stop::Again),
            None => {}
        }
        self.is_late = true;
        Ok(())
    }

    fn note(&mut self, found: Found) {
        self.found[self.count] = found;
        self.count += 1;
        self.asked += 1;
    }

    fn combined<M: Memory>(
        &mut self,
        pool: &mut Pool<M>,
        rule: &Rule,
        one: Label,
        other: Label,
    ) -> Result<Label, Stop> {
        if let Some(Found::Label(label)) = self.known() {
            return Ok(label);
        }
        self.begin()?;
        let made = pool.combined_step(&mut self.task, rule, one, other, &mut self.effort)?.ok_or(Stop::Again)?;
        self.note(Found::Label(made));
        Ok(made)
    }

    fn higher<M: Memory>(&mut self, pool: &mut Pool<M>, one: Label, other: Label) -> Result<Label, Stop> {
        self.combined(pool, &Rule::HIGHER, one, other)
    }

    fn lower<M: Memory>(&mut self, pool: &mut Pool<M>, one: Label, other: Label) -> Result<Label, Stop> {
        self.combined(pool, &Rule::LOWER, one, other)
    }

    fn mapped<M: Memory>(&mut self, pool: &mut Pool<M>, label: Label, rule: &Rule) -> Result<Label, Stop> {
        self.combined(pool, rule, label, Label::of(label.default))
    }

    /// `label ⊔ (by ⊓ label★)`: the label raised by another one, but owned handles stay so.
    fn raised<M: Memory>(&mut self, pool: &mut Pool<M>, label: Label, by: Label) -> Result<Label, Stop> {
        let raised = self.combined(pool, &Rule::RAISED, label, by)?;
        // Much may follow from it. That is another step.
        if self.is_late { Err(Stop::Again) } else { Ok(raised) }
    }

    /// `label ⊓ of★`: the label, but ★ where `of` has ownership.
    fn but_owned<M: Memory>(&mut self, pool: &mut Pool<M>, label: Label, of: Label) -> Result<Label, Stop> {
        let owned = self.mapped(pool, of, &OWNED)?;
        self.lower(pool, label, owned)
    }

    fn is_below<M: Memory>(&mut self, pool: &mut Pool<M>, one: Label, other: Label) -> Result<bool, Stop> {
        self.relate(pool, Relation::BELOW, one, other)
    }

    /// `one ⊓ other★ ⊑ other`: but for what `other` owns, it would not be tainted.
    fn is_no_taint<M: Memory>(&mut self, pool: &mut Pool<M>, one: Label, other: Label) -> Result<bool, Stop> {
        self.relate(pool, Relation::BELOW_UNLESS_OWNED, one, other)
    }

    fn relate<M: Memory>(
        &mut self,
        pool: &mut Pool<M>,
        relation: Relation,
        one: Label,
        other: Label,
    ) -> Result<bool, Stop> {
        // Not worth a step, nor to be remembered.
        if let Some(truth) = pool.is_related_at_once(relation, one, other) {
            return Ok(truth);
        }
        if let Some(Found::Truth(truth)) = self.known() {
            return Ok(truth);
        }
        self.begin()?;
        // This makes nothing, so a step looks at more nodes than one that does.
        let mut effort = RELATED.saturating_add(self.effort);
        let known = pool.relate_step(&mut self.task, relation, one, other, &mut effort);
        self.effort = self.effort.min(effort);
        let truth = known.ok_or(Stop::Again)?;
        self.note(Found::Truth(truth));
        Ok(truth)
    }
}

/// How many labels a rule is asked about, at most.
pub const MOST_LABELS: usize = 7;

/// A step of a rule, which may be asked again with the same work.
pub type Ask<'a, M> = &'a mut dyn FnMut(&mut Pool<M>, &mut Work) -> Result<(), Stop>;

/// Work that may not have ended in its step, and what was asked: which rule, and of which labels. The same question, asked again, goes on
/// with it.
#[derive(Debug)]
pub struct Unfinished {
    rule: u8,
    payer: Owner,
    names: [u64; MOST_LABELS],
    /// The answer is known, and stays.
    is_over: bool,
    work: Work,
}

impl Unfinished {
    /// There is none.
    pub const NONE: Self = Self { rule: 0, payer: 0, names: [0; MOST_LABELS], is_over: false, work: Work::new() };

    /// The payer of the results so far; 0 = there are none.
    pub fn payer(&self) -> Owner {
        self.payer
    }

    /// Lets go of what was made so far.
    #[inline(never)]
    pub fn end<M: Memory>(&mut self, pool: &mut Pool<M>) {
        self.work.end(pool);
        self.payer = 0;
        self.is_over = false;
    }

    /// Whether this was found out in an earlier step, and stays.
    pub fn knows<M: Memory>(&self, pool: &Pool<M>, rule: u8, labels: &[Label]) -> bool {
        self.is_over && (self.rule, self.payer, self.names) == (rule, pool.payer(), names(pool, labels))
    }

    /// Asks a rule, known by its number, about these labels, at most [`MOST_LABELS`], with so much effort. The findings stay
    /// (`stays`) until something else is asked, or [`Self::end`]: then the same can be asked again at once.
    #[inline(never)]
    pub fn step<M: Memory>(
        &mut self,
        pool: &mut Pool<M>,
        rule: u8,
        labels: &[Label],
        (effort, stays): (u32, bool),
        ask: Ask<'_, M>,
    ) -> Result<(), Stop> {
        let (payer, names) = (pool.payer(), names(pool, labels));
        if (self.rule, self.payer, self.names) != (rule, payer, names) {
            self.end(pool);
            self.rule = rule;
            self.payer = payer;
            self.names = names;
        }
        self.work.resume(effort);
        let outcome = ask(pool, &mut self.work);
        self.is_over = stays && outcome.is_ok();
        if outcome != Err(Stop::Again) && !self.is_over {
            self.end(pool);
        }
        outcome
    }
}

fn names<M: Memory>(pool: &Pool<M>, labels: &[Label]) -> [u64; MOST_LABELS] {
    let mut names = [u64::MAX; MOST_LABELS];
    names.iter_mut().zip(labels).for_each(|(name, label)| *name = pool.name(*label));
    names
}

impl<M: Memory> Pool<M> {
    /// Has something found out in steps of so much effort, one after the other.
    pub fn finish<T>(
        &mut self,
        effort: u32,
        mut rule: impl FnMut(&mut Self, &mut Work) -> Result<T, Stop>,
    ) -> Result<T, Exhausted> {
        let mut work = Work::new();
        let outcome = loop {
            work.resume(effort);
            match rule(self, &mut work) {
                Ok(outcome) => break Ok(outcome),
                Err(Stop::Again) => {}
                Err(Stop::Exhausted) => break Err(Exhausted),
            }
        };
        work.end(self);
        outcome
    }
}

/// E: the taint of a message.
pub fn effective<M: Memory>(
    pool: &mut Pool<M>,
    work: &mut Work,
    send: Label,
    optional: &Optional,
) -> Result<Label, Stop> {
    let effective = work.higher(pool, send, optional.contaminate)?;
    Ok(pool.keep(effective))
}

/// Whether the sender owns what it wants to decontaminate.
pub fn may_send<M: Memory>(
    pool: &mut Pool<M>,
    work: &mut Work,
    send: Label,
    optional: &Optional,
) -> Result<bool, Stop> {
    Ok(work.relate(pool, Relation::OWNED_BELOW_THREE, optional.decontaminate_send, send)?
        && work.relate(pool, Relation::OWNED_ABOVE_STAR, optional.decontaminate_receive, send)?)
}

/// A message as it waits: the optional labels, of the present payer, with E in the place of Cs. `None`: the sender does not own what it
/// wants to decontaminate.
#[inline(never)]
pub fn sent<M: Memory>(
    pool: &mut Pool<M>,
    work: &mut Work,
    send: Label,
    optional: &Optional,
) -> Result<Option<Optional>, Stop> {
    if !may_send(pool, work, send, optional)? {
        return Ok(None);
    }
    let mut copied = |label| work.higher(pool, label, Label::of(Level::Star));
    let (decontaminate_send, verify) = (copied(optional.decontaminate_send)?, copied(optional.verify)?);
    let decontaminate_receive = copied(optional.decontaminate_receive)?;
    Ok(Some(Optional {
        contaminate: effective(pool, work, send, optional)?,
        decontaminate_send: pool.keep(decontaminate_send),
        verify: pool.keep(verify),
        decontaminate_receive: pool.keep(decontaminate_receive),
    }))
}

/// Whether a message is taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Delivery {
    /// It is not taken.
    Refused,
    /// It is taken, and the receiver's labels stay.
    Taken,
    /// It is taken when the receiver's send and receive label are these.
    Changes(Label, Label),
}

/// Whether a message that was [sent](may_send) is taken. If the change of labels that it needs would forbid a call in flight, the caller of this
/// function must refuse it.
#[inline(never)]
pub fn delivery<M: Memory>(
    pool: &mut Pool<M>,
    work: &mut Work,
    effective: Label,
    optional: &Optional,
    port: Label,
    receiver: &Labels,
) -> Result<Delivery, Stop> {
    let receive = work.higher(pool, receiver.receive, optional.decontaminate_receive)?;
    let is_taken = work.is_below(pool, effective, receive)?
        && work.is_below(pool, effective, optional.verify)?
        && work.is_below(pool, effective, port)?
        && work.is_below(pool, optional.decontaminate_receive, port)?;
    if !is_taken {
        return Ok(Delivery::Refused);
    }
    // A message that takes no taint from its receiver can only raise it: in one walk.
    if optional.decontaminate_send == Label::of(Level::Three) {
        let is_no_taint = work.is_no_taint(pool, effective, receiver.send)?;
        let send = match is_no_taint {
            true => receiver.send,
            false if receiver.is_explicit => return Ok(Delivery::Refused),
            false => work.raised(pool, receiver.send, effective)?,
        };
        let stays = is_no_taint && work.is_below(pool, receive, receiver.receive)?;
        return Ok(if stays { Delivery::Taken } else { Delivery::Changes(pool.keep(send), pool.keep(receive)) });
    }
    let less = work.lower(pool, receiver.send, optional.decontaminate_send)?;
    let taint = work.but_owned(pool, effective, receiver.send)?;
    if receiver.is_explicit && !work.is_below(pool, taint, less)? {
        return Ok(Delivery::Refused);
    }
    let send = work.higher(pool, less, taint)?;
    let stays = work.is_below(pool, send, receiver.send)?
        && work.is_below(pool, receiver.send, send)?
        && work.is_below(pool, receive, receiver.receive)?;
    Ok(if stays { Delivery::Taken } else { Delivery::Changes(pool.keep(send), pool.keep(receive)) })
}

/// The same: if it is taken, send and receive label of the receiver from then on.
pub fn deliver<M: Memory>(
    pool: &mut Pool<M>,
    work: &mut Work,
    effective: Label,
    optional: &Optional,
    port: Label,
    receiver: &Labels,
) -> Result<Option<(Label, Label)>, Stop> {
    Ok(match delivery(pool, work, effective, optional, port, receiver)? {
        Delivery::Refused => None,
        Delivery::Taken => Some((pool.keep(receiver.send), pool.keep(receiver.receive))),
        Delivery::Changes(send, receive) => Some((send, receive)),
    })
}

/// The decision about a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Admission {
    /// It may be made.
    Admitted,
    /// It may be made when the caller's send label is this.
    Raised(Label),
    /// It may not.
    Refused,
}

/// Whether a caller may call by a portal of this label. Information flows both ways; the callee is never tainted.
#[inline(never)]
pub fn admit<M: Memory>(
    pool: &mut Pool<M>,
    work: &mut Work,
    caller: &Labels,
    callee: &Labels,
    portal: Label,
) -> Result<Admission, Stop> {
    let is_open = work.is_below(pool, caller.send, callee.receive)?
        && work.is_below(pool, caller.send, portal)?
        && work.is_below(pool, callee.send, caller.receive)?;
    if !is_open {
        return Ok(Admission::Refused);
    }
    // Most calls taint neither: one walk finds that.
    if work.relate(pool, Relation::SAME_UNLESS_OWNED, caller.send, callee.send)? {
        Ok(Admission::Admitted)
    } else if caller.is_explicit || !work.is_no_taint(pool, caller.send, callee.send)? {
        Ok(Admission::Refused)
    } else {
        let raised = work.raised(pool, caller.send, callee.send)?;
        // The raised caller must be one that may call.
        let may_call = work.is_below(pool, raised, callee.receive)? && work.is_below(pool, raised, portal)?;
        Ok(if may_call { Admission::Raised(pool.keep(raised)) } else { Admission::Refused })
    }
}

/// The same of labels without entries, and a portal whose label is {3}; nothing if one has entries, or the caller would be raised.
pub fn admit_plain(caller: &Labels, callee: &Labels) -> Option<bool> {
    let all = [caller.send, caller.receive, callee.send, callee.receive];
    if all.iter().any(|label| label.root.is_some()) {
        return None;
    }
    let [send, receive, other, accepts] = all.map(|label| label.default as u64);
    let no_taint = Relation::BELOW_UNLESS_OWNED;
    let is_open = send <= accepts && other <= receive && no_taint.of(send, other);
    match is_open && !no_taint.of(other, send) {
        true if !caller.is_explicit => None,
        _ => Some(is_open && no_taint.of(other, send)),
    }
}

/// Whether information may flow from a domain to another one without tainting it.
pub fn may_report<M: Memory>(pool: &mut Pool<M>, work: &mut Work, from: &Labels, to: &Labels) -> Result<bool, Stop> {
    Ok(work.is_below(pool, from.send, to.receive)? && work.is_no_taint(pool, from.send, to.send)?)
}

/// Whether a domain may change an object of this label.
pub fn may_change<M: Memory>(pool: &mut Pool<M>, work: &mut Work, send: Label, object: Label) -> Result<bool, Stop> {
    work.is_below(pool, send, object)
}

/// Whether a domain may observe an object of this label; and if so, its send label from then on.
pub fn observe<M: Memory>(
    pool: &mut Pool<M>,
    work: &mut Work,
    domain: &Labels,
    object: Label,
) -> Result<Option<Label>, Stop> {
    if !work.is_below(pool, object, domain.receive)? {
        return Ok(None);
    }
    if domain.is_explicit && !work.is_no_taint(pool, object, domain.send)? {
        return Ok(None);
    }
    let send = work.raised(pool, domain.send, object)?;
    Ok(Some(pool.keep(send)))
}

/// Whether a domain may change an object of the label {1}. That takes no search.
pub fn may_change_plain<M: Memory>(pool: &Pool<M>, domain: &Labels) -> bool {
    pool.has_none(domain.send, [Level::Two, Level::Three])
}

/// A domain's rights to an object of the label {1}: observe it without taint, change it. That takes no search.
pub fn plain_rights<M: Memory>(pool: &Pool<M>, domain: &Labels) -> (bool, bool) {
    let accepts = pool.has_none(domain.receive, [Level::Star, Level::Zero]);
    (accepts && pool.has_none(domain.send, [Level::Zero]), may_change_plain(pool, domain))
}

/// Whether a domain has both.
pub fn may_use_plain<M: Memory>(pool: &Pool<M>, domain: &Labels) -> bool {
    plain_rights(pool, domain) == (true, true)
}

/// The caller's rights to a thing of this label, for a server that judges by itself: observe it, change it.
pub fn caller_may<M: Memory>(
    pool: &mut Pool<M>,
    work: &mut Work,
    caller: &Labels,
    thing: Label,
) -> Result<(bool, bool), Stop> {
    let observes = work.is_below(pool, thing, caller.receive)? && work.is_no_taint(pool, thing, caller.send)?;
    Ok((observes, work.is_below(pool, caller.send, thing)?))
}

/// Whether a domain may make another with these labels.
pub fn may_make<M: Memory>(pool: &mut Pool<M>, work: &mut Work, parent: &Labels, child: &Labels) -> Result<bool, Stop> {
    let owned = work.mapped(pool, parent.send, &THREE_IF_OWNED)?;
    let accepted = work.higher(pool, parent.receive, owned)?;
    Ok(work.is_below(pool, parent.send, child.send)? && work.is_below(pool, child.receive, accepted)?)
}

/// Why something new does not get the labels that its maker names.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NotGiven {
    /// The maker does not [own](may_make) what it would have to.
    NotOwned,
    /// A domain could not [report](may_report) its end to its maker; an object could not be [changed](may_change) by its maker.
    Flow,
}

/// The label of an object that its maker names, owned by the present payer.
#[inline(never)]
pub fn given_to_object<M: Memory>(
    pool: &mut Pool<M>,
    work: &mut Work,
    send: Label,
    label: Label,
) -> Result<Result<Label, NotGiven>, Stop> {
    if !may_change(pool, work, send, label)? {
        return Ok(Err(NotGiven::Flow));
    }
    copied(pool, work, label).map(Ok)
}

/// The labels of a child that its maker names, owned by the present payer.
#[inline(never)]
pub fn given<M: Memory>(
    pool: &mut Pool<M>,
    work: &mut Work,
    parent: &Labels,
    child: &Labels,
) -> Result<Result<Labels, NotGiven>, Stop> {
    if !may_make(pool, work, parent, child)? {
        return Ok(Err(NotGiven::NotOwned));
    }
    if !may_report(pool, work, child, parent)? {
        return Ok(Err(NotGiven::Flow));
    }
    let send = work.higher(pool, child.send, Label::of(Level::Star))?;
    let receive = work.higher(pool, child.receive, Label::of(Level::Star))?;
    Ok(Ok(Labels { send: pool.keep(send), receive: pool.keep(receive), ..*child }))
}

/// The least upper bound of two labels, or the greatest lower one.
#[inline(never)]
pub fn bound<M: Memory>(
    pool: &mut Pool<M>,
    work: &mut Work,
    one: Label,
    other: Label,
    is_lower: bool,
) -> Result<Label, Stop> {
    let rule = if is_lower { &Rule::LOWER } else { &Rule::HIGHER };
    let made = work.combined(pool, rule, one, other)?;
    Ok(pool.keep(made))
}

/// The same label, owned by the present payer.
pub fn copied<M: Memory>(pool: &mut Pool<M>, work: &mut Work, label: Label) -> Result<Label, Stop> {
    let copied = work.higher(pool, label, Label::of(Level::Star))?;
    Ok(pool.keep(copied))
}

/// The labels that a child has if nobody says otherwise: those of its maker, but it owns nothing, and accepts no taint above 2 of what its
/// maker owns.
#[inline(never)]
pub fn inherited<M: Memory>(pool: &mut Pool<M>, work: &mut Work, maker: &Labels) -> Result<Labels, Stop> {
    let send = work.mapped(pool, maker.send, &ONE_OR_MORE)?;
    let most = work.mapped(pool, maker.send, &TWO_IF_OWNED)?;
    let receive = work.lower(pool, maker.receive, most)?;
    Ok(Labels { send: pool.keep(send), receive: pool.keep(receive), is_explicit: false })
}

/// The label that an object has if nobody says otherwise: the send label of its maker's children.
#[inline(never)]
pub fn inherited_by_object<M: Memory>(pool: &mut Pool<M>, work: &mut Work, send: Label) -> Result<Label, Stop> {
    let label = work.mapped(pool, send, &ONE_OR_MORE)?;
    Ok(pool.keep(label))
}

/// The same of labels without entries; nothing if one has any.
pub fn inherit_plain(maker: &Labels) -> Option<Labels> {
    let (send, receive) = (maker.send, maker.receive);
    (send.root.or(receive.root).is_none()).then(|| Labels {
        send: Label::of(send.default.max(Level::One)),
        receive: Label::of(receive.default.min(TWO_IF_OWNED.of_first(send.default))),
        is_explicit: false,
    })
}

/// A send label that was raised by a label: owned handles stay so.
pub fn raised<M: Memory>(pool: &mut Pool<M>, work: &mut Work, send: Label, by: Label) -> Result<Label, Stop> {
    let raised = work.raised(pool, send, by)?;
    Ok(pool.keep(raised))
}

/// A send label with another level of a handle that is named, which may be owned. `None`: that would lower it.
#[inline(never)]
pub fn raised_at<M: Memory>(
    pool: &mut Pool<M>,
    send: Label,
    handle: Handle,
    level: Level,
) -> Result<Option<Label>, Exhausted> {
    if level < pool.get(send, handle) { Ok(None) } else { pool.set(send, handle, level).map(Some) }
}

/// A receive label with another level of a handle: only its owner may raise that. `None`: that is refused.
#[inline(never)]
pub fn accepted_at<M: Memory>(
    pool: &mut Pool<M>,
    domain: &Labels,
    handle: Handle,
    level: Level,
) -> Result<Option<Label>, Exhausted> {
    let rises = level > pool.get(domain.receive, handle);
    if rises && pool.get(domain.send, handle) != Level::Star {
        return Ok(None);
    }
    pool.set(domain.receive, handle, level).map(Some)
}
