//! Kernel operations: portal indices 1 to 31 of every table.
//!
//! Operands are words 0 to 5. A *domain operand*, *account operand* and so on is an index of the
//! caller's table; 0 means the caller's own domain or account. An *index to fill* is an index of the
//! named domain's table, 0 = the nucleus chooses a free one; the chosen index is the result.
//! Addresses and sizes are bytes unless said otherwise; an *order* counts pages as 2^order.
//! Every operation may end with `BadIndex`, `Empty`, `Revoked`, `WrongKind` or `NoRight` for an
//! operand; further errors are named.

/// `() -> number`: the number of the running thread.
pub const THREAD_ID: usize = 1;
/// `() -> nanoseconds` since boot, monotonic.
pub const CLOCK: usize = 2;
/// `()`: lets another thread of the same priority run.
pub const YIELD: usize = 3;
/// `(status)`: ends the running thread; of the first thread of a domain: the domain, with this status.
/// In a called activation it is a return with `PeerDied` for the caller.
pub const EXIT: usize = 4;
/// `(account, table_order, flags, index to fill, name as 8 bytes, next 8 bytes) -> index`: a domain
/// charged to the account. Flags: [`DOMAIN_FPU`], [`DOMAIN_TRUSTED`]. `AccountExhausted`, `NoFrames`,
/// `BadArgument`, `TableFull`, `Occupied`.
pub const DOMAIN_NEW: usize = 5;
/// `(domain, status)`: the domain stops for good. Needs CONTROL. Callers in it get `PeerDied`: at once where
/// it runs, and where it sleeps with `ENTRY_REMOVE` of its original entry, with which goes what it owns.
pub const DOMAIN_KILL: usize = 6;
/// `(domain, what, a, b, c)`: sets one of [`SET_FAULT_RANGE`] and the like. Needs CONTROL.
pub const DOMAIN_SET: usize = 7;
/// `(parent account, frames, index to fill, numbers) -> index`: an account filled from the parent's. The domains that it, and
/// accounts made from it, pay for have at most so many numbers of threads, 0 = as many as the parent's may.
/// `AccountExhausted`, `TooDeep`.
pub const ACCOUNT_NEW: usize = 8;
/// `(from account, to account, frames)`: moves unused frames; one must be the parent of the other.
/// `AccountExhausted`, `BadArgument`.
pub const ACCOUNT_MOVE: usize = 9;
/// `(domain, stack top, receive index) -> message area`: adds an activation to the domain's pool.
/// The receive index is where entries delegated to it are put (0 = none are accepted).
/// `AccountExhausted`, `BadAddress`, `LimitReached`.
pub const ACTIVATION_NEW: usize = 10;
/// `(domain, instruction pointer, stack top, argument, priority | slice in microseconds << 8, index to
/// fill) -> index`: a thread that starts there. `AccountExhausted`, `BadAddress`, `BadArgument`, `LimitReached`.
pub const THREAD_NEW: usize = 11;
/// `(thread, priority | slice in microseconds << 8, CPUs) -> old priority`; thread 0 = the running one. Needs
/// CONTROL. A thread cannot be raised above the highest priority of its domain or of the caller's, nor get a longer slice than
/// the longest of both; thread 0 in a call is the caller's, and is refused (`NoRight`). CPUs: a bit for each on which it may
/// run, 0 = as before; it must be able to run on one that is there and that its domain may use. `BadArgument`,
/// `NoRight`.
pub const THREAD_SCHEDULE: usize = 12;
/// `(thread, instruction pointer, stack pointer) -> old instruction pointer`: aborts what the thread
/// waits for or calls (`Cancelled`) and sets where it goes on; `NEVER` leaves a register as it is. Needs CONTROL.
pub const THREAD_EX_REGS: usize = 13;
/// `(from domain, index, to domain, index to fill, rights) -> index`: copies an entry with reduced rights.
/// A service can be copied as it is; a call entry cannot, nor what is being removed or of a dead domain (`Revoked`). `TooDeep`,
/// `Occupied`, `TableFull`.
pub const ENTRY_COPY: usize = 14;
/// `(domain, index)`: empties an entry and all derived from it; an original destroys its object.
/// `WouldCycle` for the domain or account the caller runs in.
pub const ENTRY_REMOVE: usize = 15;
/// `(domain, index)`: empties all entries derived from this one.
pub const ENTRY_REVOKE: usize = 16;
/// `(to domain, source address, destination address, order, rights)`: maps pages of the caller's
/// space into another (`MAP_*`, with `MAP_GRANT` moves them). `NotMapped` if a source page is not
/// mapped or being unmapped everywhere, `Occupied` if a destination page is, `WouldCycle` for the caller itself, `BadAddress`,
/// `NoRight` (more rights than the source has, or writable and executable), `AccountExhausted`, `TooDeep`.
/// Pages before the failing one stay mapped.
pub const MAP: usize = 17;
/// `(domain, address, order, rights to take away | UNMAP_SELF)`: reduces (or, with `MAP_READ`, ends)
/// all mappings derived from these pages; with `UNMAP_SELF` these too. Unmapped pages are skipped.
pub const UNMAP: usize = 18;
/// `(memory, account, domain, address, order, rights)`: draws 2^order clear frames charged to the
/// account and maps them as originals in the domain. A domain as account stands for its own account. `AccountExhausted`, `NoFrames`, `Occupied`,
/// `BadAddress`, `NoRight`. Pages before the failing one stay mapped.
pub const DRAW: usize = 19;
/// `(domain, entry address, flags, index to fill) -> index`: an entry point of the domain.
pub const SERVICE_NEW: usize = 20;
/// `(to domain, service, badge, index to fill, ceiling) -> index`: a call entry for that domain to the
/// service. A call has at least the priority `ceiling`, until it returns. Needs USE on the service. `Occupied`, `TableFull`,
/// `TooDeep`, `BadArgument` (no priority), `NoRight` (above the caller's highest).
pub const PORTAL_NEW: usize = 21;
/// `(account, count, index to fill) -> index`: a semaphore. `AccountExhausted`, `BadArgument`.
pub const SEMAPHORE_NEW: usize = 22;
/// `(interrupt, semaphore)`: binds the line to the semaphore and enables it; semaphore 0 = only
/// enables the line again after an interrupt. A new binding takes the place of the old one.
pub const INTERRUPT_BIND: usize = 23;
/// `(ports, offset, value, [`PORT_READ`] or [`PORT_WRITE`]) -> value`: one byte of I/O space.
pub const PORT: usize = 24;
/// `(0, thread number)`: `sched` lets the thread run; does not return then. `Again` if the ring has
/// something new, `NotRunnable` (it is not ready, or another CPU's). `(1 + cpu, thread number)`: the thread, which is
/// ready and was taken out of a ring, belongs to that CPU from now on and goes to its ring; `NotRunnable`,
/// `BadArgument` if it may not run there. `NoRight` for who is not a scheduler. No operand is looked up.
pub const DISPATCH: usize = 25;
/// `(machine, what, position) -> value`: fills the message area from the nucleus's lists ([`crate::info`]).
pub const INFO: usize = 26;
/// `(machine, what, value, index to fill)`: [`MACHINE_STOP`] and the like. Needs WRITE. The index counts for
/// those that make an entry: `Occupied`, `TableFull`.
pub const MACHINE: usize = 27;
/// `(bytes, about)`: appends bytes of the message area, at most 256 (`BadArgument`), to the kernel log with the
/// domain's name before them: to the part for nucleus and components, or, of a program (a domain that a component made, or
/// one made by such), with its number behind the name, to that for programs. There, too, what a component says with
/// `about` = [`ABOUT_PROGRAM`].
pub const LOG: usize = 28;
/// `(what, value)`: sets a property of the running activation ([`ACTIVATION_RECEIVE`] and the like).
pub const ACTIVATION_SET: usize = 29;
/// `(domain, index) -> kind | rights << 8 | number << 16`: the number of the domain, if that is what the entry stands for, else 0.
pub const ENTRY_INFO: usize = 30;
/// Reserved for L4 IPC: `BadArgument` until then.
pub const IPC: usize = 31;

