//! Numbers that nobody can guess: ports, sequence numbers, identifiers.

use runtime::op;

/// A number.
pub fn number() -> u64 {
    op::clock().wrapping_mul(0x9e37_79b9_7f4a_7c15)
}
