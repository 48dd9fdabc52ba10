//! Who may tell whom, and what follows for the labels: the design's formulas, one function each.
//!
//! Labels that are handed in stay their owner's; those that are given back are the caller's to [release](Pool::release).

use crate::pool::{Exhausted, Label, Memory, Pool};
use crate::{Handle, Level};

/// Both labels of a domain, and whether its send label follows what it takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Labels {
    /// S: how tainted it is.
    pub send: Label,
    /// R: how much taint it accepts.
    pub receive: Label,
    /// Explicit mode: what would raise its send label is refused.
    pub is_explicit: bool,
}

/// What a sender may add to a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Optional {
    /// Cs: taints the message.
    pub contaminate: Label,
    /// Ds: takes taint from the receiver.
    pub decontaminate_send: Label,
    /// V: what the message proves of its sender; shown to the receiver.
    pub verify: Label,
    /// Dr: has the receiver accept more.
    pub decontaminate_receive: Label,
}

impl Default for Optional {
    /// What changes nothing.
    fn default() -> Self {
        let [least, most] = [Level::Star, Level::Three].map(Label::of);
        Self { contaminate: least, decontaminate_send: most, verify: most, decontaminate_receive: least }
    }
}

/// L★ of a level: ownership stays, everything else is 3.
const fn owned(level: Level) -> Level {
    match level {
        Level::Star => Level::Star,
        _ => Level::Three,
    }
}

/// What a send label may be at most where Ds takes taint away: ★.
const fn owned_below_three(level: Level) -> Level {
    match level {
        Level::Three => Level::Three,
        _ => Level::Star,
    }
}

/// 3 where there is ownership, and nowhere else more than ★.
const fn three_if_owned(level: Level) -> Level {
    match level {
        Level::Star => Level::Three,
        _ => Level::Star,
    }
}

/// Labels that a rule makes on the way, at most.
const MOST: usize = 5;

/// Labels that are made on the way, and let go of at its end.
struct Scope<'p, M: Memory> {
    pool: &'p mut Pool<M>,
    made: [Label; MOST],
    count: usize,
}

impl<M: Memory> Drop for Scope<'_, M> {
    fn drop(&mut self) {
        self.made[..self.count].iter().for_each(|label| self.pool.release(*label));
    }
}

impl<'p, M: Memory + 'p> Scope<'p, M> {
    const fn new(pool: &'p mut Pool<M>) -> Self {
        Self { pool, made: [Label::of(Level::Star); MOST], count: 0 }
    }

    fn note(&mut self, made: Result<Label, Exhausted>) -> Result<Label, Exhausted> {
        let made = made?;
        self.made[self.count] = made;
        self.count += 1;
        Ok(made)
    }

    fn higher(&mut self, first: Label, second: Label) -> Result<Label, Exhausted> {
        let made = self.pool.higher(first, second);
        self.note(made)
    }

    fn lower(&mut self, first: Label, second: Label) -> Result<Label, Exhausted> {
        let made = self.pool.lower(first, second);
        self.note(made)
    }

    /// `label ⊓ of★`: the label, but ★ where `of` has ownership.
    fn but_owned(&mut self, label: Label, of: Label) -> Result<Label, Exhausted> {
        let made = self.pool.mapped(of, owned);
        let made = self.note(made)?;
        self.lower(label, made)
    }

    fn is_below(&self, first: Label, second: Label) -> bool {
        self.pool.is_below(first, second)
    }
}

/// E: what a message is tainted with.
pub fn effective<M: Memory>(pool: &mut Pool<M>, send: Label, optional: &Optional) -> Result<Label, Exhausted> {
    pool.higher(send, optional.contaminate)
}

