//! `top`: the current activity of each domain.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering};

use runtime::abi::Error;
use runtime::abi::info::{Cpu, Domain, Frames, Thread};
use runtime::{Entry, op, stream, thread};
use status_json::cpus;
use text::keys::{ASK_SIZE, Key, Keys};
use tool::compartments::give_up_privileges;
use tool::table::{Side, Table, kibibytes, seconds};
use tool::terminal::Terminal;
use tool::{Arguments, USAGE, inspect, print, println};

/// The text of `--help`.
pub const HELP: &str = "\
usage: top [-d SECONDS] [-n COUNT]

Shows again and again what each domain did in the last seconds, and what it has:
those that worked most come first.

  -d SECONDS  looks so far apart (1)
  -n COUNT    looks so many times, and writes all that there is each time; it
              does so without an end if it does not write to a terminal

  DOMAIN   its number; kill takes it
  CPU      part of the time of one CPU that the threads that started in it had;
           what servers do in their calls counts
  MEMORY   charged to its account
  CALLS    portal calls that it made, in each second
  THREADS  that started in it

Keys: q leaves; c, m, l: most CPU, memory, calls first.
";

const SECOND: u64 = 1_000_000_000;
/// More would not be a time that somebody waits.
const MAX_SECONDS: u64 = 3600;
/// Lines of a terminal that does not say how many it has.
const USUAL_ROWS: usize = 24;

/// Lines of the terminal.
static ROWS: AtomicUsize = AtomicUsize::new(USUAL_ROWS);
/// The key that says what comes first.
static FIRST: AtomicU8 = AtomicU8::new(b'c');
/// The person wants to leave.
static LEAVES: AtomicBool = AtomicBool::new(false);

/// The state at an instant.
struct Reading {
    time: u64,
    domains: Vec<(String, Domain)>,
    threads: Vec<Thread>,
    cpus: Vec<Cpu>,
    frames: Frames,
}

fn reading() -> Result<Reading, inspect::Refusal> {
    Ok(Reading {
        time: op::clock(),
        domains: inspect::domains()?,
        threads: inspect::threads()?,
        cpus: inspect::cpus()?,
        frames: inspect::frames()?,
    })
}

/// The program.
pub fn main(mut arguments: Arguments) -> u8 {
    let (Ok(pause), Ok(count)) = (arguments.number("-d"), arguments.number("-n")) else { return USAGE };
    if !arguments.none() {
        return USAGE;
    }
    let pause = match pause.unwrap_or(1) {
        pause @ 1..=MAX_SECONDS => pause * SECOND,
        _ => return arguments.wrong("SECONDS is from 1 to 3600"),
    };
    if count == Some(0) {
        return arguments.wrong("COUNT is at least 1");
    }
    let terminal = if count.is_none() { Terminal::open() } else { None };
    let is_live = terminal.is_some();
    let woken = match op::semaphore_new(Entry::ACCOUNT, 0) {
        Ok(semaphore) => semaphore,
        Err(error) => return arguments.fail("keys", error),
    };
    if let Some(terminal) = terminal
        && let Err(error) = thread::spawn(move || watch(&terminal, woken))
    {
        return arguments.fail("keys", error);
    }
    if is_live {
        let _ = stream::write(&[b"\x1b[2J", ASK_SIZE].concat());
    }
    let mut before = match reading() {
        Ok(reading) => reading,
        Err(error) => return arguments.fail("domains", error),
    };
    let mut left = count.unwrap_or(u64::MAX);
    while left > 0 {
        let _ = stream::STDOUT.lock().flush();
        // A key comes before the time is over: the interval shown is shorter then.
        match op::p(woken, op::clock() + pause) {
            Ok(()) | Err(Error::Timeout) => {}
            Err(error) => return arguments.fail("keys", error),
        }
        if LEAVES.load(Ordering::Relaxed) {
            println!();
            return 0;
        }
        let now = match reading() {
            Ok(reading) => reading,
            Err(error) => return arguments.fail("domains", error),
        };
        // The last one needs no more, and may lead to a file.
        if left == 1 {
            give_up_privileges();
        }
        let lines = lines(&before, &now);
        if is_live {
            draw(&lines)
        } else {
            lines.iter().for_each(|line| println!("{line}"))
        }
        left -= 1;
        if !is_live && left > 0 {
            println!();
        }
        before = now;
    }
    0
}

