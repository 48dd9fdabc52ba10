//! Texts that are kept for a while, so that a client that reads one in pieces reads all of one moment.
//!
//! There are as many places as were made at first, each with a buffer that it gets when it is first needed: nothing grows
//! however many readers there are.
//! A new text takes the place of the oldest; a client still reading that one is notified that it is gone.

use alloc::vec::Vec;

/// Nanoseconds within which one text is given to several readers.
pub const SHARED: u64 = 1_000_000_000;

/// Why there is no text.
#[derive(Debug, PartialEq, Eq)]
pub enum Missing {
    /// There is no memory for a buffer.
    NoMemory,
    /// It could not be written.
    NotWritten,
}

struct Text {
    /// When it was begun, in nanoseconds since boot, or a little later if that number was taken. 0 = none.
    number: u64,
    bytes: Vec<u8>,
}

/// See the module.
pub struct Kept {
    texts: Vec<Text>,
    /// Bytes of each.
    room: usize,
}

impl Kept {
    /// None, and room for so many of so many bytes.
    pub fn with_room(count: usize, bytes: usize) -> Self {
        let text = || Text { number: 0, bytes: Vec::new() };
        Self { texts: core::iter::repeat_with(text).take(count).collect(), room: bytes }
    }

    /// The number and the bytes of a text begun at `now`, or so shortly before that it will do. `write` writes a new
    /// one; if it cannot, one place more is free.
    pub fn take(&mut self, now: u64, write: impl FnOnce(&mut Vec<u8>) -> bool) -> Result<(u64, u64), Missing> {
        let newest = self.texts.iter().max_by_key(|text| text.number).ok_or(Missing::NoMemory)?;
        if newest.number != 0 && now.saturating_sub(newest.number) < SHARED {
            return Ok((newest.number, newest.bytes.len() as u64));
        }
        let number = now.max(newest.number + 1);
        let oldest = self.texts.iter_mut().min_by_key(|text| text.number).ok_or(Missing::NoMemory)?;
        oldest.number = 0;
        oldest.bytes.clear();
        oldest.bytes.try_reserve_exact(self.room).map_err(|_| Missing::NoMemory)?;
        if !write(&mut oldest.bytes) {
            return Err(Missing::NotWritten);
        }
        oldest.number = number;
        Ok((number, oldest.bytes.len() as u64))
    }

    /// Copies bytes of a text from an offset on; gives how many, 0 at the end, `None` if it is gone.
    pub fn read(&self, number: u64, offset: u64, into: &mut [u8]) -> Option<usize> {
        let text = self.texts.iter().find(|text| text.number == number && number != 0)?;
        let rest = usize::try_from(offset).ok().and_then(|offset| text.bytes.get(offset..)).unwrap_or_default();
        let count = rest.len().min(into.len());
        into[..count].copy_from_slice(&rest[..count]);
        Some(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(text: &'static [u8]) -> impl FnOnce(&mut Vec<u8>) -> bool {
        move |into| {
            into.clear();
            into.extend_from_slice(text);
            true
        }
    }

    /// All of a text, in pieces of three bytes.
    fn read(kept: &Kept, number: u64) -> Option<Vec<u8>> {
        let mut whole = Vec::new();
        loop {
            let mut piece = [0; 3];
            match kept.read(number, whole.len() as u64, &mut piece)? {
                0 => return Some(whole),
                count => whole.extend_from_slice(&piece[..count]),
            }
        }
    }

    #[test]
    fn readers_do_not_disturb_each_other() {
        let mut kept = Kept::with_room(3, 16);
        let all = [&b"the first"[..], b"another", b"the third"].map(|text| text);
        let numbers: Vec<u64> =
            all.iter().zip(1..).map(|(text, time)| kept.take(time * SHARED, write(text)).unwrap().0).collect();
        for (number, text) in numbers.iter().zip(all) {
            assert_eq!(read(&kept, *number).as_deref(), Some(text));
        }
        // One more: the oldest is gone, the others stay.
        let (fourth, bytes) = kept.take(9 * SHARED, write(b"4")).unwrap();
        assert_eq!((read(&kept, fourth).as_deref(), bytes), (Some(&b"4"[..]), 1));
        assert_eq!(read(&kept, numbers[0]), None);
        assert_eq!(read(&kept, numbers[1]).as_deref(), Some(all[1]));
        assert!(kept.texts.iter().all(|text| text.bytes.capacity() == 16), "a buffer grew");
    }

    #[test]
    fn requests_at_the_same_time_share_a_text() {
        let mut kept = Kept::with_room(2, 16);
        let first = kept.take(5, write(b"one")).unwrap();
        assert_eq!(kept.take(5, write(b"two")), Ok(first));
        assert_eq!(kept.take(4 + SHARED, write(b"two")), Ok(first));
        let second = kept.take(5 + SHARED, write(b"two")).unwrap();
        assert!(second.0 > first.0);
        // A clock that stands still, or goes back, makes no number twice.
        assert_eq!(kept.take(3, write(b"three")), Ok(second));
    }

    #[test]
    fn an_unwritten_text_is_not_kept() {
        let mut kept = Kept::with_room(2, 16);
        let (number, _) = kept.take(1, write(b"one")).unwrap();
        assert_eq!(
            kept.take(1 + SHARED, |into| {
                into.clear();
                false
            }),
            Err(Missing::NotWritten)
        );
        assert_eq!(read(&kept, number).as_deref(), Some(&b"one"[..]));
        assert_eq!(read(&kept, 0), None);
        assert_eq!(kept.read(number, u64::MAX, &mut [0; 4]), Some(0));
        assert_eq!(kept.read(number, 4, &mut [0; 4]), Some(0));
        assert_eq!(kept.read(number, 1, &mut []), Some(0));
        assert_eq!(Kept::with_room(0, 0).take(1, write(b"")), Err(Missing::NoMemory));
        assert_eq!(Kept::with_room(1, usize::MAX).take(1, write(b"")), Err(Missing::NoMemory));
    }
}
