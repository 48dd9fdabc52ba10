//! The table of kernel operations. It is written here and nowhere else; [`crate::op`] has what comes of it.

/// Hands every kernel operation to the macro `$use`, in the order of their numbers: a row's number is its position.
///
/// A row says what the operation does, its operands (word 0 first), what comes back in word 0, how it is entered, and every
/// error with what causes it:
///
/// ```text
/// /// Doc.
/// CONSTANT name(operand: Kind RIGHT… "more about it", …) -> Result "meaning", Class "step" {
///     Error: "cause", "another cause above" LIMIT;
/// }
/// ```
///
/// Kinds are those of [`crate::op::OperandKind`]; what an operand of a kind can end the operation with
/// ([`OperandKind::errors`](crate::op::OperandKind::errors)) is not said again. A cause may end with the name of a limit,
/// whose value it then shows. A step is what is done between two preemption points.
#[macro_export]
macro_rules! operations {
    ($use:ident) => {
        $use! {
    /// Returns to the caller of the running activation, with words and what the control word says.
    RETURN r#return(word0: Number, word1: Number, word2: Number, word3: Number, word4: Number "or the badge of what is minted", control: Flags)
        -> Nothing "does not come back", Assembly {
        NoCaller: "there is no call to return from";
        BadControl: "control bits without meaning here";
        BadArgument: "bytes of the message area above" MESSAGE_BYTES, "pages that are torn away, more than" MAX_TORN;
        NotAccepted: "the caller takes no entry";
        NoTearing: "the caller takes no torn pages";
        BadIndex: "the delegated entry is outside the table";
        Empty: "nothing to delegate";
        Revoked: "the delegated entry was revoked, or is being removed";
        WrongKind: "what is minted from is no service", "the delegated entry is a kernel operation or a call entry";
        NoRight: "the delegated entry lacks COPY, or USE to be minted from";
        Registers: "a torn page is of registers of a device";
        ArchivePage: "a torn page is of the boot archive";
        Shared: "a torn page that others have, too";
        ReservedIndex: "the caller takes entries at an index of the nucleus";
        Occupied: "something stands where the caller takes entries", "something is mapped where it takes torn pages";
        TooDerived: "a chain of copies, from the original of the entry on, longer than" MAX_DERIVATION;
        BadAddress: "torn pages outside of user space";
        Reserved: "torn pages in message areas or windows";
        NotMapped: "a torn page that is not there";
        SameDomain: "torn pages for the own domain";
        OtherExhausted: "the account of who called has no room for torn pages";
        NoFrames: "no free frame for their page tables";
    }
    /// The number of the running thread.
    THREAD_ID thread_id() -> Number "number of the running thread", Assembly {}
    /// The time since boot, monotonic.
    CLOCK clock() -> Number "nanoseconds since boot", Light {}
    /// Lets another thread of the same priority run.
    YIELD r#yield() -> Nothing, Light {
        IsScheduler: "the caller is a scheduler";
    }
    /// Ends the running thread; of the first thread of a domain: the domain, with this status.
    /// In a called activation it is a return with `PeerDied` for the caller.
    EXIT exit(status: Number) -> Nothing "does not come back", Light {}
    /// A domain charged to the account, which has all rights to it. Flags: [`DOMAIN_FPU`], [`DOMAIN_TRUSTED`]. It has the labels of its
    /// maker, but owns nothing, and accepts no taint above 2 of what its maker owns.
    DOMAIN_NEW domain_new(account: Account WRITE, flags: Flags, index_to_fill: Fill, name: Number "8 bytes", more_of_name: Number "8 bytes")
        -> Index, Full {
        BadArgument: "an unknown flag";
        NotTrusted: "DOMAIN_TRUSTED, and the caller is not trusted itself";
        TooNested: "domains made by domains, levels above" MAX_NESTING;
        AccountThreads: "the thread that carries its orphans";
        NoThreads: "the same";
        NoDomains: "domains, or address spaces";
        AccountExhausted: "of the caller's own account: too few frames for domain, table and page tables";
        OtherExhausted: "the same of another account";
        NoFrames: "no free frame for these";
    }
    /// The domain stops for good. Callers in it get `PeerDied`: at once where it runs, and where it sleeps with
    /// [`ENTRY_REMOVE`] of its original entry, with which goes what it owns.
    DOMAIN_KILL domain_kill(domain: Domain CONTROL, status: Number "the low 8 bits count") -> Nothing, Full "the line in the log, the death" {}
    /// Sets one of [`SET_FAULT_RANGE`] and the like.
    DOMAIN_SET domain_set(domain: Domain CONTROL, what: Number, a: Number, b: Number, c: Number) -> Number "value, if the property has one", Full {
        NoSuchWay: "no such property";
    }
    /// An account filled from the parent's. The domains that it, and accounts made from it, pay for have at most so many numbers
    /// of threads. Objects that it pays for have its label.
    ACCOUNT_NEW account_new(parent: Account WRITE, frames: Number, index_to_fill: Fill, numbers: Number "0 = as many as the parent's", label: Label READ "0 = the send label that a new domain would have")
        -> Index, Full {
        AccountExhausted: "the parent, the caller's own account, has too few frames left, for the label, too";
        OtherExhausted: "the same of another parent";
        Flow: "the caller may not change what has the label";
        AccountsTooNested: "accounts of accounts, levels above" MAX_ACCOUNT_DEPTH;
        NoFrames: "no free frame for the account itself";
        TooManyHandles: "handles with like bits, more than a label has room for";
    }
    /// Moves unused frames between an account and its parent.
    ACCOUNT_MOVE account_move(from: Account WRITE, to: Account WRITE, frames: Number) -> Nothing, Full {
        AccountExhausted: "from the caller's own account: fewer frames are unused";
        OtherExhausted: "the same of another account";
        NotParent: "neither account is the parent of the other";
    }
    /// Adds an activation to the domain's pool. The receive index is where entries delegated to it are put.
    ACTIVATION_NEW activation_new(domain: Domain CONTROL, stack_top: Address, receive: Index "0 = no entry is accepted") -> Number "address of the message area", Full {
        BadAddress: "the stack top is no user address";
        TooManyActivations: "activations of the domain, more than" MAX_ACTIVATIONS;
        TooManyForWindows: "in a domain that takes windows, more than 32";
        AccountExhausted: "in a domain that the caller's account pays for: too few frames for activation, message area and page tables";
        OtherExhausted: "the same of another account";
        NoFrames: "no free frame for these";
    }
    /// A thread that starts there.
    THREAD_NEW thread_new(domain: Domain CONTROL, instruction: Address, stack_top: Address, argument: Number, schedule: Number "priority + 256 · slice in µs", index_to_fill: Fill)
        -> Index, Full {
        BadArgument: "priority above" MAX_PRIORITY, "slice in µs above" MAX_SLICE_MICROSECONDS;
        PriorityTooHigh: "priority above the highest of the domain or of the caller's";
        SliceTooLong: "slice above the longest of the domain or of the caller's";
        BadAddress: "instruction or stack top is no user address";
        AccountThreads: "threads and domains that the account and those above it pay for";
        NoThreads: "threads and domains of the machine";
        TooManyActivations: "activations of the domain, more than" MAX_ACTIVATIONS;
        TooManyForWindows: "in a domain that takes windows, more than 32";
        AccountExhausted: "in a domain that the caller's account pays for: too few frames for thread, activation, message area and page tables";
        OtherExhausted: "the same of another account";
        NoFrames: "no free frame for these";
    }
    /// Sets priority, slice and CPUs of a thread. It cannot be raised above the highest priority of its domain or of the
    /// caller's, nor get a longer slice than the longest of both. CPUs: a bit for each on which it may run; it must be able to
    /// run on one that is there and that its domain may use.
    THREAD_SCHEDULE thread_schedule(thread: Thread CONTROL "0 = the running one", schedule: Number "priority + 256 · slice in µs", cpus: Flags "0 = as before") -> Number "old priority", Full {
        BadArgument: "priority above" MAX_PRIORITY, "slice in µs above" MAX_SLICE_MICROSECONDS;
        NotThere: "none of the CPUs";
        PriorityTooHigh: "priority above the highest of its domain or of the caller's";
        SliceTooLong: "slice above the longest of its domain or of the caller's";
        CpuNotAllowed: "a CPU that its domain may not use";
        Borrowed: "thread 0 in a call";
        IsScheduler: "thread 0, and the caller is a scheduler";
    }
    /// Aborts what the thread waits for or calls (`Cancelled`) and sets where it goes on; [`crate::NEVER`] leaves a register as
    /// it is.
    THREAD_EX_REGS thread_ex_regs(thread: Thread CONTROL, instruction: Address, stack: Address) -> Number "old instruction pointer", Full {
        ThreadRuns: "the running thread, which 0 is, too";
        Ended: "the thread has ended";
        BadAddress: "instruction or stack is no user address";
    }
    /// Copies an entry with reduced rights. A service can be copied as it is; a call entry cannot.
    ENTRY_COPY entry_copy(from: Domain USE, index: Index, to: Domain WRITE, index_to_fill: Fill, rights: Flags) -> Index, Full {
        BadArgument: "rights above 255";
        Empty: "nothing stands there";
        Revoked: "what stood there was revoked, or is being removed";
        WrongKind: "a kernel operation, or a call entry";
        OtherExhausted: "no frame of the other domain's account left for its table";
        NoRight: "the entry lacks COPY";
        TooDerived: "a chain of copies, from the original of the entry on, longer than" MAX_DERIVATION;
    }
    /// Empties an entry and all derived from it; an original destroys its object.
    ENTRY_REMOVE entry_remove(domain: Domain CONTROL, index: Index) -> Nothing, Full "a few entries, pages or activations" {
        Empty: "nothing stands there";
        WrongKind: "a kernel operation";
        RunsInIt: "the original of what the caller runs in: a domain, or one that made it, a thread, an account";
    }
    /// Empties all entries derived from this one.
    ENTRY_REVOKE entry_revoke(domain: Domain CONTROL, index: Index) -> Nothing, Full "5 entries" {
        Empty: "nothing stands there";
        Revoked: "what stood there was revoked";
        WrongKind: "a kernel operation";
    }
    /// Maps pages of the caller's space into another (`MAP_*` of [`crate::rights`], with `MAP_GRANT` moves them). Pages before a
    /// failing one stay mapped.
    MAP map(to: Domain WRITE, source: Address, destination: Address, order: Order, rights: Rights) -> Nothing, Full "a page" {
        SameDomain: "to oneself";
        BadArgument: "an unknown right", "order above" MAX_ORDER;
        BadAddress: "a flexpage that is not all of user space";
        NotAligned: "the address of a flexpage is no multiple of its size";
        Reserved: "message areas or windows are in it";
        WritableCode: "writable and executable together";
        PageRights: "more rights than the source has";
        ArchivePage: "the boot archive where it is shown whole, granted or writable";
        Registers: "a grant that makes registers of a device executable";
        Shared: "a grant that makes a page executable which others have, too";
        Flow: "others have the page, too, and who writes it may not change what has its label", "or who reads it may not observe that";
        NotMapped: "a source page is not mapped, which it is no more once its unmapping everywhere has begun";
        Occupied: "something is mapped at the destination";
        AccountExhausted: "too few frames of the caller's account for the mapping";
        OtherExhausted: "too few frames of the other domain's account for page tables";
        NoFrames: "no free frame for these";
        TooDerived: "a chain of copies, from the original of the page on, longer than" MAX_DERIVATION;
    }
    /// Reduces (or, with `MAP_READ`, ends) all mappings derived from these pages; with `UNMAP_SELF` these too. Unmapped pages are
    /// skipped.
    UNMAP unmap(domain: Domain CONTROL, address: Address, order: Order, rights: Rights "to take away, and UNMAP_SELF") -> Nothing, Full "a few mappings" {
        BadArgument: "an unknown bit, or nothing to take away", "order above" MAX_ORDER;
        BadAddress: "a flexpage that is not all of user space";
        NotAligned: "the address of a flexpage is no multiple of its size";
        Reserved: "message areas or windows are in it";
    }
    /// Draws 2^order clear frames charged to the account and maps them as originals in the domain. Pages before a failing one stay
    /// mapped.
    DRAW draw(memory: Memory USE, account: Account WRITE "or a domain, for its account", domain: Domain WRITE, address: Address, order: Order, rights: Rights)
        -> Nothing, Full "a page" {
        BadArgument: "an unknown right", "order above" MAX_ORDER;
        BadAddress: "a flexpage that is not all of user space";
        NotAligned: "the address of a flexpage is no multiple of its size";
        Reserved: "message areas or windows are in it";
        WritableCode: "writable and executable together";
        Occupied: "something is mapped there";
        AccountExhausted: "of the caller's own account: too few frames for the pages, or, as the domain's, for page tables";
        OtherExhausted: "the same of another account";
        NoFrames: "no free frame";
    }
    /// An entry point of the domain. Flags: [`SERVICE_DEADLINE`]. Calls to it are those of the shape. The label is that of its portals: a caller whose send
    /// label is not below it gets `Flow`.
    SERVICE_NEW service_new(domain: Domain CONTROL, entry_address: Address, flags: Flags, index_to_fill: Fill, shape: Shape USE, label: Label READ "0 = {3}") -> Index, Full {
        BadAddress: "the entry address is no user address";
        BadArgument: "an unknown flag", "deadlines with a shape";
        TooManyForWindows: "a shape whose calls pass windows, and more than 32 activations";
        TooManyLabels: "labels of portals of the domain, more than" MAX_PORTAL_LABELS;
        TooManyHandles: "handles with like bits, more than a label has room for";
        AccountExhausted: "in a domain that the caller's account pays for: too few frames for the label";
        OtherExhausted: "the same of another account";
        NoFrames: "no free frame for the label";
    }
    /// A call entry for that domain to the service. A call has at least the priority of the ceiling, until it returns.
    PORTAL_NEW portal_new(to: Domain WRITE, service: Service USE, badge: Number, index_to_fill: Fill, ceiling: Number) -> Index, Full {
        BadArgument: "ceiling above" MAX_PRIORITY;
        PriorityTooHigh: "the ceiling is above the caller's highest priority";
        OtherExhausted: "no frame of the other domain's account left for its table";
        TooDerived: "a chain of copies, from the original of the service on, longer than" MAX_DERIVATION;
    }
    /// A semaphore.
    SEMAPHORE_NEW semaphore_new(account: Account WRITE, count: Number, index_to_fill: Fill) -> Index, Full {
        BadArgument: "count above" MAX_COUNT;
        AccountExhausted: "of the caller's own account: no frame left for the semaphore";
        OtherExhausted: "the same of another account";
        NoFrames: "no free frame for it";
    }
    /// Binds the line to the semaphore and enables it. A new binding takes the place of the old one.
    INTERRUPT_BIND interrupt_bind(interrupt: Interrupt WRITE, semaphore: Semaphore WRITE "0 = only enables the line again after an interrupt") -> Nothing, Full {}
    /// One access to I/O space: [`IO_READ`] and the like.
    IO io(ports: IoPorts WRITE, offset: Number, value: Number, way: Number) -> Number "what was read", Light {
        NoSuchWay: "no such way";
        NotItsPorts: "not all ports of the access";
    }
    /// Of a scheduler. `what` 0: the thread runs; 0 as thread: the CPU sleeps until an interrupt. `what` 1 + CPU: the thread, which is
    /// ready and was taken out of a ring, belongs to that CPU from now on and goes to its ring. No operand is looked up.
    DISPATCH dispatch(what: Number, thread_number: Number) -> Nothing "comes back only from a handing over", Dispatch {
        NotScheduler: "the caller does not schedule this CPU";
        Again: "the ring holds entries that were not read", "threads of a hand-over are still to be posted";
        NotRunnable: "no such thread, it is not ready, or another CPU's", "it was migrated", "to be handed over: it stands in a ring still";
        NotThere: "the CPU to hand over to";
        NoScheduler: "of the CPU to hand over to";
        OtherCpu: "to be handed over";
    }
    /// Fills the message area from the nucleus's lists ([`crate::info`]).
    INFO info(machine: Machine READ, what: Number "the list", position: Number) -> Number "next position", Full "32 domains, 64 threads or 32 entries" {
        NoSuchWay: "no such list";
        AtEnd: "nothing of the list is at the position, nor after it";
    }
    /// [`MACHINE_STOP`] and the like.
    MACHINE machine(machine: Machine WRITE, what: Number, value: Number, more: Number) -> Number "value, if it has one", Full {
        NoSuchWay: "nothing of that number can be done";
    }
    /// Appends bytes of the message area to the kernel log with the domain's name before them: to the part for nucleus and
    /// components, or, of a program (a domain that a component made, or one made by such), with its number after the name, to
    /// that for programs. There, too, what a component says with `about` = [`ABOUT_PROGRAM`]. With [`ABOUT_REFUSED`], a component that serves a call adds
    /// a line about its caller to the part for what labels forbade.
    LOG log(bytes: Number, about: Number) -> Nothing, Light {
        BadArgument: "bytes above" MAX_LOG_BYTES;
        Flow: "the caller is tainted: its send label is not below {1}";
    }
    /// Sets a property of the running activation: [`ACTIVATION_RECEIVE`] and the like.
    ACTIVATION_SET activation_set(what: Number, value: Number) -> Nothing, Light {
        NoSuchWay: "no such property";
    }
    /// Describes an entry: `kind | rights << 8 | number << 16`, with the number of the domain that it stands for, if any, of the shape, if
    /// it is a service or a call entry, else 0.
    ENTRY_INFO entry_info(domain: Domain READ, index: Index) -> Number "kind + 256 · rights + 65,536 · number of the domain that it stands for, if it is one, or of the shape of its portals, if it has", Full {}
    /// Reserved for L4 IPC.
    IPC ipc() -> Nothing, Full {
        NotYet: "always, until it is there";
    }
    /// Makes code for the specification of portals of which so many bytes stand in the message area (the crate `portalgen` says what it
    /// may be). The code goes when the entry is removed and each domain that had a service of the shape is gone.
    SHAPE_NEW shape_new(machine: Machine USE, bytes: Number, index_to_fill: Fill) -> Index, Full "a seventh of the code" {
        BadSpecification: "not a specification";
        NotOffered: "caller and callee must trust each other", "a control word, but for npkox5>ox5 and npkox4w>ox5";
        CodeTooLong: "code that is longer than a place, 1,024 bytes";
        TooManyShapes: "shapes, more than" MAX_SHAPES;
    }
    /// Of the caller's labels: [`LABEL_HANDLE`] and the like.
    LABEL label(what: Number, a: Number, b: Number, c: Number) -> Number "value, if it has one", Full "two nodes of a label, or a call in flight" {
        NoSuchWay: "nothing of that number can be done";
        AccountExhausted: "no frame left for labels";
        NoFrames: "no free frame for them";
    }
    /// The caller of the running activation, as far as its labels are known at once: [`CALLER_USUAL`] and the like. A server that judges by itself
    /// need not ask about each thing then ([`LABEL_CALLER`]).
    CALLER caller() -> Number "0 = nothing, or nobody called; 1 = S = {1} and R = {2}; 2 = S = {★} and R = {3}, or labels are off", Light {}
    /// A port: a queue of messages with labels. A message without room vanishes, and the sender is not notified. Only messages below the label are taken. Its
    /// messages are taken at itself, or at another port, whose receivers then wait for those of both.
    PORT_NEW port_new(account: Account WRITE, size: Number "bytes of a message + 65,536 · messages that wait, at most", index_to_fill: Fill, label: Label READ "0 = {3}", inbox: Port USE "0 = itself", badge: Number "shown with each message")
        -> Index, Full {
        BadArgument: "bytes above" MESSAGE_BYTES, "no messages", "a badge above" MAX_BADGE;
        NotInbox: "the inbox is not its own";
        TooManyMessages: "more messages than 8 pages have room for", "messages, more than 31";
        TooManyPorts: "ports with one inbox, more than" MAX_MEMBERS;
        TooManyHandles: "handles with like bits, more than a label has room for";
        AccountExhausted: "of the caller's own account: no frame left for the port, its messages or its label";
        OtherExhausted: "the same of another account";
        NoFrames: "no free frame for these";
        Flow: "others may receive there, too, and the caller may not use what has its label";
    }
        }
    };
}

