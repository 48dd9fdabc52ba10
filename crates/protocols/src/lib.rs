//! The interfaces through which components and programs speak.
//!
//! One module each: the trait, its errors, and what a call means. The layouts that follow from the
//! traits are checked in under `golden/`; a change there is a change of the contract.
#![no_std]
#![forbid(unsafe_code)]

pub mod bus;
pub mod console;
pub mod entropy;
pub mod file;
pub mod listing;
pub mod names;
pub mod net;
pub mod nic;
pub mod parent;
pub mod pipes;
pub mod process;
pub mod random;
pub mod sigma0;
pub mod status;
pub mod stream;
pub mod time;
pub mod vault;

pub use idl::{Code, Delegate, Delegated, Failure, Protocol, Texts};

/// Every interface's name and layout: its part of the contract.
pub const LAYOUTS: &[(&str, &str)] = &[
    ("bus", bus::BUS_LAYOUT),
    ("child", process::CHILD_LAYOUT),
    ("connection", net::CONNECTION_LAYOUT),
    ("console", console::CONSOLE_LAYOUT),
    ("datagrams", net::DATAGRAMS_LAYOUT),
    ("echo", net::ECHO_LAYOUT),
    ("entropy", entropy::ENTROPY_LAYOUT),
    ("file", file::FILE_LAYOUT),
    ("file_system", file::FILE_SYSTEM_LAYOUT),
    ("listener", net::LISTENER_LAYOUT),
    ("names", names::NAMES_LAYOUT),
    ("net", net::NET_LAYOUT),
    ("nic", nic::NIC_LAYOUT),
    ("parent", parent::PARENT_LAYOUT),
    ("pipe_end", pipes::PIPE_END_LAYOUT),
    ("pipe_session", pipes::PIPE_SESSION_LAYOUT),
    ("pipes", pipes::PIPES_LAYOUT),
    ("process", process::PROCESS_LAYOUT),
    ("query", net::QUERY_LAYOUT),
    ("random", random::RANDOM_LAYOUT),
    ("session", net::SESSION_LAYOUT),
    ("sigma0", sigma0::SIGMA0_LAYOUT),
    ("status", status::STATUS_LAYOUT),
    ("stream", stream::STREAM_LAYOUT),
    ("time", time::TIME_LAYOUT),
    ("vault", vault::VAULT_LAYOUT),
];

/// Every interface's name, and the numbers and names of its methods.
pub const METHODS: &[(&str, &[(u64, &str)])] = &[
    ("bus", bus::BUS_METHODS),
    ("child", process::CHILD_METHODS),
    ("connection", net::CONNECTION_METHODS),
    ("console", console::CONSOLE_METHODS),
    ("datagrams", net::DATAGRAMS_METHODS),
    ("echo", net::ECHO_METHODS),
    ("entropy", entropy::ENTROPY_METHODS),
    ("file", file::FILE_METHODS),
    ("file_system", file::FILE_SYSTEM_METHODS),
    ("listener", net::LISTENER_METHODS),
    ("names", names::NAMES_METHODS),
    ("net", net::NET_METHODS),
    ("nic", nic::NIC_METHODS),
    ("parent", parent::PARENT_METHODS),
    ("pipe_end", pipes::PIPE_END_METHODS),
    ("pipe_session", pipes::PIPE_SESSION_METHODS),
    ("pipes", pipes::PIPES_METHODS),
    ("process", process::PROCESS_METHODS),
    ("query", net::QUERY_METHODS),
    ("random", random::RANDOM_METHODS),
    ("session", net::SESSION_METHODS),
    ("sigma0", sigma0::SIGMA0_METHODS),
    ("status", status::STATUS_METHODS),
    ("stream", stream::STREAM_METHODS),
    ("time", time::TIME_METHODS),
    ("vault", vault::VAULT_METHODS),
];

/// Every enum of errors, with codes, names and texts.
pub const ERRORS: &[(&str, Texts)] = &[
    ("BusError", bus::BusError::TEXTS),
    ("EntropyError", entropy::EntropyError::TEXTS),
    ("FileError", file::FileError::TEXTS),
    ("NamesError", names::NamesError::TEXTS),
    ("NetError", net::NetError::TEXTS),
    ("NicError", nic::NicError::TEXTS),
    ("ParentError", parent::ParentError::TEXTS),
    ("PipeError", pipes::PipeError::TEXTS),
    ("ProcessError", process::ProcessError::TEXTS),
    ("RandomError", random::RandomError::TEXTS),
    ("Sigma0Error", sigma0::Sigma0Error::TEXTS),
    ("StatusError", status::StatusError::TEXTS),
    ("StreamError", stream::StreamError::TEXTS),
    ("TimeError", time::TimeError::TEXTS),
    ("VaultError", vault::VaultError::TEXTS),
];
