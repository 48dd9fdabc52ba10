//! From an executable of the boot archive to a domain with a first thread.

use crate::{compartments, memory, room};
use abi::PAGE_BYTES;
use abi::layout::{ARCHIVE, MAIN_STACK_TOP, STARTUP_PAGE};
use abi::rights::{MAP_READ, MAP_WRITE};
use alloc::string::{String, ToString};
use loader::Program;
use loader::startup::{Contents, write};
use runtime::Entry;
use runtime::arch::MACHINE;
use system::Component;

const PAGE: u64 = PAGE_BYTES as u64;

/// Loads a component's executable into its domain, of what it writes at most so many pages; gives what its file says.
pub fn segments(component: &Component, ticket: u64, domain: Entry, most: u64) -> Result<Program, String> {
    let file = memory::file(&alloc::format!("boot/{}", component.binary))?;
    let program = Program::parse(file, file.len() as u64, MACHINE).map_err(|error| error.to_string())?;
    for segment in program.segments() {
        let pages = if segment.rights & MAP_WRITE != 0 { segment.pages.min(most) } else { segment.pages };
        for page in 0..pages {
            let shared = segment.shared(page).and_then(|start| file.get(start as usize));
            if let Some(byte) = shared.filter(|byte| (*byte as *const u8 as u64).is_multiple_of(PAGE)) {
                memory::give_archive_page(domain, byte, segment.address + page * PAGE, segment.rights)?;
                continue;
            }
            memory::give_page(ticket, domain, segment.address + page * PAGE, segment.rights, |bytes| {
                if let Some(contents) = segment.contents(page)
                    && let Some(source) = file.get(contents.file.start as usize..contents.file.end as usize)
                    && let Some(target) = bytes.get_mut(contents.at..contents.at + source.len())
                {
                    target.copy_from_slice(source);
                }
            })?;
        }
    }
    Ok(program)
}

/// Writes the startup page.
pub fn startup(component: &Component<'static>, ticket: u64, domain: Entry, schedule: u64) -> Result<(), String> {
    let archive = alloc::format!("ARCHIVE={ARCHIVE},{}", memory::archive().len());
    let frames = alloc::format!("FRAMES={}", room::account(component));
    let threads = alloc::format!("THREADS={}", room::threads_of(component));
    let compartments = compartments::named(component);
    let contents =
        Contents { schedule, name: component.name, streams: ["null", "log", "log"], compartments: &compartments };
    let mut outcome = Ok(0);
    memory::give_page(ticket, domain, STARTUP_PAGE, MAP_READ, |page| {
        let arguments = core::iter::once(component.name).chain(component.arguments());
        let portals = component.portals().map(|portal| (portal.service, portal.index));
        outcome = write(page, &contents, arguments, [archive.as_str(), &frames, &threads], portals);
    })?;
    outcome.map(drop).map_err(|error| error.to_string())
}

/// Maps the first page of the main stack, for a component that may not fault.
pub fn stack(ticket: u64, domain: Entry) -> Result<(), String> {
    memory::give_page(ticket, domain, MAIN_STACK_TOP - PAGE, MAP_READ | MAP_WRITE, |_| ())
}
