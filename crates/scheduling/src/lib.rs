//! The scheduler's decisions, without a system call: [`queues`] holds the ready threads of one CPU, [`policy`] shares
//! threads out among CPUs. `components/sched` wires both to the nucleus; the tests here wire them to a simulated one.
#![no_std]
#![forbid(unsafe_code)]

mod level;
pub mod policy;
pub mod queues;
pub mod shares;
