//! Differences between the ISAs that Cairn runs on, for the host tool.

use clap::ValueEnum;
use serde::Deserialize;
use std::path::Path;

/// An instruction set architecture.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, ValueEnum, Deserialize)]
pub enum Isa {
    /// x86-64
    #[default]
    #[value(name = "x86_64")]
    #[serde(rename = "x86_64")]
    X86_64,
    /// AArch64
    #[value(name = "aarch64")]
    #[serde(rename = "aarch64")]
    Aarch64,
}

/// As many as the older interrupt controller knows.
const GICV2_CPUS: u32 = 8;

/// On which of an ISA's boards tests run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Boards {
    /// Tests with one CPU on the new one, tests with several on the old one
    #[default]
    Usual,
    /// The other way round
    Swapped,
}

/// RAM may be accessed anywhere (Arm ARM B2.7), but the target's code takes a word that is not known to be aligned byte by byte.
const UNALIGNED: &str = "-Ctarget-feature=-strict-align";
/// That feature's name is not stable: the compiler would warn of it, for each crate. Its other warnings show as lints, and
/// the same crates on x86-64.
const QUIET: &str = "-Awarnings";

impl Isa {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::X86_64, Self::Aarch64];

    /// Its name here and in folders.
    pub fn name(self) -> &'static str {
        match self {
            Self::X86_64 => "x86_64",
            Self::Aarch64 => "aarch64",
        }
    }

    /// As people write it.
    pub fn title(self) -> &'static str {
        match self {
            Self::X86_64 => "x86-64",
            Self::Aarch64 => "AArch64",
        }
    }

    /// The target for which the nucleus is compiled: without floating point.
    pub fn nucleus_target(self) -> &'static str {
        match self {
            Self::X86_64 => "x86_64-unknown-none",
            Self::Aarch64 => "aarch64-unknown-none-softfloat",
        }
    }

    /// The target for which components and programs are compiled.
    pub fn target(self) -> &'static str {
        self.nucleus_target()
    }

    /// Flags of the nucleus: it is linked where it runs, in the last 2 GiB of the address space.
    pub fn nucleus_flags(self) -> Vec<String> {
        let flags: &[&str] = match self {
            Self::X86_64 => &["-Crelocation-model=static", "-Ccode-model=kernel", "-Cforce-frame-pointers=yes"],
            // The image is less than 1 MiB: one instruction reaches any address in it.
            Self::Aarch64 => {
                &["-Crelocation-model=static", "-Ccode-model=tiny", "-Cforce-frame-pointers=yes", UNALIGNED, QUIET]
            }
        };
        flags.iter().map(|flag| (*flag).to_string()).collect()
    }

    /// Flags of programs besides those that all have.
    pub fn program_flags(self) -> &'static [&'static str] {
        match self {
            Self::X86_64 => &[],
            // The linker's own is 64 KiB: files would be mostly holes.
            Self::Aarch64 => &["-Clink-arg=-zmax-page-size=4096", UNALIGNED, QUIET],
        }
    }

    /// The folder for what is built, below the target folder: that of x86-64 is the target folder itself.
    pub fn folder(self) -> &'static str {
        match self {
            Self::X86_64 => "",
            Self::Aarch64 => "aarch64",
        }
    }

    /// The emulator's command.
    pub fn emulator(self) -> &'static str {
        match self {
            Self::X86_64 => "qemu-system-x86_64",
            Self::Aarch64 => "qemu-system-aarch64",
        }
    }

    /// The package with the emulator, by Debian's name.
    pub fn package(self) -> &'static str {
        match self {
            Self::X86_64 => "qemu-system-x86",
            Self::Aarch64 => "qemu-system-arm",
        }
    }

    /// The debugger's command: that of this computer knows its own ISA only.
    pub fn debugger(self) -> &'static str {
        let own = match self {
            Self::X86_64 => cfg!(target_arch = "x86_64"),
            Self::Aarch64 => cfg!(target_arch = "aarch64"),
        };
        if own { "gdb" } else { "gdb-multiarch" }
    }

    /// The emulator's arguments for the board; `board` and `cpu` prevail over the usual ones where the ISA has several.
    pub fn board(self, board: Option<&str>, cpu: Option<&str>) -> Vec<String> {
        let (usual_board, usual_cpu) = match self {
            Self::X86_64 => ("q35", "max"),
            Self::Aarch64 => ("virt,gic-version=3", "cortex-a72"),
        };
        let mut words = vec!["-M", board.unwrap_or(usual_board), "-cpu", cpu.unwrap_or(usual_cpu)];
        words.extend(["-display", "none", "-no-reboot", "-nic", "none"]);
        match self {
            Self::X86_64 => words.extend(["-device", "isa-debug-exit,iobase=0xf4,iosize=4"]),
            Self::Aarch64 => words.extend(["-semihosting-config", "enable=on,target=native"]),
        }
        words.into_iter().map(String::from).collect()
    }

    /// Board and processor for tests: on AArch64 one with all that is new and one with what is old, so that each test runs on
    /// both, with one CPU and with several.
    pub fn tested_board(self, cpus: u32, boards: Boards) -> (Option<&'static str>, Option<&'static str>) {
        let new = (cpus == 1) == (boards == Boards::Usual) || cpus > GICV2_CPUS;
        match self {
            Self::X86_64 => (None, None),
            Self::Aarch64 if new => (Some("virt,gic-version=3,mte=on"), Some("max")),
            Self::Aarch64 => (Some("virt,gic-version=2"), Some("cortex-a53")),
        }
    }

    /// The emulator's options that lead what the nucleus writes to the debug console into a file.
    pub fn debug_console(self, file: &Path) -> Vec<(&'static str, String)> {
        let file = escaped(file);
        match self {
            Self::X86_64 => vec![("-debugcon", format!("file:{file}"))],
            Self::Aarch64 => vec![
                ("-chardev", format!("file,id=trace,path={file}")),
                ("-semihosting-config", "enable=on,target=native,chardev=trace".into()),
            ],
        }
    }

    /// Words of the nucleus's command line about the emulator.
    pub fn command_line(self) -> &'static str {
        match self {
            Self::X86_64 => "",
            Self::Aarch64 => "semihosting",
        }
    }
}

/// A path as a part of an option of the emulator's: a comma would end it.
pub fn escaped(path: &Path) -> String {
    path.display().to_string().replace(',', ",,")
}
