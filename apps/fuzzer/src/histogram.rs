//! How often which operation was answered how.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use runtime::abi::{Error, op};
use tool::table::{Side, Table};

/// Rows: the operations, then semaphores (P, V), ports (RECEIVE, SEND) and what is none of these.
pub const ROWS: usize = op::COUNT + 5;
/// Row of P.
pub const P: usize = op::COUNT;
/// Row of V.
pub const V: usize = P + 1;
/// Row of RECEIVE.
pub const RECEIVE: usize = V + 1;
/// Row of SEND.
pub const SEND: usize = RECEIVE + 1;
/// Row of traversals of nothing in particular.
pub const OTHER: usize = SEND + 1;
/// Columns: success, then the errors by code.
pub const COLUMNS: usize = Error::ALL.len() + 1;

/// Results that a run cannot show, and why.
pub struct Excuses {
    /// Rows of operations that cannot succeed, or are not tried.
    pub rows: &'static [(usize, &'static str)],
    /// Errors that cannot come.
    pub errors: &'static [(Error, &'static str)],
    /// Errors that must come a twentieth as often as the others.
    pub rare: &'static [(Error, &'static str)],
}

/// Of a program without any special right. `special-fuzzer` tries what is left.
pub const OF_PROGRAMS: Excuses = Excuses {
    rows: &[
        (op::DRAW, "only sigma0 has the memory; special-fuzzer tries it"),
        (op::INTERRUPT_BIND, "only drivers have an interrupt line; special-fuzzer tries it"),
        (op::IO, "only drivers have ports; special-fuzzer tries it"),
        (op::DISPATCH, "only the scheduler's seat may; special-fuzzer's scheduler tries it"),
        (op::INFO, "needs the machine; special-fuzzer tries it"),
        (op::MACHINE, "needs the machine; special-fuzzer tries it"),
        (op::SHAPE_NEW, "needs the machine; special-fuzzer tries it"),
        (op::IPC, "reserved"),
    ],
    errors: &[
        (Error::NoFrames, "accounts promise no more frames than there are, and none are taken that have to adjoin"),
        (Error::TableFull, "a table grows to 262,144 entries; the tests tables and contract fill one"),
        (Error::Flow, "a tainted domain reaches nobody any more; the tests labels and flows do that"),
        (Error::Again, "only the scheduler sees it; special-fuzzer's does"),
        (Error::NotRunnable, "only the scheduler sees it; special-fuzzer's does"),
        (Error::Shared, "a page of others is seldom torn away where one is taken; the test runtime has one"),
        (Error::IsScheduler, "only the scheduler sees it"),
        (Error::Confined, "libraries end calls with it, not the nucleus"),
        (Error::Unknown, "no code of the nucleus"),
        (Error::Taken, "only a holder of the machine takes interrupt lines; special-fuzzer does"),
        (Error::NoHandler, "the log has it, no status"),
        (Error::AtEnd, "only a holder of the machine reads lists; special-fuzzer does"),
        (Error::NoKey, "handles get their key before programs run"),
        (Error::HasKey, "only a holder of the machine sets it; the test runtime tries that"),
        (Error::TooLate, "only a holder of the machine makes room for threads; the test runtime tries that"),
        (Error::BadSpecification, "only a holder of the machine makes shapes; the test runtime tries that"),
        (Error::NotYet, "of an operation that is not drawn"),
        (Error::CodeTooLong, "only a holder of the machine makes shapes; the test runtime tries that"),
        (Error::TooManyForWindows, "its domains have few activations; the test windows has too many"),
        (
            Error::SliceTooLong,
            "few slices are too long and go with a priority that is not; the test negative-refusals has some",
        ),
        (Error::CpuNotAllowed, "its domains may use all CPUs mostly; the test negative-several has one that may not"),
        (Error::ReservedIndex, "few indices to fill are those of the nucleus; the test contract names them"),
        (Error::TooNested, "its domains nest less deep; the test negative-refusals makes the deepest"),
        (Error::ArchivePage, "it is not shown the boot archive; the test runtime is"),
        (Error::NotOffered, "only a holder of the machine makes shapes; the test runtime tries that"),
        (Error::AllThreads, "only a holder of the machine makes room for threads; no test makes it for all"),
        (Error::Withheld, "only a holder of the machine maps registers; the test runtime tries that"),
        (Error::NotItsPorts, "only drivers have ports; the test runtime tries that"),
        (Error::NoScheduler, "only a scheduler hands threads over; see tests/unseen.toml"),
        (Error::OtherCpu, "only a scheduler hands threads over; see tests/unseen.toml"),
        (Error::NotInbox, "few ports have another's inbox; the test ports has some"),
        (Error::NoTearing, "few pages are torn away where none are taken; the test runtime does that"),
        (Error::Registers, "only drivers have registers of devices; the test windows shows some"),
        (Error::TooDerived, "a copy of a copy a thousand times; the test negative-refusals does that"),
        (Error::TooOften, "a window is handed on from hand to hand; the test windows does that"),
        (Error::AccountThreads, "it has few threads; the test negative-refusals uses an account's up"),
        (Error::NoThreads, "an account has fewer than the machine; the test crowd uses the machine's up"),
        (Error::NoDomains, "there are as many as half of the machine's numbers of threads, and it has few"),
        (Error::TooManyShapes, "only a holder of the machine makes shapes; the test runtime makes all"),
        (Error::TooManyLabels, "it has few labels; the tests flows and flows-off use them up"),
        (Error::TooManyPorts, "it has few ports; the test ports puts too many into an inbox"),
        (Error::TooManyHandles, "handles are random: dozens that have all but their last bits in common do not come"),
        (Error::TooManyChanges, "2^28 changes take too long"),
        (Error::NoHandles, "2^61 handles are not used up"),
        (Error::Full, "servers and libraries end calls with it, not the nucleus"),
        (Error::RunsInIt, "originals of what a program runs in are its maker's; the test negative-refusals has one"),
    ],
    rare: &[
        (Error::TooDeep, "each takes a chain of as many calls as there may be"),
        (Error::NoSuchWay, "most numbers of what to do are those of something"),
        (Error::NotTrusted, "each takes a domain with a flag that is seldom drawn"),
        (Error::Removed, "each takes a thread that waits for what is removed"),
        (Error::Ended, "each takes a thread that has ended, with an entry that stays"),
        (Error::AccountExhausted, "its own account has some frames left mostly; those that it makes have few"),
    ],
};

