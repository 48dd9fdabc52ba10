//! Kernel operations: the portals at indices 0 to 35 of every table. All of them come from one table,
//! [`operations!`](crate::operations) and [`ways!`](crate::ways).
//!
//! Operands are words 0 to 5 in the order of the table. A *domain operand*, *account operand* and so on is an index of the
//! caller's table; as domain or account, 0 means the caller's own. An *index to fill* is an index of the table of the domain that
//! gets the entry, 0 = the nucleus chooses a free one; the chosen index is the result. Addresses and sizes are bytes unless said
//! otherwise; an *order* counts pages as 2^order. The errors of an operand of each kind are listed once, at
//! [`OperandKind::errors`].

use crate::layout::{MAX_ACTIVATIONS, SPECIAL};
use crate::rights;
use crate::{
    Error, MAX_ACCOUNT_DEPTH, MAX_BADGE, MAX_COUNT, MAX_DERIVATION, MAX_LOG_BYTES, MAX_MEMBERS, MAX_NESTING, MAX_ORDER,
    MAX_PORTAL_LABELS, MAX_PRIORITY, MAX_SHAPES, MAX_SLICE_MICROSECONDS, MAX_TORN, MESSAGE_BYTES,
};

/// A row of the table.
#[derive(Clone, Copy, Debug)]
pub struct Operation {
    /// As the constant is called.
    pub constant: &'static str,
    /// As it is called in words.
    pub name: &'static str,
    /// Its description.
    pub about: &'static str,
    /// Its operands: word 0 first.
    pub operands: &'static [Operand],
    /// The meaning of word 0 of the answer.
    pub result: ResultKind,
    /// More about that.
    pub meaning: &'static str,
    /// How it is entered.
    pub class: Class,
    /// The work between two preemption points, if it can be much.
    pub step: &'static str,
    /// The errors that it can end with beside those of its operands.
    pub refusals: &'static [Refusal],
}

/// An operand.
#[derive(Clone, Copy, Debug)]
pub struct Operand {
    /// As it is called in words.
    pub name: &'static str,
    /// Its kind.
    pub kind: OperandKind,
    /// The rights that an entry must have: [`rights`].
    pub rights: u8,
    /// More about it.
    pub about: &'static str,
}

/// The check of labels before an operation works on the object that an operand names.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Judged {
    /// Information may flow both ways between the caller and the domain that it is, or belongs to; neither is tainted: as of a call.
    Domain,
    /// The caller may use what has the label of the account that pays for it.
    Object,
    /// The caller is not tainted: its send label is below {1}.
    Nucleus,
    /// Nothing, and why.
    Nothing(&'static str),
}

impl Operand {
    /// The check of labels for it, if it is an entry.
    pub const fn judged(&self) -> Option<Judged> {
        use OperandKind::*;
        Some(match self.kind {
            Domain | Thread | Service => Judged::Domain,
            Account | Semaphore | Port => Judged::Object,
            Machine if self.rights == rights::READ => {
                Judged::Nothing("lists show all domains to a holder of the machine")
            }
            Machine | Interrupt | IoPorts => Judged::Nucleus,
            Memory => Judged::Nothing("all domains that draw frames see whether some are free"),
            Shape => Judged::Nothing("it never changes"),
            Label => Judged::Nothing("nobody else has it"),
            Index | Fill | Address | Order | Rights | Flags | Number | Way => return None,
        })
    }
}

impl Operand {
    /// The errors of the operation that come from checks of labels. They may raise a floating domain's labels, which takes memory.
    pub const fn refusals_by_labels(&self) -> &'static [Error] {
        match self.judged() {
            Some(Judged::Domain | Judged::Object) => &[Error::Flow, Error::AccountExhausted, Error::NoFrames],
            Some(Judged::Nucleus) => &[Error::Flow],
            Some(Judged::Nothing(_)) | None => &[],
        }
    }
}

