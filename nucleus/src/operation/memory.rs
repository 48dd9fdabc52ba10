//! Operations on memory.

use super::operands::{Operands, have_clear};
use crate::control::flows;
use crate::memory::mapping::{Shown, check_flexpage, check_rights, draw as draw_page, map_page, unmap_page};
use crate::memory::space;
use crate::objects::{Domain, Outcome, PLAIN, STEPS, Stop};
use crate::pointer::Ref;
use crate::report::forbidden::{Against, refuse};
use abi::rights::{self, Kind, MAP_EXECUTE, MAP_GRANT, MAP_READ, MAP_WRITE, UNMAP_SELF};
use abi::{Error, PAGE_BYTES};

const PAGE: u64 = PAGE_BYTES as u64;

/// Pages mapped between two preemption points.
const PAGES_MAPPED: u64 = 1;

/// Pages of the running operation completed before its last preemption point.
fn progress(operands: &Operands, pages: u64) -> u64 {
    operands.0.progress.get().min(pages)
}

fn keep_progress(operands: &Operands, done: u64) -> Stop {
    let activation = operands.0;
    activation.progress.set(done);
    Stop::Repeat
}

pub fn map(operands: &Operands) -> Outcome {
    // For page tables of the destination.
    have_clear(operands, 3);
    let to = operands.domain(0, rights::WRITE)?;
    if to == operands.own() {
        return Err(Error::SameDomain.into());
    }
    let (source, destination, order) = (operands.word(1), operands.word(2), operands.word(3));
    let pages = check_flexpage(source, order)?;
    check_flexpage(destination, order)?;
    let kept = check_rights(operands.word(4))?;
    let grant = operands.word(4) & MAP_GRANT != 0;
    let first = progress(operands, pages);
    for page in first..pages {
        if page == first + PAGES_MAPPED {
            return Err(keep_progress(operands, page));
        }
        let judge = |shown| judge_page(operands, to, kept, grant, shown);
        map_page([operands.own(), to], [source, destination].map(|first| first + page * PAGE), kept, grant, judge)?;
    }
    Ok(0)
}

/// Judges the sharing of a page: each of the two domains must be allowed to read memory of its label, and to write it if it
/// may write the page. A page that no other domain has may be granted without a check.
fn judge_page(operands: &Operands, to: Ref<Domain>, rights: u64, grant: bool, page: Shown) -> Result<(), Stop> {
    let own = operands.own();
    let is_plain = page.label == PLAIN && !own.is_barred.get() && !to.is_barred.get();
    if is_plain || grant && page.is_alone {
        return Ok(());
    }
    if !flows::may_both_share([own, to], [page.is_writable, rights & MAP_WRITE != 0], page.label)? {
        return Err(refuse(own, Against::Domain(to)).into());
    }
    if page.label != PLAIN {
        own.shares_labelled.set(true);
        to.shares_labelled.set(true);
    }
    Ok(())
}

pub fn unmap(operands: &Operands) -> Outcome {
    let domain = operands.domain(0, rights::CONTROL)?;
    let (address, order, taken) = (operands.word(1), operands.word(2), operands.word(3));
    let pages = check_flexpage(address, order)?;
    if taken & !(MAP_READ | MAP_WRITE | MAP_EXECUTE | UNMAP_SELF) != 0 || taken & 7 == 0 {
        return Err(Error::BadArgument.into());
    }
    let mut steps = STEPS;
    let mut page = progress(operands, pages);
    loop {
        page += space::unmapped_pages(domain, address + page * PAGE);
        if page >= pages {
            return Ok(0);
        }
        let may_go_on = steps > 0 && {
            steps -= 1;
            unmap_page(operands.0, domain, address + page * PAGE, taken, &mut steps)
        };
        if !may_go_on {
            return Err(keep_progress(operands, page));
        }
        page += 1;
    }
}

pub fn draw(operands: &Operands) -> Outcome {
    have_clear(operands, 4);
    operands.entry(0, Kind::Memory, rights::USE)?;
    let account = match operands.domain(1, rights::WRITE) {
        Ok(payer) => payer.account,
        Err(Stop::Refused(Error::WrongKind)) => operands.account(1, rights::WRITE)?,
        Err(stop) => return Err(stop),
    };
    let domain = operands.domain(2, rights::WRITE)?;
    let (address, order) = (operands.word(3), operands.word(4));
    let kept = check_rights(operands.word(5))?;
    let pages = check_flexpage(address, order)?;
    let first = progress(operands, pages);
    for page in first..pages {
        if page > first {
            return Err(keep_progress(operands, page));
        }
        draw_page(account, domain, address + page * PAGE, kept)?;
    }
    Ok(0)
}
