//! What the firmware describes the machine: private to an ISA.
