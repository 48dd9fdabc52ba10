//! Backtraces of components and programs that died, from what the log says of them: where they were, and which words of their
//! stack could be return addresses. How large each function's frame is says `.debug_frame` (DWARF 5, section 6.4), or
//! `.eh_frame`, which is nearly the same: compilers write the one or the other.

use crate::elf;
use crate::isa::Isa;
use crate::source::{Lines, UNKNOWN, plain};
use addr2line::gimli::{
    BaseAddresses, CfaRule, DebugFrame, EhFrame, EndianSlice, LittleEndian, Register, RegisterRule, UnwindContext,
    UnwindSection,
};
use anyhow::{Context, Result};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

/// Frames that are shown.
const SHOWN: usize = 40;

/// A line of the log about where a domain was when it died.
#[derive(Debug, PartialEq, Eq)]
pub struct Place<'a> {
    /// How lines about this domain begin.
    pub domain: &'a str,
    /// The domain's name.
    pub name: &'a str,
    pc: u64,
    sp: u64,
    /// The register with the return address, on processors that have one.
    link: Option<u64>,
    /// The words on the stack that lie in code, by address.
    stack: BTreeMap<u64, u64>,
}

impl<'a> Place<'a> {
    /// Reads a line, with its time or without; `None` = it is another line.
    pub fn read(line: &'a str) -> Option<Self> {
        let line = line.trim_end();
        let line = line.strip_prefix('[').and_then(|line| line.split_once("] ")).map_or(line, |(_, line)| line);
        let (domain, place) = line.split_once(" was at ")?;
        let (_, name) = domain.strip_prefix("domain ")?.split_once(' ')?;
        let (pc, place) = place.split_once(", stack ")?;
        let (head, words) = match place.split_once(", link ") {
            Some((sp, place)) => {
                let (link, words) = place.split_once(' ').unwrap_or((place, ""));
                ((sp, Some(link)), words)
            }
            None => {
                let (sp, words) = place.split_once(' ').unwrap_or((place, ""));
                ((sp, None), words)
            }
        };
        let sp = number(head.0)?;
        let word = |pair: &str| {
            let (offset, word) = pair.split_once(':')?;
            Some((sp.wrapping_add(number(offset)?), number(word)?))
        };
        let stack = words.split_whitespace().map(word).collect::<Option<_>>()?;
        let link = head.1.map_or(Some(None), |link| number(link).map(Some))?;
        Some(Self { domain, name, pc: number(pc)?, sp, link, stack })
    }
}

/// How the log says that an account had no room for a page (`abi::info::status::NO_ROOM`), and what to do then.
const NO_ROOM: &str = " died, status 0x600";
const ADVICE: &str = "its account has no room for that page: `account` in the system description says how much it has";

impl Place<'_> {
    /// Finds in the lines before the cause of this death: its kind, and the message of a panic.
    pub fn cause<'l>(&self, before: impl Iterator<Item = &'l str>) -> String {
        let number = self.domain.split(' ').nth(1).unwrap_or_default();
        // Of a component, and of a program.
        let panics = [format!("{}: panicked at ", self.name), format!("{}#{number}: panicked at ", self.name)];
        let (mut death, mut panic) = (None, None);
        for line in before {
            let line = line.split_once("] ").map_or(line, |(_, line)| line);
            if line.starts_with(self.domain) {
                death = Some(line);
            } else if panics.iter().any(|start| line.starts_with(start)) {
                panic = Some(line);
            }
        }
        let advice = death.filter(|line| line.contains(NO_ROOM)).map(|_| ADVICE);
        [Some(death.unwrap_or(self.domain)), advice, panic]
            .into_iter()
            .flatten()
            .map(|line| format!("{line}\n"))
            .collect()
    }
}

fn number(text: &str) -> Option<u64> {
    u64::from_str_radix(text.strip_prefix("0x")?, 16).ok()
}

/// Numbers that DWARF gives registers (AMD64 ABI, figure 3.36; DWARF for the Arm 64-bit Architecture, section 4.1).
struct Numbers {
    sp: Register,
    link: Register,
}

const fn numbers(isa: Isa) -> Numbers {
    match isa {
        Isa::X86_64 => Numbers { sp: Register(7), link: Register(16) },
        Isa::Aarch64 => Numbers { sp: Register(31), link: Register(30) },
    }
}

type Bytes<'a> = EndianSlice<'a, LittleEndian>;

