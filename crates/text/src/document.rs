//! A text that is edited: a gap buffer, and what was done to it, so that it can be undone.
//!
//! The text is UTF-8. Places are offsets in bytes, at the start of a character. A change that finds no memory leaves the text as it was;
//! what can be undone is forgotten first, the oldest before the others.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::ops::Range;

use crate::memory::{self, NoMemory};

/// Memory that is left when the text grows: for messages and what the system asks for.
const SPARE: usize = 64 << 10;
/// Bytes of a character at most.
const CHARACTER: usize = 4;

/// A change: what stood at a place, and what stands there now.
#[derive(Default)]
struct Change {
    at: usize,
    removed: Vec<u8>,
    inserted: Vec<u8>,
}

/// See the module.
pub struct Document {
    bytes: Vec<u8>,
    gap: Range<usize>,
    changes: Vec<Change>,
    /// So many of the changes are done; those after them were undone.
    done: usize,
    /// How many were done when the text was saved; `None` = it cannot come back to that.
    saved: Option<usize>,
    /// The last change may be continued.
    is_open: bool,
}

/// Runs `work` while the spare memory is held, so that it does not use it.
fn sparing(work: impl FnOnce() -> Result<(), NoMemory>) -> Result<(), NoMemory> {
    let mut spare: Vec<u8> = Vec::new();
    spare.try_reserve_exact(SPARE).map_err(|_| NoMemory)?;
    let outcome = work();
    drop(core::hint::black_box(spare));
    outcome
}

impl Document {
    /// Of what a file holds. `Err` = why that is no text.
    pub fn new(bytes: Vec<u8>) -> Result<Self, String> {
        if let Some(at) = bytes.iter().position(|byte| *byte == 0) {
            return Err(format!("not a text: byte {} is zero", at + 1));
        }
        if let Err(error) = core::str::from_utf8(&bytes) {
            return Err(format!("not a text: byte {} is not UTF-8", error.valid_up_to() + 1));
        }
        let gap = bytes.len()..bytes.len();
        Ok(Self { bytes, gap, changes: Vec::new(), done: 0, saved: Some(0), is_open: false })
    }

