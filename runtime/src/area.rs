//! The running activation's message area.
//!
//! # Where it is
//! The nucleus names the area in `rbx` when it enters an activation. The first instructions on every
//! stack store that at the stack's top ([`StackTop`]), and stacks lie in known places
//! ([`abi::layout`]): the main stack, and slots of `STACK_BYTES` aligned to their size. So the area is
//! found from the stack pointer alone, without a thread pointer. Code must therefore never run on a
//! stack that lies elsewhere.
//!
//! # Who may use it
//! While a server handles a call, the method may hold borrowed slices of the area; the record says how
//! many bytes are *lent* so. Code that needs the area meanwhile, for a nested call with bytes or for the
//! log, saves those bytes and puts them back: a method never sees its arguments change.

use core::cell::Cell;
use core::mem::MaybeUninit;

use abi::layout::{MAIN_STACK_START, MAIN_STACK_TOP, MESSAGE_START, STACK_BYTES};
use abi::{Error, MESSAGE_BYTES, PAGE_BYTES, layout};

use crate::arch;

/// The words at the top of every stack.
#[repr(C)]
pub struct StackTop {
    /// Free; keeps the stack aligned to 16 bytes.
    pub(crate) spare: Cell<u64>,
    /// Where the next delegated entry of this activation lands, as set in the nucleus; 0 = nowhere.
    pub(crate) receive: Cell<u64>,
    /// Bytes of the message area that a method has borrowed.
    pub(crate) lent: Cell<u64>,
    /// Address of the message area.
    pub(crate) area: Cell<u64>,
}

/// Bytes of [`StackTop`].
pub(crate) const STACK_TOP_BYTES: u64 = size_of::<StackTop>() as u64;

/// The top of the stack that this stack pointer is in.
const fn stack_top(stack_pointer: u64) -> u64 {
    if stack_pointer.wrapping_sub(MAIN_STACK_START) < MAIN_STACK_TOP - MAIN_STACK_START {
        MAIN_STACK_TOP
    } else {
        (stack_pointer | (STACK_BYTES - 1)) + 1
    }
}

/// The record of the running activation.
#[inline(always)]
pub(crate) fn top() -> &'static StackTop {
    let address = stack_top(arch::stack_pointer()) - STACK_TOP_BYTES;
    // SAFETY: every stack we run on has the record at its top, written before any Rust code ran there.
    // Cells are not shared: only this activation runs on this stack. The reference is not kept.
    unsafe { &*(address as *const StackTop) }
}

/// Whether this is the first thread's own stack.
pub(crate) fn on_main_stack() -> bool {
    stack_top(arch::stack_pointer()) == MAIN_STACK_TOP
}

/// The address of the running activation's message area.
#[inline(always)]
pub(crate) fn address() -> u64 {
    top().area.get()
}

/// Number of the running activation in its domain, 0 to `MAX_ACTIVATIONS - 1`: the page of its
/// message area.
#[inline(always)]
pub fn activation() -> usize {
    number_of(top().area.get())
}

/// Number of the activation with this message area.
#[inline(always)]
pub(crate) fn number_of(area: u64) -> usize {
    (area.wrapping_sub(MESSAGE_START) as usize / PAGE_BYTES).min(layout::MAX_ACTIVATIONS - 1)
}

/// The one way to use the message area: puts the pieces of `send` there, has `work` enter the nucleus
/// (it gets their length, and gives what it found and how many bytes came), and shows those bytes to `look`.
///
/// If a method has borrowed bytes of the area, `send` may well consist of them and `look` write into
/// them. So the message is then put together beside the area, and what came is looked at beside it,
/// when the method's bytes are back in their place.
pub(crate) fn transfer<R, T>(
    send: &[&[u8]],
    work: impl FnOnce(usize) -> Result<(R, usize), Error>,
    look: impl FnOnce(R, &[u8]) -> T,
) -> Result<T, Error> {
    let top = top();
    match top.lent.get() as usize {
        0 => transfer_in(top, send, work, look),
        lent => transfer_beside(top, lent.min(MESSAGE_BYTES), send, work, look),
    }
}

