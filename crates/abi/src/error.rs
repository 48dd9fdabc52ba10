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
            /// The error of a status word; `Ok` for 0.
            pub const fn from_status(status: u64) -> Result<(), Error> {
                match status { 0 => Ok(()), $($number => Err(Error::$name),)* _ => Err(Error::Unknown) }
            }
            /// As [`Self::text`], for constants: only the texts that are used are linked.
            pub const fn text_alone(self) -> &'static str {
                match self { $(Error::$name => $doc,)* }
            }
        }

        /// The texts in the order of the codes, each with a line feed after it. This takes less room than a table of them,
        /// and each program has it.
        const TEXTS: &str = concat!($($doc, "\n"),*);
    };
}

errors! {
    1 BadIndex "portal index out of range"
    2 Empty "nothing stands at this index"
    3 Revoked "what stood at this index was revoked"
    4 WrongKind "the entry is not of the kind that the operation needs"
    5 NoRight "the entry lacks the right that the operation needs"
    6 BadAddress "not an address of user space"
    7 BadArgument "an argument is outside its range"
    8 AccountExhausted "the caller's own account has too few frames left: end what it pays for, or give it more (`account`)"
    9 NoFrames "no free frame: end a program, or give the machine more memory"
    10 Busy "no activation of the callee is free: call again later"
    11 TooDeep "the chain of calls has as many activations as it may have"
    12 PeerDied "the other side ended"
    13 Timeout "the deadline passed"
    14 Cancelled "another thread aborted the call or the wait"
    15 Flow "the labels forbid this flow"
    16 Again "part of it is done, or others must do theirs first: try again"
    17 NotMapped "nothing is mapped there"
    18 Occupied "something is at the destination already"
    19 TableFull "no free index in the portal table"
    20 SameDomain "the domain itself: memory goes to others only"
    21 NoCaller "nobody called"
    22 NoThreads "the machine has no room for one more thread or domain: end some"
    23 NotAccepted "the receiver has no index for a delegated entry"
    24 NotRunnable "the thread is not waiting to be dispatched"
    25 WindowGone "the window is not open any more"
    26 NotAligned "the address is not a multiple of the size"
    27 Reserved "message areas or windows are there"
    28 Registers "registers of a device are neither lent, torn away nor code"
    29 NotNew "the domain has an activation or a page already"
    30 Taken "the interrupt line has an entry already"
    31 TooNested "domains made by domains have no more levels"
    32 TooDerived "too many copies of copies: copy what is nearer to the original"
    33 TooOften "the window was handed on as often as it may be"
    34 RunsInIt "the caller runs in it: somebody else must remove it"
    35 ThreadRuns "the running thread cannot send itself elsewhere"
    36 AccountThreads "the account has as many threads and domains as it may have"
    37 NoDomains "there are as many domains as there can be: end some"
    38 TooManyActivations "the domain has as many activations as it may have"
    39 TooManyShapes "there are as many shapes of portals as there can be"
    40 TooManyLabels "the portals of the domain have as many labels as they may have"
    41 TooManyHandles "a label has no room for one more handle with like bits"
    42 TooManyMessages "a port has room for fewer messages of that size"
    43 TooManyPorts "the inbox has as many ports as it may have"
    44 TooManyChanges "the labels of the domain were changed as often as can be counted"
    45 NoHandles "all handles were given out"
    46 Full "the server has no room for one more"
    47 NotOwned "the domain does not own the handle"
    48 PriorityTooHigh "a higher priority than the highest that may be given"
    49 NotMaker "only the domain's maker may do that, or another if the nucleus made it"
    50 PageRights "the page does not have that right"
    51 WritableCode "a page is never both writable and executable"
    52 Shared "other domains have the page, too"
    53 NotScheduler "the caller does not schedule this CPU"
    54 IsScheduler "a scheduler cannot do that"
    55 NoDeadline "the service takes no deadlines"
    56 Borrowed "in a call the running thread is the caller's"
    57 Confined "the program may not use that service"
    58 Unknown "an error that this program does not know"
    59 NoHandler "nobody handles it"
    60 AtEnd "the list ends before this position"
    61 NotThere "this machine has nothing of that number"
    62 NoKey "handles have no key yet"
    63 HasKey "handles have their key already"
    64 Removed "what was used or waited for was removed"
    65 Ended "the thread has ended"
    66 NotParent "neither account is the parent of the other"
    67 NotInbox "messages of the port are taken at its inbox"
    68 TooLong "longer than a message of the port may be"
    69 BadSpecification "not the specification of a portal"
    70 NotOffered "the nucleus makes no portals of this kind"
    71 Withheld "no driver gets that memory"
    72 NotItsPorts "the entry has not all of these ports"
    73 NoScheduler "no scheduler has a seat on that CPU"
    74 OtherCpu "the thread may not run on that CPU"
    75 TooLate "a scheduler has a seat already"
    76 NoTearing "the receiver takes no torn pages"
    77 BadControl "the portal takes no such control word"
    78 NotTrusted "only for a domain that owns all handles"
    79 AllThreads "there is room for as many threads as there can be"
    80 AccountsTooNested "accounts of accounts have no more levels"
    81 TooManyForWindows "a domain that takes windows has 32 activations at most"
    82 SliceTooLong "a longer slice than the longest that may be given"
    83 CpuNotAllowed "a CPU that may not be given"
    84 ArchivePage "a page of the boot archive is neither written nor moved"
    85 ReservedIndex "the index is reserved for the nucleus"
    86 NoSuchWay "the operation has no function of this number"
    87 CodeTooLong "the code of the portal is longer than 1,024 bytes"
    88 NotYet "the operation is reserved for later"
    89 OtherExhausted "the account that was given, or that of the other domain, has too few frames left: give it more"
}

impl Error {
    /// A text for people.
    pub const fn text(self) -> &'static str {
        let (mut line, mut start, mut end) = (1, 0, 0);
        while end < TEXTS.len() {
            if TEXTS.as_bytes()[end] == b'\n' {
                if line == self as u64
                    && let Some((lines, _)) = TEXTS.split_at_checked(end)
                    && let Some((_, text)) = lines.split_at_checked(start)
                {
                    return text;
                }
                line += 1;
                start = end + 1;
            }
            end += 1;
        }
        ""
    }
}

const _: () = {
    let mut index = 0;
    while index < Error::ALL.len() {
        assert!(Error::ALL[index] as usize == index + 1, "codes are consecutive");
        index += 1;
    }
};

impl core::fmt::Display for Error {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(self.text())
    }
}

impl core::error::Error for Error {}
