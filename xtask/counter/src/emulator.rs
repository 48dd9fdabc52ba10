//! The functions of the emulator that a plugin may call, and the counting.

use crate::classes::{CLASSES, Isa, Mark};
use crate::holds::{Holds, Places, Role};
use crate::record::Record;
use crate::server::{BEGIN_RECORD, END_RECORD};
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::mem::transmute;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

/// Version of the interface in which all CPUs add to one number.
pub const ONE_COUNT: i32 = 1;
/// Version of the interface in which each CPU adds to its own.
const COUNT_PER_CPU: i32 = 2;
/// Version of the interface from which on the bytes of an instruction are copied.
const COPIES_BYTES: i32 = 3;
/// Bytes of the longest instruction.
const MAX_BYTES: usize = 15;
/// The operation: add.
const ADD: c_uint = 0;
/// The access of our functions to the guest's registers: none.
const NO_REGISTERS: c_int = 0;

/// A translated block, as the emulator shows it while it translates.
#[repr(C)]
struct Block {
    _opaque: [u8; 0],
}
/// An instruction of it.
#[repr(C)]
struct Instruction {
    _opaque: [u8; 0],
}

/// A number for each CPU: where they begin, and which of the bytes of each CPU.
#[repr(C)]
#[derive(Clone, Copy)]
struct Numbers {
    board: *mut c_void,
    offset: usize,
}

/// Declares functions of the emulator: what finds each by its name, and its type, which is trusted as in an `extern` block.
macro_rules! functions {
    ($($find:ident: $name:literal, $type:ident = $signature:ty;)*) => {$(
        type $type = $signature;
        fn $find() -> Result<$type, String> {
            let found = find($name)?;
            // SAFETY: the emulator's header gives the function of this name this type, in each version that has it.
            Ok(unsafe { transmute::<*mut c_void, $type>(found) })
        }
    )*};
}

// In the order of its header.
type Translated = extern "C" fn(u64, *mut Block);
type Executed = extern "C" fn(c_uint, *mut c_void);
type AtEnd = extern "C" fn(u64, *mut c_void);
functions! {
    find_on_translation: c"qemu_plugin_register_vcpu_tb_trans_cb", OnTranslation = unsafe extern "C" fn(u64, Translated);
    find_add_to_one: c"qemu_plugin_register_vcpu_insn_exec_inline",
        AddToOne = unsafe extern "C" fn(*mut Instruction, c_uint, *mut AtomicU64, u64);
    find_add_per_cpu: c"qemu_plugin_register_vcpu_insn_exec_inline_per_vcpu",
        AddPerCpu = unsafe extern "C" fn(*mut Instruction, c_uint, Numbers, u64);
    find_length: c"qemu_plugin_tb_n_insns", Length = unsafe extern "C" fn(*const Block) -> usize;
    find_instruction: c"qemu_plugin_tb_get_insn",
        InstructionAt = unsafe extern "C" fn(*const Block, usize) -> *mut Instruction;
    find_new_numbers: c"qemu_plugin_scoreboard_new", NewNumbers = unsafe extern "C" fn(usize) -> *mut c_void;
    find_sum: c"qemu_plugin_u64_sum", Sum = unsafe extern "C" fn(Numbers) -> u64;
    find_size: c"qemu_plugin_insn_size", SizeOf = unsafe extern "C" fn(*const Instruction) -> usize;
    find_address: c"qemu_plugin_insn_vaddr", AddressOf = unsafe extern "C" fn(*const Instruction) -> u64;
    find_host_address: c"qemu_plugin_insn_haddr", HostAddressOf = unsafe extern "C" fn(*const Instruction) -> *const c_void;
    find_on_execution: c"qemu_plugin_register_vcpu_insn_exec_cb",
        OnExecution = unsafe extern "C" fn(*mut Instruction, Executed, c_int, *mut c_void);
    find_on_end: c"qemu_plugin_register_atexit_cb", OnEnd = unsafe extern "C" fn(u64, AtEnd, *mut c_void);
}
// One name, `qemu_plugin_insn_data`, whose type depends on the version.
type Bytes = unsafe extern "C" fn(*const Instruction) -> *const u8;
type CopyBytes = unsafe extern "C" fn(*const Instruction, *mut u8, usize) -> usize;

