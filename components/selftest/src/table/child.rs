//! Small domains without a stack: they serve calls, make one, run, read, or write.

use core::arch::naked_asm;
use core::sync::atomic::{AtomicU64, Ordering};

use abi::layout::{ENTRY_BYTES, STACKS_START};
use abi::rights::{self, MAP_EXECUTE, MAP_GRANT, MAP_READ, MAP_WRITE, UNMAP_SELF};
use abi::{Error, PAGE_BYTES, op as abi_op};
use runtime::entry::Owned;
use runtime::op::{self, Schedule};
use runtime::{Entry, table};

use super::places::PRIORITY;

/// Where a child sees the first page that is shown to it; the second one follows.
pub const PLACE: u64 = 0x5000_0000;
const PAGE: u64 = PAGE_BYTES as u64;

/// A page of words that several domains see.
#[repr(align(4096))]
pub struct Page(pub [AtomicU64; PAGE_BYTES / 8]);

impl Page {
    pub const fn new() -> Self {
        Self([const { AtomicU64::new(0) }; PAGE_BYTES / 8])
    }
    fn address(&'static self) -> u64 {
        core::ptr::from_ref(self) as u64
    }
}

/// A service. Word 0: 0 = returns at once; 1 = P on the semaphore at index word 1, then returns;
/// 2 = runs until the first word of the page at [`PLACE`] is not 0. The answer is [`ANSWER`].
///
/// # Safety
/// Only as a service of a child.
#[unsafe(naked)]
unsafe extern "sysv64" fn serve() -> ! {
    naked_asm!(
        "test edi, edi",
        "jz 3f",
        "cmp edi, 1",
        "jne 2f",
        "mov eax, esi",
        "imul eax, eax, {entry}",
        "xor edi, edi",
        "mov rsi, -1",
        "xor edx, edx",
        "xor r10d, r10d",
        "syscall",
        "jmp 3f",
        "2:",
        "pause",
        "cmp qword ptr [{place}], 0",
        "je 2b",
        "3:",
        "mov edi, {answer}",
        "xor r10d, r10d",
        "xor eax, eax",
        "syscall",
        "ud2",
        entry = const ENTRY_BYTES,
        place = const PLACE,
        answer = const ANSWER,
    )
}

/// What a child's service answers.
pub const ANSWER: u64 = 77;

/// A thread that calls the portal at index argument mod 65,536 with the 16 bits above as word 0 and the 32 bits
/// above those as word 1, and ends its domain with the status of the call.
#[unsafe(naked)]
unsafe extern "sysv64" fn call() -> ! {
    naked_asm!(
        "movzx eax, di",
        "imul eax, eax, {entry}",
        "mov rsi, rdi",
        "shr rsi, 32",
        "shr edi, 16",
        "xor edx, edx",
        "xor r8d, r8d",
        "xor r9d, r9d",
        "xor r10d, r10d",
        "syscall",
        "mov rdi, rax",
        "mov eax, {exit}",
        "syscall",
        "ud2",
        entry = const ENTRY_BYTES,
        exit = const abi_op::EXIT * ENTRY_BYTES,
    )
}

/// A thread that reads the word at its argument for ever, and writes what it read to the page after it, and how often.
#[unsafe(naked)]
unsafe extern "sysv64" fn read() -> ! {
    naked_asm!("2:", "mov rax, [rdi]", "mov [rdi + 4096], rax", "inc qword ptr [rdi + 4104]", "jmp 2b")
}

/// A thread that counts in the word at its argument for ever.
#[unsafe(naked)]
unsafe extern "sysv64" fn write() -> ! {
    naked_asm!("2:", "inc rcx", "mov [rdi], rcx", "jmp 2b")
}

/// What a thread of a child runs.
#[derive(Clone, Copy)]
pub enum Program {
    /// Calls the portal with words 0 and 1, and ends the domain with the status.
    Call(Entry, u64, Entry),
    /// Reads the first page for ever and writes to the second.
    Read,
    /// Writes to the first page for ever.
    Write,
}

/// A domain of ours. Let go, its threads go first.
pub struct Child {
    pub domain: Owned,
    died: Owned,
}

impl Child {
    /// With so many activations, whose threads run on the CPUs `cpus`.
    pub fn new(account: Entry, activations: usize, cpus: u64) -> Result<Self, Error> {
        let domain = Owned::new(op::domain_new(account, 0, 0, "victim")?);
        let died = Owned::new(op::semaphore_new(Entry::OWN, 0)?);
        op::domain_set_death_semaphore(domain.entry(), died.entry())?;
        op::domain_set_cpus(domain.entry(), cpus)?;
        let codes =
            [serve as *const () as u64, call as *const () as u64, read as *const () as u64, write as *const () as u64];
        for code in codes {
            for page in [code, code + 128] {
                let page = page & !(PAGE - 1);
                // SAFETY: code of ours, which may be read and executed.
                match unsafe { op::map(domain.entry(), page, page, 0, MAP_READ | MAP_EXECUTE) } {
                    Ok(()) | Err(Error::Occupied) => {}
                    Err(error) => return Err(error),
                }
            }
        }
        for number in 0..activations {
            // SAFETY: not in our domain; its code uses no stack.
            unsafe { op::activation_new(domain.entry(), STACKS_START + 0x1000 * number as u64, Entry(0))? };
        }
        Ok(Self { domain, died })
    }

