//! What each CPU has, and what CPUs do to each other: the nucleus lock, stopping a CPU, the loaded space, translations, the timer,
//! special registers.

pub mod assembly;
pub mod counters;
pub mod cpu;
pub mod lock;
pub mod root;
pub mod special;
pub mod timer;
pub mod translations;