/// Takes keys, until there are none.
fn watch(terminal: &Terminal, woken: Entry) {
    let mut keys = Keys::default();
    while let Ok(typed) = terminal.read() {
        for key in typed.into_iter().filter_map(|byte| keys.feed(byte)) {
            match key {
                Key::Character('q' | 'Q') => LEAVES.store(true, Ordering::Relaxed),
                Key::Character(first @ ('c' | 'm' | 'l')) => FIRST.store(first as u8, Ordering::Relaxed),
                Key::Place(rows, _) => ROWS.store(rows.into(), Ordering::Relaxed),
                _ => continue,
            }
            let _ = op::v(woken);
        }
    }
}

/// Shows the lines for which the terminal has room.
fn draw(lines: &[String]) {
    let rows = ROWS.load(Ordering::Relaxed).max(2) - 1;
    print!("\x1b[H");
    lines.iter().take(rows).for_each(|line| print!("{line}\x1b[K\n"));
    print!("\x1b[J");
}

/// The activity of a domain.
struct Row<'r> {
    name: &'r str,
    domain: &'r Domain,
    /// Of the time of one CPU, in thousandths.
    load: u64,
    /// In each second.
    calls: u64,
}

fn lines(before: &Reading, now: &Reading) -> Vec<String> {
    let elapsed = (now.time - before.time).max(1);
    let part = |amount: u64, of: u64| (u128::from(amount) * u128::from(of) / u128::from(elapsed)) as u64;
    let used_before: BTreeMap<u64, u64> = before.threads.iter().map(|thread| (thread.number, thread.used)).collect();
    let mut used = BTreeMap::new();
    for thread in &now.threads {
        let was = used_before.get(&thread.number).copied().unwrap_or(0);
        *used.entry(thread.home).or_insert(0) += thread.used.saturating_sub(was);
    }
    let calls_before: BTreeMap<u64, u64> =
        before.domains.iter().map(|(_, domain)| (domain.number, domain.crossings)).collect();
    let mut rows: Vec<Row<'_>> = now
        .domains
        .iter()
        .map(|(name, domain)| {
            let calls = domain.crossings.saturating_sub(calls_before.get(&domain.number).copied().unwrap_or(0));
            let used = used.get(&domain.number).copied().unwrap_or(0);
            Row { name, domain, load: part(used, 1000), calls: part(calls, SECOND) }
        })
        .collect();
    let first = FIRST.load(Ordering::Relaxed);
    rows.sort_by_key(|row| {
        let most = [row.load, row.domain.charged, row.calls];
        let place = [b'c', b'm', b'l'].iter().position(|key| *key == first).unwrap_or(0);
        core::cmp::Reverse((most[place], most))
    });
    let mut table = Table::new(&[
        ("DOMAIN", Side::Right),
        ("CPU", Side::Right),
        ("MEMORY", Side::Right),
        ("CALLS", Side::Right),
        ("THREADS", Side::Right),
        ("NAME", Side::Left),
    ]);
    for row in rows {
        table.row([
            row.domain.number.to_string(),
            percent(row.load),
            kibibytes(row.domain.charged),
            row.calls.to_string(),
            row.domain.threads.to_string(),
            row.name.to_string(),
        ]);
    }
    let mut lines = Vec::from([summary(before, now, elapsed), String::new()]);
    lines.extend(table.lines());
    lines
}

/// The machine in one line.
fn summary(before: &Reading, now: &Reading, elapsed: u64) -> String {
    let loads = now.cpus.iter().filter_map(|cpu| {
        let was = before.cpus.iter().find(|was| was.number == cpu.number);
        cpus::load(was, cpu, elapsed)
    });
    let (count, sum) = loads.fold((0, 0), |(count, sum), load| (count + 1, sum + load));
    format!(
        "up {}, {} domains, {} threads, {} of {count} CPUs, memory {} of {}",
        seconds(now.time),
        now.domains.len(),
        now.threads.len(),
        percent(sum),
        kibibytes(now.frames.charged),
        kibibytes(now.frames.total),
    )
}

/// Thousandths as percent.
fn percent(thousandths: u64) -> String {
    format!("{}.{} %", thousandths / 10, thousandths % 10)
}
