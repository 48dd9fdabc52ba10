//! Portals for x86-64.
//!
//! A call begins with the address of the entry in rax, the user's instruction pointer and flags in rcx and r11, a return with the
//! activation in r11; all other registers are the user's, and the CPU's block is behind `gs`. Interrupts are off, and no stack is
//! there. Whatever can refuse comes before the first state is changed.

mod encode;

use crate::code::{Code, Extent, Nucleus, Offsets, Progress, Sink};
use crate::specification::{Letter, Letters, REGISTER_WORDS, Specification, State};
use abi::MESSAGE_BYTES;
use encode::Place::{At, Cpu, Sum};
use encode::{
    If, Instructions, Place, R8, R9, R10, R11, R12, R13, R14, R15, RAX, RBP, RBX, RCX, RDI, RDX, RSI, RSP, Register,
};

/// Registers of the words, in their order.
const WORDS: [Register; REGISTER_WORDS] = [RDI, RSI, RDX, R8, R9, R12, R13, R14, R15];
/// The control word.
const CONTROL: Register = R10;
/// A call begins at a multiple of this.
const LINE: usize = 64;
/// Registers that a function preserves, besides the stack pointer.
const PRESERVED: [Register; 6] = [RBX, RBP, R12, R13, R14, R15];

/// Writes call and return of a specification.
pub fn write(code: &mut Code<'_>, specification: &Specification, nucleus: &Nucleus) -> Extent {
    let mut progress = Progress::NONE;
    while !write_step(code, specification, nucleus, &mut progress) {}
    progress.extent
}

/// Writes some of call and return; true if that was all. The code stands where that of the steps before ends.
#[inline(never)]
pub fn write_step(
    code: &mut Code<'_>,
    specification: &Specification,
    nucleus: &Nucleus,
    progress: &mut Progress,
) -> bool {
    let letters = if progress.is_call { &specification.call } else { &specification.result };
    let half = Half { letters, state: specification.state, at: &nucleus.offsets };
    if progress.is_call && progress.step == 0 {
        code.put(&[0xcc; LINE][..code.length().next_multiple_of(LINE) - code.length()]);
        progress.extent.call = code.length();
    }
    let is_last = match progress.is_call {
        true => half.write_call(code, nucleus, code.base, progress.step),
        false => half.write_return(code, nucleus, progress.step),
    };
    progress.end_step(is_last, code.length())
}

/// A call, or a return.
struct Half<'a> {
    letters: &'a Letters,
    state: State,
    at: &'a Offsets,
}

