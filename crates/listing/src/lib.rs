//! Portal code as people read it: instructions with names in place of offsets and addresses, and what each part is for.
//!
//! [`Portal::generated`] is what the generator writes for [`nucleus`]. [`Portal::running`] reads what `portals --code` printed: the bytes
//! of a running system, whose nucleus has other offsets. Both have the same instructions, so the comments of the one belong to the
//! other; if they have not, the error names the first that differs.

#![forbid(unsafe_code)]

mod aarch64;
mod code;
pub mod nucleus;
mod x86_64;

pub use code::Code;
use code::Instruction;
use portalgen::{Refusal, Specification};
use std::fmt::{self, Write};

/// An instruction set.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Isa {
    /// x86-64.
    X86_64,
    /// AArch64.
    AArch64,
}

/// The code of a specification, for [`nucleus`].
pub fn generate(isa: Isa, specification: &Specification) -> Code {
    match isa {
        Isa::X86_64 => x86_64::generate(specification),
        Isa::AArch64 => aarch64::generate(specification),
    }
}

fn instructions(isa: Isa, bytes: &[u8]) -> Result<Vec<Instruction>, usize> {
    match isa {
        Isa::X86_64 => x86_64::instructions(bytes),
        Isa::AArch64 => aarch64::instructions(bytes),
    }
}

/// Where the instructions of this code are, up to the first one with this mnemonic; `None`: there is none.
pub fn up_to(isa: Isa, bytes: &[u8], mnemonic: &str) -> Option<Vec<usize>> {
    // Bytes after the path may be no instruction.
    let all = instructions(isa, bytes).or_else(|at| instructions(isa, &bytes[..at])).ok()?;
    let is_last = |one: &Instruction| one.text.split(' ').next() == Some(mnemonic);
    let last = all.iter().position(is_last)?;
    Some(all[..=last].iter().map(|one| one.at).collect())
}

/// A portal to list.
pub struct Portal {
    code: Code,
    instructions: Vec<Instruction>,
    /// The running code, where it is known: how far each instruction is from the start, and its bytes.
    running: Option<Vec<(usize, Vec<u8>)>>,
}

/// Why there is no listing.
#[derive(PartialEq, Eq, Debug)]
pub enum Error {
    /// No such portal can be.
    Refused(String, Refusal),
    /// Nothing that `portals --code` prints.
    NoCode,
    /// A line of it is not understood.
    Line(String),
    /// There is no instruction at this byte.
    NoInstruction(usize),
    /// This is another instruction than that of the specification.
    Other {
        /// Its byte.
        at: usize,
        /// The actual instruction.
        is: String,
        /// The expected instruction; nothing = no further one.
        ought: Option<String>,
    },
    /// Instructions are missing.
    Short,
}

impl fmt::Display for Error {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(text, refusal) => write!(to, "`{text}` is no specification of a portal: {refusal}"),
            Self::NoCode => to.write_str("there is no code: give what `portals --code SHAPE` printed"),
            Self::Line(line) => write!(to, "`{line}` is no line of `portals --code`"),
            Self::NoInstruction(at) => write!(to, "there is no instruction at byte {at:#x}: is it of this ISA?"),
            Self::Other { at, is, ought: Some(ought) } => {
                write!(to, "at byte {at:#x} is `{is}`, where this tree's generator writes `{ought}`")
            }
            Self::Other { at, is, ought: None } => {
                write!(to, "at byte {at:#x} is `{is}`, where this tree's generator writes nothing more")
            }
            Self::Short => to.write_str("the code ends before that of its specification"),
        }
    }
}

impl std::error::Error for Error {}

/// Reads a specification.
pub fn specification(text: &str) -> Result<Specification, Error> {
    Specification::parse(text.as_bytes()).map_err(|refusal| Error::Refused(text.into(), refusal))
}

impl Portal {
    /// The code that the generator writes.
    pub fn generated(isa: Isa, specification: &Specification) -> Result<Self, Error> {
        let code = generate(isa, specification);
        let instructions = instructions(isa, &code.bytes).map_err(Error::NoInstruction)?;
        Ok(Self { code, instructions, running: None })
    }

