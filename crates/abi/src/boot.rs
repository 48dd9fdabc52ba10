//! The data passed from the boot loader to the nucleus, and from the nucleus to `roottask`.

/// Bytes of a region of memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Region {
    /// First physical address.
    pub start: u64,
    /// Bytes.
    pub bytes: u64,
}

/// Regions of usable RAM that fit in [`BootInfo`].
pub const MAX_REGIONS: usize = 16;

/// Everything the nucleus learns from the loader, whichever it was.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct BootInfo {
    /// Usable RAM.
    pub ram: [Region; MAX_REGIONS],
    /// How many of them are meant.
    pub regions: usize,
    /// The boot archive (cpio, newc).
    pub archive: Region,
    /// The firmware's description of the machine: the physical address of the ACPI root pointer or of the device tree, 0 if
    /// unknown.
    pub firmware: u64,
    /// The command line has the word [`LABELS_OFF`].
    pub labels_off: bool,
    /// Bytes of RAM that are not used.
    pub left_out: u64,
}

/// A word of the command line: labels forbid nothing.
pub const LABELS_OFF: &str = "labels=off";

/// Whether a command line has a word.
pub fn has_word(command_line: &[u8], word: &str) -> bool {
    command_line.split(|byte| *byte == b' ').any(|other| other == word.as_bytes())
}

/// Files of the boot archive that the nucleus itself reads: the first two components.
pub const SIGMA0_PATH: &str = "boot/sigma0";
/// See [`SIGMA0_PATH`].
pub const ROOTTASK_PATH: &str = "boot/roottask";
/// The nucleus's symbols for backtraces: sorted lines `hexadecimal address, space, name`.
pub const SYMBOLS_PATH: &str = "boot/nucleus.symbols";
/// Which interfaces components and programs serve, for people: lines of name, hexadecimal address of the service, interface, and the
/// interface of calls with badges, if that is another one. Only where a program reads it.
pub const SERVICES_PATH: &str = "boot/services";
/// The system description, compiled for `roottask`.
pub const SYSTEM_PATH: &str = "boot/system";