/// Names of the operations by index, for traces and tables.
pub const NAMES: [&str; 32] = [
    "return",
    "thread_id",
    "clock",
    "yield",
    "exit",
    "domain_new",
    "domain_kill",
    "domain_set",
    "account_new",
    "account_move",
    "activation_new",
    "thread_new",
    "thread_schedule",
    "thread_ex_regs",
    "entry_copy",
    "entry_remove",
    "entry_revoke",
    "map",
    "unmap",
    "draw",
    "service_new",
    "portal_new",
    "semaphore_new",
    "interrupt_bind",
    "port",
    "dispatch",
    "info",
    "machine",
    "log",
    "activation_set",
    "entry_info",
    "ipc",
];

/// First word to a semaphore entry: P, word 1 = absolute deadline in nanoseconds (0 = only if it need
/// not wait), word 2 = number from 1 of the activation of the caller's domain that holds what is waited
/// for, which gets the caller's priority meanwhile (0 = none). `Timeout`, `Cancelled`, `PeerDied` when the semaphore goes.
pub const P: u64 = 0;
/// First word to a semaphore entry: V.
pub const V: u64 = 1;

/// `DOMAIN_NEW`: its activations keep floating-point state.
pub const DOMAIN_FPU: u64 = 1;
/// `DOMAIN_NEW`: `S = {★}`, `R = {3}` once labels exist.
pub const DOMAIN_TRUSTED: u64 = 2;

