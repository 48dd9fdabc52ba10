//! The design's formulas over plain maps, handle by handle. The engine is compared with this.

use crate::{Handle, Level};
use alloc::collections::{BTreeMap, BTreeSet};

/// A level for each handle: a default, and exceptions. Equal ones are equal as maps.
#[derive(Clone, PartialEq, Eq, Debug, Hash, PartialOrd, Ord)]
pub struct Label {
    /// Of all handles without an exception.
    pub default: Level,
    /// None of them is the default.
    pub entries: BTreeMap<Handle, Level>,
}

impl Label {
    /// The same level for all.
    pub const fn of(default: Level) -> Self {
        Self { default, entries: BTreeMap::new() }
    }

    /// With these exceptions; of two for a handle the later one counts.
    pub fn new(default: Level, entries: impl IntoIterator<Item = (Handle, Level)>) -> Self {
        let mut label = Self::of(default);
        entries.into_iter().for_each(|(handle, level)| label.set(handle, level));
        label
    }

    /// The level of a handle.
    pub fn get(&self, handle: Handle) -> Level {
        self.entries.get(&handle).copied().unwrap_or(self.default)
    }

    /// Another level for a handle.
    pub fn set(&mut self, handle: Handle, level: Level) {
        match level == self.default {
            true => self.entries.remove(&handle),
            false => self.entries.insert(handle, level),
        };
    }

    /// The label that has this level for each handle; others stand beside it in `work`.
    pub fn each<const N: usize>(of: [&Self; N], work: impl Fn([Level; N]) -> Level) -> Self {
        let default = work(of.map(|label| label.default));
        Self::new(default, handles(&of).into_iter().map(|handle| (handle, work(of.map(|label| label.get(handle))))))
    }
}

/// Handles that one of these labels has an exception for.
fn handles(labels: &[&Label]) -> BTreeSet<Handle> {
    labels.iter().flat_map(|label| label.entries.keys().copied()).collect()
}

/// Whether something holds of the levels of every handle.
pub fn always<const N: usize>(of: [&Label; N], holds: impl Fn([Level; N]) -> bool) -> bool {
    holds(of.map(|label| label.default))
        && handles(&of).into_iter().all(|handle| holds(of.map(|label| label.get(handle))))
}

/// L★(h).
fn star(level: Level) -> Level {
    if level == Level::Star { Level::Star } else { Level::Three }
}

/// Both labels of a domain, and its mode.
#[derive(Clone, PartialEq, Eq, Debug, Hash, PartialOrd, Ord)]
pub struct Labels {
    /// S.
    pub send: Label,
    /// R.
    pub receive: Label,
    /// Nothing taints it but itself.
    pub is_explicit: bool,
}

/// The four optional labels of a message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Optional {
    /// Cs.
    pub contaminate: Label,
    /// Ds.
    pub decontaminate_send: Label,
    /// V.
    pub verify: Label,
    /// Dr.
    pub decontaminate_receive: Label,
}

impl Optional {
    /// All four.
    pub fn all(&self) -> [&Label; 4] {
        [&self.contaminate, &self.decontaminate_send, &self.verify, &self.decontaminate_receive]
    }
}

impl Default for Optional {
    fn default() -> Self {
        let [least, most] = [Level::Star, Level::Three].map(Label::of);
        Self {
            contaminate: least.clone(),
            decontaminate_send: most.clone(),
            verify: most,
            decontaminate_receive: least,
        }
    }
}

/// For every h: Ds(h) < 3 ⇒ S(h) = ★, and Dr(h) > ★ ⇒ S(h) = ★.
pub fn may_send(send: &Label, optional: &Optional) -> bool {
    always([send, &optional.decontaminate_send, &optional.decontaminate_receive], |[send, less, more]| {
        send == Level::Star || less == Level::Three && more == Level::Star
    })
}

/// E = S ⊔ Cs.
pub fn effective(send: &Label, optional: &Optional) -> Label {
    Label::each([send, &optional.contaminate], |[send, contaminate]| send.max(contaminate))
}

/// E ⊑ (R ⊔ Dr) ⊓ V ⊓ p, and Dr ⊑ p; in explicit mode E ⊓ S★ ⊑ S ⊓ Ds, too. Then S ← (S ⊓ Ds) ⊔ (E ⊓ S★), R ← R ⊔ Dr.
pub fn deliver(effective: &Label, optional: &Optional, port: &Label, receiver: &Labels) -> Option<(Label, Label)> {
    let Optional { decontaminate_send: ds, verify, decontaminate_receive: dr, .. } = optional;
    let is_taken = always([effective, &receiver.receive, dr, verify, port], |[e, r, dr, v, p]| {
        e <= r.max(dr).min(v).min(p) && dr <= p
    });
    let is_explicit = always([effective, &receiver.send, ds], |[e, s, ds]| e.min(star(s)) <= s.min(ds));
    if !is_taken || receiver.is_explicit && !is_explicit {
        return None;
    }
    let send = Label::each([&receiver.send, ds, effective], |[s, ds, e]| s.min(ds).max(e.min(star(s))));
    Some((send, Label::each([&receiver.receive, dr], |[r, dr]| r.max(dr))))
}

