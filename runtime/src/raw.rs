//! The stubs: a function for each row of the table of operations ([`abi::operations`], [`abi::ways`]), with the operands that
//! it names. [`crate::op`] makes them safe, where they are, and pleasant.
#![allow(dead_code, reason = "the table has more than programs need, such as ways that are chosen by number")]

use abi::{Error, op};

use crate::Entry;
use crate::arch::*;

/// The Rust types of the table's operands and results.
mod kinds {
    pub use crate::Entry as Domain;
    pub use crate::Entry as Account;
    pub use crate::Entry as Thread;
    pub use crate::Entry as Service;
    pub use crate::Entry as Semaphore;
    pub use crate::Entry as Shape;
    pub use crate::Entry as Interrupt;
    pub use crate::Entry as IoPorts;
    pub use crate::Entry as Memory;
    pub use crate::Entry as Machine;
    pub use crate::Entry as Label;
    pub use crate::Entry as Port;
    pub use crate::Entry as Index;
    pub use crate::Entry as Fill;
    pub type Address = u64;
    pub type Order = u64;
    pub type Rights = u64;
    pub type Flags = u64;
    pub type Number = u64;
    pub type Nothing = ();
}

/// A value that is passed in a register.
trait Word {
    fn word(self) -> u64;
    fn from_word(word: u64) -> Self;
}

impl Word for u64 {
    #[inline(always)]
    fn word(self) -> u64 {
        self
    }
    #[inline(always)]
    fn from_word(word: u64) -> Self {
        word
    }
}

impl Word for Entry {
    #[inline(always)]
    fn word(self) -> u64 {
        self.0 as u64
    }
    #[inline(always)]
    fn from_word(word: u64) -> Self {
        Self(word as usize)
    }
}

impl Word for () {
    #[inline(always)]
    fn word(self) -> u64 {
        0
    }
    #[inline(always)]
    fn from_word(_: u64) {}
}

/// The system call, by the number of words.
macro_rules! traverse {
    ($number:ident) => {
        operation0::<{ op::$number }>()
    };
    ($number:ident $a:expr) => {
        operation1::<{ op::$number }>($a)
    };
    ($number:ident $a:expr, $b:expr) => {
        operation2::<{ op::$number }>($a, $b)
    };
    ($number:ident $a:expr, $b:expr, $c:expr) => {
        operation3::<{ op::$number }>($a, $b, $c)
    };
    ($number:ident $a:expr, $b:expr, $c:expr, $d:expr) => {
        operation4::<{ op::$number }>($a, $b, $c, $d)
    };
    ($number:ident $a:expr, $b:expr, $c:expr, $d:expr, $e:expr) => {
        operation5::<{ op::$number }>($a, $b, $c, $d, $e)
    };
    ($number:ident $a:expr, $b:expr, $c:expr, $d:expr, $e:expr, $f:expr) => {
        operation6::<{ op::$number }>($a, $b, $c, $d, $e, $f)
    };
}

macro_rules! stubs {
    ($(
        $(#[doc = $doc:literal])+
        $number:ident $name:ident($($operand:ident: $kind:ident $($right:ident)* $($about:literal)?),*)
            -> $result:ident $($meaning:literal)?, $class:ident $($step:literal)? { $($refusals:tt)* }
    )*) => {$(
        #[doc = concat!("[`op::", stringify!($number), "`].")]
        ///
        /// # Safety
        /// The operation must not break what the compiler relies on: memory of ours that it unmaps, maps or lets run is the
        /// caller's to answer for.
        #[inline(always)]
        pub unsafe fn $name($($operand: kinds::$kind),*) -> Result<result!($result), Error> {
            // SAFETY: as the caller says.
            unsafe { traverse!($number $(Word::word($operand)),*) }.map(Word::from_word)
        }
    )*};
}

/// The type of a result.
macro_rules! result {
    ($result:ident) => {
        kinds::$result
    };
}
abi::operations!(stubs);

macro_rules! way_stubs {
    ($($group:ident {$(
        $(#[doc = $doc:literal])+
        $number:ident $name:ident(
            $($before:ident: $before_kind:ident $($before_right:ident)* $($before_about:literal)?),*;
            $($operand:ident: $kind:ident $($right:ident)* $($about:literal)?),*
        ) -> $result:ident $($meaning:literal)? { $($refusals:tt)* }
    )*})*) => {$($(
        way_stub! { $group $number $name($($before: $before_kind),*; $($operand: $kind),*) -> $result }
    )*)*};
}

macro_rules! way_stub {
    (SEMAPHORE $number:ident $name:ident(; $($operand:ident: $kind:ident),*) -> $result:ident) => {
        #[doc = concat!("[`op::", stringify!($number), "`].")]
        #[inline(always)]
        pub fn $name(entry: Entry, $($operand: kinds::$kind),*) -> Result<result!($result), Error> {
            traverse_semaphore!(entry.0, op::$number $(, $operand)*)
        }
    };
    (PORT $number:ident $name:ident(; $($operand:ident: $kind:ident),*) -> $result:ident) => {
        #[doc = concat!("[`op::", stringify!($number), "`].")]
        #[inline(always)]
        pub fn $name(entry: Entry, $($operand: kinds::$kind),*) -> Result<u64, Error> {
            traverse_port!(entry.0, op::$number $(, $operand)*)
        }
    };
    ($group:ident $number:ident $name:ident($($before:ident: $before_kind:ident),*; $($operand:ident: $kind:ident),*)
        -> $result:ident) => {
        #[doc = concat!("[`op::", stringify!($number), "`].")]
        ///
        /// # Safety
        /// As for operations.
        #[inline(always)]
        pub unsafe fn $name(
            $($before: kinds::$before_kind,)* $($operand: kinds::$kind),*
        ) -> Result<result!($result), Error> {
            // SAFETY: as the caller says.
            unsafe { traverse!($group $(Word::word($before),)* op::$number $(, Word::word($operand))*) }
                .map(Word::from_word)
        }
    };
}

/// P or V, in the assembly that they have to themselves.
macro_rules! traverse_semaphore {
    ($entry:expr, $what:expr) => {
        semaphore($entry, $what, 0, 0)
    };
    ($entry:expr, $what:expr, $deadline:expr, $holder:expr) => {
        semaphore($entry, $what, $deadline, $holder)
    };
}

/// RECEIVE or SEND, the same.
macro_rules! traverse_port {
    ($entry:expr, $what:expr, $deadline:expr, $shown:expr) => {
        port($entry, $what, $deadline, $shown)
    };
    ($entry:expr, $what:expr, $bytes:expr, $along:expr, $taints:expr, $shows:expr) => {
        port($entry, $what | $bytes << 8 | $along << 32, $taints, $shows)
    };
}
abi::ways!(way_stubs);
