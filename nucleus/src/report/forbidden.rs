//! Lines of the log about what labels forbid, in a part of their own: see [`abi::info::LOG_REFUSED`].

use super::log::{self, Part, REFUSED};
use crate::memory::labels;
use crate::objects::Domain;
use crate::pointer::{Held, Nucleus, Ref};
use abi::Error;
use core::cell::Cell;
use flow::Label;

/// The target of a flow that labels forbid.
#[derive(Clone, Copy)]
pub enum Against {
    /// A domain.
    Domain(Ref<Domain>),
    /// Something else, by its name.
    Thing(&'static str),
}

/// Notes that labels forbid a flow from a domain. Gives the error.
#[cold]
#[inline(never)]
pub fn refuse(from: Ref<Domain>, to: Against) -> Error {
    match to {
        Against::Domain(to) => line(from, named(&from), from.labels().send, &named(&to)),
        Against::Thing(name) => line(from, named(&from), from.labels().send, &[Part::Text(name)]),
    }
    Error::Flow
}

/// Notes that a message with this label does not reach its receiver.
#[inline(never)]
pub fn message(receiver: Ref<Domain>, effective: Label) {
    line(receiver, [Part::Text("a message"), NOTHING, NOTHING], effective, &named(&receiver));
}

/// Notes what a server refuses to its caller.
#[inline(never)]
pub fn by_server(caller: Ref<Domain>, server: Ref<Domain>, text: &[u8]) {
    let [name, sign, number] = named(&server);
    let to = [name, sign, number, Part::Text(": "), Part::Foreign(text)];
    line(caller, named(&caller), caller.labels().send, &to);
}

const NOTHING: Part = Part::Text("");

fn named(domain: &Ref<Domain>) -> [Part<'_>; 3] {
    [Part::Foreign(domain.name_bytes()), Part::Text("#"), Part::Number(domain.number)]
}

/// Entries of a label that a line shows.
const ENTRIES: usize = 4;
/// Domains of which it is known how many lines there are.
const RECENT: usize = 8;
/// Most lines about one of them: a domain that asks again and again displaces little of what others were refused.
const MOST_LINES: u64 = 8;

/// The numbers of the domains about which the last lines were, with the number of these.
struct Recent {
    lines: Cell<[(u64, u64); RECENT]>,
    /// Which of them is replaced next.
    next: Cell<usize>,
}

static RECENTLY: Nucleus<Recent> =
    Nucleus::new(Recent { lines: Cell::new([(u64::MAX, 0); RECENT]), next: Cell::new(0) });

/// Whether there may be another line about the domain with this number.
fn may_note(held: Held, number: u64) -> bool {
    let Recent { lines, next } = RECENTLY.get(held);
    let all = lines.as_array_of_cells();
    let place = all.iter().find(|place| place.get().0 == number).unwrap_or_else(|| {
        let place = &all[next.replace((next.get() + 1) % RECENT)];
        place.set((number, 0));
        place
    });
    let (_, lines) = place.get();
    place.set((number, lines.saturating_add(1)));
    lines < MOST_LINES
}

/// Appends a line about a domain, if there may be one: from what has this send label, to something.
fn line(about: Ref<Domain>, from: [Part; 3], label: Label, to: &[Part]) {
    let held = about.held();
    if !may_note(held, about.number) {
        return;
    }
    let mut entries = [0; ENTRIES];
    let count = labels::with(held, about.account, |pool| {
        pool.read(label, 0, &mut entries);
        pool.entries(label)
    });
    let mut parts = [NOTHING; 3 + 1 + ENTRIES + 1];
    parts[..3].copy_from_slice(&from);
    if count > 0 {
        parts[3] = Part::Text(" ");
    }
    let mut used = 4;
    for entry in entries.iter().take(count as usize) {
        parts[used] = Part::Entry(if used == 4 { b'{' } else { b' ' }, *entry);
        used += 1;
    }
    parts[used] = Part::Text(if count == 0 { " -> " } else { "} -> " });
    log::line_in(held, REFUSED, &parts[..=used], to);
}
