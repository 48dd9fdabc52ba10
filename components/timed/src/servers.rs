//! Which servers to ask.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use protocols::file::FileClient;
use runtime::Direct;
use runtime::entry::Owned;
use runtime::stream::FILE_SYSTEM;

/// The file.
const PATH: &str = "/etc/ntp";
/// Bytes of it that are read.
const MOST_BYTES: usize = 1024;
/// Servers that are asked, at most.
const MOST: usize = 4;

/// Those in the file; none if there is no such file.
pub fn read() -> Vec<String> {
    let mut bytes = [0; MOST_BYTES];
    let Ok(entry) = FILE_SYSTEM.open(PATH, 0) else { return Vec::new() };
    let entry = Owned::new(entry.into());
    let Ok(count) = FileClient(Direct(entry.entry())).read(0, &mut bytes) else { return Vec::new() };
    let lines = bytes[..count.min(MOST_BYTES)].split(|byte| *byte == b'\n');
    // A line that is no text names no server; the others count.
    let texts = lines.filter_map(|line| core::str::from_utf8(line.split(|byte| *byte == b'#').next()?).ok());
    let words = texts.map(str::trim);
    words.filter(|word| !word.is_empty()).take(MOST).map(ToString::to_string).collect()
}
