//! Information flow of each operation: who reports to whom, and which labels are checked. Written once, like the operations; the nucleus's
//! tests and the book's table come of it.

use crate::op::Each;

/// The flow of information by an operation, beside what its operands say.
#[derive(Clone, Copy, Debug)]
pub struct Flow {
    /// The flows, as sender, receiver and content.
    pub reports: &'static str,
    /// The checks of labels, or why there are none.
    pub asked: &'static str,
}

const fn flow(reports: &'static str, asked: &'static str) -> Flow {
    Flow { reports, asked }
}

const NOTHING: Flow =
    flow("the objects that the operands name, and the caller by the outcome", "the checks of the operands");
const OWN: Flow = flow("nobody but the caller, about itself", "nothing");

/// Of each operation. An operation without a row does not build. The boot tests `flows` and `flows-off` go along the table of operations by
/// machine: a new operation with an operand that is judged is tried there without another line.
pub const FLOWS: Each<Flow> = Each {
    r#return: flow(
        "its caller: words, bytes, entries, pages",
        "nothing: a change of labels ends calls that it forbids before it is made",
    ),
    thread_id: OWN,
    clock: flow("the caller, of the time", "nothing: time is everybody's ([caveats](../caveats.md))"),
    r#yield: flow("the thread that runs then, of when", "nothing: time is everybody's ([caveats](../caveats.md))"),
    exit: flow(
        "the domain's maker: that it ends, and the status",
        "nothing: the maker must admit what the domain becomes, when labels change",
    ),
    domain_new: flow(
        "the new domain, which has the caller's labels, but owns nothing; the others that pay from the account",
        "the checks of the operands",
    ),
    domain_kill: flow("the domain's callers and its maker, of its end", "the checks of the operands"),
    domain_set: NOTHING,
    account_new: flow(
        "the parent account; the new one has a label",
        "the checks of the operands; the caller may change what has that label",
    ),
    account_move: NOTHING,
    activation_new: NOTHING,
    thread_new: NOTHING,
    thread_schedule: NOTHING,
    thread_ex_regs: NOTHING,
    entry_copy: NOTHING,
    entry_remove: flow(
        "the holders of copies, of their end",
        "the checks of the operands; others see the end of their copies and pages ([caveats](../caveats.md))",
    ),
    entry_revoke: flow(
        "the holders of copies, of their end",
        "the checks of the operands; others see the end of their copies and pages ([caveats](../caveats.md))",
    ),
    map: flow(
        "the domains that see the pages, from then on",
        "the checks of the operands; a writer may change objects with the label of the page, which is that of the account that pays for it, and a reader may observe them. A page that nobody else has may be given away",
    ),
    unmap: flow(
        "the domains that got the pages from it, of their end",
        "the checks of the operands; others see the end of their copies and pages ([caveats](../caveats.md))",
    ),
    draw: NOTHING,
    service_new: NOTHING,
    portal_new: NOTHING,
    semaphore_new: NOTHING,
    interrupt_bind: flow("the device, and the waiters for the semaphore", "the checks of the operands"),
    io: flow("the device; the caller by what it answers", "the checks of the operands"),
    dispatch: flow(
        "the threads of a CPU, of when they run; only a scheduler does that",
        "nothing: schedulers are trusted ([caveats](../caveats.md))",
    ),
    info: flow(
        "the caller, of all domains",
        "nothing: a holder of the machine sees them all, or, as it asks, those that are not tainted ([caveats](../caveats.md))",
    ),
    machine: NOTHING,
    log: flow("the readers of the log", "the caller is not tainted: its send label is below {1}"),
    activation_set: OWN,
    entry_info: NOTHING,
    ipc: flow("nobody", "nothing: it is reserved"),
    shape_new: NOTHING,
    label: flow(
        "nobody but the caller, about itself; whose calls it cuts off",
        "a change is refused that the domain's handlers of faults, its maker or a domain that it made would not admit; other calls and waits that it forbids end with it",
    ),
    caller: flow("the callee, of its caller's labels", "nothing: the call was admitted in both directions"),
    port_new: flow(
        "the objects that the operands name, and the caller by the outcome",
        "the checks of the operands; a receiver there may use the inbox, unless nobody else may receive there",
    ),
};

