//! Instructions that cost more on hardware than others, recognised by their bytes.
//!
//! Sources: Intel SDM volume 2 (opcodes) and volume 3, 9.3 (what serialises); Arm ARM (DDI 0487), C4.1 (encodings).

/// A kind of instructions that cost more than others.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Class {
    /// Writes the root of the page tables: CR3; TTBR0_EL1, TTBR1_EL1.
    RootWrite,
    /// Drops translations: INVLPG, INVPCID; TLBI.
    Invalidation,
    /// Orders memory: MFENCE, LFENCE, SFENCE; DMB, DSB.
    Barrier,
    /// Reads and writes memory at once: with LOCK, XCHG; exclusive loads and stores, each, and those of FEAT_LSE.
    Atomic,
    /// Waits for all before it: IRET, CPUID, WRMSR, INVD, WBINVD, LGDT, LIDT, LLDT, LTR, writes of other control and debug registers;
    /// ISB, ERET.
    Serialising,
}

/// How many classes there are.
pub const CLASSES: usize = 5;

/// A mark: an instruction that does nothing, by which a program signals us. NOP with a displacement of 0x43410000 and the number of the
/// mark (x86-64), MOVZ XZR with 0xca00 and the number (AArch64).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mark {
    /// 1: counting begins.
    Begin,
    /// 2: it ends, and is added to what was counted before.
    End,
    /// 3: the counts so far become a row.
    Keep,
    /// 4: the counts so far are forgotten.
    Drop,
}

/// The instruction set of the guest.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Isa {
    X86_64,
    Aarch64,
}

impl Isa {
    /// As the emulator calls it.
    pub fn of_target(name: &str) -> Option<Self> {
        match name {
            "x86_64" => Some(Self::X86_64),
            "aarch64" => Some(Self::Aarch64),
            _ => None,
        }
    }

    /// The class of the instruction with these bytes.
    pub fn class(self, bytes: &[u8]) -> Option<Class> {
        match self {
            Self::X86_64 => x86_64(bytes),
            Self::Aarch64 => aarch64(u32::from_le_bytes(bytes.try_into().ok()?)),
        }
    }

    /// The mark with these bytes.
    pub fn mark(self, bytes: &[u8]) -> Option<Mark> {
        let number = match (self, bytes) {
            (Self::X86_64, [0x0f, 0x1f, 0x80, number, 0x00, 0x41, 0x43]) => u32::from(*number),
            (Self::Aarch64, bytes) => {
                let word = u32::from_le_bytes(bytes.try_into().ok()?);
                (word & 0xffff_e01f == 0xd299_401f).then_some(word >> 5 & 0xff)?
            }
            _ => return None,
        };
        match number {
            1 => Some(Mark::Begin),
            2 => Some(Mark::End),
            3 => Some(Mark::Keep),
            4 => Some(Mark::Drop),
            _ => None,
        }
    }
}

fn x86_64(bytes: &[u8]) -> Option<Class> {
    let is_prefix = |byte: &u8| matches!(byte, 0x26 | 0x2e | 0x36 | 0x3e | 0x64..=0x67 | 0xf0 | 0xf2 | 0xf3);
    let prefixes = bytes.iter().take_while(|byte| is_prefix(byte)).count();
    let (prefixes, rest) = bytes.split_at(prefixes);
    if prefixes.contains(&0xf0) {
        return Some(Class::Atomic);
    }
    let rest = match rest {
        [0x40..=0x4f, rest @ ..] => rest,
        rest => rest,
    };
    // Of the byte after the opcode: registers only, and the register or the extension of the opcode.
    let parts = |byte: u8| (byte >> 6 == 3, byte >> 3 & 7);
    match *rest {
        // XCHG with memory.
        [0x86 | 0x87, operands, ..] if !parts(operands).0 => Some(Class::Atomic),
        [0xcf, ..] => Some(Class::Serialising),
        [0x0f, 0x00, operands, ..] if matches!(parts(operands).1, 2 | 3) => Some(Class::Serialising),
        [0x0f, 0x01, operands, ..] => match parts(operands) {
            (false, 7) => Some(Class::Invalidation),
            (false, 2 | 3) => Some(Class::Serialising),
            _ => None,
        },
        [0x0f, 0x08 | 0x09 | 0x23 | 0x30 | 0xa2, ..] => Some(Class::Serialising),
        [0x0f, 0x22, operands, ..] => match parts(operands).1 {
            3 => Some(Class::RootWrite),
            _ => Some(Class::Serialising),
        },
        [0x0f, 0x38, 0x82, ..] => Some(Class::Invalidation),
        [0x0f, 0xae, operands, ..] => match parts(operands) {
            (true, 5..=7) => Some(Class::Barrier),
            _ => None,
        },
        _ => None,
    }
}

