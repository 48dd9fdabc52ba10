//! The file system in memory: the boot archive as a tree, and writable files in pages of this
//! component's vault, which outlive it.
//!
//! | module | what |
//! |---|---|
//! | [`memory`] | the pages of the tree |
//! | [`files`] | interfaces `FileSystem` and `File` |
//! | [`pipes`] | interfaces `Pipes` and `PipeSession`, and the ends of pipes |
//!
//! The tree itself, and why it survives a kill at any instant, is the crate `filetree`.
#![no_std]
#![no_main]

extern crate alloc;

mod files;
mod memory;
mod pipes;

use alloc::string::{String, ToString};
use core::sync::atomic::{AtomicUsize, Ordering};

use abi::level;
use filetree::{Error, Kind, Node, Tree};
use idl::{Reply, Request};
use protocols::file::{FileServer, FileSystemServer};
use protocols::listing::{self, Record};
use protocols::parent::{DECLARED, ParentClient};
use runtime::Direct;
use runtime::entry::Entry;
use runtime::op;
use runtime::server::{self, Serve};

use crate::files::{COMPARTMENT_NAMES, FileSystem, Files, TREE, refusal};
use crate::memory::Memory;

runtime::entry!(main);

/// Activations beside those that may wait in pipes.
const FILE_ACTIVATIONS: usize = 4;
/// Calls that may wait in pipes. A domain that takes windows has so many message areas: one is our thread's, the others are of activations.
const MOST_WAITS: usize = abi::window::SLOTS - 1 - FILE_ACTIVATIONS;
/// Pages of stack that a call takes.
const STACK_PAGES: u64 = 1;

/// Bytes of the heap kept for calls that are under way when our account is exhausted: the paths of a message are made plain,
/// one call after the other. Memory for pipes is asked for in a way that can fail.
const KEPT_BYTES: usize = abi::MESSAGE_BYTES + 512;

/// Directories that are there from the start.
const DIRECTORIES: [&str; 2] = ["tmp", "home"];

/// Directories that only owners of the system change: all run and read what is there, or find compartments by it, the shell
/// first of all.
const PROTECTED: [&str; 4] = ["bin", "boot", "etc", COMPARTMENT_NAMES];

/// Noted in the tree when all of the archive is in it.
const IMPORTED: u64 = 1;

/// The service that call entries to files are made from.
static FILE_SERVICE: AtomicUsize = AtomicUsize::new(0);
static PIPE_SERVICE: AtomicUsize = AtomicUsize::new(0);

struct TreeService;

impl Serve for TreeService {
    fn serve(request: &mut Request<'_>) -> Reply {
        FileSystem { service: Entry(FILE_SERVICE.load(Ordering::Relaxed)) }.dispatch(request)
    }
}

struct FileService;

impl Serve for FileService {
    fn serve(request: &mut Request<'_>) -> Reply {
        Files.dispatch(request)
    }

    /// Open files take pages of the vault only.
    fn needs_memory(_request: &Request<'_>) -> bool {
        false
    }
}

struct PipeService;

impl Serve for PipeService {
    fn serve(request: &mut Request<'_>) -> Reply {
        pipes::Pipes { service: Entry(PIPE_SERVICE.load(Ordering::Relaxed)) }.answer(request)
    }

    fn needs_memory(request: &Request<'_>) -> bool {
        pipes::needs_memory(request)
    }
}

fn main() -> u8 {
    match start() {
        Ok(()) => pipes::watch(),
        Err(cause) => {
            runtime::log!("{cause}");
            1
        }
    }
}

fn start() -> Result<(), String> {
    let archive = match runtime::program::variable("ARCHIVE") {
        Some(text) => memory::archive(text).ok_or("ARCHIVE is not the place of an archive")?,
        None => &[],
    };
    let memory = Memory::open(archive).map_err(|error| error.to_string())?;
    let (mut tree, _) = Tree::open(memory, 0).map_err(|error| alloc::format!("no tree: {}", refusal(error)))?;
    if tree.note() == IMPORTED {
        runtime::log!("the tree is as it was");
    } else {
        import(&mut tree, archive);
        tree.set_note(IMPORTED);
    }
    if let Err(cause) = declare(&mut tree) {
        runtime::log!("not all compartments of the description are there: {cause}");
    }
    *TREE.lock() = Some(tree);
    let waits = pipes::prepare(MOST_WAITS).map_err(|error| error.to_string())?;
    server::prepared_activations(waits + FILE_ACTIVATIONS, STACK_PAGES).map_err(|error| error.to_string())?;
    if !server::keep_memory(KEPT_BYTES) {
        return Err("no room for a heap".to_string());
    }
    let files = server::window_service::<FileService>().map_err(|error| error.to_string())?;
    FILE_SERVICE.store(files.0, Ordering::Relaxed);
    let text = |error: abi::Error| error.to_string();
    let tree = server::service::<TreeService>().map_err(text)?;
    server::publish_service("ramfs", tree).map_err(|error| error.to_string())?;
    let pipes = server::window_service::<PipeService>().map_err(|error| error.to_string())?;
    PIPE_SERVICE.store(pipes.0, Ordering::Relaxed);
    server::publish_service("pipes", pipes).map_err(|error| error.to_string())
}

