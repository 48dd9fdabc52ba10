//! System calls, calls, semaphores, switches.

use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;
use core::hint::black_box;

use idl::Delegate;
use runtime::abi::layout::HEAP_END;
use runtime::abi::op::{ACTIVATION_TEAR, DOMAIN_FPU};
use runtime::abi::{Control, NEVER, PAGE_BYTES, rights};
use runtime::arch::ticks;
use runtime::connection::Direct;
use runtime::entry::{Entry, Owned};
use runtime::window::{self, Page};
use runtime::{message, op, server};

use crate::measure::{Row, average, dispatches, per_round, timed};
use crate::pages;
use crate::peer::{self, BlockClient, KeeperClient, PEER};

/// Rounds of a loop; one of them is 100 to 1,000 instructions.
const ROUNDS: u64 = 10_000;
/// Rounds before counting starts.
const WARM_UP: u64 = 100;
/// Bytes of a message.
const MESSAGE: usize = 64;

/// Ends the run because a measured call failed: there is no number then. A loop that calls this costs a compare and a
/// branch per round, as any caller's check of the status does.
#[cold]
#[inline(never)]
pub fn refused() -> ! {
    panic!("the nucleus refused what is measured")
}

/// The shortest kernel operation.
pub fn short_circuit() -> Result<Row, String> {
    let own = op::thread_id();
    let mut same = true;
    let value = average(ROUNDS, || same &= op::thread_id() == own);
    if same { Ok(Row::instructions(value).of(ROUNDS)) } else { Err("the thread's number changed".into()) }
}

/// A call of the peer's service of words, and its answer.
pub fn call_and_return() -> Result<Row, String> {
    peer::start()?;
    let portal = Owned::new(PEER.words().map_err(|error| error.to_string())?.into());
    let call = || match message::call(portal.entry(), [40, 2, 0, 0, 0], Control(0)) {
        Ok((words, control)) => (words, control),
        Err(_) => refused(),
    };
    if (0..WARM_UP).any(|_| call() != ([42, 0, 0, 0, 0], Control(0))) {
        return Err("a wrong answer".into());
    }
    let mut sum = 0;
    let value = average(ROUNDS, || sum += call().0[0]);
    if sum != 42 * ROUNDS {
        return Err("a wrong answer".into());
    }
    Ok(Row::instructions(value).of(ROUNDS))
}

/// A call of the peer's service behind portals of the specification `npciii>i`, and its answer.
pub fn short() -> Result<Row, String> {
    peer::start()?;
    let portal = Owned::new(PEER.short().map_err(|error| error.to_string())?.into());
    Ok(Row::instructions(calls_of(portal.entry())?).of(ROUNDS))
}

/// The same of a domain with floating point, and nothing but that service. Beside it: of such a domain without.
pub fn short_with_fpu() -> Result<Row, String> {
    let shape = server::shape("npciii>i").map_err(|error| error.to_string())?;
    let measure = |flags| {
        let [_domain, _service, portal] =
            pages::adder(flags, shape.entry(), peer::SHORT_BADGE).map_err(|error| error.to_string())?;
        calls_of(portal.entry())
    };
    Ok(Row::instructions(measure(DOMAIN_FPU)?).with("without", measure(0)?).of(2 * ROUNDS))
}

/// Instructions of a call by a portal of the specification `npciii>i` to a service that adds constant and words.
fn calls_of(portal: Entry) -> Result<u64, String> {
    let call = || message::call_short(portal, [1, 2, 3]).unwrap_or_else(|_| refused());
    let expected = peer::SHORT_BADGE + 1 + 2 + 3;
    if (0..WARM_UP).any(|_| call() != expected) {
        return Err("a wrong answer".into());
    }
    let mut sum = 0;
    let value = average(ROUNDS, || sum += call());
    if sum == expected * ROUNDS { Ok(value) } else { Err("a wrong answer".into()) }
}

/// A call with a window of a page, which the callee does not touch.
pub fn window() -> Result<Row, String> {
    with_window(0)
}

