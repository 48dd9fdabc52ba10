//! Texts in files.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use protocols::file::FileClient;
use runtime::connection::Direct;
use runtime::entry::Owned;
use runtime::stream::FILE_SYSTEM;

/// Bytes that a script or a greeting may have.
const MAX_TEXT: u64 = 64 * 1024;
/// Bytes by which a text is distinguished from a program.
const BEGINNING: u64 = 256;

fn read(path: &str, most: u64) -> Result<(Vec<u8>, u64), String> {
    let file = Owned::new(FILE_SYSTEM.open(path, 0).map_err(|error| error.to_string())?.into());
    let file = FileClient(Direct(file.entry()));
    let size = file.stat().map_err(|error| error.to_string())?.size;
    let mut bytes = alloc::vec![0; size.min(most) as usize];
    let mut done = 0;
    while done < bytes.len() {
        let end = bytes.len().min(done + 4000);
        match file.read(done as u64, &mut bytes[done..end]).map_err(|error| error.to_string())? {
            0 => break,
            count => done += count,
        }
    }
    bytes.truncate(done);
    Ok((bytes, size))
}

/// Whether its content is still that of the boot archive.
pub fn is_in_archive(path: &str) -> bool {
    let Ok(file) = FILE_SYSTEM.open(path, 0) else { return false };
    let file = Owned::new(file.into());
    FileClient(Direct(file.entry())).image().is_ok_and(|image| image.in_archive)
}

/// A small file as text.
pub fn text(path: &str) -> Result<String, String> {
    match read(path, MAX_TEXT)? {
        (_, MAX_TEXT..) => Err(alloc::format!("a script may have {MAX_TEXT} bytes")),
        (bytes, _) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
    }
}

/// Whether it begins like a text.
pub fn is_text(path: &str) -> bool {
    match read(path, BEGINNING) {
        // A character may be cut at the end.
        Ok((bytes, _)) => !bytes.contains(&0) && String::from_utf8_lossy(&bytes).chars().rev().skip(1).all(is_of_text),
        Err(_) => false,
    }
}

fn is_of_text(c: char) -> bool {
    c != char::REPLACEMENT_CHARACTER && (!c.is_control() || matches!(c, '\n' | '\t' | '\r'))
}
