//! The scripts that run in the small domains of a storm.
//!
//! A script is a word of 4-bit actions, taken from the lowest on. A minion's service runs the script in word 0 of a
//! call and answers; a minion's thread runs one script after the other. The code is this program's, mapped at the
//! same addresses; it touches its stack (one page), the counts ([`crate::counts`]) and nothing else, so it works
//! without heap, data and message area.

use runtime::abi::{Control, NEVER, expect, layout, op, rights, window};
use runtime::arch;

use crate::counts::{COUNTS, Counts};
use fuzzer::histogram;
use tool::random::Random;

/// Indices of a minion's table.
pub const LINKS: [u64; 2] = [96, 97];
/// A semaphore that all minions share.
pub const SEMAPHORE: u64 = 98;
/// The original of its service.
pub const SERVICE: u64 = 99;
/// Another minion's domain, to which it may map.
pub const NEXT: u64 = 100;
/// Where its activations receive entries: indices from here on, which some share.
pub const RECEIVE: u64 = 102;
/// How many indices these are.
pub const RECEIVERS: u64 = 8;

/// Pages that minions map to each other.
pub const WINDOW: u64 = 0x5000_0000;
/// How many.
pub const WINDOW_PAGES: u64 = 32;

/// Actions of one call at most.
const ACTIONS: usize = 4;

#[inline(always)]
fn call(row: usize, index: u64, words: [u64; 5], control: u64) -> u64 {
    // SAFETY: no operation that is used here touches this stack.
    let (status, ..) = unsafe { arch::call(index as usize, words, Control(control)) };
    COUNTS.count(row, status);
    status
}

#[inline(always)]
fn operation(index: usize, words: [u64; 5], word5: u64) -> u64 {
    call(index, index as u64, words, word5)
}

#[inline(always)]
fn clock() -> u64 {
    // SAFETY: touches no memory.
    unsafe { arch::call(op::CLOCK, [0; 5], Control(0)) }.1[0]
}

/// Runs the script and answers, whatever the answer may bring along. [`crate::arch::service_entry`] comes here.
pub extern "C" fn serve(script: u64, seed: u64, depth: u64, _badge: u64, _: u64, word4: u64, control: u64) -> ! {
    let mut random = Random(seed ^ clock());
    if control & Control::WINDOW != 0 {
        look_through(word4, depth, &mut random);
    }
    if random.once_in(8) {
        operation(op::ACTIVATION_SET, [op::ACTIVATION_TEAR, any_page(&mut random), 0, 0, 0], 0);
    }
    let received = Control(control).delegated() as u64;
    if received != 0 && random.once_in(2) {
        operation(op::ENTRY_REMOVE, [0, received, 0, 0, 0], 0);
    }
    let mut answer = run(script, depth, &mut random);
    // A fault that comes again brings the same words, and an address of a page is a script without actions: in the end the
    // answer is that the fault is none to go on after. Else two minions would be busy with it until somebody removes one.
    if script & 15 == 0 && random.once_in(16) {
        answer = 1;
    }
    let control = match random.below(12) {
        0 => Control(0).delegate(SEMAPHORE as usize, rights::ALL),
        1 => Control(0).delegate(SERVICE as usize, rights::ALL).with(Control::MINT),
        2 => Control::bytes(random.below(4097) as usize),
        3 => Control(random.any()),
        _ => Control(0),
    };
    // Behind a portal that tears pages away word 0 names the page that goes back.
    for (word, control) in [(answer, control), (any_torn(&mut random), Control(0)), (0, Control(0))] {
        // The caller counts a return that arrives.
        call(layout::RETURN, layout::RETURN as u64, [word, script, seed, depth, 0], control.0);
    }
    end()
}

/// Runs scripts for ever. [`crate::arch::thread_entry`] comes here.
pub extern "C" fn live(seed: u64) -> ! {
    let mut random = Random(seed);
    loop {
        let depth = if random.once_in(16) { 40 } else { 0 };
        let script = random.any();
        run(script, depth, &mut random);
        let deadline = clock() + random.below(200_000);
        call(histogram::P, SEMAPHORE, [op::P, deadline, 0, 0, 0], 0);
        if random.once_in(64) {
            end()
        }
    }
}

fn end() -> ! {
    // It never comes back.
    COUNTS.count(op::EXIT, 0);
    loop {
        operation(op::EXIT, [0; 5], 0);
    }
}