    /// The code that `portals --code SHAPE` printed; other lines may stand before it.
    pub fn running(isa: Isa, printed: &str) -> Result<Self, Error> {
        let mut lines = printed.lines().map(str::trim_end);
        let begins = |line: &str| line.split_once(": call from 0x").map(|(text, _)| text.to_string());
        let text = lines.by_ref().find_map(begins).ok_or(Error::NoCode)?;
        let mut bytes = Vec::new();
        for line in lines {
            let words: Vec<&str> = line.split(' ').filter(|word| !word.is_empty()).collect();
            let number = |word: &&str| u8::from_str_radix(word, 16);
            match words.split_first() {
                Some((at, words)) if usize::from_str_radix(at, 16) == Ok(bytes.len()) => {
                    let more: Result<Vec<u8>, _> = words.iter().map(number).collect();
                    bytes.extend(more.map_err(|_| Error::Line(line.into()))?);
                }
                // Further output of the machine.
                _ => break,
            }
        }
        let mut portal = Self::generated(isa, &specification(&text)?)?;
        let found = instructions(isa, &bytes).map_err(Error::NoInstruction)?;
        for (place, one) in found.iter().enumerate() {
            let ought = portal.instructions.get(place);
            if ought.is_none_or(|ought| operation(&ought.text) != operation(&one.text)) {
                let ought = ought.map(|ought| ought.text.clone());
                return Err(Error::Other { at: one.at, is: one.text.clone(), ought });
            }
        }
        if found.len() < portal.instructions.len() {
            return Err(Error::Short);
        }
        let own = found.iter().map(|one| (one.at, bytes[one.at..one.at + one.length].to_vec()));
        portal.running = Some(own.collect());
        Ok(portal)
    }
}

/// The operation and registers of an instruction: its text without names and numbers, which differ between nuclei.
fn operation(text: &str) -> String {
    let mut kept = String::new();
    for word in text.split_inclusive([' ', ',', '[', ']', '+', '#', ':']) {
        let (name, end) = word.split_at(word.trim_end_matches([' ', ',', '[', ']', '+', '#', ':']).len());
        let is_number = name.starts_with(|c: char| c.is_ascii_digit() || c == '-');
        let is_name = name.contains('.') && !name.starts_with("b.") || nucleus::PLACES.contains(&name);
        if !is_number && !is_name {
            kept += name;
        }
        kept.extend(end.chars().filter(|c| !matches!(c, '+' | '#' | ' ')));
    }
    // An offset of zero is not written by some.
    kept.replace(",]", "]")
}

impl fmt::Display for Portal {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Code { extent, parts, .. } = &self.code;
        let (mut count, mut counts) = (0, true);
        for (place, Instruction { at, text, .. }) in self.instructions.iter().enumerate() {
            if *at == extent.call {
                writeln!(to, "  {count} instructions\ncall:")?;
                count = 0;
            } else if *at == extent.back {
                to.write_str("return:\n")?;
            }
            for (_, what) in parts.iter().filter(|(part, _)| part == at) {
                writeln!(to, "  ; {what}")?;
                counts = *what != "jumps to the nucleus";
            }
            match self.running.as_ref().and_then(|running| running.get(place)) {
                Some((at, bytes)) => {
                    let bytes = bytes.iter().fold(String::new(), |mut all, byte| {
                        let _ = write!(all, "{byte:02x} ");
                        all
                    });
                    writeln!(to, "    {at:03x}  {bytes:34}{text}")?;
                }
                None => writeln!(to, "    {text}")?,
            }
            count += usize::from(counts);
            // Code after this is not executed.
            counts &= text != "eret";
        }
        let length = match self.running.as_ref().and_then(|running| running.last()) {
            Some((at, bytes)) => at + bytes.len(),
            None => extent.length,
        };
        writeln!(to, "  {count} instructions\n{length} bytes")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use portalgen::{Nucleus, Offsets};

    /// A nucleus with other offsets.
    const OTHER: Nucleus = Nucleus {
        offsets: Offsets { cpu_per_cpu_at: 0x48, activation_stack: 0x20, domain_slow: 0x1f, ..nucleus::OFFSETS },
        ..nucleus::NUCLEUS
    };

    /// As `portals --code` prints the code of that.
    fn printed(text: &str) -> String {
        let mut bytes = [0; 4096];
        let mut code = portalgen::Code::new(&mut bytes, 0xffff_ffff_8030_0000);
        let generator = portalgen::x86_64::Generator::new(&OTHER);
        let extent = generator.write(&mut code, &specification(text).unwrap(), &nucleus::TARGETS);
        let lines = bytes[..extent.length].chunks(16).enumerate().map(|(line, bytes)| {
            let words: String = bytes.iter().map(|byte| format!(" {byte:02x}")).collect();
            format!("{:03x} {words}\n", 16 * line)
        });
        format!("boot\n{text}: call from 0x0c0, return from 0x000\n{}bye\n", lines.collect::<String>())
    }

