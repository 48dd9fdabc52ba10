//! Does the emulator's plugin count instructions, and every one of them once?
//!
//! A firmware of our own executes a known number of them and halts: a loop, and a `rep` string instruction, of
//! which each turn counts, the last one included that finds nothing left to do.
//!
//! And a portal call and return takes as many instructions that cost more than others as the book says.
//!
//! Another one has a second processor do something while the first one holds what passes for a lock: of the
//! instructions that the plugin then reports, none may be the second one's.

use super::report::Report;
use crate::bench;
use crate::counter::{Holds, Places, Plugin, Watch};
use crate::emulator;
use crate::install;
use crate::isa::Isa;
use crate::project::{Project, write};
use anyhow::{Result, bail, ensure};
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
        install::emulator(project.isa)?;
        let scratch = project.scratch()?;
        let firmware = scratch.file("firmware");
        write(&firmware, &image())?;
        let found = run(project, &firmware)?;
        if found != EXPECTED {
            bail!("the plugin counted {found} instructions, and {EXPECTED} are executed");
        }
        Ok(())
    });
    for isa in Isa::ALL {
        report.run(&format!("counter: call and return on {}", isa.name()), || {
            install::emulator(isa)?;
            let [counted, reported] = bench::costs_of_a_call(&project.on(isa))?;
            ensure!(counted == reported, "the book says {reported:?}, and {counted:?} are counted");
            Ok(())
        });
    }
    report.run("counter: holds", || {
        install::emulator(project.isa)?;
        let scratch = project.scratch()?;
        let firmware = scratch.file("firmware");
        write(&firmware, &two_processors())?;
        compare(&holds(project, &firmware)?)
    });
}

/// Arguments of a machine of this firmware, with a clock of instructions: without it, QEMU from 10 on makes one of all
/// turns of `rep`.
fn machine(firmware: &Path, plugin: &str, more: &[&str]) -> Vec<String> {
    let firmware = firmware.display().to_string();
    let words = ["-M", "q35", "-accel", "tcg", "-cpu", "max", "-display", "none", "-nic", "none"];
    let own = ["-bios", &firmware, "-plugin", plugin, "-icount", "shift=0,sleep=on"];
    words.iter().chain(&own).chain(more).map(|word| word.to_string()).collect()
}