/// Whether the sender owns what it wants to decontaminate.
pub fn may_send<M: Memory>(pool: &mut Pool<M>, send: Label, optional: &Optional) -> Result<bool, Exhausted> {
    let maps = [owned_below_three, three_if_owned];
    for (label, map) in [optional.decontaminate_send, optional.decontaminate_receive].into_iter().zip(maps) {
        let most = pool.mapped(label, map)?;
        let is_owned = pool.is_below(send, most);
        pool.release(most);
        if !is_owned {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Whether a message that was [sent](may_send) is taken; and if so, send and receive label of the receiver from then on.
pub fn deliver<M: Memory>(
    pool: &mut Pool<M>,
    effective: Label,
    optional: &Optional,
    port: Label,
    receiver: &Labels,
) -> Result<Option<(Label, Label)>, Exhausted> {
    let is_accepted = {
        let mut scope = Scope::new(pool);
        let accepted = scope.higher(receiver.receive, optional.decontaminate_receive)?;
        let accepted = scope.lower(accepted, optional.verify)?;
        let accepted = scope.lower(accepted, port)?;
        scope.is_below(effective, accepted) && scope.is_below(optional.decontaminate_receive, port)
    };
    if !is_accepted {
        return Ok(None);
    }
    let send = {
        let mut scope = Scope::new(pool);
        let less = scope.lower(receiver.send, optional.decontaminate_send)?;
        let taint = scope.but_owned(effective, receiver.send)?;
        if receiver.is_explicit && !scope.is_below(taint, less) {
            return Ok(None);
        }
        scope.pool.higher(less, taint)?
    };
    match pool.higher(receiver.receive, optional.decontaminate_receive) {
        Ok(receive) => Ok(Some((send, receive))),
        Err(exhausted) => {
            pool.release(send);
            Err(exhausted)
        }
    }
}

/// What is said of a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Admission {
    /// It may be made.
    Admitted,
    /// It may be made when the caller's send label is this.
    Raised(Label),
    /// It may not.
    Refused,
}

/// Whether a caller may call by a portal of this label. Both can tell each other; the callee is never tainted.
pub fn admit<M: Memory>(
    pool: &mut Pool<M>,
    caller: &Labels,
    callee: &Labels,
    portal: Label,
) -> Result<Admission, Exhausted> {
    let mut scope = Scope::new(pool);
    let accepted = scope.lower(callee.receive, portal)?;
    let taint = scope.but_owned(caller.send, callee.send)?;
    let is_open = scope.is_below(caller.send, accepted)
        && scope.is_below(taint, callee.send)
        && scope.is_below(callee.send, caller.receive);
    if !is_open {
        return Ok(Admission::Refused);
    }
    let back = scope.but_owned(callee.send, caller.send)?;
    if scope.is_below(back, caller.send) {
        Ok(Admission::Admitted)
    } else if caller.is_explicit {
        Ok(Admission::Refused)
    } else {
        Ok(Admission::Raised(scope.pool.higher(caller.send, back)?))
    }
}

/// Whether a domain may change an object of this label.
pub fn may_change<M: Memory>(pool: &Pool<M>, send: Label, object: Label) -> bool {
    pool.is_below(send, object)
}

/// Whether a domain may observe an object of this label; and if so, its send label from then on.
pub fn observe<M: Memory>(pool: &mut Pool<M>, domain: &Labels, object: Label) -> Result<Option<Label>, Exhausted> {
    if !pool.is_below(object, domain.receive) {
        return Ok(None);
    }
    let mut scope = Scope::new(pool);
    let taint = scope.but_owned(object, domain.send)?;
    if domain.is_explicit && !scope.is_below(taint, domain.send) {
        return Ok(None);
    }
    Ok(Some(scope.pool.higher(domain.send, taint)?))
}

/// What a server that judges by itself may do for its caller with a thing of this label: observe it, change it.
pub fn caller_may<M: Memory>(pool: &mut Pool<M>, caller: &Labels, thing: Label) -> Result<(bool, bool), Exhausted> {
    let mut scope = Scope::new(pool);
    let taint = scope.but_owned(thing, caller.send)?;
    let observes = scope.is_below(thing, caller.receive) && scope.is_below(taint, caller.send);
    Ok((observes, scope.is_below(caller.send, thing)))
}

/// Whether a domain may make another with these labels.
pub fn may_make<M: Memory>(pool: &mut Pool<M>, parent: &Labels, child: &Labels) -> Result<bool, Exhausted> {
    let mut scope = Scope::new(pool);
    let mapped = scope.pool.mapped(parent.send, three_if_owned);
    let owned = scope.note(mapped)?;
    let accepted = scope.higher(parent.receive, owned)?;
    Ok(scope.is_below(parent.send, child.send) && scope.is_below(child.receive, accepted))
}

/// A send label that was raised by a label: what is owned stays so.
pub fn raised<M: Memory>(pool: &mut Pool<M>, send: Label, by: Label) -> Result<Label, Exhausted> {
    let mut scope = Scope::new(pool);
    let taint = scope.but_owned(by, send)?;
    scope.pool.higher(send, taint)
}

/// A send label with another level of a handle that is named, which may be owned. `None`: that would lower it.
pub fn raised_at<M: Memory>(
    pool: &mut Pool<M>,
    send: Label,
    handle: Handle,
    level: Level,
) -> Result<Option<Label>, Exhausted> {
    if level < pool.get(send, handle) { Ok(None) } else { pool.set(send, handle, level).map(Some) }
}

/// A receive label with another level of a handle: only who owns it may raise that. `None`: that is refused.
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