/// [`transfer`] in an area of which nothing is borrowed.
pub(crate) fn transfer_in<R, T>(
    top: &StackTop,
    send: &[&[u8]],
    work: impl FnOnce(usize) -> Result<(R, usize), Error>,
    look: impl FnOnce(R, &[u8]) -> T,
) -> Result<T, Error> {
    // SAFETY: the nucleus keeps this page mapped as long as the activation exists; nobody else uses it
    // and nothing of it is borrowed. Marking it as lent keeps it so.
    let area = unsafe { &mut *(top.area.get() as *mut [u8; MESSAGE_BYTES]) };
    top.lent.set(MESSAGE_BYTES as u64);
    let result = gather(send, area).and_then(|length| {
        arch::expose(area);
        work(length)
    });
    let result = result.map(|(found, count)| {
        arch::expose(area);
        look(found, &area[..count.min(MESSAGE_BYTES)])
    });
    top.lent.set(0);
    result
}

/// Shows the message area as it is: with the bytes that the creator of this thread may have left there.
pub fn with_area<R>(look: impl FnOnce(&[u8]) -> R) -> R {
    let top = top();
    // SAFETY: the nucleus keeps this page mapped as long as the activation exists. The part that a method has
    // borrowed of it is only read here.
    let area = unsafe { &*(top.area.get() as *const [u8; MESSAGE_BYTES]) };
    let lent = top.lent.replace(MESSAGE_BYTES as u64);
    let result = look(area);
    top.lent.set(lent);
    result
}

/// As [`transfer`], with `lent` bytes of the area borrowed by a method. They are put back before `look`
/// sees what came, which may write into them.
#[cold]
#[inline(never)]
pub(crate) fn transfer_beside<R, T>(
    top: &StackTop,
    lent: usize,
    send: &[&[u8]],
    work: impl FnOnce(usize) -> Result<(R, usize), Error>,
    look: impl FnOnce(R, &[u8]) -> T,
) -> Result<T, Error> {
    let mut beside = Beside::new(top);
    let length = beside.gather(send)?;
    beside.exchange(lent.max(length));
    let result = work(length);
    let count = result.as_ref().map_or(0, |(_, count)| *count).min(MESSAGE_BYTES);
    beside.exchange(lent.max(count));
    // SAFETY: as many bytes were exchanged, and the area is full of bytes.
    result.map(|(found, _)| look(found, unsafe { core::slice::from_raw_parts(beside.pointer(), count) }))
}

/// The same when `look` touches nothing that the method borrowed: the received bytes are looked at in the area, and
/// the borrowed bytes are put back after that.
#[inline(never)]
pub(crate) fn transfer_over<R, T>(
    top: &StackTop,
    lent: usize,
    send: &[&[u8]],
    work: impl FnOnce(usize) -> Result<(R, usize), Error>,
    look: impl FnOnce(R, &[u8]) -> T,
) -> Result<T, Error> {
    let mut beside = Beside::new(top);
    let length = beside.gather(send)?;
    beside.exchange(lent.max(length));
    let result = work(length);
    arch::expose(beside.area);
    let result = result.map(|(found, count)| {
        // SAFETY: the area; the method, of whose bytes this may take the place, does not run meanwhile.
        look(found, unsafe { core::slice::from_raw_parts(beside.area, count.min(MESSAGE_BYTES)) })
    });
    beside.put_back(lent);
    result
}

/// Puts words into the area, if nothing of it is borrowed.
#[inline(always)]
pub(crate) fn put<const WORDS: usize>(words: &[u64; WORDS]) -> bool {
    const { assert!(WORDS <= MESSAGE_BYTES / 8, "more than the area has room for") };
    let top = top();
    if top.lent.get() != 0 {
        return false;
    }
    let area = top.area.get() as *mut [u64; WORDS];
    // SAFETY: the nucleus keeps this page mapped as long as the activation exists; nothing of it is borrowed, and it has so many words.
    unsafe { area.write(*words) };
    arch::expose(area);
    true
}

/// Takes words out of the area, after the nucleus wrote there; nothing if something of it is borrowed.
#[inline(always)]
pub(crate) fn get<const WORDS: usize>(
    enter: impl FnOnce() -> Result<u64, Error>,
) -> Option<Result<(u64, [u64; WORDS]), Error>> {
    const { assert!(WORDS <= MESSAGE_BYTES / 8, "more than the area has room for") };
    let top = top();
    if top.lent.get() != 0 {
        return None;
    }
    let area = top.area.get() as *mut [u64; WORDS];
    Some(enter().map(|reported| {
        arch::expose(area);
        // SAFETY: the nucleus keeps this page mapped as long as the activation exists; nothing of it is borrowed, and it has so many words.
        (reported, unsafe { area.read() })
    }))
}

