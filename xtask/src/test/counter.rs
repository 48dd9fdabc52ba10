//! Does the emulator's plugin count instructions, and every one of them once?
//!
//! A firmware of our own executes a known number of them and halts: a loop, and a `rep` string instruction, of
//! which each turn counts, the last one included that finds nothing left to do.

use super::report::Report;
use crate::counter::Plugin;
use crate::emulator;
use crate::install;
use crate::project::{Project, write};
use anyhow::{Result, bail};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// Turns of the loop, two instructions each.
const TURNS: u32 = 1_000_000;
/// Bytes stored by `rep stosb`.
const STORED: u16 = 1000;
/// The jump to the beginning, one before the loop, four before `rep`, two to halt.
const OTHERS: u64 = 1 + 1 + 4 + 2;
const EXPECTED: u64 = OTHERS + 2 * TURNS as u64 + STORED as u64 + 1;
/// Time for the machine to start and to halt, and how long it then must count nothing.
const LIMIT: Duration = Duration::from_secs(30);
const HALTED: Duration = Duration::from_millis(50);

/// Runs it.
pub fn check(project: &Project, report: &mut Report) {
    report.run("counter", || {
        install::emulator()?;
        let scratch = project.scratch()?;
        let firmware = scratch.file("firmware");
        write(&firmware, &image())?;
        let found = run(project, &firmware)?;
        if found != EXPECTED {
            bail!("the plugin counted {found} instructions, and {EXPECTED} are executed");
        }
        Ok(())
    });
}

/// The count once the machine has halted.
fn run(project: &Project, firmware: &Path) -> Result<u64> {
    let plugin = Plugin::make(project)?;
    let firmware = firmware.display().to_string();
    let plugged = plugin.argument();
    let words = ["-M", "q35", "-accel", "tcg", "-cpu", "max", "-display", "none", "-nic", "none"];
    // Without the clock of instructions, QEMU from 10 on makes one of all turns of `rep`.
    let own = ["-bios", &firmware, "-plugin", &plugged, "-icount", "shift=0,sleep=on"];
    let words: Vec<String> = words.iter().chain(&own).map(|word| word.to_string()).collect();
    emulator::boot_for(&words, LIMIT, |over: &AtomicBool| {
        let mut counter = plugin.connect(over)?;
        loop {
            let before = counter.instructions()?;
            thread::sleep(HALTED);
            if before > 0 && counter.instructions()? == before {
                return Ok(before);
            }
            if over.load(Ordering::Relaxed) {
                bail!("the machine has not halted after {before} instructions");
            }
        }
    })
}

/// 64 KiB of firmware in real mode; a processor begins 16 bytes before its end.
fn image() -> Vec<u8> {
    let turns = TURNS.to_le_bytes();
    let stored = STORED.to_le_bytes();
    let code = [
        &[0x66, 0xb9][..], // mov ecx, TURNS
        &turns,
        &[0x66, 0x49],       // dec ecx
        &[0x75, 0xfc],       // jnz to the line before
        &[0x31, 0xc0],       // xor ax, ax
        &[0x8e, 0xc0],       // mov es, ax
        &[0xbf, 0x00, 0x05], // mov di, 0x500
        &[0xb9],             // mov cx, STORED
        &stored,
        &[0xf3, 0xaa], // rep stosb
        &[0xfa],       // cli
        &[0xf4],       // hlt
    ]
    .concat();
    let mut image = vec![0xf4; 64 * 1024];
    image[..code.len()].copy_from_slice(&code);
    // jmp to offset 0 of the segment: 0xfff3 back
    image[0xfff0..0xfff3].copy_from_slice(&[0xe9, 0x0d, 0x00]);
    image
}