/// `DOMAIN_SET`: `(slot 0..4, start, end)`: page faults in start..end go to the upcall portal at
/// `layout::PAGE_FAULT[slot]`.
pub const SET_FAULT_RANGE: u64 = 0;
/// `DOMAIN_SET`: `(semaphore)`: V on it when the domain dies. Needs WRITE on it. Only for the domain's maker, or, of a domain that
/// the nucleus made, for another one: else `NoRight`.
pub const SET_DEATH_SEMAPHORE: u64 = 1;
/// `DOMAIN_SET`: `(1 = as standby | cpu << 8, entry address, stack top) -> message area`: the domain takes the
/// scheduler's seat of that CPU, or stands by for all CPUs; the message area of the seat is the ring
/// ([`crate::sched::Ring`]). The CPU's number is word 2 when a seat is entered. `BadArgument` if there is no such CPU. The caller needs
/// the machine with CONTROL at `layout::SPECIAL`.
pub const SET_SCHEDULER: u64 = 2;
/// `DOMAIN_SET`: `(priority)`: highest priority its threads may have.
pub const SET_MAX_PRIORITY: u64 = 3;

/// `DOMAIN_SET`: `(CPUs)`: a bit for each CPU on which its threads, and those of domains made by it from now on,
/// may run. `BadArgument` if none of them is there, `NoRight` if the caller's domain may not use them all.
pub const SET_CPUS: u64 = 4;

/// `DOMAIN_SET`: `(microseconds)`: the longest slice that its threads, and those of domains made by it from now on, may have.
/// `BadArgument` (0, or above [`crate::MAX_SLICE_MICROSECONDS`]), `NoRight` (above the caller's own).
pub const SET_MAX_SLICE: u64 = 5;

/// `DOMAIN_SET`: `(percent)`: the share of each CPU's time that threads which it gets from now on, and those of domains made by it
/// from now on, have ahead of others, together with all others that have a share; 0 = all of it. `BadArgument` (above
/// 100). The caller needs the machine with CONTROL at `layout::SPECIAL`.
pub const SET_SHARE: u64 = 6;

/// `SERVICE_NEW`: calls may carry a deadline.
pub const SERVICE_DEADLINE: u64 = 1;

/// `LOG`: the line comes of what a program did, who could make many of them.
pub const ABOUT_PROGRAM: u64 = 1;

/// `ACTIVATION_SET`: index where entries delegated to this activation go (0 = none accepted).
pub const ACTIVATION_RECEIVE: u64 = 0;
/// `ACTIVATION_SET`: thread pointer (FS base).
pub const ACTIVATION_THREAD_POINTER: u64 = 1;

/// `PORT`: read a byte.
pub const PORT_READ: u64 = 0;
/// `PORT`: write a byte.
pub const PORT_WRITE: u64 = 1;
/// `PORT`: read four bytes at once; all four ports must be the entry's.
pub const PORT_READ_LONG: u64 = 2;
/// `PORT`: write four bytes at once; all four ports must be the entry's.
pub const PORT_WRITE_LONG: u64 = 3;

/// `MACHINE`: stop the machine; the value (0 to 127) is its exit status.
pub const MACHINE_STOP: u64 = 0;
/// `MACHINE`: makes an interrupt-line entry for the line `value` -> index. `Busy` if there is one.
pub const MACHINE_INTERRUPT: u64 = 1;
/// `MACHINE`: makes an I/O-ports entry for `value = first | count << 16` -> index.
pub const MACHINE_PORTS: u64 = 2;
/// `MACHINE`: V on the semaphore whose index is `value` whenever the log grows.
pub const MACHINE_LOG_SEMAPHORE: u64 = 3;
/// `MACHINE`: shows the boot archive, for reading, to the domain whose index is `value`, at
/// [`crate::layout::ARCHIVE`] and for as long as the domain lives. Needs WRITE on the domain too. `Occupied`
/// if something is mapped there.
pub const MACHINE_ARCHIVE: u64 = 4;
/// `MACHINE`: maps the page of device registers at the physical address `value` in the caller, readable and
/// writable, never cached, at the address in word 3. It can be mapped on like any page. Needs CONTROL.
/// `BadArgument` for what is RAM or not a page, `BadAddress`, `Occupied`, `AccountExhausted`.
pub const MACHINE_DEVICE: u64 = 5;
/// `MACHINE`: physical address of the page at the caller's address `value`, for devices that read and write
/// memory. Needs CONTROL. `NotMapped`, `BadAddress`.
pub const MACHINE_PHYSICAL: u64 = 6;
/// `MACHINE`: maps page number `value` of the device tree, for reading, in the caller, at the address in word 3 ->
/// `offset of its begin in the first page | bytes << 12`. Needs CONTROL. `Empty` on a machine that has none, `BadArgument`
/// behind its end, `BadAddress`, `Occupied`, `AccountExhausted`.
pub const MACHINE_TREE: u64 = 7;
