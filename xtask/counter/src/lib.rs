//! A plugin of QEMU that counts the guest's instructions, and those that cost more than others, and answers the counts
//! over a Unix socket.
//!
//! `-plugin libcounter.so,socket=PATH`: each byte that a client sends is answered with the counts so far: of all
//! instructions, of those of each [class](classes::Class), and of those with the lock that is watched, eight bytes each,
//! little-endian. The counts begin with the first instruction after power-on, firmware included.
//!
//! `-plugin libcounter.so,marked=PATH`: the guest says by [marks](classes::Mark) what is to be counted. At the end of the emulator
//! the file has a line of the same counts for each row, with spaces between.
//!
//! With `,executed=PATH`, too, that file has at the end a line for each instruction that was executed between marks, as often as it
//! was translated: its address, the page of the host in which it lies, its first bytes, in hexadecimal, and how often. The page tells
//! programs apart that have the same addresses.
//!
//! `-plugin libcounter.so,places=PATH`: a lock is watched; the file says where it is taken and given back: see [`holds`]. With
//! `,results=PATH`, too, that file says at the end how long it was held. All can be asked for at once.
//!
//! `-plugin libcounter.so,socket=PATH,recorded=PATH`: a client says from when on it is recorded in which order instructions are executed, and
//! until when; then the file has it: see [`record`] and [`server`].
//!
//! # What counts as one
//! An addition of one stands before each instruction of a translated block, so a block that is left
//! early counts what was begun. Each iteration of a `rep` string instruction counts, because the translator makes it a
//! turn of its own (from QEMU 10 on only with `-icount`, which therefore is always given). An instruction that
//! faults counts each time it is begun. A halted CPU executes nothing and counts nothing.
//!
//! # Versions
//! The functions that a plugin may call are sought in the emulator when it loads us: until QEMU 8 all CPUs add to one number,
//! and since QEMU 9 each to its own. [`qemu_plugin_version`] shows the emulator for which of the two we take it.
//! Source: QEMU, `include/qemu/qemu-plugin.h` of 7.2 and 10.0.

mod classes;
mod emulator;
mod holds;
mod options;
mod record;
mod server;

use emulator::Emulator;
use holds::Places;
use options::Options;
use std::ffi::{CStr, c_char, c_int};
use std::os::unix::net::UnixListener;
use std::sync::atomic::{AtomicI32, Ordering};

/// Version of the interface that we ask for: read by the emulator once we are loaded.
#[unsafe(no_mangle)]
pub static qemu_plugin_version: AtomicI32 = AtomicI32::new(emulator::ONE_COUNT);

/// Runs when the emulator has loaded us, before it looks at anything.
// SAFETY: an array of functions without arguments is what the loader expects in this section; ours uses
// nothing that is not there before `main`.
#[unsafe(link_section = ".init_array")]
#[used]
static LOADED: extern "C" fn() = {
    extern "C" fn loaded() {
        qemu_plugin_version.store(emulator::version(), Ordering::Relaxed);
    }
    loaded
};

/// The emulator's description of itself; more follows.
#[repr(C)]
pub struct About {
    /// The guest's instruction set: a text that ends with a NUL.
    target: *const c_char,
    /// Versions of the interface: the first that it knows, and the last.
    versions: [c_int; 2],
}

/// Called by the emulator before the machine exists. Gives 0, or 1 after saying why not.
///
/// # Safety
/// `about` must point to what it says, and `arguments` to `count` texts that end with a NUL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qemu_plugin_install(
    id: u64,
    about: *const About,
    count: c_int,
    arguments: *const *const c_char,
) -> c_int {
    let text = |place: usize| {
        // SAFETY: `place` is below `count`, and our caller vouches for the texts.
        unsafe { CStr::from_ptr(*arguments.add(place)) }.to_string_lossy().into_owned()
    };
    let arguments: Vec<String> = (0..usize::try_from(count).unwrap_or(0)).map(text).collect();
    // SAFETY: our caller vouches for it.
    let (target, [_, current]) = unsafe { (CStr::from_ptr((*about).target).to_string_lossy(), (*about).versions) };
    match install(id, current, &target, &arguments) {
        Ok(()) => 0,
        Err(cause) => {
            // The emulator says nothing but that we refused.
            eprintln!("qemu-system: counter: {cause}");
            1
        }
    }
}

fn install(id: u64, current: i32, target: &str, arguments: &[String]) -> Result<(), String> {
    let options = Options::parse(arguments)?;
    let emulator = Emulator::find(current, target)?;
    if let Some((places, results)) = options.watch {
        let text = std::fs::read_to_string(&places).map_err(|error| format!("{places} cannot be read: {error}"))?;
        emulator.watch(id, Places::parse(&text).map_err(|cause| format!("{places}: {cause}"))?, results)?;
    }
    if let Some(results) = options.marked {
        emulator.heed_marks(id, results, options.executed)?;
    }
    if let Some(path) = options.recorded {
        Emulator::record(path)?;
    }
    let listener = options
        .socket
        .map(|path| UnixListener::bind(&path).map_err(|error| format!("no socket can be made at {path}: {error}")));
    let listener = listener.transpose()?;
    let count = emulator.count_all(id)?;
    if let Some(listener) = listener {
        std::thread::spawn(move || server::serve(&listener, count));
    }
    Ok(())
}