impl Half<'_> {
    /// Whether the code uses a register that a function preserves.
    fn uses(&self, register: Register) -> bool {
        match register {
            RBX | RBP => true,
            R12 | R13 | R14 => self.has_message(),
            _ => false,
        }
    }
    /// Whether anything goes along in the message area.
    fn has_message(&self) -> bool {
        self.copies_bytes() || self.letters.in_area() > 0
    }
    /// Whether as many bytes go along as somebody says.
    fn copies_bytes(&self) -> bool {
        self.letters.bytes().is_some() || self.letters.has_control()
    }
    /// A register that the code uses: none of the user's, unless there is a control word.
    fn scratch(&self) -> Register {
        if self.letters.has_control() { R13 } else { R10 }
    }
    /// Whether a register has a word for the other side.
    fn passes(&self, register: Register) -> bool {
        WORDS[..self.letters.in_registers()].contains(&register)
    }
    /// Where a preserved register is saved in the activation at `holder`.
    fn saved(&self, holder: Register, register: Register) -> Place {
        let place = PRESERVED.iter().position(|other| *other == register).unwrap_or_default();
        At(holder, self.at.activation_preserved[place])
    }

    /// Writes a step of a call; true if it was the last.
    #[inline(never)]
    fn write_call(&self, code: &mut Code<'_>, nucleus: &Nucleus, back: u64, step: u8) -> bool {
        let (at, scratch) = (self.at, self.scratch());
        let slowly = nucleus.call_slow_path(self.letters);
        let constant = self.letters.find(Letter::Constant).and_then(|word| WORDS.get(word));
        match step {
            0 => {
                self.check_length(code, nucleus.refuse_call);

                code.part("the caller's activation keeps where it goes on, and its registers");
                code.load(R11, Cpu(at.cpu_activation));
                code.store(At(R11, at.activation_pc), RCX);
                code.store(At(R11, at.activation_sp), RSP);
                for register in PRESERVED {
                    if self.state == State::Preserved || self.uses(register) {
                        code.store(self.saved(R11, register), register);
                    }
                }
                self.check_entry(code, slowly);
            }
            1 => {
                code.part("the flow is allowed, both domains live, and nothing is special about them");
                code.load(RBP, At(RAX, at.entry_object));
                code.load(RBX, Cpu(at.cpu_domain));
                code.load(RCX, At(RBX, at.domain_as_caller));
                code.or(RCX, At(RBP, at.domain_as_callee));
                code.compare(RCX, At(RAX, at.entry_pairs));
                code.jump_if(If::NotEqual, slowly);

                code.part("an activation of the callee is free on this CPU");
                code.load(scratch, Cpu(at.cpu_share));
                code.load(RCX, Sum(RBP, scratch, at.share_pool));
                code.test(RCX);
                code.jump_if(If::Equal, slowly);

                code.part("the chain may be longer");
                code.compare32(At(R11, at.activation_frame), nucleus.deepest);
                code.jump_if(If::AboveOrEqual, slowly);
            }
            2 => {
                code.part("nothing refuses from here on: the activation leaves the pool");
                code.increment(Sum(RBX, scratch, at.share_crossings));
                code.load(RBX, At(RCX, at.activation_next));
                code.store(Sum(RBP, scratch, at.share_pool), RBX);

                code.part("it is the top of the chain; other CPUs see caller and thread before they see that");
                code.load(scratch, Cpu(at.cpu_thread));
                code.store(At(RCX, at.activation_caller), R11);
                code.store(At(RCX, at.activation_thread), scratch);
                code.load32(RBX, At(R11, at.activation_frame));
                code.add32(RBX, 1 << 16);
                code.store32(At(RCX, at.activation_frame), RBX);
                code.store16(At(R11, at.activation_frame), nucleus.calling);
                code.store(At(R11, at.activation_callee), RCX);
                code.store(At(scratch, at.thread_top), RCX);
                code.store_address(At(RCX, at.activation_back), back);
            }
            3 => {
                self.copy_message(code, R11, RCX);

                code.part("what the entry says; whoever empties it relies on our being in the caller until now");
                code.load(scratch, At(RAX, at.entry_word0));
                if let Some(register) = constant {
                    code.load(*register, At(RAX, at.entry_word1));
                }
                if self.letters.has_badge() {
                    code.load(RAX, At(RAX, at.entry_word1));
                }
            }
            4 => {
                code.part("the CPU is in the callee");
                code.store(Cpu(at.cpu_activation), RCX);
                self.enter(code, RBP, RBX);
            }
            _ => {
                code.part("the callee gets its stack and the words, and nothing else");
                code.load(RSP, At(RCX, at.activation_stack));
                if self.state == State::Preserved {
                    code.load(RBX, At(RCX, at.activation_message));
                }
                code.copy(RCX, scratch);
                for register in PRESERVED {
                    match (self.passes(register), self.state) {
                        (true, _) if Some(&register) == constant => {}
                        (_, State::Preserved) if register == RBX => {}
                        (false, State::Preserved) => code.clear(register),
                        _ if self.uses(register) => code.load(register, self.saved(R11, register)),
                        _ => {}
                    }
                }
                if !self.letters.has_badge() {
                    code.clear(RAX);
                }
                self.put_time(code);
                self.clear_words(code);
                code.leave();
            }
        }
        step >= 5
    }

    /// Writes a step of a return; true if it was the last.
    #[inline(never)]
    fn write_return(&self, code: &mut Code<'_>, nucleus: &Nucleus, step: u8) -> bool {
        let (at, scratch) = (self.at, self.scratch());
        match step {
            0 => {
                self.check_length(code, nucleus.refuse_return);
                self.check_entry(code, nucleus.return_slowly);

                // The callee's own registers are of no use any more, unless it preserved them for the caller, or they are words.
                for register in PRESERVED {
                    if self.uses(register) && (self.state == State::Minimal || self.passes(register)) {
                        code.store(self.saved(R11, register), register);
                    }
                }
                code.part("nothing became special about the two domains, and nobody waits for the activation");
                code.load(RAX, At(R11, at.activation_caller));
                code.load(RBP, Cpu(at.cpu_domain));
                code.load(RBX, At(RAX, at.activation_domain));
                code.load8(scratch, At(RBP, at.domain_slow));
                code.or8(scratch, At(RBX, at.domain_slow));
                code.jump_if(
                    If::NotEqual,
                    match self.state {
                        _ if self.letters.has_control() => nucleus.return_slowly_with_control,
                        State::Preserved => nucleus.return_slowly_spoiled,
                        State::Minimal => nucleus.return_slowly_kept,
                    },
                );
            }
            1 => self.copy_message(code, R11, RAX),
            2 => {
                code.part("the activation is free");
                code.load(scratch, Cpu(at.cpu_share));
                code.load(RCX, Sum(RBP, scratch, at.share_pool));
                code.store(At(R11, at.activation_next), RCX);
                code.store(Sum(RBP, scratch, at.share_pool), R11);
                code.store8(At(R11, at.activation_state), nucleus.free);

                code.part("its caller is the top of the chain again");
                code.store8(At(RAX, at.activation_state), nucleus.top);
                code.load(RCX, Cpu(at.cpu_thread));
                code.store(At(RCX, at.thread_top), RAX);
                code.store(Cpu(at.cpu_activation), RAX);
            }
            3 => {
                code.part("the CPU is in the caller");
                self.enter(code, RBX, RCX);
            }
            _ => {
                code.part("the caller gets its registers and the results, and nothing else");
                code.load(RCX, At(RAX, at.activation_pc));
                code.load(RSP, At(RAX, at.activation_sp));
                for register in PRESERVED {
                    match (self.passes(register), self.state) {
                        (false, State::Preserved) => code.load(register, self.saved(RAX, register)),
                        _ if self.uses(register) => code.load(register, self.saved(R11, register)),
                        _ => {}
                    }
                }
                code.clear(RAX);
                self.put_time(code);
                self.clear_words(code);
                code.leave();
            }
        }
        step >= 4
    }

    /// Refuses more bytes than a message area has.
    fn check_length(&self, code: &mut Code<'_>, refuse: u64) {
        let Some(word) = self.letters.bytes() else { return };
        code.part("no more bytes than a message area has");
        code.compare_with(WORDS[word], self.room() as i32);
        code.jump_if(If::Above, refuse);
    }
    /// Bytes that the message area has for those that are counted.
    fn room(&self) -> usize {
        MESSAGE_BYTES - 8 * self.letters.in_area()
    }
    /// The nucleus copies entries, and does whatever else than bytes a control word asks for.
    fn check_entry(&self, code: &mut Code<'_>, slowly: u64) {
        if self.letters.has_control() {
            code.part("the control word asks for bytes only");
            code.compare_with(CONTROL, MESSAGE_BYTES as i32);
            code.jump_if(If::Above, slowly);
        }
        let Some(word) = self.letters.entry() else { return };
        code.part("no entry goes along");
        code.test(WORDS[word]);
        code.jump_if(If::NotEqual, slowly);
    }

    /// Copies what goes along in the message area of the activation at `from`; changes r12 to r14, r10 unless that has the
    /// control word, and rcx unless that is `to`.
    fn copy_message(&self, code: &mut Code<'_>, from: Register, to: Register) {
        if !self.has_message() {
            return;
        }
        code.part("words and bytes of the message area");
        let (words, at) = (self.letters.in_area() as i32, self.at);
        let over = self.letters.has_control().then(|| {
            code.test(CONTROL);
            code.skip_if(If::Equal)
        });
        if let Some(word) = self.letters.bytes() {
            code.address(R10, At(WORDS[word], 7));
        }
        if to == RCX {
            code.copy(R14, RCX);
        }
        code.load(R12, At(from, at.activation_area));
        code.load(R13, At(to, at.activation_area));
        for word in 0..words {
            code.load(RCX, At(R12, 8 * word));
            code.store(At(R13, 8 * word), RCX);
        }
        if self.copies_bytes() {
            if words > 0 {
                code.address(R12, At(R12, 8 * words));
                code.address(R13, At(R13, 8 * words));
            }
            match over {
                Some(_) => code.address(RCX, At(CONTROL, 7)),
                None => code.copy(RCX, R10),
            }
            code.shift_right(RCX, 3);
            code.exchange(RSI, R12);
            code.exchange(RDI, R13);
            code.copy_words();
            code.copy(RSI, R12);
            code.copy(RDI, R13);
        }
        if to == RCX {
            code.copy(RCX, R14);
        }
        if let Some(skip) = over {
            code.skip_to_here(skip);
        }
    }

    /// Puts the time stamp where it is asked for, when r10 and r11 are free.
    fn put_time(&self, code: &mut Code<'_>) {
        if self.letters.find(Letter::Time).is_none() {
            return;
        }
        code.part("the time stamp");
        code.copy(R10, RDX);
        code.copy(R11, RAX);
        code.read_time();
        code.shift_left(RDX, 32);
        code.or_with(RDX, RAX);
        let mut takes_rdx = false;
        for (word, _) in self.letters.iter().filter(|(_, letter)| *letter == Letter::Time) {
            takes_rdx |= WORDS[word] == RDX;
            if WORDS[word] != RDX {
                code.copy(WORDS[word], RDX);
            }
        }
        if !takes_rdx {
            code.copy(RDX, R10);
        }
        code.copy(RAX, R11);
    }

    /// Clears the registers of words that are not passed.
    fn clear_words(&self, code: &mut Code<'_>) {
        for register in WORDS.into_iter().filter(|register| !self.passes(*register) && !PRESERVED.contains(register)) {
            code.clear(register);
        }
        if let Some(word) = self.letters.minted_badge() {
            code.clear(WORDS[word]);
        }
        if !self.letters.has_control() {
            code.clear(CONTROL);
        }
    }

    /// The domain at `domain` is the running one; changes `scratch`.
    fn enter(&self, code: &mut Code<'_>, domain: Register, scratch: Register) {
        let at = self.at;
        code.store(Cpu(at.cpu_domain), domain);
        for (place, field) in [(at.cpu_table, at.domain_table), (at.cpu_limit, at.domain_limit)] {
            code.load(scratch, At(domain, field));
            code.store(Cpu(place), scratch);
        }
        code.load(scratch, At(domain, at.domain_root));
        code.load_root(scratch);
    }
}
