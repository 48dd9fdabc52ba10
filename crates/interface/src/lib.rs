//! What client stubs and server dispatchers are made of.
#![no_std]
#![forbid(unsafe_code)]

mod message;

pub use message::{Delegated, Reply, Request, Words};
