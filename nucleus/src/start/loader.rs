//! Starts the first two components from the boot archive: `sigma0`, which alone can take frames from the nucleus, and
//! `roottask`, which starts all others and sees the archive at `layout::ARCHIVE`.
//!
//! It loads what the build makes: static ELF64, no two segments in one page. The archive is trusted: a file that cannot be loaded
//! ends the boot with the cause.

use crate::arch::memory::DIRECT;
use crate::control::{domain, ready, thread};
use crate::cpus::timer;
use crate::memory::portals::Content;
use crate::memory::{account, frames, mapping, portals, space};
use crate::objects::{Account, Domain, FRAME, TRUSTED, Thread};
use crate::pointer::{Held, Ref};
use crate::report::panic;
use crate::report::reason::reason;
use abi::boot::{BootInfo, ROOTTASK_PATH, SIGMA0_PATH, SYMBOLS_PATH};
use abi::layout::{self, MAIN_STACK_TOP};
use abi::rights::{self, Kind, MAP_EXECUTE, MAP_READ, MAP_WRITE};

/// Frames of `sigma0`'s account.
const SIGMA0_FRAMES: usize = 256;
/// Pages mapped for the main stack of `sigma0`, and of `roottask`, which gets more from its pager, `sigma0`.
const STACK_PAGES: [u64; 2] = [1, 2];
/// Of both threads.
const PRIORITY: u8 = 40;

fn word(bytes: &[u8], at: usize, width: usize) -> Result<u64, &'static str> {
    let field = bytes.get(at..at + width).ok_or("the ELF file is cut off")?;
    Ok(field.iter().rev().fold(0, |value, byte| value << 8 | *byte as u64))
}

/// Loads the segments of `file` into `domain`; gives the entry address.
fn load(domain: Ref<Domain>, file: &[u8]) -> Result<u64, &'static str> {
    if file.get(..6) != Some(b"\x7fELF\x02\x01") || word(file, 16, 2)? != 2 {
        return Err("not a static ELF64 program");
    }
    let (table, size, count) = (word(file, 32, 8)? as usize, word(file, 54, 2)? as usize, word(file, 56, 2)? as usize);
    for index in 0..count {
        let header = file.get(table + index * size..).ok_or("the ELF file is cut off")?;
        if word(header, 0, 4)? != 1 {
            continue;
        }
        let flags = word(header, 4, 4)?;
        let (offset, address) = (word(header, 8, 8)? as usize, word(header, 16, 8)?);
        let (in_file, in_memory) = (word(header, 32, 8)? as usize, word(header, 40, 8)? as usize);
        let bytes = file.get(offset..offset + in_file).ok_or("the ELF file is cut off")?;
        let rights =
            MAP_READ | if flags & 2 != 0 { MAP_WRITE } else { 0 } | if flags & 1 != 0 { MAP_EXECUTE } else { 0 };
        mapping::check_rights(rights).map_err(|_| "a segment is writable and executable")?;
        let start = address & !(FRAME as u64 - 1);
        // A segment that nobody writes, at the same place within its page as in the archive, needs no copy.
        let is_shown = rights & MAP_WRITE == 0
            && in_file == in_memory
            && (bytes.as_ptr() as u64 ^ address).is_multiple_of(FRAME as u64);
        for page in (start..address + in_memory as u64).step_by(FRAME) {
            if is_shown {
                let frame = frames::frame_of((bytes.as_ptr() as u64 - address + page) as usize);
                mapping::map_archive_page(domain, page, frame, rights).map_err(reason)?;
                continue;
            }
            draw(domain, page, rights)?;
            let target = page.max(address);
            let from = (target - address) as usize;
            let length = (page + FRAME as u64 - target).min((in_file as u64).saturating_sub(from as u64)) as usize;
            if length > 0 {
                write(domain, target, &bytes[from..from + length])?;
            }
        }
    }
    word(file, 24, 8)
}