/// The message area, and room for a message beside it. The room is not cleared: that would cost more
/// than the calls that need it.
struct Beside {
    room: MaybeUninit<[u64; MESSAGE_BYTES / 8]>,
    area: *mut u8,
}

impl Beside {
    const fn new(top: &StackTop) -> Self {
        Self { room: MaybeUninit::uninit(), area: top.area.get() as *mut u8 }
    }

    fn pointer(&mut self) -> *mut u8 {
        self.room.as_mut_ptr().cast()
    }

    /// Puts pieces into the room, one after the other; gives their length.
    #[inline(never)]
    fn gather(&mut self, pieces: &[&[u8]]) -> Result<usize, Error> {
        let mut length = 0;
        for piece in pieces {
            if piece.len() > MESSAGE_BYTES - length {
                return Err(Error::BadArgument);
            }
            // SAFETY: there is room, as was just compared, and no piece lies in it.
            unsafe { core::ptr::copy_nonoverlapping(piece.as_ptr(), self.pointer().add(length), piece.len()) };
            length += piece.len();
        }
        // As `clear_rest_of_word`.
        if !length.is_multiple_of(8) {
            // SAFETY: the room has whole words.
            unsafe { self.pointer().add(length).write_bytes(0, 8 - length % 8) };
        }
        Ok(length)
    }

    /// Exchanges `count` bytes of room and area, and a few more up to a whole word.
    #[inline(never)]
    fn exchange(&mut self, count: usize) {
        let words = count.min(MESSAGE_BYTES).div_ceil(8);
        let room: *mut MaybeUninit<u64> = self.room.as_mut_ptr().cast();
        arch::expose(self.area);
        // SAFETY: both are aligned, have so many words and do not overlap. The part that a method borrowed of the
        // area is back when the method goes on.
        unsafe { core::ptr::swap_nonoverlapping(room, self.area.cast(), words) };
        arch::expose(self.area);
    }

    /// Puts `lent` bytes, which were exchanged, back into the area.
    fn put_back(&mut self, lent: usize) {
        let (room, area) = (self.pointer(), self.area);
        // SAFETY: both have so many bytes, which were exchanged before, and do not overlap. A method's borrows of the
        // area are back when the method goes on.
        unsafe { core::ptr::copy_nonoverlapping(room, area, lent) };
        arch::expose(area);
    }
}

/// Puts pieces one after the other.
fn gather(send: &[&[u8]], into: &mut [u8; MESSAGE_BYTES]) -> Result<usize, Error> {
    let mut length = 0;
    for piece in send {
        let place = into.get_mut(length..length + piece.len()).ok_or(Error::BadArgument)?;
        place.copy_from_slice(piece);
        length += piece.len();
    }
    clear_rest_of_word(into, length);
    Ok(length)
}

/// Clears the last word of a message after its bytes. Words go along as a whole, and bytes of an earlier message may stand there.
#[inline(always)]
pub(crate) fn clear_rest_of_word(area: &mut [u8; MESSAGE_BYTES], length: usize) {
    let bits = 8 * (length % 8);
    if bits != 0
        && let Some(word) = area.as_chunks_mut::<8>().0.get_mut(length / 8)
    {
        *word = (u64::from_le_bytes(*word) & !(u64::MAX << bits)).to_le_bytes();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use abi::layout::{MORE_STACKS_START, STACKS_START};

    #[test]
    fn stack_tops() {
        assert_eq!(stack_top(MAIN_STACK_TOP - 8), MAIN_STACK_TOP);
        assert_eq!(stack_top(MAIN_STACK_START), MAIN_STACK_TOP);
        assert_eq!(stack_top(STACKS_START), STACKS_START + STACK_BYTES);
        assert_eq!(stack_top(STACKS_START + STACK_BYTES - 8), STACKS_START + STACK_BYTES);
        assert_eq!(stack_top(layout::WINDOW - 8), layout::WINDOW);
        assert_eq!(stack_top(MORE_STACKS_START + STACK_BYTES + 16), MORE_STACKS_START + 2 * STACK_BYTES);
    }
}
