//! Send labels that domains lend to a port: a message without other labels has the sender's label itself, not a copy.
//!
//! So a message takes as long whatever the size of the label, and the sender's account pays for nothing but its own label. Before that
//! label changes or goes, or the domain lends it to another port, the messages that still wait get a copy, charged to the port's account. That
//! copy is made whether or not such messages wait: the sender must not learn that.

use crate::memory::labels;
use crate::objects::{Labelled, Port, Stop};
use crate::pointer::Ref;
use flow::rules::{self, Optional};
use flow::{Label, Level};

/// Has the port lend the present send label, which is lent to no other port.
pub fn lend(labelled: Ref<Labelled>, port: Ref<Port>) {
    labelled.lent_to.set(Some(port));
    port.lenders.append(labelled);
}

/// A step of the end of the loan; the last one succeeds.
#[inline(never)]
pub fn end_step(labelled: Ref<Labelled>) -> Result<(), Stop> {
    let Some(port) = labelled.lent_to.get() else { return Ok(()) };
    let (send, account) = (labelled.now.get().send, labels::payer(port));
    let made = labels::ask(port.held(), labels::LENT, account, &[send], |pool, work| rules::copied(pool, work, send));
    match made {
        Err(Stop::Repeat) => return Err(Stop::Repeat),
        Ok(copy) => {
            port.replace_lent(send, copy, Label::of(Level::Three));
            labels::release_of(account, copy);
        }
        // The sender must not learn whether the port's account has room for the copy: nobody receives these messages.
        Err(Stop::Refused(_)) => port.replace_lent(send, Label::of(Level::Three), Label::of(Level::Star)),
    }
    forget(labelled, port);
    Ok(())
}

/// Forgets that the label was lent to this port, which is removed.
pub fn forget(labelled: Ref<Labelled>, port: Ref<Port>) {
    port.lenders.remove(labelled);
    labelled.lent_to.set(None);
}

impl Ref<Port> {
    /// Messages with the label that was lent have this copy of it from now on, and this upper bound. The sender could observe how many there
    /// are, if they took longer than others.
    fn replace_lent(self, lent: Label, copy: Label, verify: Label) {
        let mut count = 0;
        for number in 0..=self.capacity.get() {
            let message = self.message(number);
            let labels = message.labels.get();
            let has_it = message.is_lent.get() & (labels.contaminate == lent);
            // Both are computed and one is chosen: the time does not depend on which.
            let new = Optional { contaminate: copy, verify, ..labels };
            message.labels.set(core::hint::select_unpredictable(has_it, new, labels));
            message.is_lent.update(|is_lent| is_lent & !has_it);
            count += has_it as u32;
        }
        labels::with(self.held(), labels::payer(self), |pool| pool.keep_times(copy, count));
    }
}