fn draw(domain: Ref<Domain>, page: u64, rights: u64) -> Result<(), &'static str> {
    mapping::check_flexpage(page, 0).map_err(|_| "a segment lies outside the user range")?;
    match mapping::draw(domain.account, domain, page, rights) {
        // The link script gives each segment pages of its own.
        Err(abi::Error::Occupied) => Err("two segments share a page"),
        other => other.map_err(reason),
    }
}

fn write(domain: Ref<Domain>, address: u64, bytes: &[u8]) -> Result<(), &'static str> {
    let slot = space::find(domain, address).ok_or("a segment is not mapped")?;
    let target = frames::address_of(slot.frame()) + (address as usize & (FRAME - 1));
    // SAFETY: the caller writes within one page, whose frame was just drawn: nothing else uses it, and it is in the direct
    // map.
    unsafe { core::ptr::copy_nonoverlapping(bytes.as_ptr(), target as *mut u8, bytes.len()) };
    Ok(())
}

fn put(domain: Ref<Domain>, index: usize, content: Content) -> Result<(), &'static str> {
    let (place, _) = domain.vacancy(index).map_err(reason)?;
    place.fill(content, None).map_err(reason)
}

#[unsafe(link_section = ".init")]
#[inline(never)]
fn start(
    name: &[u8],
    file: &[u8],
    account: Ref<Account>,
    argument: u64,
    stack_pages: u64,
) -> Result<(Ref<Domain>, Ref<Thread>), &'static str> {
    let mut padded = [0; 16];
    padded[..name.len()].copy_from_slice(name);
    let domain = domain::new(account, abi::op::DOMAIN_TRUSTED, padded, None, TRUSTED).map_err(reason)?;
    let entry = load(domain, file)?;
    for page in 1..=stack_pages {
        draw(domain, MAIN_STACK_TOP - page * FRAME as u64, MAP_READ | MAP_WRITE)?;
    }
    put(domain, layout::DOMAIN, Content::original(domain))?;
    put(domain, layout::ACCOUNT, Content::original(account))?;
    domain.entry.set(domain.place(layout::DOMAIN).ok());
    let slice = timer::from_microseconds(10_000);
    let thread = thread::new(domain, entry, MAIN_STACK_TOP, argument, PRIORITY, slice).map_err(reason)?;
    Ok((domain, thread))
}

/// Starts both components and gives them their first entries. Gives the thread that runs first, that of `sigma0`; the one of
/// `roottask` follows it.
#[unsafe(link_section = ".init")]
pub fn start_components(held: Held, info: &BootInfo) -> Result<Ref<Thread>, &'static str> {
    // SAFETY: the archive lies in the direct map, its frames are reserved, and nothing ever writes them.
    let archive: &'static [u8] = unsafe {
        core::slice::from_raw_parts((DIRECT + info.archive.start as usize) as *const u8, info.archive.bytes as usize)
    };
    let archive = cpio::Archive::new(archive);
    let file = |path: &str| match archive.find(path) {
        Ok(Some(entry)) => Ok(entry.data),
        Ok(None) => Err("the boot archive lacks a file that the nucleus needs"),
        Err(_) => Err("the boot archive is malformed"),
    };
    panic::set_symbols(file(SYMBOLS_PATH).unwrap_or(&[]));
    let root = account::root(held);
    let account = root.new_child(SIGMA0_FRAMES, 0).map_err(reason)?;
    let (sigma0, first) = start(b"sigma0", file(SIGMA0_PATH)?, account, 0, STACK_PAGES[0])?;
    put(sigma0, layout::SPECIAL, Content::plain(Kind::Memory, 0))?;
    let file = file(ROOTTASK_PATH)?;
    let (roottask, second) = start(b"roottask", file, root, info.archive.bytes, STACK_PAGES[1])?;
    put(roottask, layout::SPECIAL, Content::plain(Kind::Machine, 0))?;
    let source = sigma0.place(layout::DOMAIN).map_err(reason)?;
    let (place, _) = roottask.vacancy(layout::FIRST_FREE).map_err(reason)?;
    portals::copy_entry(source, rights::ALL, place).map_err(reason)?;
    space::show_archive(roottask).map_err(reason)?;
    ready::set_boot_successor(second);
    Ok(first)
}
