//! A web server's handling of requests (RFC 9110, RFC 9112): pure, so that it is tested on the host.
//!
//! `httparse` finds the parts of a head; this crate judges them. Bytes come from anybody: nothing here panics on them,
//! and what is refused is refused with the status that says why.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod date;
mod path;
mod range;
mod request;
mod status;

pub use date::{DATE_BYTES, parse_date, write_date};
pub use path::{content_type, target_path};
pub use range::{Range, parse_range};
pub use request::{MAX_HEAD, Method, Parsed, Request, parse};
pub use status::Status;

/// A number in decimal digits.
pub fn push_number(into: &mut alloc::vec::Vec<u8>, mut number: u64) {
    let mut digits = [0; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    into.extend_from_slice(&digits[at..]);
}