/// Where the additions go.
#[derive(Clone, Copy)]
enum Adding {
    ToOne(AddToOne),
    PerCpu { add: AddPerCpu, sum: Sum, board: Board },
}

/// Where the numbers of all CPUs are.
#[derive(Clone, Copy)]
struct Board(*mut c_void);

// SAFETY: the emulator lets any thread add up the numbers.
unsafe impl Send for Board {}
// SAFETY: a shared one only says where the numbers are; the emulator lets several threads add them up at the same time.
unsafe impl Sync for Board {}

impl Board {
    /// The numbers of all CPUs for this count.
    fn numbers(self, count: usize) -> Numbers {
        Numbers { board: self.0, offset: count * size_of::<u64>() }
    }
}

/// How the emulator gives the bytes of an instruction.
#[derive(Clone, Copy)]
enum ByteAccess {
    Shows(Bytes),
    Copies(CopyBytes),
}

impl ByteAccess {
    /// As this version of the interface does it.
    fn find(current: i32) -> Result<Self, String> {
        let bytes = find(c"qemu_plugin_insn_data")?;
        Ok(if current >= COPIES_BYTES {
            // SAFETY: since this version, the function has this type.
            Self::Copies(unsafe { transmute::<*mut c_void, CopyBytes>(bytes) })
        } else {
            // SAFETY: until this version, the function has this type.
            Self::Shows(unsafe { transmute::<*mut c_void, Bytes>(bytes) })
        })
    }
}

/// Instructions, those of each class, and those with the lock that is watched.
pub const COUNTS: usize = LOCKED + 1;
/// The last of them, which [`Holds`] has.
const LOCKED: usize = 1 + CLASSES;
/// Numbers of all counts.
pub type Counts = [u64; COUNTS];

/// The functions of the emulator that we use.
#[derive(Clone, Copy)]
pub struct Emulator {
    on_translation: OnTranslation,
    length: Length,
    instruction: InstructionAt,
    address: AddressOf,
    host_address: HostAddressOf,
    size: SizeOf,
    byte_access: ByteAccess,
    isa: Option<Isa>,
    on_execution: OnExecution,
    on_end: OnEnd,
    adding: Adding,
}

static EMULATOR: OnceLock<Emulator> = OnceLock::new();
/// Where the lock is taken and given back, if that is to be watched, and where the results go.
static WATCHED: OnceLock<(Places, Option<String>)> = OnceLock::new();
static HOLDS: Holds = Holds::new();
static COUNT: [AtomicU64; COUNTS] = [const { AtomicU64::new(0) }; COUNTS];
/// Where the marked counts go, if they are wanted.
static MARKED: OnceLock<String> = OnceLock::new();
/// Where the instructions executed between marks go, if they are wanted.
static EXECUTED: OnceLock<String> = OnceLock::new();
/// Where the order of executed instructions goes, if it is wanted.
static RECORDED: OnceLock<String> = OnceLock::new();
static RECORD: Mutex<Record> = Mutex::new(Record::new());
/// Those that were translated.
static TRANSLATED: Mutex<Vec<&'static Translation>> = Mutex::new(Vec::new());
/// Whether a mark began, and none has ended.
static COUNTING: AtomicBool = AtomicBool::new(false);
static MARKS: Mutex<Marks> = Mutex::new(Marks { begun: None, added: [0; COUNTS], rows: Vec::new() });

/// The counts between the guest's marks.
struct Marks {
    /// The counts at the last mark that begins, until one that ends.
    begun: Option<Counts>,
    /// The counts since the last row.
    added: Counts,
    rows: Vec<Counts>,
}

/// An instruction whose executions are counted or recorded.
struct Translation {
    /// How many were translated before it.
    number: u32,
    address: u64,
    /// The host's.
    page: usize,
    /// The first ones.
    bytes: [u8; 4],
    times: AtomicU64,
}

/// Bits of an address within a page.
const PAGE_BITS: u32 = 12;

fn marks() -> MutexGuard<'static, Marks> {
    MARKS.lock().unwrap_or_else(PoisonError::into_inner)
}

unsafe extern "C" {
    fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void;
}

