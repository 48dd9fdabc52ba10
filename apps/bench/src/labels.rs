//! The cost of labels: of the engine that the nucleus uses, run in our own memory, and of the nucleus's use of it.

use alloc::string::{String, ToString};
use core::hint::black_box;

use flow::{Handle, Heap, Label, Level, Pool};
use runtime::abi::Control;
use runtime::arch::ticks;
use runtime::entry::Owned;
use runtime::message;
use runtime::{op, thread};

use crate::asked::{MANY, number, taint};
use crate::measure::{Row, average};
use crate::peer::{self, PEER};

/// Nodes for all labels of a row.
const NODES: usize = 1000;
const ROUNDS: u64 = 200;
const WARM_UP: u64 = 4;
/// Nanoseconds after which a peer is not tainted and never will be.
const PATIENCE: u64 = 2_000_000_000;

fn handle(of: u64, kind: u64) -> Result<Handle, String> {
    Handle::new(number(of, kind)).ok_or_else(|| "no handle".to_string())
}

/// A label with [`MANY`] handles of a kind.
fn label(pool: &mut Pool<Heap>, default: Level, level: Level, kind: u64) -> Result<Label, String> {
    (0..MANY).try_fold(Label::of(default), |label, of| set(pool, label, handle(of, kind)?, level))
}

/// In the place of the label.
fn set(pool: &mut Pool<Heap>, label: Label, handle: Handle, level: Level) -> Result<Label, String> {
    let made = pool.set(label, handle, level).map_err(|_| "no room")?;
    pool.release(label);
    Ok(made)
}

fn pool() -> Pool<Heap> {
    Pool::new(Heap::new(NODES), 1)
}

/// A label with one handle more.
pub fn set_one() -> Result<Row, String> {
    let (mut pool, mut kept) = (pool(), true);
    let label = label(&mut pool, Level::One, Level::Three, 0)?;
    let more = handle(0, 1)?;
    let value = average(ROUNDS, || match pool.set(black_box(label), more, Level::Three) {
        Ok(made) => pool.release(made),
        Err(_) => kept = false,
    });
    if kept { Ok(Row::instructions(value).of(ROUNDS)) } else { Err("no room".into()) }
}

/// Whether one label is below another, and is that so.
fn below(pool: &Pool<Heap>, one: Label, other: Label, is: bool) -> Result<Row, String> {
    let mut right = true;
    let value = average(ROUNDS, || right &= pool.is_below(black_box(one), black_box(other)) == is);
    if right { Ok(Row::instructions(value).of(ROUNDS)) } else { Err("a wrong answer".into()) }
}

/// A label and itself.
pub fn below_same() -> Result<Row, String> {
    let mut pool = pool();
    let one = label(&mut pool, Level::One, Level::Three, 0)?;
    below(&pool, one, one, true)
}

/// Two that differ in one handle.
pub fn below_near() -> Result<Row, String> {
    let mut pool = pool();
    let one = label(&mut pool, Level::One, Level::Two, 0)?;
    let other = pool.set(one, handle(7, 0)?, Level::Three).map_err(|_| "no room")?;
    below(&pool, one, other, true)
}

/// The same handles, in labels built separately.
pub fn below_alike() -> Result<Row, String> {
    let mut pool = pool();
    let one = label(&mut pool, Level::One, Level::Two, 0)?;
    let other = label(&mut pool, Level::One, Level::Two, 0)?;
    below(&pool, one, other, true)
}

/// Other handles, but for one, whose part alone is looked at: elsewhere all levels of one label are below all of the other.
pub fn below_disjoint() -> Result<Row, String> {
    let mut pool = pool();
    let one = label(&mut pool, Level::One, Level::Zero, 0)?;
    let other = label(&mut pool, Level::One, Level::Three, 1)?;
    let one = set(&mut pool, one, handle(MANY, 1)?, Level::Two)?;
    let other = set(&mut pool, other, handle(MANY, 1)?, Level::Two)?;
    below(&pool, one, other, true)
}

/// Other handles, each of which is looked at: the levels of the entries by themselves are the wrong way round.
pub fn below_woven() -> Result<Row, String> {
    let mut pool = pool();
    let one = label(&mut pool, Level::Zero, Level::Two, 0)?;
    let other = label(&mut pool, Level::Three, Level::One, 1)?;
    below(&pool, one, other, true)
}

fn bound(one: [Level; 2], other: [Level; 2], is_lower: bool) -> Result<Row, String> {
    let mut pool = pool();
    let one = label(&mut pool, one[0], one[1], 0)?;
    let other = label(&mut pool, other[0], other[1], 1)?;
    let mut kept = true;
    let mut once = || {
        let made = if is_lower { pool.lower(one, other) } else { pool.higher(one, other) };
        match made {
            Ok(made) => pool.release(made),
            Err(_) => kept = false,
        }
    };
    (0..WARM_UP).for_each(|_| once());
    let value = average(ROUNDS, once);
    if kept { Ok(Row::instructions(value).of(ROUNDS)) } else { Err("no room".into()) }
}

