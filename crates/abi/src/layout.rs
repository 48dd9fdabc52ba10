//! Where things lie: portal table indices and user addresses.

/// Traverses back to the caller; the first of the operations ([`crate::op::RETURN`]).
pub const RETURN: usize = 0;
/// First index that is neither a kernel operation nor well known.
pub const FIRST_FREE: usize = 96;
/// Entries of a portal table at its start. It grows by pages, of 64 entries each, up to [`MAX_TABLE_ENTRIES`].
pub const TABLE_ENTRIES: usize = 128;
/// Indices of a portal table are below this. Where a table has not grown to, nothing stands.
pub const MAX_TABLE_ENTRIES: usize = 1 << 18;
/// Bytes of an entry: the index in the system call register is multiplied by this.
pub const ENTRY_BYTES: usize = 64;

/// Upcall portals for page faults, one per address range set with [`crate::op::DOMAIN_SET`].
pub const PAGE_FAULT: [usize; 4] = [64, 65, 66, 67];
/// Upcall portal for exceptions other than page faults.
pub const EXCEPTION: usize = 68;
/// Call entry to the creator of this domain.
pub const PARENT: usize = 80;
/// Call entry to `sigma0`, the source of memory.
pub const SIGMA0: usize = 81;
/// Call entry to `names`.
pub const NAMES: usize = 82;
/// Our own account.
pub const ACCOUNT: usize = 83;
/// Our own domain.
pub const DOMAIN: usize = 84;
/// Devices and other things that the system description gives a component begin here:
/// an interrupt line, I/O ports, the machine, in this order.
pub const INTERRUPT: usize = 85;
/// See [`INTERRUPT`].
pub const IO_PORTS: usize = 86;
/// The machine (for `sigma0`, the memory).
pub const SPECIAL: usize = 87;

/// First user address that may be mapped.
pub const USER_START: u64 = 0x1_0000;
/// Message areas of activations, one page each, owned by the nucleus.
pub const MESSAGE_START: u64 = 0x1_0000;
/// Programs are linked here; the heap begins where they end.
pub const PROGRAM_START: u64 = 0x10_0000;
/// One page with arguments, environment and streams, placed by the loader of the program.
pub const STARTUP_PAGE: u64 = 0xf_f000;
/// End of what a user may map: the last page of the lower half stays empty.
pub const USER_END: u64 = 0x7fff_ffff_f000;
/// Windows that callers open: see [`crate::window`]. Nothing else can be mapped in these 512 GiB.
pub const WINDOWS: u64 = 0x7f00_0000_0000;
/// End of the windows.
pub const WINDOWS_END: u64 = 0x7f80_0000_0000;
/// End of the message areas.
pub const MESSAGE_END: u64 = 0x8_0000;
/// Activations of a domain, limited by the message areas.
pub const MAX_ACTIVATIONS: usize = ((MESSAGE_END - MESSAGE_START) / 4096) as usize;
/// Stack slots: each [`STACK_BYTES`], the lowest page of each never mapped (guard).
pub const STACKS_START: u64 = 0x8_0000;
/// Bytes of a stack slot, guard page included.
pub const STACK_BYTES: u64 = 0x8000;
/// Stack slots between [`STACKS_START`] and [`WINDOW`]; further ones lie at [`MORE_STACKS_START`].
pub const NEAR_STACKS: usize = 8;
/// Free for the component: a few pages that it fills for others, for which there is a page table already.
pub const WINDOW: u64 = 0xc_0000;
/// Registers of the device that the system description gives a component, on machines with a device tree: one page.
pub const DEVICE: u64 = 0xc_f000;
/// The main thread's stack: its lowest page is never mapped; it ends at [`STARTUP_PAGE`].
pub const MAIN_STACK_START: u64 = 0xd_0000;
/// Top of the main thread's stack.
pub const MAIN_STACK_TOP: u64 = STARTUP_PAGE;
/// Stack slots from number [`NEAR_STACKS`] on.
pub const MORE_STACKS_START: u64 = 0x2000_0000;
/// End of all stacks.
pub const MORE_STACKS_END: u64 = 0x2100_0000;
/// Programs end below this.
pub const PROGRAM_END: u64 = 0x1000_0000;
/// End of the heap, which begins after the program, and of the pages after it; paged on demand by `sigma0`.
pub const HEAP_END: u64 = 0x2000_0000;
/// Up to [`HEAP_END`]: a bit for each index of the component's portal table, should that be a large one.
pub const TABLE_MAP: u64 = HEAP_END - MAX_TABLE_ENTRIES as u64 / 8;
/// Free for the component: files, windows, tables it maps on purpose.
pub const FREE_START: u64 = 0x3000_0000;
/// The boot archive, for `roottask` and whom it shows it to; up to the next GiB the space is taken.
pub const ARCHIVE: u64 = 0x2_0000_0000;
