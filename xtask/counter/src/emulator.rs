//! The functions of the emulator that a plugin may call, and the counting.

use crate::holds::{Holds, Places, Role};
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::mem::transmute;
use std::ptr::null_mut;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// Version of the interface in which all CPUs add to one number.
pub const ONE_COUNT: i32 = 1;
/// Version of the interface in which each CPU adds to its own.
const COUNT_PER_CPU: i32 = 2;
/// The operation: add.
const ADD: c_uint = 0;
/// What a function of ours that is called does with the guest's registers: nothing.
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

// SAFETY: the emulator lets any thread add up the numbers.
unsafe impl Send for Numbers {}
// SAFETY: as above.
unsafe impl Sync for Numbers {}

// Functions of the emulator, in the order of its header.
type Translated = extern "C" fn(u64, *mut Block);
type OnTranslation = unsafe extern "C" fn(u64, Translated);
type AddToOne = unsafe extern "C" fn(*mut Instruction, c_uint, *mut AtomicU64, u64);
type AddPerCpu = unsafe extern "C" fn(*mut Instruction, c_uint, Numbers, u64);
type Length = unsafe extern "C" fn(*const Block) -> usize;
type InstructionAt = unsafe extern "C" fn(*const Block, usize) -> *mut Instruction;
type NewNumbers = unsafe extern "C" fn(usize) -> *mut c_void;
type Sum = unsafe extern "C" fn(Numbers) -> u64;
type AddressOf = unsafe extern "C" fn(*const Instruction) -> u64;
type Executed = extern "C" fn(c_uint, *mut c_void);
type OnExecution = unsafe extern "C" fn(*mut Instruction, Executed, c_int, *mut c_void);
type AtEnd = extern "C" fn(u64, *mut c_void);
type OnEnd = unsafe extern "C" fn(u64, AtEnd, *mut c_void);

/// Where the additions go.
#[derive(Clone, Copy)]
enum Adding {
    ToOne(AddToOne),
    PerCpu { add: AddPerCpu, sum: Sum, numbers: Numbers },
}

/// What of the emulator we use.
#[derive(Clone, Copy)]
pub struct Emulator {
    on_translation: OnTranslation,
    length: Length,
    instruction: InstructionAt,
    address: AddressOf,
    on_execution: OnExecution,
    on_end: OnEnd,
    adding: Adding,
}

