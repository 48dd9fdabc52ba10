//! The cost of the boot, and the memory that stays in use.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use runtime::abi::{PAGE_BYTES, info};
use tool::inspect;

use crate::measure::Row;
use crate::peer;

/// Ticks from reset to the moment when the shell was about to print its first prompt (or to run the commands
/// that it was given instead). The shell notes it in the log; the counter starts at reset.
pub fn boot() -> Result<Row, String> {
    noted("shell: ready after ", " ticks").map(Row::instructions)
}

/// The longest non-preemptible section since boot. Only a nucleus built to measure it knows.
pub fn interrupts_off() -> Result<Row, String> {
    let counters = inspect::counters().map_err(|error| error.to_string())?;
    let find = |name| counters.iter().find(|(known, _)| *known == name).map_or(0, |(_, count)| *count);
    match find("longest non-preemptible section") {
        0 => Err("this nucleus was not built to measure it".into()),
        longest => Ok(Row::instructions(longest).with("caused_by", find("caused by"))),
    }
}

/// Bytes that stay in memory of the nucleus and the components without which nothing runs.
///
/// Frames that the nucleus keeps since boot (its image, the frame records, page tables of the direct map),
/// without the boot archive: its pages are the contents of files. And all frames charged to the
/// accounts of these components: their pages, page tables, portal tables and other objects.
pub fn resident() -> Result<Row, String> {
    const COMPONENTS: [&str; 5] = ["sigma0", "roottask", "sched", "names", "console"];
    let text = |error: inspect::Refusal| error.to_string();
    let page = PAGE_BYTES as u64;
    let frames = inspect::frames().map_err(text)?;
    let archive = noted("roottask: boot archive of ", " bytes")?.div_ceil(page);
    let nucleus = frames.boot.checked_sub(archive).ok_or("the archive is larger than what the nucleus keeps")?;
    let domains: Vec<(String, info::Domain)> = inspect::domains().map_err(text)?;
    let mut sum = nucleus;
    let mut row = Vec::new();
    for name in COMPONENTS {
        let own: u64 = domains.iter().filter(|(known, _)| known == name).map(|(_, domain)| own(domain, &domains)).sum();
        if own == 0 {
            return Err(alloc::format!("no component {name}"));
        }
        row.push((name, own * page));
        sum += own;
    }
    let row = row
        .into_iter()
        .fold(Row::bytes(sum * page).with("nucleus", nucleus * page), |row, (name, bytes)| row.with(name, bytes));
    Ok(row)
}

/// Bytes that stay in memory of the whole system: everything that is charged, with what the nucleus keeps since boot
/// and the boot archive, without this program.
pub fn system() -> Result<Row, String> {
    let text = |error: inspect::Refusal| error.to_string();
    let page = PAGE_BYTES as u64;
    let frames = inspect::frames().map_err(text)?;
    let archive = noted("roottask: boot archive of ", " bytes")?.div_ceil(page);
    let domains: Vec<(String, info::Domain)> = inspect::domains().map_err(text)?;
    let this: u64 = domains.iter().filter(|(name, _)| name == "bench").map(|(_, domain)| domain.charged).sum();
    let rest = frames.charged.checked_sub(this).ok_or("less is charged than this program has")?;
    Ok(Row::bytes(rest * page).with("archive", archive * page))
}

/// Bytes that a process takes that does nothing: of the whole machine, and of its own account.
pub fn process() -> Result<Row, String> {
    const PROCESSES: u64 = 16;
    /// Frames of the account of each.
    const FRAMES: u64 = 40;
    let text = |error: inspect::Refusal| error.to_string();
    let charged = || inspect::frames().map(|frames| frames.charged).map_err(text);
    let sleep = || peer::spawn(&["/bin/sleep", "1000"], FRAMES);
    // The first process makes servers allocate what they keep.
    sleep()?.end().map_err(text)?;
    let before = charged()?;
    let made = (0..PROCESSES).map(|_| sleep()).collect::<Result<Vec<_>, _>>()?;
    // They have come to rest.
    runtime::thread::sleep(100_000_000).map_err(|error| error.to_string())?;
    let all = charged()? - before;
    let domains = inspect::domains().map_err(text)?;
    let own: u64 = domains.iter().filter(|(name, _)| name == "sleep").map(|(_, domain)| domain.charged).sum();
    for child in made {
        child.end().map_err(text)?;
    }
    let bytes = |frames: u64| frames * PAGE_BYTES as u64 / PROCESSES;
    Ok(Row::bytes(bytes(all)).of(PROCESSES).with("account", bytes(own)))
}

/// Frames charged to a domain's account, without those passed on to the accounts of domains that it made.
fn own(domain: &info::Domain, domains: &[(String, info::Domain)]) -> u64 {
    const ROOT: u64 = 2;
    // The nucleus made sigma0's account out of roottask's.
    let is_child = |other: &info::Domain| {
        other.number != domain.number && (other.parent == domain.number || domain.number == ROOT && other.parent == 0)
    };
    let passed: u64 = domains.iter().filter(|(_, other)| is_child(other)).map(|(_, other)| other.limit).sum();
    // The account of the vault belongs to no domain: its limit is a little more than the pages of files.
    let vault = match domain.number {
        ROOT => runtime::stream::FILE_SYSTEM.room().map_or(0, |(_, pages)| pages + pages.div_ceil(31)),
        _ => 0,
    };
    domain.charged.saturating_sub(passed + vault)
}

/// The number that stands between two texts in the kernel log.
fn noted(before: &str, after: &str) -> Result<u64, String> {
    let mut log = Vec::new();
    inspect::log(info::LOG, 0, |bytes| log.extend_from_slice(bytes)).map_err(|error| error.to_string())?;
    let log = String::from_utf8_lossy(&log);
    let number = log.lines().find_map(|line| {
        let (_, rest) = line.split_once(before)?;
        rest.split_once(after)?.0.parse().ok()
    });
    number.ok_or_else(|| alloc::format!("the log does not say `{before}`"))
}
