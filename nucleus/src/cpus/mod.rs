//! State of each CPU, and interaction of CPUs: the nucleus lock, stopping a CPU, the loaded space, TLB shootdowns, the
//! timer, special registers.

pub mod assembly;
pub mod counters;
pub mod cpu;
pub mod lock;
pub mod root;
pub mod special;
pub mod timer;
pub mod translations;