/// Puts the files of the archive into the tree. After a kill in the middle the next instance does it
/// again: existing content stays.
fn import(tree: &mut Tree<Memory>, archive: &[u8]) {
    for name in DIRECTORIES {
        let _ = tree.create(tree.root(), name.as_bytes(), Kind::Directory, 0, 0);
    }
    if let Err(cause) = protect(tree) {
        runtime::log!("all may change the system's files: {cause}");
    }
    let mut files = 0;
    let archive = cpio::Archive::new(archive);
    for entry in archive.entries() {
        let entry = match entry.and_then(|entry| archive.resolve(entry)) {
            Ok(entry) => entry,
            Err(error) => {
                runtime::log!("the boot archive is damaged: {error}");
                break;
            }
        };
        let name = entry.name.trim_start_matches('/');
        let result = match entry.kind {
            cpio::Kind::Folder => directory(tree, name).map(drop),
            cpio::Kind::File => file(tree, name, entry.offset, entry.data),
        };
        match result {
            Ok(()) | Err(Error::Exists) => files += 1,
            Err(error) => runtime::log!("{name} is not imported: {}", refusal(error)),
        }
    }
    runtime::log!("{files} files from the boot archive");
}

/// Makes the directories of the system, in a compartment of their own at level 0: new nodes there join it.
fn protect(tree: &mut Tree<Memory>) -> Result<(), String> {
    let text = |error: Error| refusal(error).to_string();
    // An instance before us may have protected some.
    let mut system = 0;
    for name in PROTECTED {
        let node = directory(tree, name).map_err(text)?;
        system = tree.compartment(node).map_err(text)?.max(system);
    }
    if system == 0 {
        system = op::label_handle().map_err(|error| error.to_string())? << 3 | level::ZERO;
    }
    for name in PROTECTED {
        let node = directory(tree, name).map_err(text)?;
        tree.set_compartment(node, system).map_err(text)?;
    }
    Ok(())
}

/// Makes the directories of the compartments that the description declares. An instance before us may have made some: the handles are the same.
fn declare(tree: &mut Tree<Memory>) -> Result<(), String> {
    let text = |error: Error| refusal(error).to_string();
    let system = directory(tree, PROTECTED[0]).and_then(|node| tree.compartment(node)).map_err(text)?;
    let mut outcome = Ok(());
    let make = |record: Record<'_>| {
        let name = core::str::from_utf8(record.name).unwrap_or_default();
        if record.tag == DECLARED && outcome.is_ok() {
            outcome = directory(tree, COMPARTMENT_NAMES)
                .and_then(|all| tree.set_compartment(all, system))
                .and_then(|()| directory(tree, &alloc::format!("{COMPARTMENT_NAMES}/{name}")))
                .and_then(|own| match tree.compartment(own)? {
                    // New: it has what the directory above has. Others stay as their owner left them.
                    inherited if inherited == system => tree.set_compartment(own, record.value),
                    _ => Ok(()),
                })
                .map_err(text);
        }
    };
    listing::each(|position, into| ParentClient(Direct(Entry::PARENT)).compartments(position, into), make)
        .map_err(|error| error.to_string())?;
    outcome
}

/// The directory of this path, made with those above it if need be.
fn directory(tree: &mut Tree<Memory>, path: &str) -> Result<Node, Error> {
    let mut node = tree.root();
    for part in path.split('/').filter(|part| !part.is_empty() && *part != ".") {
        node = match tree.lookup(node, part.as_bytes()) {
            Err(Error::NotFound) => tree.create(node, part.as_bytes(), Kind::Directory, 0, 0)?,
            other => other?,
        };
    }
    Ok(node)
}

fn file(tree: &mut Tree<Memory>, path: &str, offset: usize, data: &[u8]) -> Result<(), Error> {
    let executable = data.starts_with(b"\x7fELF");
    let (above, name) = path.rsplit_once('/').unwrap_or(("", path));
    let above = directory(tree, above)?;
    tree.import(above, name.as_bytes(), offset as u64, data.len() as u64, executable, 0).map(drop)
}