/// A program, of which backtraces are made.
struct Program<'a> {
    isa: Isa,
    file: &'a [u8],
    functions: Vec<(u64, String)>,
    debug_frame: DebugFrame<Bytes<'a>>,
    eh_frame: EhFrame<Bytes<'a>>,
}

impl<'a> Program<'a> {
    fn new(isa: Isa, file: &'a [u8]) -> Result<Self> {
        let section = |name| elf::section(file, name).unwrap_or_default();
        let mut debug_frame = DebugFrame::new(section(".debug_frame"), LittleEndian);
        debug_frame.set_address_size(8);
        let mut eh_frame = EhFrame::new(section(".eh_frame"), LittleEndian);
        eh_frame.set_address_size(8);
        Ok(Self { isa, file, functions: elf::functions(file)?, debug_frame, eh_frame })
    }

    /// Where its code was: the instruction that faulted, and behind the calls that led there, innermost first.
    fn unwind(&self, place: &Place) -> Vec<u64> {
        let (mut found, mut pc, mut sp, mut link) = (vec![place.pc], place.pc, place.sp, place.link);
        while found.len() < SHOWN {
            // The call may be the last instruction of its function.
            let looked_up = if found.len() == 1 { pc } else { pc - 1 };
            let next =
                self.caller(looked_up, sp, &place.stack, link).or_else(|| self.likely(looked_up, sp, &place.stack));
            let Some((from, at)) = next else { break };
            found.push(from);
            (pc, sp, link) = (from, at, None);
        }
        found
    }

    /// Where the function of `pc` returns to, and the stack pointer then, as its debug information has it.
    fn caller(&self, pc: u64, sp: u64, stack: &BTreeMap<u64, u64>, link: Option<u64>) -> Option<(u64, u64)> {
        // Sections that are not loaded lie at address 0.
        let bases = BaseAddresses::default().set_eh_frame(0);
        (self.caller_by(&self.debug_frame, &bases, pc, sp, stack, link))
            .or_else(|| self.caller_by(&self.eh_frame, &bases, pc, sp, stack, link))
    }

    fn caller_by<S: UnwindSection<Bytes<'a>>>(
        &self,
        frames: &S,
        bases: &BaseAddresses,
        pc: u64,
        sp: u64,
        stack: &BTreeMap<u64, u64>,
        link: Option<u64>,
    ) -> Option<(u64, u64)> {
        let registers = numbers(self.isa);
        let mut context = UnwindContext::new();
        let row = frames.unwind_info_for_address(bases, &mut context, pc, S::cie_from_offset).ok()?;
        let CfaRule::RegisterAndOffset { register, offset } = *row.cfa() else { return None };
        if register != registers.sp {
            return None;
        }
        let frame = sp.wrapping_add_signed(offset);
        let from = match row.register(registers.link) {
            Some(RegisterRule::Offset(offset)) => *stack.get(&frame.wrapping_add_signed(offset))?,
            _ => link?,
        };
        Some((from, frame))
    }

    /// The same, where only another register knows how large the frame is: the first word that stands after a call of this
    /// function, or of one that is not known, or else after any.
    fn likely(&self, pc: u64, sp: u64, stack: &BTreeMap<u64, u64>) -> Option<(u64, u64)> {
        let own = elf::function_at(&self.functions, pc).map(|(start, _)| *start);
        let calls = || stack.range(sp..).filter_map(|(at, word)| Some((*at, *word, self.call_before(*word)?)));
        let fits = |called: Option<u64>| called.is_none_or(|called| Some(called) == own);
        let (at, from, _) = calls().find(|(_, _, called)| fits(*called)).or_else(|| calls().next())?;
        Some((from, at + 8))
    }

    /// Whether a call stands right before this address, and of what, if the instruction shows it.
    fn call_before(&self, address: u64) -> Option<Option<u64>> {
        let bytes = |count: usize| elf::loaded(self.file, address.checked_sub(count as u64)?, count);
        match self.isa {
            Isa::X86_64 => {
                if let Some(&[0xe8, ref distance @ ..]) = bytes(5) {
                    let distance = i32::from_le_bytes(distance.try_into().ok()?);
                    return Some(Some(address.wrapping_add_signed(distance.into())));
                }
                let indirect = |count| bytes(count).is_some_and(|bytes| bytes[0] == 0xff && bytes[1] >> 3 & 7 == 2);
                (2..=7).any(indirect).then_some(None)
            }
            Isa::Aarch64 => {
                let word = u32::from_le_bytes(bytes(4)?.try_into().ok()?);
                if word >> 26 == 0b10_0101 {
                    let distance = i64::from((word << 6).cast_signed() >> 6) * 4;
                    return Some(Some((address - 4).wrapping_add_signed(distance)));
                }
                (word & 0xffff_fc1f == 0xd63f_0000).then_some(None)
            }
        }
    }
}

