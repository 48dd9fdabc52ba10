//! The programs of [`Child`](super::child::Child)ren: without a stack, and with no memory but the pages that are shown to them.

pub use crate::arch::programs::*;
pub use crate::shown::*;
