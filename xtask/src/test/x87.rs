//! Wherever the nucleus of x86-64 loads floating-point registers, an x87 instruction of its own comes first: processors of AMD keep the
//! pointers to the last one over FXRSTOR. The emulator saves these pointers as zeros, so what is looked at is the machine code.

use super::report::Report;
use crate::build::{self, Checks};
use crate::elf;
use crate::project::{Project, read};
use anyhow::{Context, Result, ensure};

/// Name of the test, which is for x86-64.
pub const NAME: &str = "x87";

/// `fnclex`, `emms`, and `fild` up to the distance of its operand from the next instruction.
const BEFORE: [u8; 6] = [0xdb, 0xe2, 0x0f, 0x77, 0xdb, 0x05];
/// Bytes of that distance.
const DISTANCE: usize = 4;

/// Runs the test.
pub fn check(project: &Project, report: &mut Report) {
    report.run(NAME, || verdict(project)?);
}

/// Runs the test on what is built of a tree. The outer error: it could not be built. The inner one: the test failed.
pub fn verdict(project: &Project) -> Result<Result<()>> {
    let nucleus = read(&build::nucleus(project, Checks::Off)?)?;
    Ok(look(&elf::code(&nucleus)?, |address| elf::loaded(&nucleus, address, DISTANCE)))
}

/// Whether these bytes begin with `fxrstor64` of an operand in memory (Intel SDM volume 2, FXRSTOR).
fn is_load(code: &[u8]) -> bool {
    matches!(code, [0x48 | 0x49, 0x0f, 0xae, operand, ..] if operand & 0x38 == 0x08 && operand < &0xc0)
}

/// Looks at pieces of code with their addresses; `loaded` gives what is at an address of the nucleus.
fn look<'a>(code: &[(u64, &'a [u8])], loaded: impl Fn(u64) -> Option<&'a [u8]>) -> Result<()> {
    let mut found = 0;
    for (start, bytes) in code {
        for place in (0..bytes.len()).filter(|place| is_load(&bytes[*place..])) {
            let address = start + place as u64;
            let before = place.checked_sub(BEFORE.len() + DISTANCE).map(|from| &bytes[from..place]);
            let distance = before.and_then(|before| before.strip_prefix(&BEFORE));
            let distance = distance.with_context(|| format!("{address:#x}: no x87 instruction of ours comes first"))?;
            let distance = i32::from_le_bytes(distance.try_into()?);
            let operand = address.wrapping_add_signed(distance.into());
            ensure!(loaded(operand) == Some(&[0; DISTANCE]), "{address:#x}: {operand:#x} is not a zero of the nucleus");
            found += 1;
        }
    }
    ensure!(found > 0, "no place loads floating-point registers: this test must follow it");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// With the load at address 16, and the zero at 24.
    const CODE: [u8; 20] =
        [0x90, 0x90, 0x90, 0x90, 0x0f, 0x06, 0xdb, 0xe2, 0x0f, 0x77, 0xdb, 0x05, 8, 0, 0, 0, 0x48, 0x0f, 0xae, 0x0f];

    fn judge(code: &[u8]) -> Result<()> {
        look(&[(0, code)], |address| (address == 24).then_some(&[0; DISTANCE]))
    }

    #[test]
    fn a_missing_instruction_before_a_load_is_reported() {
        judge(&CODE).unwrap();
        // Each byte of the instructions before, and the distance.
        for place in 6..16 {
            let mut code = CODE;
            code[place] ^= 1;
            assert!(judge(&code).is_err(), "byte {place}");
        }
        assert!(judge(&CODE[16..]).is_err());
        assert!(judge(&CODE[..16]).is_err());
    }
}