static EMULATOR: OnceLock<Emulator> = OnceLock::new();
/// Where the lock is taken and given back, if that is to be watched, and where the results go.
static WATCHED: OnceLock<(Places, String)> = OnceLock::new();
static HOLDS: Holds = Holds::new();
static COUNT: AtomicU64 = AtomicU64::new(0);

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
    /// Finds the functions in the emulator that has loaded us.
    pub fn find() -> Result<Self, String> {
        let adding = if version() == ONE_COUNT {
            let add = find(c"qemu_plugin_register_vcpu_insn_exec_inline")?;
            // SAFETY: of this name and in this version of the interface, the function has this type.
            Adding::ToOne(unsafe { transmute::<*mut c_void, AddToOne>(add) })
        } else {
            let new = find(c"qemu_plugin_scoreboard_new")?;
            let add = find(c"qemu_plugin_register_vcpu_insn_exec_inline_per_vcpu")?;
            let sum = find(c"qemu_plugin_u64_sum")?;
            // SAFETY: of this name and in this version of the interface, the function has this type.
            let new = unsafe { transmute::<*mut c_void, NewNumbers>(new) };
            // SAFETY: as above.
            let add = unsafe { transmute::<*mut c_void, AddPerCpu>(add) };
            // SAFETY: as above.
            let sum = unsafe { transmute::<*mut c_void, Sum>(sum) };
            // SAFETY: any size may be asked for; what is made lives as long as the emulator.
            let board = unsafe { new(size_of::<u64>()) };
            Adding::PerCpu { add, sum, numbers: Numbers { board, offset: 0 } }
        };
        let on_translation = find(c"qemu_plugin_register_vcpu_tb_trans_cb")?;
        let length = find(c"qemu_plugin_tb_n_insns")?;
        let instruction = find(c"qemu_plugin_tb_get_insn")?;
        let address = find(c"qemu_plugin_insn_vaddr")?;
        let on_execution = find(c"qemu_plugin_register_vcpu_insn_exec_cb")?;
        let on_end = find(c"qemu_plugin_register_atexit_cb")?;
        Ok(Self {
            // SAFETY: of this name, the function has this type in both versions of the interface.
            on_translation: unsafe { transmute::<*mut c_void, OnTranslation>(on_translation) },
            // SAFETY: as above.
            length: unsafe { transmute::<*mut c_void, Length>(length) },
            // SAFETY: as above.
            instruction: unsafe { transmute::<*mut c_void, InstructionAt>(instruction) },
            // SAFETY: as above.
            address: unsafe { transmute::<*mut c_void, AddressOf>(address) },
            // SAFETY: as above.
            on_execution: unsafe { transmute::<*mut c_void, OnExecution>(on_execution) },
            // SAFETY: as above.
            on_end: unsafe { transmute::<*mut c_void, OnEnd>(on_end) },
            adding,
        })
    }

    /// Watches, once instructions are counted, how long a lock is held, and writes what was found to a file when the
    /// emulator ends.
    pub fn watch(self, id: u64, places: Places, results: String) -> Result<(), String> {
        WATCHED.set((places, results)).map_err(|_| "the plugin is loaded twice")?;
        // SAFETY: `id` is the one that the emulator gave us, and we are never unloaded.
        unsafe { (self.on_end)(id, ended, null_mut()) };
        Ok(())
    }

    /// Has every instruction counted from now on; gives what tells the count.
    pub fn count_all(self, id: u64) -> Result<impl Fn() -> u64 + Copy + Send + 'static, String> {
        EMULATOR.set(self).map_err(|_| "the plugin is loaded twice")?;
        // SAFETY: `id` is the one that the emulator gave us, and we are never unloaded.
        unsafe { (self.on_translation)(id, translated) };
        Ok(move || match self.adding {
            Adding::ToOne(_) => COUNT.load(Ordering::Relaxed),
            // SAFETY: the numbers live as long as the emulator.
            Adding::PerCpu { sum, numbers, .. } => unsafe { sum(numbers) },
        })
    }
}

/// Called when the emulator ends.
extern "C" fn ended(_id: u64, _: *mut c_void) {
    let Some((_, path)) = WATCHED.get() else { return };
    if let Err(error) = std::fs::write(path, HOLDS.results()) {
        eprintln!("qemu-system: counter: {path} cannot be written: {error}");
    }
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

/// Called for each block that is translated: has one added before each of its instructions, and has us called
/// before those that are watched.
extern "C" fn translated(_id: u64, block: *mut Block) {
    let Some(emulator) = EMULATOR.get() else { return };
    // SAFETY: the emulator shows the block during this call.
    let length = unsafe { (emulator.length)(block) };
    for place in 0..length {
        // SAFETY: `place` is below the block's length.
        let instruction = unsafe { (emulator.instruction)(block, place) };
        match emulator.adding {
            // SAFETY: the instruction is of the block that is shown; `COUNT` lives for ever, and only code
            // made by the emulator writes it: CPUs that run at the same time may lose additions, nothing else.
            Adding::ToOne(add) => unsafe { add(instruction, ADD, (&raw const COUNT).cast_mut(), 1) },
            // SAFETY: the instruction is of the block that is shown; the numbers live as long as the emulator.
            Adding::PerCpu { add, numbers, .. } => unsafe { add(instruction, ADD, numbers, 1) },
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
        // SAFETY: as above; the address is a number to us, and never looked behind.
        unsafe { (emulator.on_execution)(instruction, called, NO_REGISTERS, address as *mut c_void) };
    }
}
