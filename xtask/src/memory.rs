//! `./x memory`: the use of a machine's memory: the accounts of its description, the reserve, and the boot archive, file by file.

use crate::build::Checks;
use crate::command_line::MemoryOptions;
use crate::image::{self, Size, System};
use crate::project::{Project, read};
use anyhow::{Result, anyhow};
use system::frames_of_all;

/// Bytes of a frame.
const FRAME: usize = 4096;

/// Prints the table, in KiB.
pub fn memory(project: &Project, options: &MemoryOptions) -> Result<u8> {
    let system = System::read(project, &options.system)?;
    let cpus = options.cpus;
    let text = image::memory_for(&system, options.memory.as_deref(), cpus);
    let size = Size::of(&text, cpus)?;
    let archive = read(&image::make(project, &system, Checks::Off, size, None)?.archive)?;
    let mut files = Vec::new();
    let mut padding = archive.len();
    for entry in cpio::Archive::new(&archive).entries() {
        let entry = entry.map_err(|error| anyhow!("the boot archive: {error}"))?;
        padding -= entry.data.len();
        files.push((entry.data.len(), entry.name));
    }
    files.retain(|(bytes, _)| *bytes > 0);
    files.sort_by(|one, other| other.cmp(one));
    println!("boot archive, KiB ({} bytes)", archive.len());
    files.iter().for_each(|(bytes, name)| println!("{:>7}  {name}", bytes.div_ceil(1024)));
    println!("{:>7}  headers, and up to the page at which a file begins\n", padding.div_ceil(1024));
    println!("memory of {text} with {cpus} CPU{}, KiB", if cpus == 1 { "" } else { "s" });
    let description = &system.description;
    let mut kept = description.frames_needed(cpus) - description.reserved_frames;
    for component in &description.components {
        let account = frames_of_all(component.account.value, component.special.value, cpus);
        let vault = u64::from(component.vault.unwrap_or(0));
        kept -= account + vault;
        println!("{:>7}  {}", (account + vault) * 4, component.name.value);
    }
    println!("{:>7}  the nucleus, for CPUs after the first", kept * 4);
    let archive = archive.len().div_ceil(FRAME) * 4;
    println!(
        "{:>7}  reserve: {archive} for the boot archive, the rest for the nucleus, and RAM that the machine keeps",
        description.reserved_frames * 4
    );
    println!(
        "{:>7}  beyond all accounts: for further components, else `rest` divides it",
        (size.frames.saturating_sub(description.frames_needed(cpus))) * 4
    );
    Ok(0)
}
