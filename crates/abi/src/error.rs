//! Why the nucleus refused: one code per cause.

macro_rules! errors {
    ($($number:literal $name:ident $doc:literal)*) => {
        /// Why the nucleus refused. No two causes share a code.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        #[repr(u64)]
        pub enum Error { $(#[doc = $doc] $name = $number,)* }

        impl Error {
            /// Every error with its code, for tables and tests.
            pub const ALL: &'static [Error] = &[$(Error::$name),*];
            /// The error of a status word; `Ok` for 0 and for unknown codes `BadArgument`.
            pub const fn from_status(status: u64) -> Result<(), Error> {
                match status { 0 => Ok(()), $($number => Err(Error::$name),)* _ => Err(Error::BadArgument) }
            }
            /// What happened, for people.
            pub const fn text(self) -> &'static str {
                match self { $(Error::$name => $doc,)* }
            }
        }
    };
}

errors! {
    1 BadIndex "portal index out of range"
    2 Empty "nothing stands at this index"
    3 Revoked "what stood at this index was revoked"
    4 WrongKind "the entry is not of the kind that the operation needs"
    5 NoRight "the entry lacks the right that the operation needs"
    6 BadAddress "address not canonical, not aligned, or outside the user range"
    7 BadArgument "an argument has no meaning here"
    8 AccountExhausted "the account that should pay has nothing left"
    9 NoFrames "no free frame"
    10 Busy "no activation of the callee is free, or it is in use"
    11 TooDeep "the chain, the derivation or the nesting would be too deep"
    12 PeerDied "the other side died"
    13 Timeout "the deadline passed"
    14 Cancelled "aborted by another thread"
    15 Flow "the labels forbid this flow"
    16 Again "part of it is done, or others must do theirs first: try again"
    17 NotMapped "nothing is mapped there"
    18 Occupied "the destination is in use"
    19 TableFull "no free index in the portal table"
    20 WouldCycle "a domain cannot map memory to itself or destroy what it runs in"
    21 NoCaller "there is no call to return from"
    22 LimitReached "a fixed limit of the nucleus is reached"
    23 NotAccepted "the receiver takes no delegated entry"
    24 NotRunnable "the thread is not waiting to be dispatched"
    25 WindowGone "the window is not open any more"
}

impl core::fmt::Display for Error {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(self.text())
    }
}

impl core::error::Error for Error {}
