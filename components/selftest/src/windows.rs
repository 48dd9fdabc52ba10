//! Windows: pages that a caller shows for the length of a call. Most trials call a service of our own domain.

use alloc::vec;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, Ordering};

use abi::window::{MAX_PAGES, WRITABLE};
use abi::{Control, Error, PAGE_BYTES, layout};
use interface::{Reply, Request};
use runtime::entry::Owned;
use runtime::server::{self, Serve};
use runtime::window::{self, Page, Window};
use runtime::{Entry, message, op, table};

use crate::check::{Check, frames, hold};
use crate::raw::service_here;

pub const CHECKS: &[Check] = &[
    ("a window shows whole pages of the caller, to be read, or read and written", shows),
    ("what cannot be lent is refused", refused),
];

fn text(error: Error) -> &'static str {
    error.text()
}

/// Adds the bytes of its window, and writes so much more into each if word 1 says so. Answers with the sum, and whether it could write.
struct Adds;

static PASSED: AtomicU64 = AtomicU64::new(0);

impl Serve for Adds {
    fn serve(request: &mut Request<'_>) -> Reply {
        let more = request.words[1] as u8;
        let Some(window) = Window::of(request) else { return Reply::word(request.words[4]) };
        PASSED.store(window.word(), Ordering::Relaxed);
        let (mut sum, mut wrote, mut bytes) = (0, true, [0; 512]);
        for at in (0..window.len()).step_by(bytes.len()) {
            window.read(at, &mut bytes);
            sum += bytes.iter().map(|byte| u64::from(*byte)).sum::<u64>();
            bytes.iter_mut().for_each(|byte| *byte = byte.wrapping_add(more));
            wrote = window.write(at, &bytes);
        }
        Reply { words: [sum, wrote.into(), window.len() as u64, 0, 0], control: Control(0) }
    }
}

/// A call entry to [`Adds`], and its service.
fn adds() -> Result<(Owned, Owned), Error> {
    let shape = Owned::new(op::shape_new(Entry::SPECIAL, interface::WINDOW_PORTAL.as_bytes())?);
    let service = Owned::new(service_here::<Adds>(shape.entry())?);
    let portal = Owned::new(table::allocate()?);
    op::portal_new(Entry::OWN, service.entry(), 0, portal.entry(), 0)?;
    Ok((portal, service))
}

fn pages(count: usize, byte: u8) -> Vec<Page> {
    vec![Page([byte; PAGE_BYTES]); count]
}

fn shows() -> Result<(), &'static str> {
    server::activations(2).map_err(text)?;
    let (portal, _service) = adds().map_err(text)?;
    for round in 0..3 {
        for count in [1, 2, 3, 15, 16] {
            let mut lent = pages(count, 3);
            let bytes = (count * PAGE_BYTES) as u64;
            let words = window::call_reading(portal.entry(), [0, 1, 0, 0], &lent).map_err(text)?;
            hold(words == [3 * bytes, 0, bytes, 0, 0], "what is read")?;
            hold(lent.iter().all(|page| page.0 == [3; PAGE_BYTES]), "it was written")?;
            let words = window::call_writing(portal.entry(), [0, 1 + round, 0, 0], &mut lent).map_err(text)?;
            hold(words == [3 * bytes, 1, bytes, 0, 0], "what is read to be written")?;
            hold(lent.iter().all(|page| page.0 == [4 + round as u8; PAGE_BYTES]), "it was not written")?;
            let passed = PASSED.load(Ordering::Relaxed);
            hold((layout::WINDOWS..layout::WINDOWS_END).contains(&passed), "it is elsewhere")?;
        }
        let words = message::call(portal.entry(), [1, 2, 3, 4, 5], Control(0)).map_err(text)?.0;
        hold(words[0] == 5, "a call without a window")?;
    }
    Ok(())
}

fn refused() -> Result<(), &'static str> {
    let (portal, _service) = adds().map_err(text)?;
    let mut lent = pages(MAX_PAGES, 3);
    let page = window::on_mut(&mut lent[..1]) & !1;
    let code = refused as *const () as u64 & !(PAGE_BYTES as u64 - 1);
    let call = |window: u64| message::call(portal.entry(), [0, 0, 0, 0, window], Control(Control::WINDOW)).err();
    let before = frames()?;
    for (window, error) in [
        (0, Error::BadArgument),
        (page, Error::BadArgument),
        (page + 17, Error::BadArgument),
        (page + 31, Error::BadArgument),
        (page | 1 << 6 | 1, Error::BadArgument),
        (page | 1 << 11 | 1, Error::BadArgument),
        (0x3900_0000 | 1, Error::NotMapped),
        (0x39_0000_0000 | 1, Error::NotMapped),
        (0x1000 | 1, Error::NotMapped),
        (code | WRITABLE | 1, Error::NoRight),
        (layout::MESSAGE_START | 1, Error::BadAddress),
        (layout::USER_END | 1, Error::BadAddress),
        (layout::USER_END - PAGE_BYTES as u64 | 2, Error::BadAddress),
        (1 << 63 | 1, Error::BadAddress),
        (u64::MAX << 12 | 16, Error::BadAddress),
        (layout::WINDOWS | 1, Error::WindowGone),
        (layout::WINDOWS_END - PAGE_BYTES as u64 | 1, Error::WindowGone),
    ] {
        hold(call(window) == Some(error), "a window that cannot be")?;
    }
    hold(call(code | 1).is_none(), "a page that may be read")?;
    for flag in [Control::MINT, Control::DEADLINE] {
        let control = Control(Control::WINDOW | flag);
        let outcome = message::call(portal.entry(), [0, 0, 0, 0, page + 1], control);
        hold(outcome.err() == Some(Error::BadArgument), "two meanings of word 4")?;
    }
    hold(frames()? == before, "frames were lost")
}
