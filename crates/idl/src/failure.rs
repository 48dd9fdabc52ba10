//! Why a call came to nothing: refused by the method, not carried, or not understood.

use core::fmt;

use crate::{AllWords, Reply};

/// Codes of an interface's errors, 1 to `PROTOCOL - 1`. [`codes!`](crate::codes) implements it.
pub trait Code: Copy + fmt::Debug {
    /// The code.
    fn code(self) -> u64;
    /// The error with this code.
    fn from_code(code: u64) -> Option<Self>;
    /// The description, for people.
    fn text(self) -> &'static str;
}

/// Declares the error enum of an interface: code, name and text of each.
#[macro_export]
macro_rules! codes {
    ($(#[$attribute:meta])* $visibility:vis enum $name:ident { $($number:literal $variant:ident $text:literal)* }) => {
        $(#[$attribute])*
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        #[repr(u64)]
        $visibility enum $name { $(#[doc = $text] $variant = $number,)* }

        impl $name {
            /// Every error, for tables and tests.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];
            /// Their codes, names and texts, for the contract.
            pub const TEXTS: $crate::Texts = &[$(($number, stringify!($variant), $text)),*];
        }

        impl $crate::Code for $name {
            fn code(self) -> u64 {
                self as u64
            }
            fn from_code(code: u64) -> Option<Self> {
                match code { $($number => Some(Self::$variant),)* _ => None }
            }
            fn text(self) -> &'static str {
                match self { $(Self::$variant => $text,)* }
            }
        }

        impl ::core::fmt::Display for $name {
            fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                f.write_str($crate::Code::text(*self))
            }
        }

        impl ::core::error::Error for $name {}
    };
}

/// Codes, names and texts of errors.
pub type Texts = &'static [(u64, &'static str, &'static str)];

/// First protocol code: above all codes of interfaces.
const PROTOCOL: u64 = 0xffff_0000;

codes! {
    /// One side did not keep to the encoding.
    pub enum Protocol {
        0xffff_0000 UnknownMethod "the server has no such method"
        0xffff_0001 BadLength "the lengths do not fit the message"
        0xffff_0002 BadText "text that is not UTF-8"
        0xffff_0003 BadValue "a value out of its range"
        0xffff_0004 NoDelegation "the entry that the method needs did not come along"
        0xffff_0005 BadReply "the reply does not fit the method"
        0xffff_0006 TooLong "the parameters do not fit into a message"
        0xffff_0007 NotDelivered "the entry that should come back could not be delegated"
        0xffff_0008 NoMemory "the server has no memory left for this"
        0xffff_0009 BadWindow "a window that the method does not take, or with other rights"
        0xffff_000a WrongInterface "the server speaks another interface"
    }
}

impl Protocol {
    /// The reply that says so.
    #[cold]
    pub const fn reply(self) -> Reply {
        Reply::word(self as u64)
    }

    /// The same, of an interface of words.
    #[cold]
    pub const fn words(self) -> AllWords {
        [self as u64, 0, 0, 0, 0, 0, 0, 0, 0]
    }
}

/// Why a call came to nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Failure<E> {
    /// The method refused.
    Refused(E),
    /// The nucleus refused, or the server died.
    Transport(abi::Error),
    /// One side did not keep to the encoding.
    Protocol(Protocol),
}

impl<E> Failure<E> {
    /// Keeps the cause, changes the type of the method's own errors.
    pub fn map<F>(self, change: impl FnOnce(E) -> F) -> Failure<F> {
        match self {
            Self::Refused(error) => Failure::Refused(change(error)),
            Self::Transport(error) => Failure::Transport(error),
            Self::Protocol(error) => Failure::Protocol(error),
        }
    }
}

impl<E: Code> Failure<E> {
    /// The failure of a reply's word 0, which is not 0.
    #[cold]
    pub fn from_word(word: u64) -> Self {
        if word >= PROTOCOL {
            Self::Protocol(Protocol::from_code(word).unwrap_or(Protocol::BadReply))
        } else {
            E::from_code(word).map_or(Self::Protocol(Protocol::BadReply), Self::Refused)
        }
    }
}

impl<E: fmt::Display> fmt::Display for Failure<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(error) => error.fmt(f),
            // The nucleus says `Empty` of a portal that leads nowhere.
            Self::Transport(abi::Error::Empty) => f.write_str("there is no such service"),
            // Of a portal whose server is gone.
            Self::Transport(abi::Error::Revoked) => f.write_str("the service is not there at present"),
            Self::Transport(abi::Error::BadControl) => {
                f.write_str("the server speaks another interface, of another kind")
            }
            Self::Transport(error) => error.fmt(f),
            Self::Protocol(error) => error.fmt(f),
        }
    }
}

impl<E: fmt::Debug + fmt::Display> core::error::Error for Failure<E> {}
