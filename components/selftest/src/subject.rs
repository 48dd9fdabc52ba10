//! Domains that make system calls for us: each call of a subject's portal makes those of a page, one after the other if they lead to
//! other subjects.
//!
//! We own everything and accept everything, so we may always call them.

use abi::layout::{ENTRY_BYTES, FREE_START};
use abi::rights::{MAP_READ, MAP_WRITE};
use abi::{Control, Error, PAGE_BYTES};
use alloc::string::String;
use flow::Level;
use flow::specification::{Label, Labels};
use runtime::entry::Owned;
use runtime::op::{self, LabelFrom};
use runtime::{Entry, message};

use crate::raw;
use crate::table::child::portal_to;

/// Where they have their code, and calls after that.
const CODE: u64 = FREE_START;
const CALLS: u64 = CODE + PAGE_BYTES as u64;
/// Words of a call: the system call register, and words 0 to 5.
const WORDS: usize = 7;
/// Where the first maker sees its page, and code on the way to a subject; the others see theirs after that.
const OURS: u64 = FREE_START + 0x1000_0000;
const ACTIVATIONS: u64 = 4;

pub type Outcome<T> = Result<T, String>;

pub fn text(error: Error) -> String {
    error.text().into()
}

/// The answer to a call: its status, and two words.
pub type Answer = [u64; 3];

/// The page on which the subjects of one maker see their calls.
pub struct Page(u64);

impl Page {
    /// That of the maker with this number.
    pub fn of(maker: usize) -> Self {
        Self(OURS + 2 * PAGE_BYTES as u64 * maker as u64)
    }

    /// That of the first maker, with its memory, and the account of so many frames that pays for code: its label is {★}.
    pub fn with_account(frames: u64) -> Outcome<(Self, Owned)> {
        let label = label_of(&Label::of(Level::Star))?;
        let free = op::account_new_labelled(Entry::OWN, frames, 0, label.entry()).map_err(text)?;
        let (page, free) = (Self::of(0), Owned::new(free));
        page.draw(free.entry())?;
        Ok((page, free))
    }

    /// Gets memory for it, which everybody may read, from an account whose label is {★}.
    pub fn draw(&self, free: Entry) -> Outcome<()> {
        raw::give_up(self.0);
        op::draw(raw::MEMORY, free, Entry::OWN, self.0, 0, MAP_READ | MAP_WRITE).map_err(text)
    }

    /// Where subjects see the call in a place.
    pub fn address(place: usize) -> u64 {
        CALLS + (place * WORDS * 8) as u64
    }

    /// Writes the call in a place: the index of an operation, or of an entry of the subject, and its words.
    pub fn put(&self, place: usize, index: u64, words: [u64; 6]) {
        let all = core::iter::once(index * ENTRY_BYTES as u64).chain(words);
        for (number, word) in all.enumerate() {
            raw::poke_word(self.0 + ((place * WORDS + number) * 8) as u64, word);
        }
    }
}

/// See the module.
pub struct Subject {
    pub domain: Owned,
    _account: Owned,
    pub service: Owned,
    portal: Owned,
}

impl Subject {
    /// With so many frames, these labels, and portals of this label; its code is charged to an account whose label is {★}.
    pub fn new(page: &Page, free: Entry, frames: u64, labels: &Labels, portal: &Label) -> Outcome<Self> {
        let account = Owned::new(op::account_new(Entry::OWN, frames).map_err(text)?);
        let domain = Owned::new(op::domain_new(account.entry(), 0, "subject").map_err(text)?);
        let [send, receive] = [label_of(&labels.send)?, label_of(&labels.receive)?];
        op::domain_set_labels(domain.entry(), send.entry(), receive.entry(), labels.is_explicit).map_err(text)?;
        raw::obedient(domain.entry(), free, page.0 + PAGE_BYTES as u64, CODE).map_err(text)?;
        raw::show(domain.entry(), page.0, CALLS).map_err(text)?;
        for _ in 0..ACTIVATIONS {
            raw::activation_in(domain.entry()).map_err(text)?;
        }
        let label = label_of(portal)?;
        let service = raw::service_labelled(&domain, CODE, label.entry()).map_err(text)?;
        let (service, portal) = portal_to(domain.entry(), service).map_err(text)?;
        Ok(Self { domain, _account: account, service, portal })
    }

    /// Has it make the calls from the first place of its page on.
    pub fn asks(&self) -> Outcome<Answer> {
        let words = [Page::address(0), 0, 0, 0, 0];
        let (words, _) = message::call(self.portal.entry(), words, Control(0)).map_err(text)?;
        Ok([words[0], words[1], words[2]])
    }

    /// Has it make this call.
    pub fn enters(&self, page: &Page, index: usize, words: [u64; 6]) -> Outcome<Answer> {
        page.put(0, index as u64, words);
        self.asks()
    }
}

/// A label of ours.
pub fn label_of(label: &Label) -> Outcome<Owned> {
    let made = Owned::new(op::label_new(LabelFrom::Level(label.default as u64)).map_err(text)?);
    for (handle, level) in &label.entries {
        op::label_put(made.entry(), handle.number(), *level as u64).map_err(text)?;
    }
    Ok(made)
}