/// The same; the callee writes a word into the page.
pub fn window_written() -> Result<Row, String> {
    with_window(3)
}

/// A call of the peer's service behind portals of the specification `npcwii>i`; it writes `written` into the page, unless that is 0.
fn with_window(written: u64) -> Result<Row, String> {
    peer::start()?;
    let portal = Owned::new(PEER.window().map_err(|error| error.to_string())?.into());
    let mut page = [Page::ZERO];
    window::call_short(portal.entry(), &mut page[0], [2, written]).map_err(|error| error.to_string())?;
    let mut call = || window::call_short(portal.entry(), &mut page[0], [2, written]).unwrap_or_else(|_| refused());
    let expected = peer::SHORT_BADGE + 2 + written;
    if (0..WARM_UP).any(|_| call() != expected) {
        return Err("a wrong answer".into());
    }
    let mut sum = 0;
    let value = average(ROUNDS, || sum += call());
    if sum != expected * ROUNDS || page[0].0[..8] != written.to_le_bytes() {
        return Err("a wrong answer".into());
    }
    Ok(Row::instructions(value).of(ROUNDS))
}

/// Bytes from memory of ours to memory of the peer's, by messages: as many as it takes.
pub fn by_copy<const BYTES: usize>() -> Result<Row, String> {
    pass::<BYTES>(|keeper, pages| {
        // No part of them is a whole page, so the stub shows none.
        let bytes = &Page::bytes(pages)[8..];
        bytes[..BYTES]
            .chunks(PAGE_BYTES)
            .all(|part| KeeperClient(Direct(keeper)).keep(u64::MAX, part) == Ok(part.len()))
    })
}

/// The same by a window.
pub fn by_window<const BYTES: usize>() -> Result<Row, String> {
    pass::<BYTES>(|keeper, pages| {
        let shown = &pages[..BYTES.div_ceil(PAGE_BYTES)];
        window::call_reading(keeper, [KeeperClient::KEEP, BYTES as u64, 0, 0], shown) == Ok([0, BYTES as u64, 0, 0, 0])
    })
}

/// Where the page lies that is torn away, in this domain and in the peer's: no Rust object lies there.
const TORN: u64 = HEAP_END - (160 << 20);

/// Whole pages that are torn away, as many as take so many bytes, and come back. The server has them; it copies nothing.
pub fn by_tear<const BYTES: usize>() -> Result<Row, String> {
    torn(BYTES.div_ceil(PAGE_BYTES) as u64).map(|value| Row::instructions(value).of(ROUNDS / 10))
}

/// A page that is torn away, in a call or a return.
pub fn torn_page() -> Result<Row, String> {
    torn(1).map(|value| Row::instructions(value.div_ceil(2)).of(ROUNDS / 10))
}

/// Instructions of so many calls, each of which tears a page away and gets it back.
fn torn(count: u64) -> Result<u64, String> {
    peer::start()?;
    let portal = Owned::new(PEER.torn().map_err(|error| error.to_string())?.into());
    // The page behind keeps the page table, here and there.
    pages::touch(TORN, 2, PAGE_BYTES as u64);
    op::activation_set(ACTIVATION_TEAR, TORN).map_err(|error| error.to_string())?;
    let tear = |torn, place| pages::tear(portal.entry(), torn, place);
    if tear(0, TORN) != Ok(0) {
        return Err("the peer takes no pages".into());
    }
    let once = || (0..count).all(|_| tear(TORN | 1, 0) == Ok(TORN | 1));
    if !(0..WARM_UP).all(|_| once()) {
        return Err("another page came back".into());
    }
    let mut right = true;
    let value = average(ROUNDS / 10, || right &= once());
    if right { Ok(value) } else { Err("another page came back".into()) }
}

/// A portal to the peer that takes bytes, and pages of which so many bytes and more are to be passed. All sizes share this code.
#[inline(never)]
fn to_pass(bytes: usize) -> Result<(Owned, Vec<Page>), String> {
    peer::start()?;
    let keeper = Owned::new(PEER.keeper().map_err(|error| error.to_string())?.into());
    Ok((keeper, vec![Page([0x5a; PAGE_BYTES]); bytes / PAGE_BYTES + 1]))
}