/// Where a function of the emulator is; null = it has none of this name.
fn seek(name: &CStr) -> *mut c_void {
    // SAFETY: a null handle (`RTLD_DEFAULT`) seeks in the program and all its libraries; the name ends with a NUL.
    unsafe { dlsym(null_mut(), name.as_ptr()) }
}

fn find(name: &CStr) -> Result<*mut c_void, String> {
    let found = seek(name);
    if found.is_null() {
        return Err(format!("this emulator lacks {}: QEMU 7.2 to 10 is needed", name.to_string_lossy()));
    }
    Ok(found)
}

/// Version of the interface that fits the emulator that has loaded us.
pub fn version() -> i32 {
    if seek(c"qemu_plugin_scoreboard_new").is_null() { ONE_COUNT } else { COUNT_PER_CPU }
}

impl Emulator {
    /// Finds the functions in the emulator that has loaded us, which has this version of the interface and this guest.
    pub fn find(current: i32, target: &str) -> Result<Self, String> {
        let adding = if version() == ONE_COUNT {
            Adding::ToOne(find_add_to_one()?)
        } else {
            let (new, add, sum) = (find_new_numbers()?, find_add_per_cpu()?, find_sum()?);
            // SAFETY: any size may be asked for; the allocation lives as long as the emulator.
            let board = Board(unsafe { new(size_of::<Counts>()) });
            Adding::PerCpu { add, sum, board }
        };
        Ok(Self {
            on_translation: find_on_translation()?,
            length: find_length()?,
            instruction: find_instruction()?,
            address: find_address()?,
            host_address: find_host_address()?,
            size: find_size()?,
            byte_access: ByteAccess::find(current)?,
            isa: Isa::of_target(target),
            on_execution: find_on_execution()?,
            on_end: find_on_end()?,
            adding,
        })
    }

    /// Watches, once instructions are counted, how long a lock is held, and writes what was found to a file, if there is one,
    /// when the emulator ends.
    pub fn watch(self, id: u64, places: Places, results: Option<String>) -> Result<(), String> {
        WATCHED.set((places, results)).map_err(|_| TWICE)?;
        self.at_end(id, ended);
        Ok(())
    }

    /// Writes what is counted between the guest's marks to a file when the emulator ends, and which instructions were executed there
    /// to another.
    pub fn heed_marks(self, id: u64, results: String, executed: Option<String>) -> Result<(), String> {
        MARKED.set(results).map_err(|_| TWICE)?;
        if let Some(path) = executed {
            EXECUTED.set(path).map_err(|_| TWICE)?;
        }
        self.at_end(id, ended_marked);
        Ok(())
    }

    /// Has the order recorded in which instructions are executed, from when a client says so until it says that this is enough;
    /// then it is in this file.
    pub fn record(path: String) -> Result<(), String> {
        RECORDED.set(path).map_err(|_| TWICE.into())
    }

    /// Has a function of ours called when the emulator ends.
    fn at_end(self, id: u64, called: AtEnd) {
        // SAFETY: `id` is the one that the emulator gave us, and we are never unloaded.
        unsafe { (self.on_end)(id, called, null_mut()) };
    }