/// The backtrace: each function with its line, innermost first, inlined ones without a number. Repeated frames are counted.
pub fn text(isa: Isa, file: &[u8], place: &Place, root: &Path) -> Result<String> {
    let program = Program::new(isa, file).context("it cannot be read")?;
    let lines = Lines::read(file)?;
    let mut text = String::new();
    let addresses = program.unwind(place);
    let mut number = 0;
    for same in addresses.chunk_by(|one, next| one == next) {
        let pc = if number == 0 { same[0] } else { same[0] - 1 };
        let mut functions = lines.of(pc, root)?;
        // Library frames within a function of the tree say less than they hide.
        let own = |line: &str| root.join(line.split(':').next().unwrap_or(line)).exists();
        if functions.iter().any(|(line, _)| own(line)) {
            functions.retain(|(line, _)| own(line));
        }
        let symbol = elf::function_at(&program.functions, pc).filter(|_| elf::loaded(file, pc, 1).is_some());
        let symbol = symbol.map(|(_, name)| plain(name).to_string());
        match functions.last_mut() {
            // Assembly has no other names.
            Some((_, name)) if name == UNKNOWN => *name = symbol.unwrap_or_default(),
            Some(_) => {}
            None => functions.push((symbol.unwrap_or_else(|| format!("{pc:#x}, not its code")), String::new())),
        }
        for (index, (line, function)) in functions.iter().enumerate() {
            let number = if index == 0 { number.to_string() } else { String::new() };
            writeln!(text, "{}", format!("  {number:>2}  {line}  {function}").trim_end())?;
        }
        if same.len() > 1 {
            writeln!(text, "      and {} times more", same.len() - 1)?;
        }
        number += same.len();
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_about_places_are_read() {
        let place =
            Place::read("[0.34] domain 19 negtest was at 0x123f54, stack 0xfe000 0x0:0x145772 0x10:0x10ca1c").unwrap();
        assert_eq!(
            (place.domain, place.name, place.pc, place.sp),
            ("domain 19 negtest", "negtest", 0x12_3f54, 0xf_e000)
        );
        assert_eq!(place.stack.into_iter().collect::<Vec<_>>(), [(0xf_e000, 0x14_5772), (0xf_e010, 0x10_ca1c)]);
        assert_eq!(place.link, None);
        let place = Place::read("domain 3 a b was at 0x10, stack 0x20, link 0x30").unwrap();
        assert_eq!((place.name, place.link, place.stack.len()), ("a b", Some(0x30), 0));
        assert_eq!(Place::read("domain 3 a was at 0x10, stack 0x20, link 0x30 0x8:0x40").unwrap().stack.len(), 1);
        let log = [
            "[0.1] c: panicked at x.rs:1:1: no",
            "[0.2] a b: panicked at y.rs:2:2: oh",
            "[0.3] domain 3 a b died, status 0x165",
        ];
        let place = Place::read("domain 3 a b was at 0x10, stack 0x20").unwrap();
        assert_eq!(place.cause(log.into_iter()), "domain 3 a b died, status 0x165\na b: panicked at y.rs:2:2: oh\n");
        assert_eq!(place.cause(log[..1].iter().copied()), "domain 3 a b\n");
        let log = ["[0.3] domain 3 a b died, status 0x600: page fault at 0x10, pc 0x20: its handler gave up"];
        assert!(place.cause(log.into_iter()).lines().nth(1).is_some_and(|line| line == ADVICE));
        for other in [
            "domain 19 negtest died, status 0x300: page fault at 0x0, pc 0x123f54",
            "roottask was at 0x10, stack 0x20",
            "domain 3 a was at 10, stack 0x20",
            "domain 3 a was at 0x10, stack 0x20 0x8",
            "domain 3 a was at 0x10, stack 0x20 0x8:word",
            "",
        ] {
            assert_eq!(Place::read(other), None, "{other}");
        }
    }
}
