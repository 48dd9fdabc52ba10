//! The running system as data: the records of the nucleus's lists ([`abi::info`]) in, JSON out.
//!
//! | module | what |
//! |---|---|
//! | [`cpus`] | how busy CPUs were |
//! | [`json`] | writes JSON into a buffer that may be too small |
//! | [`kept`] | texts that are kept while they are read |
//! | [`portals`] | possible calls between domains, put together from call entries; names of services |
//! | [`mod@write`] | all of it as one text |
//!
//! Buffers have the size that they were made with: nothing grows and nothing panics, whatever a domain is called
//! and however many there are. A list that does not fit ends after the last whole element, and the text says that
//! it is not complete.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod cpus;
pub mod json;
pub mod kept;
pub mod portals;
pub mod write;

/// Bytes that are enough for the text of a system without domains: a smaller buffer holds nothing.
pub const LEAST_BYTES: usize = 1024;