    /// Has every instruction counted from now on; gives what answers a client's byte with the counts.
    pub fn count_all(self, id: u64) -> Result<impl Fn(u8) -> Counts + Copy + Send + 'static, String> {
        EMULATOR.set(self).map_err(|_| TWICE)?;
        // SAFETY: `id` is the one that the emulator gave us, and we are never unloaded.
        unsafe { (self.on_translation)(id, translated) };
        Ok(move |question| self.answer(question))
    }

    /// Does what a client asks for; gives the counts.
    fn answer(&self, question: u8) -> Counts {
        match (question, RECORDED.get()) {
            (BEGIN_RECORD, Some(_)) => {
                record().clear();
                let counts = self.counts();
                COUNTING.store(true, Ordering::Relaxed);
                counts
            }
            (END_RECORD, Some(path)) => {
                COUNTING.store(false, Ordering::Relaxed);
                let counts = self.counts();
                write(path, recorded());
                record().clear();
                counts
            }
            _ => self.counts(),
        }
    }

    fn counts(&self) -> Counts {
        std::array::from_fn(|count| match self.adding {
            _ if count == LOCKED => HOLDS.instructions(),
            Adding::ToOne(_) => COUNT[count].load(Ordering::Relaxed),
            // SAFETY: the numbers live as long as the emulator.
            Adding::PerCpu { sum, board, .. } => unsafe { sum(board.numbers(count)) },
        })
    }

    /// Has one added to a count before each execution of an instruction of the block that is shown.
    fn add(&self, instruction: *mut Instruction, count: usize) {
        match self.adding {
            // SAFETY: the instruction is of the block that is shown; `COUNT` lives for ever, and only code
            // made by the emulator writes it: CPUs that run at the same time may lose additions, nothing else.
            Adding::ToOne(add) => unsafe { add(instruction, ADD, (&raw const COUNT[count]).cast_mut(), 1) },
            // SAFETY: the instruction is of the block that is shown; the numbers live as long as the emulator.
            Adding::PerCpu { add, board, .. } => unsafe { add(instruction, ADD, board.numbers(count), 1) },
        }
    }

    /// Has us called before each execution of an instruction of the block that is shown.
    fn follow(&self, instruction: *mut Instruction) {
        let mut room = [0; MAX_BYTES];
        let bytes = self.bytes(instruction, &mut room);
        let first = std::array::from_fn(|place| bytes.get(place).copied().unwrap_or(0));
        // SAFETY: the instruction is of the block that is shown.
        let (address, host) = unsafe { ((self.address)(instruction), (self.host_address)(instruction)) };
        let page = host as usize >> PAGE_BITS;
        let mut all = TRANSLATED.lock().unwrap_or_else(PoisonError::into_inner);
        let number = all.len() as u32;
        let translation = Translation { number, address, page, bytes: first, times: AtomicU64::new(0) };
        // For as long as the emulator lives, which calls us with it.
        let translation = &*Box::leak(Box::new(translation));
        all.push(translation);
        let what = (&raw const *translation).cast_mut().cast();
        // SAFETY: the instruction is of the block that is shown; the argument lives for ever.
        unsafe { (self.on_execution)(instruction, followed, NO_REGISTERS, what) };
    }

    /// The bytes of an instruction of the block that is shown, in `room`.
    fn bytes<'r>(&self, instruction: *const Instruction, room: &'r mut [u8; MAX_BYTES]) -> &'r [u8] {
        // SAFETY: the instruction is of the block that is shown.
        let size = unsafe { (self.size)(instruction) }.min(MAX_BYTES);
        match self.byte_access {
            // SAFETY: the instruction is of the block that is shown, and has so many bytes.
            ByteAccess::Shows(bytes) => unsafe { bytes(instruction).copy_to_nonoverlapping(room.as_mut_ptr(), size) },
            ByteAccess::Copies(copy) => {
                // SAFETY: the instruction is of the block that is shown; there is room for so many bytes.
                unsafe { copy(instruction, room.as_mut_ptr(), size) };
            }
        }
        &room[..size]
    }
}

const TWICE: &str = "the plugin is loaded twice";

/// Writes a file when the emulator ends.
fn write(path: &str, text: String) {
    if let Err(error) = std::fs::write(path, text) {
        eprintln!("qemu-system: counter: {path} cannot be written: {error}");
    }
}

// Called when the emulator ends.
extern "C" fn ended(_id: u64, _: *mut c_void) {
    if let Some((_, Some(path))) = WATCHED.get() {
        write(path, HOLDS.results());
    }
}
extern "C" fn ended_marked(_id: u64, _: *mut c_void) {
    if let Some(path) = EXECUTED.get() {
        let all = TRANSLATED.lock().unwrap_or_else(PoisonError::into_inner);
        let times = |translation: &Translation| translation.times.load(Ordering::Relaxed);
        let line = |translation: &&Translation| {
            let Translation { address, page, bytes, .. } = translation;
            format!("{address:x} {page:x} {:x} {}\n", u32::from_be_bytes(*bytes), times(translation))
        };
        write(path, all.iter().copied().filter(|translation| times(translation) > 0).map(|one| line(&one)).collect());
    }
    if let Some(path) = MARKED.get() {
        let line = |counts: &Counts| counts.map(|count| count.to_string()).join(" ") + "\n";
        write(path, marks().rows.iter().map(line).collect());
    }
}