fn name(row: usize) -> &'static str {
    match row {
        P => "P",
        V => "V",
        RECEIVE => "RECEIVE",
        SEND => "SEND",
        OTHER => "(calls)",
        row => op::NAMES[row],
    }
}

/// Counts.
pub struct Histogram([[u64; COLUMNS]; ROWS]);

impl Histogram {
    /// Nothing yet.
    pub fn empty() -> Self {
        Self([[0; COLUMNS]; ROWS])
    }

    /// Counts a call.
    pub fn count(&mut self, row: usize, status: u64) {
        self.0[row][(status as usize).min(COLUMNS - 1)] += 1;
    }

    /// Counts several.
    pub fn add(&mut self, row: usize, status: u64, times: u64) {
        self.0[row][(status as usize).min(COLUMNS - 1)] += times;
    }

    /// Lists the shortcomings: operations of which less than a tenth succeeded, errors that came too rarely, answers in the contract.
    pub fn missing(&self, times: u64, excuses: &Excuses) -> Vec<String> {
        let mut missing = Vec::new();
        for row in 0..OTHER {
            if !excuses.rows.iter().any(|(other, _)| *other == row) {
                missing.extend(self.fails_too_often(row));
            }
        }
        for error in Error::ALL {
            if !excuses.errors.iter().any(|(other, _)| other == error) {
                let is_rare = excuses.rare.iter().any(|(other, _)| other == error);
                missing.extend(self.comes_too_rarely(*error, if is_rare { times.div_ceil(20) } else { times }));
            }
        }
        missing.extend(self.not_in_the_contract());
        missing
    }