/// The kind of an operand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OperandKind {
    /// Index of a domain in the caller's table; 0 = the caller's own, which needs no right.
    Domain,
    /// Index of an account; 0 = that of the caller's domain, which needs no right.
    Account,
    /// Index of a thread.
    Thread,
    /// Index of a service.
    Service,
    /// Index of a semaphore.
    Semaphore,
    /// Index of a shape; 0 = the one with a control word.
    Shape,
    /// Index of an interrupt line.
    Interrupt,
    /// Index of I/O ports.
    IoPorts,
    /// Index of the memory.
    Memory,
    /// Index of the machine.
    Machine,
    /// Index of a label.
    Label,
    /// Index of a port.
    Port,
    /// An index of the table of the domain that is named.
    Index,
    /// An index to fill.
    Fill,
    /// An address.
    Address,
    /// Pages as 2^order.
    Order,
    /// Rights of a mapping: `MAP_*` of [`rights`].
    Rights,
    /// Bits.
    Flags,
    /// A number.
    Number,
    /// In its place stands the constant of the way.
    Way,
}

impl OperandKind {
    /// Whether it names an entry that is looked up in the caller's table.
    pub const fn is_entry(self) -> bool {
        use OperandKind::*;
        matches!(
            self,
            Domain
                | Account
                | Thread
                | Service
                | Semaphore
                | Shape
                | Interrupt
                | IoPorts
                | Memory
                | Machine
                | Label
                | Port
        )
    }

    /// The errors with which an operand of this kind can end every operation.
    pub const fn errors(self) -> &'static [Error] {
        use Error::*;
        match self {
            Self::Domain => &[BadIndex, Empty, Revoked, WrongKind, NoRight, PeerDied],
            Self::Index => &[BadIndex],
            Self::Fill => &[BadIndex, ReservedIndex, Occupied, TableFull, AccountExhausted, NoFrames],
            kind if kind.is_entry() => &[BadIndex, Empty, Revoked, WrongKind, NoRight],
            _ => &[],
        }
    }
}

/// The kind of word 0 of the answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ResultKind {
    /// 0.
    Nothing,
    /// The index that was filled.
    Index,
    /// A number.
    Number,
}

/// How an operation is entered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Class {
    /// In assembly alone.
    Assembly,
    /// It ends at once.
    Light,
    /// It can be restarted, from where it got to.
    Full,
    /// By a caller that keeps nothing but the words that it is entered with.
    Dispatch,
}

/// An error that an operation can end with.
#[derive(Clone, Copy, Debug)]
pub struct Refusal {
    /// The error.
    pub error: Error,
    /// Its causes.
    pub causes: &'static [Cause],
}

/// The cause of an error.
#[derive(Clone, Copy, Debug)]
pub struct Cause {
    /// In words.
    pub text: &'static str,
    /// The limit with which the words end.
    pub limit: Option<u64>,
}

impl Operation {
    /// All errors that it can end with, those of its operands included: the bit with the error's number is set.
    pub const fn errors(&self) -> u128 {
        let (mut errors, mut number) = (0, 0);
        while number < self.refusals.len() {
            errors |= 1 << self.refusals[number].error as u32;
            number += 1;
        }
        number = 0;
        while number < self.operands.len() {
            let operand = &self.operands[number];
            let all = [operand.kind.errors(), operand.refusals_by_labels()];
            let mut list = 0;
            while list < all.len() {
                let mut place = 0;
                while place < all[list].len() {
                    errors |= 1 << all[list][place] as u32;
                    place += 1;
                }
                list += 1;
            }
            number += 1;
        }
        errors
    }
}

/// All errors of some rows; see [`Operation::errors`].
const fn errors_of(rows: &[Operation]) -> u128 {
    let (mut errors, mut number) = (0, 0);
    while number < rows.len() {
        errors |= rows[number].errors();
        number += 1;
    }
    errors
}

/// A name as it is in words, without what makes an identifier of a keyword.
const fn plain(name: &str) -> &str {
    match name.as_bytes() {
        [b'r', b'#', ..] => name.split_at(2).1,
        _ => name,
    }
}