    /// Bytes of the text.
    pub fn len(&self) -> usize {
        self.bytes.len() - self.gap.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The text, in two parts.
    pub fn parts(&self) -> [&[u8]; 2] {
        [&self.bytes[..self.gap.start], &self.bytes[self.gap.end..]]
    }

    /// The byte at a place; `None` at the end.
    pub fn byte(&self, at: usize) -> Option<u8> {
        let at = if at < self.gap.start { at } else { at + self.gap.len() };
        self.bytes.get(at).copied()
    }

    /// The character at a place, as far as it goes.
    pub fn character(&self, at: usize) -> ([u8; CHARACTER], usize) {
        let mut character = [0; CHARACTER];
        let mut count = 0;
        for (place, slot) in (at..).zip(&mut character) {
            match self.byte(place) {
                Some(byte) if count == 0 || byte & 0xc0 == 0x80 => *slot = byte,
                _ => break,
            }
            count += 1;
        }
        (character, count)
    }

    /// The place after the character here.
    pub fn next(&self, at: usize) -> usize {
        at + self.character(at).1
    }

    /// The place of the character before.
    pub fn previous(&self, at: usize) -> usize {
        let is_start = |place: &usize| self.byte(*place).is_some_and(|byte| byte & 0xc0 != 0x80);
        (0..at).rev().find(is_start).unwrap_or(0)
    }

    /// Where the line of this place begins.
    pub fn line_start(&self, at: usize) -> usize {
        (0..at.min(self.len())).rev().find(|place| self.byte(*place) == Some(b'\n')).map_or(0, |place| place + 1)
    }

    /// Where it ends, before the newline.
    pub fn line_end(&self, at: usize) -> usize {
        (at..self.len()).find(|place| self.byte(*place) == Some(b'\n')).unwrap_or(self.len())
    }

    /// Newlines before a place.
    pub fn lines_before(&self, at: usize) -> usize {
        let count = |part: &[u8]| part.iter().filter(|byte| **byte == b'\n').count();
        let [first, second] = self.parts();
        match second.get(..at.saturating_sub(first.len())) {
            Some(begin) if at > first.len() => count(first) + count(begin),
            _ => count(&first[..at.min(first.len())]),
        }
    }

    /// Where the line of this number begins, from 0; the last if there are not so many.
    pub fn line(&self, number: usize) -> usize {
        if number == 0 {
            return 0;
        }
        let mut last = 0;
        let ends = (0..self.len()).filter(|place| self.byte(*place) == Some(b'\n'));
        for end in ends.take(number) {
            last = end + 1;
        }
        last
    }

    /// The next place from `from` on where `sought` stands; past the end it goes on at the start.
    pub fn find(&self, sought: &[u8], from: usize) -> Option<usize> {
        let is_here = |at: &usize| (*at..).zip(sought).all(|(place, byte)| self.byte(place) == Some(*byte));
        if sought.is_empty() {
            return None;
        }
        (from..self.len()).find(is_here).or_else(|| (0..from.min(self.len())).find(is_here))
    }

    /// Whether it differs from what was saved.
    pub fn is_changed(&self) -> bool {
        self.saved != Some(self.done)
    }

    /// It is saved as it is.
    pub fn set_saved(&mut self) {
        self.saved = Some(self.done);
    }

    /// Lets the next change be undone by itself.
    pub fn close(&mut self) {
        self.is_open = false;
    }

    /// Puts `new` in the place of `count` bytes.
    pub fn replace(&mut self, at: usize, count: usize, new: &[u8]) -> Result<(), NoMemory> {
        self.changes.truncate(self.done);
        if self.saved.is_some_and(|saved| saved > self.done) {
            self.saved = None;
        }
        loop {
            let prepared = self.make_room(count, new.len()).and_then(|()| self.record(at, count, new));
            match prepared {
                Ok(()) => break,
                Err(_) if !self.changes.is_empty() => self.forget(self.changes.len().div_ceil(2)),
                // It must be possible to make the text shorter.
                Err(_) if new.is_empty() => {
                    self.saved = None;
                    break;
                }
                Err(refused) => return Err(refused),
            }
        }
        self.put(at, count, new);
        Ok(())
    }

    /// Undoes the last change; gives the place of it. `None` = there is none.
    pub fn undo(&mut self) -> Result<Option<usize>, NoMemory> {
        let Some(last) = self.done.checked_sub(1) else { return Ok(None) };
        let change = &self.changes[last];
        self.make_room(change.inserted.len(), change.removed.len())?;
        let change = core::mem::take(&mut self.changes[last]);
        self.put(change.at, change.inserted.len(), &change.removed);
        let place = change.at + change.removed.len();
        self.changes[last] = change;
        self.done = last;
        self.close();
        Ok(Some(place))
    }

    /// Does again what was undone last; gives the place after it.
    pub fn redo(&mut self) -> Result<Option<usize>, NoMemory> {
        let Some(change) = self.changes.get(self.done) else { return Ok(None) };
        self.make_room(change.removed.len(), change.inserted.len())?;
        let change = core::mem::take(&mut self.changes[self.done]);
        self.put(change.at, change.removed.len(), &change.inserted);
        let place = change.at + change.inserted.len();
        self.changes[self.done] = change;
        self.done += 1;
        self.close();
        Ok(Some(place))
    }

    fn forget(&mut self, count: usize) {
        self.changes.drain(..count);
        self.done -= count;
        self.saved = self.saved.and_then(|saved| saved.checked_sub(count));
        self.close();
    }

    /// Makes the gap large enough for `more` bytes when `fewer` have gone.
    fn make_room(&mut self, fewer: usize, more: usize) -> Result<(), NoMemory> {
        let needed = more.saturating_sub(fewer + self.gap.len());
        if needed == 0 {
            return Ok(());
        }
        let bytes = &mut self.bytes;
        sparing(|| memory::reserve(bytes, needed))?;
        let (before, end) = (self.bytes.len(), self.gap.end);
        self.bytes.resize(self.bytes.capacity(), 0);
        let added = self.bytes.len() - before;
        self.bytes.copy_within(end..before, end + added);
        self.gap.end += added;
        Ok(())
    }

    /// Notes a change; it is part of the last one if it continues it.
    fn record(&mut self, at: usize, count: usize, new: &[u8]) -> Result<(), NoMemory> {
        let mut removed = Vec::new();
        let (changes, done) = (&mut self.changes, self.done);
        sparing(|| {
            removed.try_reserve_exact(count).map_err(|_| NoMemory)?;
            memory::reserve(changes, 1)
        })?;
        removed.extend((at..at + count).filter_map(|place| {
            let place = if place < self.gap.start { place } else { place + self.gap.len() };
            self.bytes.get(place)
        }));
        let can_join = self.is_open && self.saved != Some(done);
        if let Some(last) = changes.last_mut().filter(|_| can_join) {
            let typed = count == 0 && last.removed.is_empty() && last.at + last.inserted.len() == at;
            if typed {
                return sparing(|| memory::extend(&mut last.inserted, new));
            }
            if new.is_empty() && last.inserted.is_empty() && at == last.at {
                return sparing(|| memory::extend(&mut last.removed, &removed));
            }
            if new.is_empty() && last.inserted.is_empty() && at + count == last.at {
                sparing(|| memory::reserve(&mut last.removed, count))?;
                last.removed.splice(..0, removed);
                last.at = at;
                return Ok(());
            }
        }
        let mut inserted = Vec::new();
        sparing(|| memory::extend(&mut inserted, new))?;
        changes.push(Change { at, removed, inserted });
        self.done += 1;
        self.is_open = true;
        Ok(())
    }

    /// Changes the text; there is room.
    fn put(&mut self, at: usize, count: usize, new: &[u8]) {
        let gap = self.gap.clone();
        if at < gap.start {
            self.bytes.copy_within(at..gap.start, gap.end - (gap.start - at));
        } else {
            self.bytes.copy_within(gap.end..gap.end + (at - gap.start), gap.start);
        }
        self.gap = at..at + gap.len() + count;
        self.bytes[at..at + new.len()].copy_from_slice(new);
        self.gap.start += new.len();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    extern crate std;
    use proptest::prelude::*;
    use std::string::ToString;

    fn text(document: &Document) -> String {
        String::from_utf8(document.parts().concat()).expect("it stays UTF-8")
    }

    #[test]
    fn binary_files_are_refused() {
        let refused = |bytes: &[u8]| Document::new(bytes.to_vec()).err();
        assert_eq!(refused(b"ab\0"), Some("not a text: byte 3 is zero".to_string()));
        assert_eq!(refused(b"a\xff"), Some("not a text: byte 2 is not UTF-8".to_string()));
        assert_eq!(refused("ü\n".as_bytes()), None);
    }

    #[test]
    fn typed_text_is_undone_at_once() {
        let mut it = Document::new(b"ab".to_vec()).unwrap();
        it.replace(1, 0, b"x").unwrap();
        it.replace(2, 0, b"y").unwrap();
        it.close();
        it.replace(2, 1, b"").unwrap();
        it.replace(1, 1, b"").unwrap();
        it.replace(1, 1, b"").unwrap();
        assert_eq!(text(&it), "a");
        assert_eq!(it.undo(), Ok(Some(4)));
        assert_eq!(text(&it), "axyb");
        assert_eq!(it.undo(), Ok(Some(1)));
        assert!(!it.is_changed());
        assert_eq!(it.undo(), Ok(None));
        assert_eq!(it.redo(), Ok(Some(3)));
        it.set_saved();
        assert_eq!(it.redo(), Ok(Some(1)));
        assert!(it.is_changed());
        assert_eq!(it.redo(), Ok(None));
    }

    #[derive(Clone, Debug)]
    enum Step {
        Replace(usize, usize, String),
        Close,
        Undo,
        Redo,
        Save,
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let replace =
            (any::<usize>(), 0..4usize, "[aü\n€]{0,5}").prop_map(|(at, count, new)| Step::Replace(at, count, new));
        let step = prop_oneof![4 => replace, 1 => Just(Step::Close), 2 => Just(Step::Undo), 2 => Just(Step::Redo), 1 => Just(Step::Save)];
        proptest::collection::vec(step, 0..60)
    }

    proptest! {
        /// The model: all texts that there were, as a list with a place in it. Changes that are joined share one place.
        #[test]
        fn it_is_what_a_list_of_texts_is(first in "[aü\n]{0,9}", steps in steps()) {
            let mut it = Document::new(first.clone().into_bytes()).unwrap();
            let mut texts = std::vec![first.clone()];
            let (mut now, mut saved) = (0, first);
            for step in steps {
                match step {
                    Step::Replace(at, count, new) => {
                        let old: Vec<char> = texts[now].chars().collect();
                        let at = at % (old.len() + 1);
                        let count = count.min(old.len() - at);
                        let bytes = |part: &[char]| part.iter().map(|character| character.len_utf8()).sum::<usize>();
                        let place = bytes(&old[..at]);
                        let before = it.done;
                        it.replace(place, bytes(&old[at..at + count]), new.as_bytes()).unwrap();
                        let changed: String = old[..at].iter().collect::<String>() + &new + &old[at + count..].iter().collect::<String>();
                        texts.truncate(now + 1);
                        if it.done == before { texts[now] = changed; } else { texts.push(changed); now += 1; }
                    }
                    Step::Close => it.close(),
                    Step::Undo => { if it.undo().unwrap().is_some() { now -= 1; } else { prop_assert_eq!(now, 0); } }
                    Step::Redo => { if it.redo().unwrap().is_some() { now += 1; } else { prop_assert_eq!(now + 1, texts.len()); } }
                    Step::Save => { it.set_saved(); saved.clone_from(&texts[now]); }
                }
                let shown = text(&it);
                prop_assert_eq!(&shown, &texts[now]);
                prop_assert!(it.is_changed() || shown == saved, "it is not what was saved");
                for (at, _) in shown.char_indices().chain([(shown.len(), ' ')]) {
                    let start = shown[..at].rfind('\n').map_or(0, |end| end + 1);
                    prop_assert_eq!(it.line_start(at), start);
                    prop_assert_eq!(it.line_end(at), shown[at..].find('\n').map_or(shown.len(), |end| at + end));
                    prop_assert_eq!(it.lines_before(at), shown[..at].matches('\n').count());
                    prop_assert_eq!(it.line(it.lines_before(at)), start);
                    let next = shown[at..].chars().next().map_or(at, |character| at + character.len_utf8());
                    prop_assert_eq!(it.next(at), next);
                    prop_assert!(next == at || it.previous(next) == at);
                    prop_assert_eq!(it.find("ü".as_bytes(), at), shown[at..].find('ü').map(|found| at + found).or_else(|| shown.find('ü')));
                }
            }
        }
    }
}
