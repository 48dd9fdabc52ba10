//! Compartments by their names.
//!
//! A compartment has a directory of its name in [`ALL`], which belongs to it: so the name leads to the handle. We own all compartments
//! (`trusted` in the system description).

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use abi::level;
use idl::Failure;
use protocols::file::FileError;
use protocols::listing::{self, Record};
use protocols::parent::{ADMIN as ADMIN_RECORD, OF_PROGRAM, ParentClient, ParentError};
use runtime::stream::FILE_SYSTEM;
use runtime::sync::Once;
use runtime::{Direct, Entry, label, op};

use crate::files;

/// Where the directories of compartments are.
pub const ALL: &str = "/compartments";

fn directory_of(name: &str) -> String {
    alloc::format!("{ALL}/{name}")
}

/// The compartment that rules the machine. It has no files.
const ADMIN: &str = "admin";
/// The compartment of the system's own files, which owners change.
const SYSTEM: &str = "system";
const OF_SYSTEM: &str = "/bin";

fn compartment(path: &str) -> Result<u64, String> {
    FILE_SYSTEM.compartment(path).map_err(|error| alloc::format!("{path}: {error}"))
}

/// Whether all may read what this path leads to.
pub fn is_public(path: &str) -> bool {
    FILE_SYSTEM.compartment(path).is_ok_and(|compartment| !label::is_secret(compartment))
}

/// Whether a script at this path runs when its name is typed, with all that we may do: only owners of the system put it there.
pub fn is_of_system(path: &str) -> bool {
    compartment(OF_SYSTEM).is_ok_and(|system| system == 0 || compartment(path) == Ok(system))
}

/// The handle of a compartment.
pub fn handle(name: &str) -> Result<u64, String> {
    let system = compartment(OF_SYSTEM)?;
    if system == 0 {
        return Err("there are no compartments: the nucleus has no key of handles (dmesg)".to_string());
    }
    if name == SYSTEM {
        return Ok(system >> 3);
    }
    if name == ADMIN {
        let admin = given()?.iter().find(|(tag, ..)| *tag == ADMIN_RECORD);
        return admin.map(|(.., entry)| entry >> 3).ok_or_else(|| alloc::format!("{name}: roottask names none"));
    }
    // Nobody but owners of the system makes names there.
    let found = if compartment(ALL)? == system { compartment(&directory_of(name))? } else { 0 };
    if !label::is_secret(found) {
        return Err(alloc::format!("{name}: no such compartment (ls {ALL} shows them, new-compartment makes one)"));
    }
    Ok(found >> 3)
}

/// The name of a compartment.
pub fn name(handle: u64) -> Option<String> {
    let is_it = |name: &String| self::handle(name) == Ok(handle);
    let all = crate::complete::names(ALL).into_iter().map(|(name, _)| name);
    [ADMIN, SYSTEM].map(ToString::to_string).into_iter().chain(all).find(is_it)
}

/// A compartment of this name, and 8 · its handle + a level.
pub fn at(name: &str, level: u64) -> Result<(String, u64), String> {
    Ok((name.to_string(), handle(name)? << 3 | level))
}

/// What `roottask` knows of compartments, and which of them the system description gives to programs: tag, name, and 8 · handle + level.
static GIVEN: Once<Vec<(u8, String, u64)>> = Once::new();

/// Those that it gives to the program at this path, if that is as it was built: names, and 8 · handle + level.
pub fn of_program(path: &str) -> Result<Vec<(String, u64)>, String> {
    let program = path.strip_prefix("/bin/").unwrap_or_default();
    let mut own = Vec::new();
    for (.., entry) in given()?.iter().filter(|(tag, name, _)| *tag == OF_PROGRAM && name == program) {
        let name = name(entry >> 3).ok_or("a compartment that the description gives it is not there any more")?;
        own.push((name, *entry));
    }
    Ok(if own.is_empty() || files::is_in_archive(path) { own } else { Vec::new() })
}

fn given() -> Result<&'static [(u8, String, u64)], String> {
    if let Some(all) = GIVEN.get() {
        return Ok(all);
    }
    let mut all = Vec::new();
    let note =
        |record: Record<'_>| all.push((record.tag, String::from_utf8_lossy(record.name).into_owned(), record.value));
    match listing::each(|position, into| ParentClient(Direct(Entry::PARENT)).compartments(position, into), note) {
        // Then the description gives none to programs.
        Ok(()) | Err(Failure::Refused(ParentError::NotTrusted)) => Ok(GIVEN.get_or_make(|| all)),
        Err(error) => Err(error.to_string()),
    }
}

/// Makes a compartment.
pub fn make(name: &str) -> Result<(), String> {
    let text = |error: Failure<FileError>| alloc::format!("{name}: {error}");
    if name.is_empty() || name.contains(['/', ':']) || [ADMIN, SYSTEM].contains(&name) {
        return Err(alloc::format!("{name}: not a name that a compartment can have"));
    }
    // It is there unless an owner removed it.
    match FILE_SYSTEM.make_directory(ALL) {
        Ok(()) | Err(Failure::Refused(FileError::Exists)) => {}
        Err(error) => return Err(text(error)),
    }
    let system = compartment(OF_SYSTEM)?;
    if compartment(ALL)? != system {
        let protected = FILE_SYSTEM.set_compartment(ALL, system);
        protected.map_err(|error| alloc::format!("{ALL}: {error} (somebody else made it: remove it)"))?;
    }
    let path = directory_of(name);
    FILE_SYSTEM.make_directory(&path).map_err(text)?;
    let made = op::label_handle().map_err(|error| error.to_string());
    let made = made.and_then(|handle| FILE_SYSTEM.set_compartment(&path, label::secret(handle)).map_err(text));
    if made.is_err() {
        let _ = FILE_SYSTEM.remove(&path);
    }
    made
}

/// Gives up the ownership of a compartment, as the nucleus knows it.
pub fn drop(name: &str) -> Result<(), String> {
    op::label_send(handle(name)?, level::ONE).map_err(|error| error.to_string())
}

/// Moves files to a compartment, or to none; gives what went wrong.
pub fn change(directory: &str, paths: &[String], compartment: u64) -> Vec<String> {
    let moved = |path: &String| FILE_SYSTEM.set_compartment(&filetree::normalize(directory, path), compartment);
    paths.iter().filter_map(|path| moved(path).err().map(|error| alloc::format!("{path}: {error}"))).collect()
}