/// A row of the table, as data.
macro_rules! row {
    ($number:ident $name:ident [$($doc:literal)+] [$($operand:expr),*] $result:ident [$($meaning:literal)?] $class:ident [$($step:literal)?]
        [$($error:ident [$($cause:literal $([$limit:ident])?),*])*]) => {
        Operation {
            constant: stringify!($number),
            name: plain(stringify!($name)),
            about: concat!($($doc),+),
            operands: &[$($operand),*],
            result: ResultKind::$result,
            meaning: concat!($($meaning)?),
            class: Class::$class,
            step: concat!($($step)?),
            refusals: &[$(Refusal {
                error: Error::$error,
                causes: &[$(Cause { text: $cause, limit: [$(Some($limit as u64),)? None][0] }),*],
            }),*],
        }
    };
}

/// An operand, as data.
macro_rules! operand {
    ($name:ident $kind:ident [$($right:ident)*] [$($about:literal)?]) => {
        Operand {
            name: stringify!($name),
            kind: OperandKind::$kind,
            rights: 0 $(| rights::$right)*,
            about: concat!($($about)?),
        }
    };
}

macro_rules! define_operations {
    ($(
        $(#[doc = $doc:literal])+
        $number:ident $name:ident($($operand:ident: $kind:ident $($right:ident)* $($about:literal)?),*)
            -> $result:ident $($meaning:literal)?, $class:ident $($step:literal)? {
            $($error:ident: $($cause:literal $($limit:ident)?),+;)*
        }
    )*) => {
        /// The operations in the order of the table.
        #[allow(non_camel_case_types, clippy::upper_case_acronyms, reason = "named as the constants")]
        #[derive(Clone, Copy)]
        enum Place { $($number),* }

        $(
            $(#[doc = $doc])+
            #[doc = ""]
            #[doc = concat!(
                "`", $(stringify!($operand), ": ", stringify!($kind), $(" ", stringify!($right),)* $(" (", $about, ")",)? ", ",)*
                "-> ", stringify!($result) $(, " (", $meaning, ")")?, "`",
            )]
            $(
                #[doc = ""]
                #[doc = concat!("- [`Error::", stringify!($error), "`]: " $(, $cause $(, " `", stringify!($limit), "`")?, "; ")+)]
            )*
            pub const $number: usize = Place::$number as usize;
        )*

        /// The operations by index.
        pub const TABLE: [Operation; COUNT] = [$(
            row!($number $name [$($doc)+] [$(operand!($operand $kind [$($right)*] [$($about)?])),*] $result [$($meaning)?]
                $class [$($step)?] [$($error [$($cause $([$limit])?),+])*])
        ),*];
        /// How many operations there are.
        pub const COUNT: usize = [$(Place::$number),*].len();
        /// Names of the operations by index, for traces and tables.
        pub const NAMES: [&str; COUNT] = [$(plain(stringify!($name))),*];

        /// One thing for each operation, by name: none can be left out, named twice or put in the place of another.
        ///
        /// ```
        #[doc = concat!("let numbers = abi::op::Each { ", $(stringify!($name), ": abi::op::", stringify!($number), ", ",)* "};")]
        /// assert!(numbers.in_order().into_iter().eq(0..abi::op::COUNT));
        /// ```
        /// One is missing:
        /// ```compile_fail,E0063
        /// let names = abi::op::Each { clock: 0 };
        /// ```
        /// One is no operation:
        /// ```compile_fail,E0560
        #[doc = concat!("let names = abi::op::Each { ", $(stringify!($name), ": 0, ",)* "clocks: 0 };")]
        /// ```
        #[allow(missing_docs, reason = "a field is an operation")]
        pub struct Each<T> { $(pub $name: T),* }

        impl<T: Copy> Each<T> {
            /// By index.
            pub const fn in_order(self) -> [T; COUNT] {
                [$(self.$name),*]
            }
        }
    };
}
crate::operations!(define_operations);

