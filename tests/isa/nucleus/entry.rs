//! The assembly: all that `cpus::assembly` names. It knows where things are in portable types by `offset_of!`; the constants for that are
//! private to an ISA.