    /// Errors that operations ended with and the table of operations does not name.
    pub fn not_in_the_contract(&self) -> Vec<String> {
        let named = op::ERRORS.into_iter().chain(op::SEMAPHORE_ERRORS).chain(op::PORT_ERRORS);
        let mut found = Vec::new();
        for ((row, counts), named) in self.0.iter().enumerate().zip(named) {
            let is_named = |error: Error| named >> error as u32 & 1 != 0;
            let others = Error::ALL.iter().filter(|error| counts[**error as usize] > 0 && !is_named(**error));
            found.extend(others.map(|error| alloc::format!("{error:?} of {}, in the table of operations", name(row))));
        }
        found
    }

    /// The shortcoming, if less than a tenth of the calls of an operation succeeded.
    pub fn fails_too_often(&self, row: usize) -> Option<String> {
        let (done, calls) = (self.0[row][0], self.0[row].iter().sum::<u64>());
        (calls == 0 || done * 10 < calls).then(|| alloc::format!("{}: {done} of {calls} succeeded", name(row)))
    }

    /// The shortcoming, if an error came fewer times than this.
    pub fn comes_too_rarely(&self, error: Error, times: u64) -> Option<String> {
        let came: u64 = self.0.iter().map(|counts| counts[error as usize]).sum();
        (came < times).then(|| alloc::format!("{error:?}: {came} times"))
    }

    /// Calls in all.
    pub fn calls(&self) -> u64 {
        self.0.iter().flatten().sum()
    }

    /// As the parent reads it: row, column, count.
    pub fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for (row, counts) in self.0.iter().enumerate() {
            for (column, count) in counts.iter().enumerate().filter(|(_, count)| **count > 0) {
                lines.push(alloc::format!("{row} {column} {count}"));
            }
        }
        lines.push("end".to_string());
        lines
    }

    /// Adds what a child wrote; false if that is not complete.
    pub fn read(&mut self, text: &str) -> bool {
        for line in text.lines() {
            if line == "end" {
                return true;
            }
            let mut numbers = line.split(' ').map(|word| word.parse::<u64>().ok());
            let (Some(Some(row)), Some(Some(column)), Some(Some(count))) =
                (numbers.next(), numbers.next(), numbers.next())
            else {
                return false;
            };
            match self.0.get_mut(row as usize).and_then(|row| row.get_mut(column as usize)) {
                Some(place) => *place += count,
                None => return false,
            }
        }
        false
    }

    /// For a person: each operation, how much of it succeeded, and its errors.
    pub fn show(&self, excuses: &Excuses) -> Vec<String> {
        let mut table = Table::new(&[
            ("OPERATION", Side::Left),
            ("CALLS", Side::Right),
            ("DONE", Side::Right),
            ("%", Side::Right),
            ("REFUSED", Side::Left),
        ]);
        for (row, counts) in self.0.iter().enumerate() {
            let calls: u64 = counts.iter().sum();
            if calls == 0 {
                continue;
            }
            let mut errors = String::new();
            for (error, count) in Error::ALL.iter().zip(&counts[1..]).filter(|(_, count)| **count > 0) {
                errors.push_str(&alloc::format!("{error:?} {count}, "));
            }
            table.row([
                name(row).to_string(),
                calls.to_string(),
                counts[0].to_string(),
                (counts[0] * 100 / calls).to_string(),
                errors.trim_end_matches(", ").to_string(),
            ]);
        }
        let mut errors = Table::new(&[("ERROR", Side::Left), ("TIMES", Side::Right)]);
        for (column, error) in Error::ALL.iter().enumerate() {
            let times: u64 = self.0.iter().map(|counts| counts[column + 1]).sum();
            errors.row([alloc::format!("{error:?}"), times.to_string()]);
        }
        let blank = || core::iter::once(String::new());
        let mut lines: Vec<String> = table.lines().into_iter().chain(blank()).collect();
        lines.extend(errors.lines().into_iter().chain(blank()));
        lines.extend(excuses.rows.iter().map(|(row, why)| alloc::format!("not asked of {}: {why}", name(*row))));
        lines.extend(excuses.errors.iter().map(|(error, why)| alloc::format!("not asked for {error:?}: {why}")));
        lines
            .extend(excuses.rare.iter().map(|(error, why)| alloc::format!("a tenth of {error:?} is asked for: {why}")));
        lines
    }
}