fn pass<const BYTES: usize>(once: impl Fn(Entry, &[Page]) -> bool) -> Result<Row, String> {
    let (keeper, pages) = to_pass(BYTES)?;
    if !(0..WARM_UP).all(|_| once(keeper.entry(), &pages)) {
        return Err("a wrong answer".into());
    }
    let mut right = true;
    let value = average(ROUNDS / 10, || right &= once(keeper.entry(), black_box(&pages)));
    if right { Ok(Row::instructions(value).of(ROUNDS / 10)) } else { Err("a wrong answer".into()) }
}

/// P and V when nobody waits; the dearer of the two.
pub fn semaphore() -> Result<Row, String> {
    tokens(&new_semaphore()?)
}

/// The same of a semaphore that another domain has, too.
pub fn shared_semaphore() -> Result<Row, String> {
    peer::start()?;
    let semaphore = new_semaphore()?;
    PEER.take(0, Delegate::entry(semaphore.entry().0, rights::ALL)).map_err(|error| error.to_string())?;
    tokens(&semaphore)
}

fn tokens(semaphore: &Owned) -> Result<Row, String> {
    let v = average(ROUNDS, || op::v(semaphore.entry()).unwrap_or_else(|_| refused()));
    let p = average(ROUNDS, || op::p(semaphore.entry(), NEVER).unwrap_or_else(|_| refused()));
    if op::p(semaphore.entry(), 0).is_ok() {
        return Err("a wrong count".into());
    }
    Ok(Row::instructions(p.max(v)).with("p", p).with("v", v).of(2 * ROUNDS))
}

/// A semaphore of this program's.
pub fn new_semaphore() -> Result<Owned, String> {
    op::semaphore_new(Entry::OWN, 0).map(Owned::new).map_err(|error| error.to_string())
}

/// There and back: V for the peer, P for its answer.
pub fn ping_pong() -> Result<Row, String> {
    ping_pong_on(None)
}

/// The same, with a thread of the peer's that runs on this CPU only (`None`: on any): the peer makes sure of that.
pub fn ping_pong_on(cpu: Option<usize>) -> Result<Row, String> {
    let cpus = cpu.map_or(0, |cpu| 1 << cpu);
    peer::start()?;
    let (there, back) = (new_semaphore()?, new_semaphore()?);
    for (number, semaphore) in [&there, &back].into_iter().enumerate() {
        let delegate = Delegate::entry(semaphore.entry().0, rights::WRITE | rights::USE);
        PEER.take(number as u64, delegate).map_err(|error| error.to_string())?;
    }
    PEER.answer(ROUNDS + WARM_UP, cpus).map_err(|error| error.to_string())?;
    let round = || {
        op::v(there.entry()).unwrap_or_else(|_| refused());
        op::p(back.entry(), NEVER).unwrap_or_else(|_| refused());
    };
    (0..WARM_UP).for_each(|_| round());
    let (value, switches) = dispatches(|| average(ROUNDS, round))?;
    if switches < 2 * ROUNDS {
        return Err(alloc::format!("{switches} switches in {ROUNDS} rounds"));
    }
    Ok(Row::instructions(value).of(ROUNDS))
}

/// 64 bytes to the peer, and 64 back, as components send short structures.
pub fn message() -> Result<Row, String> {
    peer::start()?;
    let portal = Owned::new(PEER.block().map_err(|error| error.to_string())?.into());
    let peer = BlockClient(Direct(portal.entry()));
    let mut block = [0x5a; MESSAGE / 8];
    let mut turns = || {
        let answer = peer.turn(block).unwrap_or_else(|_| refused());
        let sent = core::mem::replace(&mut block, answer);
        answer[0] == !sent[0] && answer[1..] == sent[1..]
    };
    if !(0..WARM_UP).all(|_| turns()) {
        return Err("a wrong answer".into());
    }
    let value = average(ROUNDS, || block = peer.turn(block).unwrap_or_else(|_| refused()));
    // There were even numbers of turns.
    if block == [0x5a; MESSAGE / 8] { Ok(Row::instructions(value).of(ROUNDS)) } else { Err("a wrong answer".into()) }
}