    /// Shows it a page of ours, the first or the second.
    pub fn show(&self, page: &'static Page, number: u64, may_write: bool) -> Result<(), Error> {
        page.0[511].fetch_add(0, Ordering::SeqCst);
        let rights = if may_write { MAP_READ | MAP_WRITE } else { MAP_READ };
        // SAFETY: the page consists of atomic words.
        unsafe { op::map(self.domain.entry(), page.address(), PLACE + PAGE * number, 0, rights) }
    }

    /// Moves a page of ours to it; who refers to ours then gets another one from the pager.
    pub fn grant(&self, page: &'static Page) -> Result<(), Error> {
        page.0[511].fetch_add(0, Ordering::SeqCst);
        // SAFETY: atomic words, whose values nobody needs.
        unsafe { op::map(self.domain.entry(), page.address(), PLACE, 0, MAP_READ | MAP_WRITE | MAP_GRANT) }
    }

    /// Its service, which needs activations, and a call entry of ours to it, which goes with what we have of the service.
    pub fn portal(&self) -> Result<(Owned, Owned), Error> {
        // SAFETY: the code is made for this.
        let service = unsafe {
            op::service_new_at(self.domain.entry(), serve as *const () as u64, abi_op::SERVICE_DEADLINE, Entry(0))?
        };
        let copy = table::allocate()?;
        op::entry_copy(self.domain.entry(), service, Entry::OWN, copy, rights::ALL)?;
        let portal = Owned::new(table::allocate()?);
        op::portal_new(Entry::OWN, copy, 0, portal.entry(), 0)?;
        Ok((Owned::new(copy), portal))
    }

    /// Its service, and the index of a call entry to it for another child.
    pub fn portal_for(&self, caller: &Child) -> Result<(Owned, Entry), Error> {
        let (service, _) = self.portal()?;
        let portal = op::portal_new(caller.domain.entry(), service.entry(), 0, Entry(0), 0)?;
        Ok((service, portal))
    }

    /// Gives it a semaphore of ours; the index there.
    pub fn give(&self, entry: Entry) -> Result<Entry, Error> {
        op::entry_copy(Entry::OWN, entry, self.domain.entry(), Entry(0), rights::ALL)
    }

    /// A thread of it.
    pub fn start(&self, program: Program) -> Result<Owned, Error> {
        let (code, argument) = match program {
            Program::Call(portal, word, index) => {
                (call as *const (), portal.0 as u64 | word << 16 | (index.0 as u64) << 32)
            }
            Program::Read => (read as *const (), PLACE),
            Program::Write => (write as *const (), PLACE),
        };
        let schedule = Schedule { priority: PRIORITY, slice: 1_000 };
        // SAFETY: the code is made for this and uses no stack.
        unsafe { op::thread_new(self.domain.entry(), code as u64, 0, argument, schedule) }.map(Owned::new)
    }

    /// Waits until it has died.
    pub fn dies(&self) -> Result<(), &'static str> {
        op::p(self.died.entry(), op::clock() + super::places::PATIENCE).map_err(|_| "the child does not die")
    }

    /// Whether it has died; then never again.
    pub fn has_died(&self) -> bool {
        op::p(self.died.entry(), 0).is_ok()
    }
}

/// Lets a thread that runs [`Program::Read`] go on with [`Program::Write`].
pub fn send_to_write(thread: Entry) -> Result<(), Error> {
    // SAFETY: not in our domain; both use the same register.
    unsafe { op::thread_ex_regs(thread, write as *const () as u64, abi::NEVER) }.map(drop)
}

/// Takes rights to a page of ours from all who got it from us.
pub fn take_away(page: &'static Page, rights: u64) -> Result<(), Error> {
    // SAFETY: our own mapping stays.
    unsafe { op::unmap(Entry::OWN, page.address(), 0, rights) }
}

/// Takes a page from a child and from all who got it from there.
pub fn take_from(child: &Child) -> Result<(), Error> {
    // SAFETY: not in our domain.
    unsafe { op::unmap(child.domain.entry(), PLACE, 0, MAP_READ | UNMAP_SELF) }
}

/// Sets the thread pointer of the running activation.
pub fn set_thread_pointer(word: &'static AtomicU64) -> Result<(), Error> {
    op::activation_set(abi_op::ACTIVATION_THREAD_POINTER, core::ptr::from_ref(word) as u64)
}

/// The word that the thread pointer points to.
pub fn pointed_to() -> u64 {
    let word;
    // SAFETY: the caller has set the thread pointer to a word.
    unsafe { core::arch::asm!("mov {}, fs:[0]", out(reg) word) };
    word
}