/// The least upper bound of labels with other handles.
pub fn higher() -> Result<Row, String> {
    bound([Level::One, Level::Three], [Level::One, Level::Two], false)
}

/// The greatest lower bound of labels with other handles, and defaults that have each handle looked at.
pub fn lower() -> Result<Row, String> {
    bound([Level::Two, Level::Three], [Level::Three, Level::One], true)
}

/// A handle more is ours, of [`MANY`].
pub fn new_handle() -> Result<Row, String> {
    accept(MANY)?;
    let mut right = true;
    let value = average(ROUNDS, || right &= op::label_handle().is_ok());
    if right { Ok(Row::instructions(value).of(ROUNDS)) } else { Err("no handle".into()) }
}

/// Our receive label has so many handles.
fn accept(count: u64) -> Result<(), String> {
    (0..count).try_for_each(|of| op::label_receive(number(of, 2), 2)).map_err(|error| error.to_string())
}

/// The first call after our labels changed, which have so many handles, and the second one.
pub fn first_call<const HANDLES: u64>() -> Result<Row, String> {
    accept(HANDLES)?;
    first_calls(&words()?, HANDLES, 3)
}

/// The same, when so many handles are ours.
pub fn first_call_of_owner<const HANDLES: u64>() -> Result<Row, String> {
    (0..HANDLES).try_for_each(|_| op::label_handle().map(drop)).map_err(|error| error.to_string())?;
    first_calls(&words()?, HANDLES, 1)
}

/// The same of two domains that are tainted by so many handles, whose send labels were built separately: both are walked.
pub fn first_call_tainted<const HANDLES: u64>() -> Result<Row, String> {
    let words = words()?;
    // It goes on when the first handle has ended the call.
    let _ = PEER.taint(HANDLES);
    taint(0, HANDLES).map_err(|error| error.to_string())?;
    let ends = op::clock() + PATIENCE;
    while call(&words).is_err() && op::clock() < ends {
        thread::sleep(PATIENCE / 1_000).map_err(|error| error.to_string())?;
    }
    let row = first_calls(&words, HANDLES, 3);
    let _ = PEER.leave();
    row
}

/// `kind`: of the numbers that stand for handles which are accepted meanwhile.
fn first_calls(words: &Owned, handles: u64, kind: u64) -> Result<Row, String> {
    let (mut first, mut second, mut nothing) = (0, 0, 0);
    for round in 0..ROUNDS / 10 {
        op::label_receive(number(handles << 8 | round, kind), 2).map_err(|error| error.to_string())?;
        first += call(words)?;
        second += call(words)?;
        let start = ticks();
        nothing += ticks() - start;
    }
    let each = |sum: u64| sum.saturating_sub(nothing).div_ceil(ROUNDS / 10);
    Ok(Row::instructions(each(first)).with("second", each(second)))
}

/// A call entry to the peer's service that adds words.
fn words() -> Result<Owned, String> {
    peer::start()?;
    PEER.words().map(|words| Owned::new(words.into())).map_err(|error| error.to_string())
}

/// Ticks of a call of that service.
fn call(words: &Owned) -> Result<u64, String> {
    let start = ticks();
    let answer = message::call(words.entry(), [1, 2, 0, 0, 0], Control(0));
    let ticks = ticks() - start;
    if answer.is_ok_and(|(words, _)| words[0] == 3) { Ok(ticks) } else { Err("a wrong answer".into()) }
}

/// How much more a call takes, the last one of which was made before a third domain changed its labels.
pub fn others_change() -> Result<Row, String> {
    let words = words()?;
    let third = peer::start_number(1)?;
    let (mut undisturbed, mut disturbed) = (0, 0);
    for round in 0..ROUNDS {
        third.turn(&[], &mut []).map_err(|error| error.to_string())?;
        undisturbed += call(&words)?;
        third.refuse(number(round, 3)).map_err(|error| error.to_string())?;
        disturbed += call(&words)?;
    }
    Ok(Row::instructions(disturbed.saturating_sub(undisturbed).div_ceil(ROUNDS)))
}

/// A server asks whether its caller may observe and change an object.
pub fn caller_may() -> Result<Row, String> {
    peer::start()?;
    let service = Owned::new(PEER.asks().map_err(|error| error.to_string())?.into());
    let label = PEER.label().map_err(|error| error.to_string())?;
    let answer = message::call(service.entry(), [label, ROUNDS, 0, 0, 0], Control(0));
    match answer.map_err(|error| error.to_string())? {
        ([0, ..], _) => Err("a wrong answer".into()),
        (words, _) => Ok(Row::instructions(words[0])),
    }
}
