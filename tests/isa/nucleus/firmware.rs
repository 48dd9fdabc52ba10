//! The firmware's description of the machine: private to an ISA.
