//! Lists in bytes: directory entries, names, processes.
//!
//! A record is a tag byte, a value of eight bytes (little endian), a length byte and a name. Records stand one
//! after the other; a message holds whole ones only.

/// Bytes of a record besides its name.
pub const HEADER: usize = 10;

/// One record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Record<'a> {
    /// Its tag in the list.
    pub tag: u8,
    /// Its count in the list.
    pub value: u64,
    /// Its name, at most 255 bytes.
    pub name: &'a [u8],
}

/// Appends records to a buffer.
#[derive(Debug)]
pub struct Writer<'a> {
    into: &'a mut [u8],
    used: usize,
}

impl<'a> Writer<'a> {
    /// Starts at the buffer's beginning.
    pub fn new(into: &'a mut [u8]) -> Self {
        Self { into, used: 0 }
    }

    /// Appends a record; `false` if it does not fit (or its name is too long), and nothing is written.
    pub fn push(&mut self, record: Record<'_>) -> bool {
        let Ok(length) = u8::try_from(record.name.len()) else { return false };
        let Some(place) = self.into.get_mut(self.used..self.used + HEADER + record.name.len()) else { return false };
        place[0] = record.tag;
        place[1..9].copy_from_slice(&record.value.to_le_bytes());
        place[9] = length;
        place[HEADER..].copy_from_slice(record.name);
        self.used += place.len();
        true
    }

    /// Bytes written.
    pub fn used(&self) -> usize {
        self.used
    }
}

/// Reads records; stops at the first that is cut off.
#[derive(Clone, Debug)]
pub struct Listing<'a>(pub &'a [u8]);

impl<'a> Iterator for Listing<'a> {
    type Item = Record<'a>;

    fn next(&mut self) -> Option<Record<'a>> {
        let (header, rest) = self.0.split_first_chunk::<HEADER>()?;
        let [tag, value @ .., length] = *header;
        let (name, rest) = rest.split_at_checked(length.into())?;
        self.0 = rest;
        Some(Record { tag, value: u64::from_le_bytes(value), name })
    }
}

/// Asks for a list part by part, from its beginning, and looks at each record. `ask` takes a position and gives the bytes that it wrote and the next
/// position; the list ends where that is none above.
pub fn each<E>(
    mut ask: impl FnMut(u64, &mut [u8]) -> Result<(usize, u64), E>,
    mut look: impl FnMut(Record<'_>),
) -> Result<(), E> {
    let (mut position, mut buffer) = (0, [0; 512]);
    loop {
        let (bytes, next) = ask(position, &mut buffer)?;
        Listing(buffer.get(..bytes).unwrap_or_default()).for_each(&mut look);
        if next <= position {
            return Ok(());
        }
        position = next;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_full_buffer_refuses_and_stays_whole() {
        let mut buffer = [0; 2 * HEADER + 3];
        let mut writer = Writer::new(&mut buffer);
        assert!(writer.push(Record { tag: 1, value: 2, name: b"ab" }));
        assert!(!writer.push(Record { tag: 1, value: 2, name: b"ab" }));
        assert!(writer.push(Record { tag: 3, value: u64::MAX, name: b"c" }));
        assert!(!writer.push(Record { tag: 0, value: 0, name: b"" }));
        assert_eq!(writer.used(), buffer.len());
        let records: [_; 2] = core::array::from_fn(|position| Listing(&buffer).nth(position));
        assert_eq!(records[0], Some(Record { tag: 1, value: 2, name: b"ab" }));
        assert_eq!(records[1], Some(Record { tag: 3, value: u64::MAX, name: b"c" }));
        assert!(!Writer::new(&mut [0; 1000]).push(Record { tag: 0, value: 0, name: &[b'x'; 256] }));
    }

    /// A list of nine numbers, four in a part; an error at a position.
    fn part(position: u64, into: &mut [u8], fails_at: u64) -> Result<(usize, u64), u64> {
        let mut writer = Writer::new(&mut into[..4 * (HEADER + 1)]);
        for number in position..9 {
            if position == fails_at {
                return Err(number);
            }
            if !writer.push(Record { tag: 0, value: number, name: b"n" }) {
                return Ok((writer.used(), number));
            }
        }
        Ok((writer.used(), 0))
    }

    #[test]
    fn each_record_once_until_an_error() {
        let mut found = [0; 9];
        let mut count = 0;
        let mut note = |record: Record<'_>| {
            found[count] = record.value;
            count += 1;
        };
        assert_eq!(each(|position, into| part(position, into, 9), &mut note), Ok(()));
        assert_eq!((found, count), (core::array::from_fn(|number| number as u64), 9));
        let mut last = 0;
        assert_eq!(each(|position, into| part(position, into, 4), |record| last = record.value), Err(4));
        assert_eq!(last, 3);
        // More bytes than there are, and a position that does not go on: an end.
        assert_eq!(each::<()>(|_, _| Ok((usize::MAX, 0)), |_| panic!("there is none")), Ok(()));
    }

    proptest! {
        #[test]
        fn garbage_ends(bytes: [u8; 64], length in 0usize..=64) {
            let read: usize = Listing(&bytes[..length]).map(|record| HEADER + record.name.len()).sum();
            prop_assert!(read <= length);
        }
    }
}