/// Runs a script; 0, or the last error.
fn run(mut script: u64, depth: u64, random: &mut Random) -> u64 {
    let mut answer = 0;
    for _ in 0..ACTIONS {
        let action = script & 15;
        let again = if depth > 0 { script } else { script >> 4 };
        script >>= 4;
        let status = match action {
            0 => break,
            1 => operation(op::YIELD, [0; 5], 0),
            2 => link(random, 0, [again, 0, depth.saturating_sub(1), 0, 0]),
            3 => {
                // One of somebody else's, mostly.
                let foreign = layout::WINDOWS + random.below(8) * window::SLOT_BYTES as u64 + 1;
                link(random, Control::WINDOW, [again, 0, 0, 0, foreign]);
                let window = any_window(random);
                link(random, Control::WINDOW, [again, 0, depth.saturating_sub(1), 0, window])
            }
            4 => {
                let bytes = random.below(4097);
                link(random, Control::NO_WAIT | bytes, [again, 0, 0, 0, 0])
            }
            5 => {
                let deadline = clock() + random.below(40_000);
                link(random, Control::DEADLINE, [again, 0, 0, 0, deadline])
            }
            6 => {
                let right = random.below(32) as u8 | rights::COPY;
                link(random, Control(0).delegate(SEMAPHORE as usize, right).0, [again, 0, 0, 0, 0])
            }
            7 => link(random, Control(Control::MINT).delegate(SERVICE as usize, 0).0, [again, 0, 0, 0, 3]),
            8 => {
                let deadline = clock() + random.below(50_000);
                call(histogram::P, SEMAPHORE, [op::P, deadline, 0, 0, 0], 0)
            }
            9 if random.once_in(4) => {
                let holder = random.below(8);
                call(histogram::P, SEMAPHORE, [op::P, NEVER, holder, 0, 0], 0)
            }
            9 | 10 => call(histogram::V, SEMAPHORE, [op::V, 0, 0, 0, 0], 0),
            11 if random.once_in(2) => tear(random),
            11 => pass_on(random),
            12 => {
                let (page, self_too) = (random.below(WINDOW_PAGES), random.one(&[0, rights::UNMAP_SELF]));
                let taken = random.one(&[rights::MAP_READ, rights::MAP_WRITE]);
                operation(op::UNMAP, [0, WINDOW + page * 0x1000, random.below(3), taken | self_too, 0], 0)
            }
            13 => {
                let until = clock() + random.below(5_000);
                while clock() < until {}
                0
            }
            14 => {
                let address = any_page(random) as *mut u64;
                // SAFETY: nothing but faults can come of it: nobody relies on what stands there.
                unsafe {
                    address.read_volatile();
                    if random.once_in(2) {
                        address.write_volatile(depth);
                    }
                }
                0
            }
            _ => last_resort(random),
        };
        if status != 0 {
            answer = status;
        }
    }
    answer
}

/// A page that minions map to each other.
fn any_page(random: &mut Random) -> u64 {
    WINDOW + random.below(WINDOW_PAGES) * 0x1000
}

/// The word of a page that is torn away: mostly one that can be, or none or two; or any word.
fn any_torn(random: &mut Random) -> u64 {
    let (page, any) = (any_page(random) | random.below(3), random.any());
    random.one(&[page, page, page, any])
}

/// Calls another minion and tears a page away to it; takes the one that comes back.
fn tear(random: &mut Random) -> u64 {
    if random.once_in(2) {
        operation(op::ACTIVATION_SET, [op::ACTIVATION_TEAR, any_page(random), 0, 0, 0], 0);
    }
    let torn = any_torn(random);
    let page = torn & !0xfff;
    if (WINDOW..WINDOW + WINDOW_PAGES * 0x1000).contains(&page) && random.once_in(2) {
        // The pager brings the page if it is not there: often one that nobody else has.
        // SAFETY: nothing but faults can come of it: nobody relies on what stands there.
        unsafe { (page as *const u64).read_volatile() };
    }
    let (to, seed) = (random.one(&LINKS), random.any());
    let expected = Control::expecting(expect::words(0b00110) | expect::PAGES);
    let status = call(histogram::OTHER, to, [0, torn, seed, 0, 0], expected.0);
    if status == 0 {
        COUNTS.count(layout::RETURN, 0);
    }
    status
}