/// Hands what an operation does one way or another, by the value of one of its operands, to the macro `$use`: groups of rows
/// as in [`operations!`](crate::operations). In place of `;` among the operands stands the operand that chooses; its value for a row is the
/// row's position in its group. The errors are those beside the operation's own. A group is called as the operation's constant;
/// `SEMAPHORE` is no kernel operation, but what the traversal of a semaphore's entry does.
#[macro_export]
macro_rules! ways {
    ($use:ident) => {
        $use! {
    DOMAIN_SET {
        /// Page faults at start ≤ address < end go to the upcall portal at `layout::PAGE_FAULT[slot]`.
        SET_FAULT_RANGE domain_set_fault_range(domain: Domain CONTROL; slot: Number, start: Address, end: Address) -> Nothing {
            BadArgument: "slot above 3", "start above end, or end beyond user space";
        }
        /// V on the semaphore when the domain dies. Only for the domain's maker, or, of a domain that the nucleus made, for
        /// another one.
        SET_DEATH_SEMAPHORE domain_set_death_semaphore(domain: Domain CONTROL; semaphore: Semaphore WRITE) -> Nothing {
            NotMaker: "the caller did not make it; of one that the nucleus made: it is the domain itself";
        }
        /// The domain takes the scheduler's seat of a CPU, or stands by for all CPUs; the message area of the seat is the ring
        /// ([`crate::sched::Ring`]). The CPU's number is word 2 when a seat is entered.
        SET_SCHEDULER domain_set_scheduler(domain: Domain CONTROL; seat: Number "1 = as standby, else 256 · CPU", entry_address: Address, stack_top: Address) -> Number "address of the ring" {
            BadArgument: "an unknown bit";
            NotThere: "the CPU";
            NotTrusted: "the domain has other labels than S = {★} and R = {3}";
            Empty: "nothing stands at index" SPECIAL;
            Revoked: "what stood there was revoked: index" SPECIAL;
            WrongKind: "no machine stands at index" SPECIAL;
            NoRight: "no CONTROL for the machine at index" SPECIAL;
            BadAddress: "entry address or stack top is no user address";
            TooManyActivations: "activations of the domain, more than" MAX_ACTIVATIONS;
            TooManyForWindows: "in a domain that takes windows, more than 32";
            AccountExhausted: "in a domain that the caller's account pays for: too few frames for activation, ring and page tables";
            OtherExhausted: "the same of another account";
            NoFrames: "no free frame for these";
        }
        /// The highest priority that its threads may have.
        SET_MAX_PRIORITY domain_set_max_priority(domain: Domain CONTROL; priority: Number) -> Nothing {
            BadArgument: "priority above" MAX_PRIORITY;
            PriorityTooHigh: "above the caller's own highest";
        }
        /// A bit for each CPU on which its threads, and those of domains made by it from now on, may run.
        SET_CPUS domain_set_cpus(domain: Domain CONTROL; cpus: Flags) -> Nothing {
            NotThere: "none of the CPUs";
            CpuNotAllowed: "the caller's domain may not use them all";
        }
        /// The longest slice that its threads, and those of domains made by it from now on, may have.
        SET_MAX_SLICE domain_set_max_slice(domain: Domain CONTROL; microseconds: Number) -> Nothing {
            BadArgument: "0, or above" MAX_SLICE_MICROSECONDS;
            SliceTooLong: "above the caller's own longest";
        }
        /// The share of each CPU's time that threads which it gets from now on, and those of domains made by it from now on, have
        /// ahead of others, together with all others that have a share.
        SET_SHARE domain_set_share(domain: Domain CONTROL; percent: Number "0 = all of it") -> Nothing {
            BadArgument: "above 100";
            Empty: "nothing stands at index" SPECIAL;
            Revoked: "what stood there was revoked: index" SPECIAL;
            WrongKind: "no machine stands at index" SPECIAL;
            NoRight: "no CONTROL for the machine at index" SPECIAL;
        }
        /// Send label and receive label of a new domain. Where the caller owns a handle it may give any level. Else the domain is no less tainted than
        /// the caller, and accepts no more. Only for the domain's maker, and before it has anything.
        SET_LABELS domain_set_labels(domain: Domain CONTROL; send: Label READ, receive: Label READ, is_explicit: Number "0 or 1") -> Nothing {
            BadArgument: "is_explicit above 1";
            NotNew: "it has an activation or a page";
            NotMaker: "the caller did not make it";
            NotOwned: "a level that only the owner of the handle may give";
            Flow: "the caller could not learn of the domain's end";
            AccountExhausted: "in a domain that the caller's account pays for: no frame left for labels";
            OtherExhausted: "the same of another account";
            NoFrames: "no free frame for them";
            TooManyHandles: "handles with like bits, more than a label has room for";
        }
    }
    IO {
        /// Reads a byte.
        IO_READ io_read(ports: IoPorts WRITE, offset: Number, value: Number "not used";) -> Number "the byte" {}
        /// Writes a byte.
        IO_WRITE io_write(ports: IoPorts WRITE, offset: Number, value: Number;) -> Nothing {}
        /// Reads four bytes at once; all four ports must be the entry's.
        IO_READ_LONG io_read_long(ports: IoPorts WRITE, offset: Number, value: Number "not used";) -> Number "the bytes" {}
        /// Writes four bytes at once; all four ports must be the entry's.
        IO_WRITE_LONG io_write_long(ports: IoPorts WRITE, offset: Number, value: Number;) -> Nothing {}
    }
    MACHINE {
        /// Stops the machine.
        MACHINE_STOP machine_stop(machine: Machine WRITE; status: Number "the low 7 bits count") -> Nothing "does not come back" {}
        /// Makes an entry for an interrupt line.
        MACHINE_INTERRUPT machine_interrupt(machine: Machine WRITE; line: Number, index_to_fill: Fill) -> Index {
            NotThere: "the line";
            Taken: "the line is taken";
        }
        /// Makes an entry for I/O ports.
        MACHINE_PORTS machine_ports(machine: Machine WRITE; ports: Number "first + 65,536 · count", index_to_fill: Fill) -> Index {
            BadArgument: "no ports";
            NotThere: "ports beyond the last";
        }
        /// V on the semaphore whenever the log grows.
        MACHINE_LOG_SEMAPHORE machine_log_semaphore(machine: Machine WRITE; semaphore: Semaphore WRITE) -> Nothing {}
        /// Shows the boot archive, for reading, to a domain, at [`crate::layout::ARCHIVE`] and for as long as the domain lives.
        MACHINE_ARCHIVE machine_archive(machine: Machine WRITE; domain: Domain WRITE) -> Nothing {
            Occupied: "something is mapped in that GiB";
            AccountExhausted: "in a domain that the caller's account pays for: no frame left for a page table";
            OtherExhausted: "the same of another account";
            NoFrames: "no free frame for it";
        }
        /// Maps a page of device registers in the caller, readable and writable, never cached. It can be mapped on like any page.
        MACHINE_DEVICE machine_device(machine: Machine WRITE CONTROL; physical: Address, address: Address) -> Nothing {
            BadArgument: "physical: 2^40 or more";
            Withheld: "RAM, or what firmware keeps in the megabyte after it", "interrupt controllers and timers";
            BadAddress: "no page of user space";
            NotAligned: "no address of a page";
            Reserved: "message areas or windows are there";
            Occupied: "something is mapped there";
            AccountExhausted: "too few frames for mapping and page tables";
            NoFrames: "no free frame for these";
        }
        /// The physical address of a page of the caller, for devices that read and write memory.
        MACHINE_PHYSICAL machine_physical(machine: Machine WRITE CONTROL; address: Address) -> Number "physical address" {
            BadAddress: "no page of user space";
            NotAligned: "no address of a page";
            Reserved: "message areas or windows are there";
            NotMapped: "nothing is mapped there";
        }
        /// Maps a page of the device tree, for reading, in the caller.
        MACHINE_FDT machine_fdt(machine: Machine WRITE CONTROL; page: Number, address: Address) -> Number "offset of the device tree in its first page + 4,096 · its bytes" {
            NotThere: "no device tree";
            AtEnd: "it ends before this page";
            BadAddress: "no page of user space";
            NotAligned: "no address of a page";
            Reserved: "message areas or windows are there";
            Occupied: "something is mapped there";
            AccountExhausted: "too few frames for mapping and page tables";
            NoFrames: "no free frame for these";
        }
        /// Sets the key of which handles come, for good: 16 bytes of the message area, which nobody else knows.
        MACHINE_HANDLES machine_handles(machine: Machine WRITE CONTROL;) -> Nothing {
            HasKey: "there is one";
        }
        /// Makes room for [`crate::THREADS_OF_A_PAGE`] more threads, for good. The caller's account pays a frame.
        MACHINE_THREADS machine_threads(machine: Machine WRITE CONTROL;) -> Number "threads for which there is room now, that of number 0, which nobody has, included" {
            TooLate: "a scheduler has its seat, or stands by";
            AllThreads: "there is room for all numbers of threads";
            AccountExhausted: "no frame left for it";
            NoFrames: "no free frame for it";
        }
    }
    ACTIVATION_SET {
        /// Where entries delegated to this activation go.
        ACTIVATION_RECEIVE activation_set_receive(; receive: Index "0 = no entry is accepted") -> Nothing {
            Again: "the table has grown by a page, and not yet to the index";
            AccountExhausted: "no frame left for the table";
            NoFrames: "no free frame for the table";
        }
        /// The thread pointer (x86-64: FS base).
        ACTIVATION_THREAD_POINTER activation_set_thread_pointer(; pointer: Address) -> Nothing {
            BadAddress: "the pointer is no user address";
        }
        /// Where pages that are torn away for this activation go ([`crate::MAX_TORN`]).
        ACTIVATION_TEAR activation_set_tear(; address: Address "0 = no pages are accepted") -> Nothing {
            BadAddress: "outside of user space";
            NotAligned: "no address of a page";
            Reserved: "message areas or windows are there";
        }
    }
    LABEL {
        /// A handle that nobody had before, of which the caller is the owner: S(handle) is ★.
        LABEL_HANDLE label_handle(;) -> Number "the handle" {
            NoKey: "no key was set, of which handles come";
            NoHandles: "all handles were given out";
            TooManyHandles: "handles with like bits, more than a label has room for";
            TooManyChanges: "changes of the domain's labels, more than 2^28";
        }
        /// S(handle) becomes this level, which is not lower: 0 is ★, 1 is level 0, and so on. Ownership of a handle ends so. Calls in flight that
        /// this forbids end with `Flow`.
        LABEL_SEND label_send(; handle: Number, level: Number) -> Nothing {
            BadArgument: "a handle of more than 61 bits", "a level above 4";
            NotOwned: "S(handle) is higher";
            Flow: "the domain's handler of page faults or exceptions, or its maker, does not accept it", "a page that it sees has a label that it could not read";
            TooManyHandles: "handles with like bits, more than a label has room for";
            TooManyChanges: "changes of the domain's labels, more than 2^28";
        }
        /// R(handle) becomes this level: one that is not higher, or any for an owner. Calls in flight that this forbids end with `Flow`.
        LABEL_RECEIVE label_receive(; handle: Number, level: Number) -> Nothing {
            BadArgument: "a handle of more than 61 bits", "a level above 4";
            NotOwned: "R(handle) is lower";
            Flow: "the domain's handler of page faults or exceptions, or a domain that it made, would not be accepted", "a page that it sees has a label that it could not read";
            TooManyHandles: "handles with like bits, more than a label has room for";
            TooManyChanges: "changes of the domain's labels, more than 2^28";
        }
        /// Explicit mode: the domain is not raised by what it takes; what would raise it is refused. 0 ends that.
        LABEL_EXPLICIT label_explicit(; is_explicit: Number "0 or 1") -> Nothing {
            BadArgument: "above 1";
            TooManyChanges: "changes of the domain's labels, more than 2^28";
        }
        /// The level of a handle in the domain's send label, and in its receive label.
        LABEL_LEVELS label_levels(; handle: Number) -> Number "level of S + 8 · level of R, 0 = ★" {
            BadArgument: "a handle of more than 61 bits";
        }
        /// Writes entries of a label into the message area, from a position on: 8 · handle + level each.
        LABEL_READ label_read(; label: Label READ "0 = the domain's S, 1 = its R", position: Number) -> Number "entries of the label + 2^32 · its default" {}
        /// A label that has the same level for all handles, or a copy of the domain's send label or receive label, in the caller's table.
        LABEL_NEW label_new(; from: Number "a level from 0 to 4; 5 = S, 6 = R", index_to_fill: Fill) -> Index {
            BadArgument: "from above 6";
        }
        /// The label has another level for a handle.
        LABEL_PUT label_put(; label: Label WRITE, handle: Number, level: Number) -> Nothing {
            BadArgument: "a handle of more than 61 bits", "a level above 4";
            TooManyHandles: "handles with like bits, more than a label has room for";
        }
        /// The label becomes the least upper or the greatest lower bound of itself and another one.
        LABEL_COMBINE label_combine(; label: Label WRITE, with: Label READ, is_lower: Number "0 = upper, 1 = lower") -> Nothing {
            BadArgument: "above 1";
            TooManyHandles: "handles with like bits, more than a label has room for";
        }
        /// The rights of the running activation's caller to a thing of this label: 1 = observe it, 2 = change it.
        LABEL_CALLER label_caller(; label: Label READ) -> Number "both bits" {
            NoCaller: "nobody called";
        }
    }
    SEMAPHORE {
        /// Takes a token, or waits for one until the deadline, in nanoseconds since boot. The caller may name a holder:
        /// the number, from 1, of an activation of the caller's domain, which gets the caller's priority meanwhile.
        P p(; deadline: Number "0 = does not wait", holder: Number "0 = none") -> Nothing {
            BadIndex: "outside the table";
            Empty: "nothing stands there";
            Revoked: "what stood there was revoked";
            WrongKind: "neither a semaphore nor anything else to traverse";
            NoSuchWay: "neither P nor V";
            NoRight: "the entry lacks USE";
            Timeout: "the deadline passed without a token";
            Cancelled: "another thread ended the wait";
            Removed: "the semaphore was removed during the wait";
            IsScheduler: "the caller is a scheduler";
            Flow: "others have the semaphore, too, and the caller may not use what has its label", "while it waits: it is tainted";
            AccountExhausted: "no frame left for the labels of a caller that it taints";
            NoFrames: "no free frame for them";
        }
        /// Adds a token, or wakes the waiter of the highest priority; among equals the one that has waited longest.
        V v(;) -> Nothing {
            BadIndex: "outside the table";
            Empty: "nothing stands there";
            Revoked: "what stood there was revoked";
            WrongKind: "neither a semaphore nor anything else to traverse";
            NoRight: "the entry lacks WRITE";
            Flow: "others have the semaphore, too, and the caller may not change what has its label";
            AccountExhausted: "no frame left for the labels of a caller that it taints";
            NoFrames: "no free frame for them";
        }
    }
    PORT {
        /// Takes the oldest message that the caller's labels let it take, and waits for one until the deadline, in nanoseconds since boot. Messages that it may
        /// not take vanish unseen. A message that taints the caller raises its send label; a message that would cut off a call in flight is not taken. The bytes come
        /// in the message area; what the sender proves, in a label of the caller's.
        RECEIVE receive(; deadline: Number "0 = does not wait", shown: Number "index of a label that becomes V, 0 = none") -> Number "bytes + 32,768 if an entry came + 65,536 · the badge of the port" {
            BadIndex: "outside the table";
            Empty: "nothing stands there";
            Revoked: "what stood there was revoked";
            WrongKind: "no port", "what is to become V is no label";
            NoSuchWay: "neither RECEIVE nor SEND";
            NotInbox: "a port with another inbox";
            NoRight: "the entry lacks USE", "that of the label lacks WRITE";
            Timeout: "the deadline passed without a message";
            Cancelled: "another thread ended the wait";
            Removed: "while it waits";
            IsScheduler: "the caller is a scheduler";
            Flow: "others may receive there, too, and the caller may not use what has its label", "while it waits: it is tainted";
            AccountExhausted: "no frame left for the labels of a caller that it taints";
            NoFrames: "no free frame for them";
        }
        /// Sends bytes of the message area, with optional labels, and with a copy of an entry, which comes to where the receiver takes delegated ones, if it is
        /// there still. Word 0 is `SEND + 256 · bytes + 2^32 · entry`. Whether the message is taken, vanishes for its label, or for want of room, is not reported.
        SEND send(; bytes: Number, along: Number "index of the entry, 0 = none", taints: Number "index of the label Cs + 2^32 · that of Ds", shows: Number "index of V + 2^32 · that of Dr") -> Nothing {
            BadIndex: "outside the table", "a label is, or what comes along";
            Empty: "nothing stands there", "or where a label, or what comes along, should";
            Revoked: "what stood there was revoked", "or what comes along was";
            TooDerived: "a chain of copies, from the original of what comes along on, longer than" MAX_DERIVATION;
            WrongKind: "no port", "no label", "what comes along is a kernel operation or a call entry";
            NoSuchWay: "neither RECEIVE nor SEND";
            TooLong: "more bytes than a message of the port has";
            NoRight: "the entry lacks WRITE", "that of a label READ, or of what comes along COPY";
            NotOwned: "the caller does not own a handle that it decontaminates";
        }
    }
        }
    };
}
