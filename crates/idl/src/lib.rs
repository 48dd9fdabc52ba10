//! Interface definitions in Rust: the source of client stubs and server dispatchers.
//!
//! `#[interface] trait Name { … }` derives `NameClient<T: Transport>`, `NameServer` with its `dispatch`,
//! `NAME_LAYOUT` and `NAME_METHODS`. Nothing here knows the nucleus: a [`Transport`] carries the message, so both
//! halves run against each other on the host.
//!
//! # Encoding
//!
//! A call:
//! - word 0: the method in bits 0 to 5, from 1 on, and the tag of its interface in bits 6 to 15, both of which are its number; above it up to three
//!   lengths of 16 bits, one for each parameter of bytes in order: the length of a `&str` or `&[u8]`, the capacity of a `&mut [u8]`;
//! - words 1 to 4: scalars in order; with a delegated entry words 1 to 3, and word 4 is the badge if
//!   the entry is minted from a service. Further scalars stand in the message area, eight bytes each;
//! - message area: further scalars, then the bytes of each `&str` and `&[u8]`, without gaps.
//!
//! A reply: word 0 is 0 or why not (an error of the interface, or a [`Protocol`] code); words 1 to 4
//! the result's words ([`Returns`]; 1 to 3 and the badge in 4 if an entry comes back); the message area
//! the bytes for the `&mut [u8]`: as many as the result counts if it begins with a `usize`, else as
//! many as the capacity.
//!
//! A parameter of bytes with `#[window]` comes in the message, or as whole pages that the client shows for the length of the call. Then its length in
//! word 0 is 0, and the window's word is word 4. So scalars have words 1 to 3 in such a method. The result begins with a `usize`: how many bytes were
//! taken, or given, which may be fewer than the caller has. The client's stub chooses ([`Part`]), and takes the message if the nucleus carries
//! no window, or the answer is `BadWindow`.
//!
//! A method with `#[repeatable]` does no harm if it is called again after a server died in it; a transport may do that.
//!
//! The dispatcher checks all of it (method, lengths, text, ranges of scalars) and answers what is wrong
//! with a [`Protocol`] code. It cannot panic on any message.
#![no_std]
#![forbid(unsafe_code)]

#[cfg(test)]
extern crate self as interface;

mod delegate;
mod failure;
mod message;
mod scalar;
mod support;
mod transport;
mod window;

pub use abi;
pub use delegate::{Delegate, Delegated};
pub use failure::{Code, Failure, Protocol, Texts};
pub use idl_macros::interface;
pub use message::{AllWords, Reply, Request, TORN_PORTAL, WINDOW_PORTAL, WORDS_PORTAL, Words};
pub use scalar::{Returns, Scalar};
#[doc(hidden)]
pub use support::{
    BAD_WINDOW, answer_words, answered, answered_words, check, delegated, is_of_window, no_method, overflow, refused,
    room,
};
pub use transport::{Again, Answer, Transport};
pub use window::{Input, Memory, Output, Part, Shown, Window};
