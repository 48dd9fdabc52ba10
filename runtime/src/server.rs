//! Serving: what the nucleus enters when a call arrives.

use abi::{Control, MESSAGE_BYTES};
use interface::{Reply, Request};

use crate::{Entry, arch, message, op};

/// A service: one entry point of this domain.
///
/// State is shared by all activations, so it lives in statics behind a mutex; the type itself only
/// names the function.
pub trait Serve {
    /// Handles one call.
    fn serve(request: &mut Request<'_>) -> Reply;
}

/// First Rust code of a call; the argument order is made by the entry code of the ISA. It leaves by
/// itself, so nothing is restored.
pub(crate) extern "sysv64" fn serve<S: Serve>(
    word0: u64,
    word1: u64,
    word2: u64,
    badge: u64,
    word3: u64,
    word4: u64,
    control: u64,
    area: *mut [u8; MESSAGE_BYTES],
) -> ! {
    let control = Control(control);
    let delegated = message::received(control);
    // SAFETY: the nucleus gave this page to the activation that runs, and to nobody else.
    let area = unsafe { &mut *area };
    let words = [word0, word1, word2, word3, word4];
    let lent = &message::top().lent;
    let mut request = Request { badge, words, length: control.length().min(MESSAGE_BYTES), delegated, area, lent };
    let reply = S::serve(&mut request);
    if let Some(left) = request.delegated {
        let _ = op::entry_remove(Entry::OWN, left.into());
        crate::table::free(left.into());
    }
    // SAFETY: nothing refers to this stack any more: the request is not used again.
    unsafe { arch::leave(reply.words, reply.control) };
    op::exit(0)
}