/// The decision about a call.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Admission {
    /// It may be made.
    Admitted,
    /// It may be made when the caller's send label is this.
    Raised(Label),
    /// It may not.
    Refused,
}

/// S_P ⊑ R_Q ⊓ p, S_P ⊓ S_Q★ ⊑ S_Q, S_Q ⊑ R_P, and S_Q ⊓ S_P★ ⊑ S_P; if only the last fails, a caller that floats is
/// raised, if it may call then.
pub fn admit(caller: &Labels, callee: &Labels, portal: &Label) -> Admission {
    let is_open =
        always([&caller.send, &caller.receive, &callee.send, &callee.receive, portal], |[sp, rp, sq, rq, p]| {
            sp <= rq.min(p) && sp.min(star(sq)) <= sq && sq <= rp
        });
    if !is_open {
        return Admission::Refused;
    }
    if always([&caller.send, &callee.send], |[sp, sq]| sq.min(star(sp)) <= sp) {
        Admission::Admitted
    } else if caller.is_explicit {
        Admission::Refused
    } else {
        let raised = Label::each([&caller.send, &callee.send], |[sp, sq]| sp.max(sq.min(star(sp))));
        match always([&raised, &callee.receive, portal], |[sp, rq, p]| sp <= rq.min(p)) {
            true => Admission::Raised(raised),
            false => Admission::Refused,
        }
    }
}

/// Observing: L ⊑ R, then S ← S ⊔ (L ⊓ S★).
pub fn observe(domain: &Labels, object: &Label) -> Option<Label> {
    let is_accepted = always([object, &domain.receive], |[l, r]| l <= r);
    let is_explicit = always([object, &domain.send], |[l, s]| l.min(star(s)) <= s);
    if !is_accepted || domain.is_explicit && !is_explicit {
        return None;
    }
    Some(Label::each([&domain.send, object], |[s, l]| s.max(l.min(star(s)))))
}

/// Observe iff L ⊑ R and L ⊓ S★ ⊑ S; change iff S ⊑ L.
pub fn caller_may(caller: &Labels, thing: &Label) -> (bool, bool) {
    let of = [&caller.send, &caller.receive, thing];
    (always(of, |[s, r, l]| l <= r && l.min(star(s)) <= s), always(of, |[s, _, l]| s <= l))
}

/// S_P ⊑ R_Q and S_P ⊓ S_Q★ ⊑ S_Q.
pub fn may_report(from: &Labels, to: &Labels) -> bool {
    always([&from.send, &to.receive, &to.send], |[s, r, other]| s <= r && s.min(star(other)) <= other)
}

/// For each h: S_P(h) = ★, or S_C(h) ≥ S_P(h) and R_C(h) ≤ R_P(h).
pub fn may_make(parent: &Labels, child: &Labels) -> bool {
    always([&parent.send, &parent.receive, &child.send, &child.receive], |[sp, rp, sc, rc]| {
        sp == Level::Star || sc >= sp && rc <= rp
    })
}

/// S_C = S_P ⊔ {1}, R_C = R_P, but at most 2 where the parent is an owner.
pub fn inherited(parent: &Labels) -> (Label, Label) {
    let send = Label::each([&parent.send], |[level]| level.max(Level::One));
    let receive =
        Label::each([&parent.send, &parent.receive], |[s, r]| if s == Level::Star { r.min(Level::Two) } else { r });
    (send, receive)
}

/// S ⊔ (L ⊓ S★).
pub fn raised(send: &Label, by: &Label) -> Label {
    Label::each([send, by], |[s, l]| s.max(l.min(star(s))))
}

/// Raising is free, for what is named.
pub fn raised_at(send: &Label, handle: Handle, level: Level) -> Option<Label> {
    let mut raised = send.clone();
    raised.set(handle, level);
    (level >= send.get(handle)).then_some(raised)
}

/// Lowering is free; raising is its owner's.
pub fn accepted_at(domain: &Labels, handle: Handle, level: Level) -> Option<Label> {
    let mut accepted = domain.receive.clone();
    accepted.set(handle, level);
    (level <= domain.receive.get(handle) || domain.send.get(handle) == Level::Star).then_some(accepted)
}
