//! The compiler's functions that copy, move and fill bytes: every length, every distance between from and to.

use core::hint::black_box;

use crate::check::{Check, hold};

pub const CHECKS: &[Check] =
    &[("bytes are copied, moved and filled, of every length, over every distance, and no others", every_length)];

/// Lengths below this are tried: more than two rounds of the longest loop.
const LENGTHS: usize = 300;
/// Bytes to either side that must not change; moves go as far.
const MARGIN: usize = 70;
const FILL: u8 = 0xa5;

type Bytes = [u8; LENGTHS + 2 * MARGIN];

/// The initial byte at a place: neighbours differ, and so do places that are a power of two apart.
fn first(place: usize) -> u8 {
    (place % 251) as u8
}

fn fresh() -> Bytes {
    core::array::from_fn(first)
}

/// Whether `len` bytes at `to` are what `inside` says of their index, and all others are untouched.
fn holds(bytes: &Bytes, to: usize, len: usize, inside: impl Fn(usize) -> u8) -> bool {
    let expected = |place: usize| match place.checked_sub(to) {
        Some(index) if index < len => inside(index),
        _ => first(place),
    };
    bytes.iter().enumerate().all(|(place, byte)| *byte == expected(place))
}

fn every_length() -> Result<(), &'static str> {
    let source = fresh();
    for len in 0..LENGTHS {
        // The compiler must not know how much it is.
        let len = black_box(len);
        for other in 0..=2 * MARGIN {
            let mut moved = fresh();
            moved.copy_within(MARGIN..MARGIN + len, other);
            hold(holds(&moved, other, len, |index| first(MARGIN + index)), "moved within a buffer")?;
        }
        for place in 0..16 {
            let (from, to) = (16 - place, MARGIN + place);
            let mut copied = fresh();
            copied[to..to + len].copy_from_slice(&black_box(&source)[from..from + len]);
            hold(holds(&copied, to, len, |index| first(from + index)), "copied between buffers")?;
            let mut filled = fresh();
            filled[to..to + len].fill(black_box(FILL));
            hold(holds(&filled, to, len, |_| FILL), "filled")?;
        }
    }
    Ok(())
}