/// Called before a mark is executed.
extern "C" fn marked(_cpu: c_uint, mark: *mut c_void) {
    let mut marks = marks();
    let Some(now) = EMULATOR.get().map(Emulator::counts) else { return };
    match mark as usize {
        mark if mark == Mark::Begin as usize => {
            marks.begun = Some(now);
            COUNTING.store(true, Ordering::Relaxed);
        }
        mark if mark == Mark::End as usize => {
            COUNTING.store(false, Ordering::Relaxed);
            if let Some(begun) = marks.begun.take() {
                marks.added = std::array::from_fn(|count| marks.added[count] + now[count] - begun[count]);
            }
        }
        mark => {
            let added = std::mem::take(&mut marks.added);
            if mark == Mark::Keep as usize {
                marks.rows.push(added);
            }
        }
    }
}

/// Called before an instruction is executed that is followed.
extern "C" fn followed(_cpu: c_uint, translation: *mut c_void) {
    if COUNTING.load(Ordering::Relaxed) {
        // SAFETY: `follow` passes nothing else, and it lives for ever.
        let translation = unsafe { &*translation.cast::<Translation>() };
        translation.times.fetch_add(1, Ordering::Relaxed);
        if RECORDED.get().is_some() {
            record().add(translation.number);
        }
    }
}

fn record() -> MutexGuard<'static, Record> {
    RECORD.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The record, and what its numbers are.
fn recorded() -> String {
    let all = TRANSLATED.lock().unwrap_or_else(PoisonError::into_inner);
    let lines = all.iter().map(|Translation { address, page, bytes, .. }| {
        format!("i {address:x} {page:x} {:x}\n", u32::from_be_bytes(*bytes))
    });
    lines.chain([record().text()]).collect()
}

// Called before an instruction at this address is executed.
extern "C" fn inside(cpu: c_uint, address: *mut c_void) {
    HOLDS.step(cpu as usize, Role::Inside, address as u64);
}
extern "C" fn taken(cpu: c_uint, address: *mut c_void) {
    HOLDS.step(cpu as usize, Role::Taken, address as u64);
}
extern "C" fn given(cpu: c_uint, address: *mut c_void) {
    HOLDS.step(cpu as usize, Role::Given, address as u64);
}

/// Called for each block that is translated: has one added before each of its instructions, to the count of its class, too, and
/// has us called before marks and those that are watched.
extern "C" fn translated(_id: u64, block: *mut Block) {
    let Some(emulator) = EMULATOR.get() else { return };
    // SAFETY: the emulator shows the block during this call.
    let length = unsafe { (emulator.length)(block) };
    for place in 0..length {
        // SAFETY: `place` is below the block's length.
        let instruction = unsafe { (emulator.instruction)(block, place) };
        emulator.add(instruction, 0);
        if EXECUTED.get().is_some() || RECORDED.get().is_some() {
            emulator.follow(instruction);
        }
        if let Some(isa) = emulator.isa {
            let mut room = [0; MAX_BYTES];
            let bytes = emulator.bytes(instruction, &mut room);
            if let Some(class) = isa.class(bytes) {
                emulator.add(instruction, 1 + class as usize);
            }
            if let Some(mark) = isa.mark(bytes).filter(|_| MARKED.get().is_some()) {
                // SAFETY: the instruction is of the block that is shown; the mark is a number to us.
                unsafe { (emulator.on_execution)(instruction, marked, NO_REGISTERS, mark as usize as *mut c_void) };
            }
        }
        let Some((places, _)) = WATCHED.get() else { continue };
        // SAFETY: the instruction is of the block that is shown.
        let address = unsafe { (emulator.address)(instruction) };
        let called: Executed = match places.role(address) {
            Role::Outside => continue,
            Role::Inside => inside,
            Role::Taken => taken,
            Role::Given => given,
        };
        // SAFETY: the instruction is of the block that is shown; the address is a number to us, and never looked behind.
        unsafe { (emulator.on_execution)(instruction, called, NO_REGISTERS, address as *mut c_void) };
    }
}