/// Mostly the word of a window that can be opened; or of one of somebody else's, or any word.
fn any_window(random: &mut Random) -> u64 {
    let (pages, writable) = (random.below(17) + 1, random.one(&[0, window::WRITABLE]));
    let address = match random.below(16) {
        0 => return random.any(),
        // Pages of the lowest GiB, one of which portal code lends by itself.
        1..5 => return Counts::pages().start | 1,
        5..8 => layout::WINDOWS + random.below(8) * window::SLOT_BYTES as u64,
        _ => any_page(random),
    };
    address | writable | if random.once_in(2) { 1 } else { pages }
}

/// Reads and writes what a window shows; rarely what it does not.
fn look_through(word: u64, depth: u64, random: &mut Random) {
    let is_of_counts = word & window::FLAGS == 1;
    let page = random.below(word & window::PAGES) + u64::from(random.once_in(256));
    let address = ((word & !0xfff) + page * 0x1000) as *mut u64;
    // SAFETY: nothing but faults can come of it: nobody relies on what stands there.
    unsafe {
        address.read_volatile();
        if !is_of_counts && (word & window::WRITABLE != 0 || random.once_in(256)) {
            address.write_volatile(depth);
        }
    }
    if random.once_in(4) {
        // It is handed on, as it is or wider.
        let wider = if random.once_in(8) { window::WRITABLE } else { 0 };
        link(random, Control::WINDOW, [2, 0, depth.saturating_sub(1), 0, word | wider]);
    } else if random.once_in(2) {
        link(random, Control::WINDOW, [2, 0, 0, 0, word ^ window::SLOT_BYTES as u64]);
    }
}

/// Calls another minion.
#[inline(always)]
fn link(random: &mut Random, control: u64, mut words: [u64; 5]) -> u64 {
    words[1] = random.any();
    let to = if words[2] > 0 { LINKS[0] } else { random.one(&LINKS) };
    let status = call(histogram::OTHER, to, words, control);
    if status == 0 {
        COUNTS.count(layout::RETURN, 0);
    }
    status
}

/// Maps pages of the window to another minion, or lets it have them.
fn pass_on(random: &mut Random) -> u64 {
    let order = random.below(3);
    let [from, to] = [0, 1].map(|_| WINDOW + (random.below(WINDOW_PAGES) & !((1 << order) - 1)) * 0x1000);
    let given = random.one(&[rights::MAP_READ, rights::MAP_READ | rights::MAP_WRITE]);
    let grant = if random.once_in(4) { rights::MAP_GRANT } else { 0 };
    operation(op::MAP, [NEXT, from, to, order, given | grant], 0)
}

/// Does something that hurts the minion itself; rarely.
fn last_resort(random: &mut Random) -> u64 {
    match random.below(48) {
        0 => operation(op::DOMAIN_KILL, [0, 3, 0, 0, 0], 0),
        1 => end(),
        2 => {
            // SAFETY: never comes back: nothing is mapped there.
            unsafe { (0x4000 as *const u64).read_volatile() };
            0
        }
        3 => operation(op::DOMAIN_KILL, [NEXT, 4, 0, 0, 0], 0),
        4..8 => operation(op::ACTIVATION_NEW, [0, 0, 0, 0, 0], 0),
        8..16 => operation(op::ENTRY_REMOVE, [0, RECEIVE + random.below(RECEIVERS), 0, 0, 0], 0),
        16..20 => {
            operation(op::ACTIVATION_SET, [op::ACTIVATION_RECEIVE, RECEIVE + random.below(RECEIVERS), 0, 0, 0], 0)
        }
        20..24 => operation(op::ACTIVATION_SET, [op::ACTIVATION_THREAD_POINTER, WINDOW, 0, 0, 0], 0),
        24..28 => operation(op::ENTRY_COPY, [0, SEMAPHORE, NEXT, RECEIVE + random.below(10), rights::ALL.into()], 0),
        28..36 => operation(op::THREAD_SCHEDULE, [0, random.below(16) | 100 << 8, 0, 0, 0], 0),
        36..40 => operation(op::ENTRY_REVOKE, [0, SERVICE, 0, 0, 0], 0),
        40..44 => operation(op::MAP, [0, WINDOW, WINDOW, 0, rights::MAP_READ], 0),
        _ => 0,
    }
}
