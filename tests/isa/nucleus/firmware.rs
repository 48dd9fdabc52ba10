//! What the firmware tells of the machine: private to an ISA.