/// The count once the machine has halted.
fn run(project: &Project, firmware: &Path) -> Result<u64> {
    let plugin = Plugin::make(project)?;
    let words = machine(firmware, &plugin.argument(), &[]);
    emulator::boot_for(crate::isa::Isa::default(), &words, LIMIT, |over: &AtomicBool| {
        let mut counter = plugin.connect(|| over.load(Ordering::Relaxed))?;
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
    rom(&code)
}

/// 64 KiB with this code at their beginning, and where a processor begins a jump to it.
fn rom(code: &[u8]) -> Vec<u8> {
    let mut image = vec![0xf4; 64 * 1024];
    image[..code.len()].copy_from_slice(code);
    // jmp to offset 0 of the segment: 0xfff3 back
    image[0xfff0..0xfff3].copy_from_slice(&[0xe9, 0x0d, 0x00]);
    image
}

/// Where the firmware's segment begins.
const SEGMENT: u64 = 0xffff_0000;
/// Where the second processor begins, and its last instruction but one.
const SECOND: u32 = 0x8000;
const SECOND_END: u64 = SECOND as u64 + 10;
/// The first instruction of the first processor that passes for one with the lock, and the one that gives it back.
const TAKEN: usize = 0x100;
const GIVEN: usize = 0x107;
/// Turns of the loop between them, of three instructions, in the first hold and in the second.
const ROUNDS: [u16; 2] = [1000, 10];
/// Of one turn less or more: setting the counter, what gives back.
const AROUND: u64 = 2;

/// The results of that firmware.
fn holds(project: &Project, firmware: &Path) -> Result<Holds> {
    let places = Places {
        from: 0,
        taken: vec![SEGMENT + TAKEN as u64],
        given: vec![SEGMENT + GIVEN as u64, SECOND_END, SECOND_END + 1],
    };
    let watch = Watch::make(project, &places)?;
    let words = machine(firmware, &watch.argument(), &["-smp", "2", "-device", "isa-debug-exit,iobase=0xf4,iosize=4"]);
    emulator::boot_for(crate::isa::Isa::default(), &words, LIMIT, |over: &AtomicBool| {
        while !over.load(Ordering::Relaxed) {
            thread::sleep(HALTED);
        }
        Ok(())
    })?;
    watch.holds()
}

fn compare(found: &Holds) -> Result<()> {
    let [long, short] = ROUNDS.map(|rounds| 3 * u64::from(rounds) + AROUND);
    let within = (SEGMENT + TAKEN as u64, SEGMENT + GIVEN as u64);
    let samples = long.div_ceil(16) as usize;
    ensure!(
        (found.times, found.instructions, found.longest, found.within) == (2, long + short, long, within),
        "two holds are {long} and {short} instructions long, the longest within {within:x?}, and not: {found:x?}"
    );
    // The second processor "gives back" twice without having taken: so it has run.
    ensure!(found.strayed == 1 && found.cpu == 0, "the second processor did not do its part: {found:x?}");
    ensure!(found.samples.len() == samples, "{} addresses and not {samples}", found.samples.len());
    Ok(())
}

/// Firmware that has the second processor execute a loop at [`SECOND`] while the first goes from [`TAKEN`] to [`GIVEN`], twice.
fn two_processors() -> Vec<u8> {
    /// The local interrupt controller's command register; `INIT` and `SIPI` for all others, which begin at 0x8000.
    const COMMAND: u32 = 0xfee0_0300;
    const INIT: u32 = 0x000c_4500;
    const START: u32 = 0x000c_4608;
    let second = [&[0x66, 0xb9][..], &TURNS.to_le_bytes(), &[0x66, 0x49, 0x75, 0xfc, 0xfa, 0xf4]].concat();
    // mov dword [address], value
    let store = |address: u32, value: u32| {
        [&[0x66, 0x67, 0xc7, 0x05][..], &address.to_le_bytes(), &value.to_le_bytes()].concat()
    };
    const TABLE: u16 = 0x200;
    let mut code = [
        &[0xfa][..],                     // cli
        &[0x66, 0x2e, 0x0f, 0x01, 0x16], // lgdt cs:[TABLE]
        &TABLE.to_le_bytes(),
        &[0x0f, 0x20, 0xc0, 0x0c, 0x01], // mov eax, cr0; or al, 1
        &[0x0f, 0x22, 0xc0],             // mov cr0, eax
        &[0xbb, 0x08, 0x00, 0x8e, 0xdb], // mov bx, 8; mov ds, bx: all addresses from now on
        &[0x24, 0xfe, 0x0f, 0x22, 0xc0], // and al, 0xfe; mov cr0, eax
    ]
    .concat();
    for (place, word) in second.chunks_exact(4).enumerate() {
        let word = word.iter().rev().fold(0, |word, &byte| word << 8 | u32::from(byte));
        code.extend(store(SECOND + 4 * place as u32, word));
    }
    code.extend(store(COMMAND, INIT));
    code.extend(store(COMMAND, START));
    for rounds in ROUNDS {
        // mov dx, rounds; call TAKEN
        let [low, high] = rounds.to_le_bytes();
        let next = code.len() + 6;
        let [to_low, to_high] = ((TAKEN as u16).wrapping_sub(next as u16)).to_le_bytes();
        code.extend([0xba, low, high, 0xe8, to_low, to_high]);
    }
    code.extend([0x30, 0xc0, 0xe6, 0xf4]); // xor al, al; out 0xf4, al
    let mut image = rom(&code);
    let held = [
        &[0x89, 0xd1][..],   // TAKEN: mov cx, dx
        &[0xf3, 0x90],       // pause
        &[0x49, 0x75, 0xfb], // dec cx; jnz to the line before
        &[0x90, 0xc3],       // GIVEN: nop; ret
    ]
    .concat();
    image[TAKEN..TAKEN + held.len()].copy_from_slice(&held);
    // Limit and address of the table: nothing, and data of 4 GiB from 0 on.
    let table = TABLE as usize;
    image[table..table + 2].copy_from_slice(&15_u16.to_le_bytes());
    image[table + 2..table + 6].copy_from_slice(&((SEGMENT as u32) + u32::from(TABLE) + 8).to_le_bytes());
    image[table + 8..table + 24].copy_from_slice(&0x00cf_9200_0000_ffff_u128.wrapping_shl(64).to_le_bytes());
    image
}