/// Other flows between domains, the rule for each, and the lines of the boot test `flows` that show what is allowed and what is refused. Its
/// control `flows-off` has the same lines, where nothing is refused.
pub const OTHERS: &[(&str, Flow, &[&str])] = &[
    (
        "a call",
        flow(
            "the callee: words, bytes, entries, windows, pages, the badge; by its return the caller",
            "information may flow both ways, and the callee is not tainted; a caller that floats is raised before",
        ),
        &[
            "calls of an untainted domain to untainted and tainted ones, and of a tainted one",
            "calls by portals of {3} and of {1} for the handle, untainted and tainted by each",
        ],
    ),
    (
        "P",
        flow(
            "the caller, of Vs; others, of the token",
            "the caller may use what has the semaphore's label, unless nobody else has it",
        ),
        &[
            "P and V of an untainted domain on an untainted semaphore",
            "P and V of an untainted domain on a tainted semaphore",
            "P and V of a tainted domain on its own semaphore",
        ],
    ),
    (
        "V",
        flow("the waiter", "the caller may change what has the semaphore's label, unless nobody else has it"),
        &[
            "P and V of a tainted domain on an untainted semaphore",
            "P and V of an untainted domain on a tainted semaphore",
            "V of a tainted domain on an untainted semaphore from before its labels",
        ],
    ),
    (
        "a message",
        flow(
            "the receiver: bytes, badge, V; the sender learns nothing",
            "when it is taken: E is below R and Dr, V and the label of the port, and Dr below that; a receiver that floats is tainted, and one that would be cut off from others so does not take it. When it is sent: the sender owns what it decontaminates",
        ),
        &[
            "RECEIVE and SEND of a tainted domain at an untainted port",
            "RECEIVE and SEND of an untainted domain at a tainted port",
            "a message that would taint one of several possible receivers",
        ],
    ),
    (
        "a page fault, an exception",
        flow("the handler; by its return the domain", "as of a call"),
        &[
            "a page fault for an untainted handler, and for a tainted one",
            "an exception for an untainted handler, and for a tainted one",
        ],
    ),
    (
        "a change of the own labels",
        flow(
            "the other sides of calls with the domain, of the cut",
            "nothing: it is made before the domain knows what it will be tainted with. Contamination cuts nothing: a call that would need that is refused",
        ),
        &[
            "a call in flight to a domain that is tainted then",
            "a call to an owner while its caller taints itself: without and with a window, to a dead one; while a message taints it: without and with a window; while one makes it an owner",
            "to be tainted as the handler of exceptions accepts, and as it does not",
            "a call in flight to a domain that taints itself and is killed, or removed, meanwhile",
            "a refused change whose last steps another thread does, which then removes the cause",
        ],
    ),
    (
        "the same, while the domain waits for a semaphore",
        flow("nobody: the wait ends with `Flow`", "as of P"),
        &["a wait while its domain is tainted", "a wait while a message would taint its domain"],
    ),
    (
        "the same, with pages that others have, too",
        flow(
            "nobody: the domain may not write them any more",
            "as of `map`; a page that it could not read any more forbids the change",
        ),
        &[
            "a write while its domain is tainted",
            "a message that would taint the writer or the reader of a shared page",
        ],
    ),
    (
        "a domain's end",
        flow("its maker", "nothing: the maker must admit what the domain becomes, when labels change"),
        &[
            "the end of an untainted domain on a semaphore of others, and of a tainted one on that and on a tainted one",
            "to be tainted as the maker accepts, and as it does not",
        ],
    ),
    (
        "memory that nobody else has",
        flow("nobody", "nothing"),
        &["memory from an untainted account, and from a tainted one"],
    ),
];

/// Flows about which labels are not asked, the reason, and the boot tests that show what each domain sees. There is nothing that
/// labels refuse, so these tests have no control.
pub const UNASKED: &[(&str, Flow, &[&str])] = &[
    (
        "a call that finds no free activation",
        flow(
            "the caller, which waits or gets `Busy` or `Timeout`, and the server's other clients: that others are in the server",
            "the call itself is asked about. Clients of one server are not asked about each other ([caveats](../caveats.md))",
        ),
        &["negative-callees", "turns", "table"],
    ),
    (
        "an account that has no frames or no numbers of threads left",
        flow(
            "all domains that pay from it: `AccountExhausted`, `AccountThreads`",
            "to pay from an account is to use it, unless it pays for the own domain. Domains that pay from one account see when it is exhausted ([caveats](../caveats.md))",
        ),
        &["negative-exhaustion", "negative-refusals"],
    ),
    (
        "no free frame of the machine",
        flow(
            "all domains that draw frames: `NoFrames`",
            "nothing ([caveats](../caveats.md)). Accounts promise no more frames than there are, so no test reaches it",
        ),
        &[],
    ),
    (
        "a table of the nucleus that is full",
        flow(
            "all domains that need a place there: `NoThreads` (thread numbers), `NoDomains` (address spaces), `TooManyShapes`",
            "nothing ([caveats](../caveats.md)); programs together may have fewer threads and domains than there are numbers",
        ),
        &["crowd", "all-threads", "shapes"],
    ),
    (
        "a domain's death, for calls in flight",
        flow(
            "its callers: `PeerDied`. Domains that it called learn nothing: those calls go on as orphans",
            "nothing: each call was admitted both ways, and a change of labels ends calls that it forbids",
        ),
        &["negative-callees", "windows-lent", "table"],
    ),
    (
        "a domain's removal, for entries and pages that it passed on",
        flow(
            "their holders: an entry reads `Revoked`, and a page is not mapped any more",
            "nothing: others see the end of their copies and pages ([caveats](../caveats.md))",
        ),
        &["runtime", "negative-callees"],
    ),
    (
        "a domain's removal, for its semaphores and ports",
        flow(
            "the waiters there: `Removed`; the holders of an entry: `Revoked`",
            "nothing: a waiter was checked when it began to wait, and a change of labels ends waits that it forbids",
        ),
        &["ports", "table"],
    ),
];