/// A message of 64 bytes in the message area to the peer, and another one back, as components send bytes.
pub fn message_of_bytes() -> Result<Row, String> {
    peer::start()?;
    let (mut sent, mut back) = ([0x5a; MESSAGE], [0; MESSAGE]);
    let mut turns = || match PEER.turn(&sent, &mut back) {
        Ok(MESSAGE) => {
            sent[0] = !sent[0];
            back[0] == sent[0]
        }
        _ => false,
    };
    if !(0..WARM_UP).all(|_| turns()) {
        return Err("a wrong answer".into());
    }
    let mut right = true;
    let value = average(ROUNDS, || right &= turns());
    if right { Ok(Row::instructions(value).of(ROUNDS)) } else { Err("a wrong answer".into()) }
}

/// A page of bytes to the peer, which reads each word: without what its loop takes, which is measured here, where it is the same code.
pub fn page() -> Result<Row, String> {
    peer::start()?;
    // Two contents in turn: no read returns the value of the read before.
    let contents = [0x5a, 0xa5].map(|byte| vec![byte; PAGE_BYTES]);
    let sums = [&contents[0], &contents[1]].map(|bytes| peer::sum(bytes));
    let (mut round, mut right) = (0, true);
    let mut send = || {
        round ^= 1;
        right &= PEER.sum(&contents[round]) == Ok(sums[round]);
    };
    (0..WARM_UP).for_each(|_| send());
    let value = average(ROUNDS, &mut send);
    let start = ticks();
    for _ in 0..ROUNDS {
        black_box(peer::sum(black_box(&contents[0])));
    }
    let loops = per_round(ticks() - start, ROUNDS);
    let rest = value.checked_sub(loops).ok_or("the loop takes longer than the message")?;
    if right { Ok(Row::instructions(rest).with("loop", loops).of(ROUNDS)) } else { Err("a wrong answer".into()) }
}

/// The same by a window. The peer reads the page where it is, once and twice: the difference is what its loop takes.
pub fn page_shown() -> Result<Row, String> {
    peer::start()?;
    let keeper = Owned::new(PEER.keeper().map_err(|error| error.to_string())?.into());
    let contents = [0x5a, 0xa5].map(|byte| vec![Page([byte; PAGE_BYTES])]);
    let sums = [&contents[0], &contents[1]].map(|pages| peer::sum(Page::bytes(pages)));
    let (mut round, mut right) = (0, true);
    let mut show = |times: u64| {
        round ^= 1;
        let sum = KeeperClient(Direct(keeper.entry())).sum(times, Page::bytes(&contents[round]));
        right &= sum == Ok((PAGE_BYTES, sums[round].wrapping_mul(times)));
    };
    (0..WARM_UP).for_each(|_| show(1));
    let [once, twice] = [1, 2].map(|times| average(ROUNDS, || show(times)));
    let rest = (2 * once).checked_sub(twice).ok_or("two loops take longer than two calls")?;
    if right { Ok(Row::instructions(rest).with("loop", twice - once).of(ROUNDS)) } else { Err("a wrong answer".into()) }
}

/// Yields to a thread of the peer, which yields back: two switches per round.
pub fn yield_to_peer() -> Result<Row, String> {
    peer::start()?;
    PEER.give_way(ROUNDS + 2 * WARM_UP).map_err(|error| error.to_string())?;
    (0..WARM_UP).for_each(|_| op::yield_now());
    let (ticks, switches) = dispatches(|| timed(|| (0..ROUNDS).for_each(|_| op::yield_now())))?;
    if switches < 2 * ROUNDS {
        return Err(alloc::format!("{switches} switches in {ROUNDS} rounds"));
    }
    // Per round, each of the two runs a loop of its own.
    Ok(Row::instructions(per_round(ticks, ROUNDS).div_ceil(2)).of(2 * ROUNDS))
}