macro_rules! define_ways {
    ($($group:ident {$(
        $(#[doc = $doc:literal])+
        $number:ident $name:ident(
            $($before:ident: $before_kind:ident $($before_right:ident)* $($before_about:literal)?),*;
            $($operand:ident: $kind:ident $($right:ident)* $($about:literal)?),*
        ) -> $result:ident $($meaning:literal)? {
            $($error:ident: $($cause:literal $($limit:ident)?),+;)*
        }
    )*})*) => {
        /// The ways of each group in the order of the table.
        mod place {
            $(
                #[allow(
                    non_camel_case_types,
                    clippy::upper_case_acronyms,
                    clippy::enum_variant_names,
                    reason = "named as the constants"
                )]
                pub enum $group { $($number),* }
            )*
        }

        $($(
            #[doc = concat!("`", stringify!($group), "`:")]
            $(#[doc = $doc])+
            #[doc = ""]
            #[doc = concat!(
                "`", $(stringify!($before), ": ", stringify!($before_kind), $(" ", stringify!($before_right),)* ", ",)*
                stringify!($number), ", ",
                $(stringify!($operand), ": ", stringify!($kind), $(" ", stringify!($right),)* $(" (", $about, ")",)? ", ",)*
                "-> ", stringify!($result) $(, " (", $meaning, ")")?, "`",
            )]
            $(
                #[doc = ""]
                #[doc = concat!("- [`Error::", stringify!($error), "`]: " $(, $cause $(, " `", stringify!($limit), "`")?, "; ")+)]
            )*
            pub const $number: u64 = place::$group::$number as u64;
        )*)*

        /// The operations that have several ways: the group and its rows, by the value that chooses.
        pub const WAYS: &[(&str, &[Operation])] = &[$((stringify!($group), &[$(
            row!($number $name [$($doc)+] [
                $(operand!($before $before_kind [$($before_right)*] [$($before_about)?]),)*
                operand!(way Way [] [])
                $(, operand!($operand $kind [$($right)*] [$($about)?]))*
            ] $result [$($meaning)?] Full [] [$($error [$($cause $([$limit])?),+])*])
        ),*])),*];
    };
}
crate::ways!(define_ways);

/// All errors that each operation can end with, whichever way; see [`Operation::errors`].
pub const ERRORS: [u128; COUNT] = {
    let mut all = [0; COUNT];
    let mut number = 0;
    while number < COUNT {
        all[number] = TABLE[number].errors() | errors_of(ways(TABLE[number].constant));
        number += 1;
    }
    all
};

/// The rows of a group of ways; none if there is no such group.
pub const fn ways(group: &str) -> &'static [Operation] {
    let mut number = 0;
    while number < WAYS.len() {
        if is_same(WAYS[number].0, group) {
            return WAYS[number].1;
        }
        number += 1;
    }
    &[]
}

const fn is_same(one: &str, other: &str) -> bool {
    let (one, other) = (one.as_bytes(), other.as_bytes());
    let mut number = 0;
    while number < one.len() && number < other.len() && one[number] == other[number] {
        number += 1;
    }
    number == one.len() && number == other.len()
}

/// All errors that P, and that V can end with.
pub const SEMAPHORE_ERRORS: [u128; 2] = {
    let rows = ways("SEMAPHORE");
    [rows[P as usize].errors(), rows[V as usize].errors()]
};

/// All errors that RECEIVE, and that SEND can end with.
pub const PORT_ERRORS: [u128; 2] = {
    let rows = ways("PORT");
    [rows[RECEIVE as usize].errors(), rows[SEND as usize].errors()]
};

/// `RECEIVE`: an entry came.
pub const ENTRY_CAME: u64 = 1 << 15;

/// `DOMAIN_NEW`: its activations keep floating-point state.
pub const DOMAIN_FPU: u64 = 1;
/// `CALLER`: nothing is known without a search, or nobody called.
pub const CALLER_OTHER: u64 = 0;
/// `CALLER`: S = {1} and R = {2}, as domains have them without any taint or ownership.
pub const CALLER_USUAL: u64 = 1;
/// `CALLER`: S = {★} and R = {3}, or labels are off.
pub const CALLER_OWNS_ALL: u64 = 2;

/// `DOMAIN_NEW`: S = {★} and R = {3}.
pub const DOMAIN_TRUSTED: u64 = 2;

/// `SERVICE_NEW`: calls may carry a deadline.
pub const SERVICE_DEADLINE: u64 = 1;

/// `LOG`: the line comes of a program's action, and a program could cause many.
pub const ABOUT_PROGRAM: u64 = 1;
/// `LOG`: the line says what a component refused to the domain that calls it, for its label.
pub const ABOUT_REFUSED: u64 = 2;

const _: () = assert!(RETURN == crate::layout::RETURN);