fn aarch64(word: u32) -> Option<Class> {
    match word {
        // MSR TTBR0_EL1, TTBR1_EL1.
        _ if word & 0xffff_ffc0 == 0xd518_2000 => Some(Class::RootWrite),
        // SYS with CRn = 8.
        _ if word & 0xfff8_f000 == 0xd508_8000 => Some(Class::Invalidation),
        // DSB, DMB.
        _ if matches!(word & 0xffff_f0ff, 0xd503_309f | 0xd503_30bf) => Some(Class::Barrier),
        _ if word & 0xffff_f0ff == 0xd503_30df || word == 0xd69f_03e0 => Some(Class::Serialising),
        // Exclusive; those that are only ordered have bit 23. With it and bit 21: CAS.
        _ if word & 0x3f80_0000 == 0x0800_0000 || word & 0x3fa0_7c00 == 0x08a0_7c00 => Some(Class::Atomic),
        // LDADD and the like, SWP.
        _ if word & 0x3f20_0c00 == 0x3820_0000 => Some(Class::Atomic),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instructions_of_x86_64() {
        use Class::*;
        for (bytes, class) in [
            (&[0x0f, 0x22, 0xd8][..], Some(RootWrite)),            // mov cr3, rax
            (&[0x41, 0x0f, 0x22, 0xda], Some(RootWrite)),          // mov cr3, r10
            (&[0x0f, 0x20, 0xd8], None),                           // mov rax, cr3
            (&[0x0f, 0x22, 0xe0], Some(Serialising)),              // mov cr4, rax
            (&[0x0f, 0x01, 0x38], Some(Invalidation)),             // invlpg [rax]
            (&[0x66, 0x0f, 0x38, 0x82, 0x00], Some(Invalidation)), // invpcid rax, [rax]
            (&[0x0f, 0x01, 0xf8], None),                           // swapgs
            (&[0x0f, 0x01, 0x10], Some(Serialising)),              // lgdt [rax]
            (&[0x0f, 0x00, 0xd8], Some(Serialising)),              // ltr ax
            (&[0x0f, 0xae, 0xf0], Some(Barrier)),                  // mfence
            (&[0x0f, 0xae, 0xe8], Some(Barrier)),                  // lfence
            (&[0x48, 0x0f, 0xae, 0x00], None),                     // fxsave64 [rax]
            (&[0xf0, 0xff, 0x08], Some(Atomic)),                   // lock dec dword [rax]
            (&[0x65, 0xf0, 0x48, 0x0f, 0xc1, 0x00], Some(Atomic)), // lock xadd gs:[rax], rax
            (&[0x48, 0x87, 0x00], Some(Atomic)),                   // xchg [rax], rax
            (&[0x48, 0x87, 0xc1], None),                           // xchg rcx, rax
            (&[0x48, 0xcf], Some(Serialising)),                    // iretq
            (&[0x0f, 0x30], Some(Serialising)),                    // wrmsr
            (&[0x0f, 0x32], None),                                 // rdmsr
            (&[0x48, 0x0f, 0x07], None),                           // sysretq
            (&[0x0f, 0x05], None),                                 // syscall
            (&[0x90], None),
            (&[], None),
        ] {
            assert_eq!(Isa::X86_64.class(bytes), class, "{bytes:x?}");
        }
    }

    #[test]
    fn instructions_of_aarch64() {
        use Class::*;
        for (word, class) in [
            (0xd518_2000_u32, Some(RootWrite)), // msr ttbr0_el1, x0
            (0xd518_2029, Some(RootWrite)),     // msr ttbr1_el1, x9
            (0xd538_2000, None),                // mrs x0, ttbr0_el1
            (0xd518_2040, None),                // msr tcr_el1, x0
            (0xd508_871f, Some(Invalidation)),  // tlbi vmalle1
            (0xd508_8320, Some(Invalidation)),  // tlbi vae1is, x0
            (0xd50b_7b20, None),                // dc cvau, x0
            (0xd503_3b9f, Some(Barrier)),       // dsb ish
            (0xd503_3abf, Some(Barrier)),       // dmb ishst
            (0xd503_3fdf, Some(Serialising)),   // isb
            (0xd69f_03e0, Some(Serialising)),   // eret
            (0x885f_fd08, Some(Atomic)),        // ldaxr w8, [x8]
            (0x880b_fd5f, Some(Atomic)),        // stlxr w11, wzr, [x10]
            (0x88df_fc08, None),                // ldar w8, [x0]
            (0x889f_fc08, None),                // stlr w8, [x0]
            (0xc8a8_7d0a, Some(Atomic)),        // cas x8, x10, [x8]
            (0xb8e9_0108, Some(Atomic)),        // ldaddal w9, w8, [x8]
            (0xf820_8000, Some(Atomic)),        // swp x0, x0, [x0]
            (0xf940_0000, None),                // ldr x0, [x0]
            (0xf860_6800, None),                // ldr x0, [x0, x0]
            (0xa9bf_7bfd, None),                // stp x29, x30, [sp, -16]!
            (0xd503_201f, None),                // nop
        ] {
            assert_eq!(Isa::Aarch64.class(&word.to_le_bytes()), class, "{word:#x}");
        }
    }

    #[test]
    fn marks() {
        assert_eq!(Isa::X86_64.mark(&[0x0f, 0x1f, 0x80, 1, 0, 0x41, 0x43]), Some(Mark::Begin));
        assert_eq!(Isa::X86_64.mark(&[0x0f, 0x1f, 0x80, 2, 0, 0x41, 0x43]), Some(Mark::End));
        assert_eq!(Isa::X86_64.mark(&[0x0f, 0x1f, 0x80, 3, 0, 0x41, 0x43]), Some(Mark::Keep));
        assert_eq!(Isa::X86_64.mark(&[0x0f, 0x1f, 0x80, 4, 0, 0x41, 0x43]), Some(Mark::Drop));
        assert_eq!(Isa::X86_64.mark(&[0x0f, 0x1f, 0x80, 5, 0, 0x41, 0x43]), None);
        assert_eq!(Isa::X86_64.mark(&[0x0f, 0x1f, 0x80, 0, 0, 0, 0]), None);
        assert_eq!(Isa::Aarch64.mark(&0xd299_403f_u32.to_le_bytes()), Some(Mark::Begin));
        assert_eq!(Isa::Aarch64.mark(&0xd299_405f_u32.to_le_bytes()), Some(Mark::End));
        assert_eq!(Isa::Aarch64.mark(&0xd299_407f_u32.to_le_bytes()), Some(Mark::Keep));
        assert_eq!(Isa::Aarch64.mark(&0xd299_40bf_u32.to_le_bytes()), None);
        assert_eq!(Isa::Aarch64.mark(&0xd280_003f_u32.to_le_bytes()), None);
    }
}
