//! Traps: faults, exceptions, interrupts. The assembly calls what is here; portable code does not. It ends in
//! `fault::page_fault`, `fault::exception`, `schedule::after_interrupt`, `schedule::go_on` or `panic::trap`.