    fn error(isa: Isa, printed: &str) -> Error {
        Portal::running(isa, printed).err().expect("an error")
    }

    #[test]
    fn the_same_instructions_have_the_same_comments_wherever_fields_stand() {
        for text in ["npciii>i", "npkox5>ox5", "npx4x3bx8>x4x3bx8", "nptd>tg"] {
            let generated = Portal::generated(Isa::X86_64, &specification(text).unwrap()).unwrap().to_string();
            let running = Portal::running(Isa::X86_64, &printed(text)).unwrap().to_string();
            assert_ne!(generated.lines().last(), running.lines().last(), "{text}: offsets are as long");
            // The instruction follows its offset and its bytes.
            let instruction = |line: &str| line.get(43..).filter(|_| line.starts_with("    ")).map(str::to_string);
            let shown: Vec<_> = running.lines().map(|line| instruction(line).unwrap_or(line.trim().into())).collect();
            let expected: Vec<_> = generated.lines().map(|line| line.trim().to_string()).collect();
            assert_eq!(shown[..shown.len() - 1], expected[..expected.len() - 1], "{text}");
        }
    }

    #[test]
    fn a_path_ends_with_its_last_instruction() {
        // swapgs; and eax, 64; jmp [rax]; no instruction.
        let bytes = [0x0f, 0x01, 0xf8, 0x83, 0xe0, 0x40, 0xff, 0x20, 0x06];
        assert_eq!(up_to(Isa::X86_64, &bytes, "jmp"), Some(vec![0, 3, 6]));
        assert_eq!(up_to(Isa::X86_64, &bytes, "syscall"), None);
        // add x8, x8, x17; br x17; no instruction.
        let bytes = [0x8b110108_u32, 0xd61f0220, 0].map(u32::to_le_bytes);
        assert_eq!(up_to(Isa::AArch64, bytes.as_flattened(), "br"), Some(vec![0, 4]));
        assert_eq!(up_to(Isa::AArch64, bytes.as_flattened(), "ret"), None);
    }

    #[test]
    fn code_of_other_shapes_is_refused() {
        let (isa, good) = (Isa::X86_64, printed("npciii>i"));
        assert_eq!(error(isa, ""), Error::NoCode);
        assert_eq!(error(isa, "shapes: 3\n"), Error::NoCode);
        assert_eq!(
            error(isa, "npq>: call from 0x0c0\n").to_string(),
            "`npq>` is no specification of a portal: letter 3: there is no such letter"
        );
        assert_eq!(
            error(isa, &good.replace("010  ", "010  zz ")),
            Error::Line(good.lines().nth(3).unwrap().replace("010  ", "010  zz "))
        );
        // Another specification; fewer letters; an instruction that was changed; less than all.
        assert!(matches!(error(isa, &good.replace("npciii>i", "npiiii>i")), Error::Other { .. }));
        let changed = error(isa, &good.replacen(" 49 8b ", " 4d 8b ", 1));
        assert_eq!(
            changed.to_string(),
            "at byte 0x0 is `mov r8, [r11+activation.caller]`, where this tree's generator writes `mov rax, [r11+activation.caller]`"
        );
        let lines: Vec<&str> = good.lines().collect();
        let short = lines[..6].join("\n");
        assert!(matches!(error(isa, &short), Error::Short | Error::NoInstruction(_)), "{}", error(isa, &short));
        assert!(matches!(error(Isa::AArch64, &good), Error::NoInstruction(_) | Error::Other { .. }));
    }

    #[test]
    fn operations_are_without_names_and_numbers() {
        for (one, other) in [
            ("mov rax, [r11+activation.caller]", "mov rax, [r11+0xc8]"),
            ("ldr x14, [x15, activation.caller]", "ldr x14, [x15, #0x150]"),
            ("stlr x12, [x16]", "stlr x12, [x16]"),
            ("ldr x9, [x8, entry.word0]", "ldr x9, [x8]"),
            ("jne return_slowly_spoiled", "jne 0xFFFFFFFFBFFE3388"),
        ] {
            assert_eq!(operation(one), operation(other));
        }
        assert_ne!(operation("mov rax, [r11+0xc8]"), operation("mov rax, [r10+0xc8]"));
        assert_ne!(operation("b.ne +12"), operation("b.eq +12"));
        assert_ne!(operation("ldrb w11, [x12, domain.slow]"), operation("ldr x11, [x12, domain.slow]"));
    }
}
