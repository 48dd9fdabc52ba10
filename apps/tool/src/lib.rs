//! What all programs share: arguments, help, and how they say what went wrong.
#![no_std]
#![forbid(unsafe_code)]
