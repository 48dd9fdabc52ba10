//! Portals for AArch64.
//!
//! A call begins with the address of the entry in x8, a return with the activation in x15; x16 is the CPU's block, x14, x15 and x17 are
//! used, and all other registers are the user's. Interrupts are off; the stack pointer is the top of the kernel stack, above which
//! are two words of zeros. Whatever can refuse comes before the first state is changed. The code uses x6, x7 and x9 to x18,
//! which a system call destroys anyway.

mod encode;

use crate::code::{Code, Extent, Nucleus, Offsets, Progress, Sink};
use crate::specification::{Letter, Letters, REGISTER_WORDS, Specification, State};
use abi::MESSAGE_BYTES;
use encode::{If, Instructions, SP, System, X, ZERO};

/// Registers of the words, in their order.
const WORDS: [X; REGISTER_WORDS] = [X(0), X(1), X(2), X(4), X(5), X(21), X(22), X(23), X(24)];
/// The first register of each pair that a function preserves.
const PRESERVED: [u32; 6] = [19, 21, 23, 25, 27, 29];
/// The address of the message area, for a callee.
const AREA: X = X(6);
/// The control word.
const CONTROL: X = X(3);
/// Status, badge, and the entry.
const STATUS: X = X(8);
/// The CPU's block.
const CPU: X = X(16);

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
    let (letters, slowly, refuse) = match progress.is_call {
        true => (&specification.call, nucleus.call_slow_path(&specification.call), nucleus.refuse_call),
        false => (&specification.result, nucleus.return_slowly, nucleus.refuse_return),
    };
    let half = Half { letters, state: specification.state, at: &nucleus.offsets };
    if progress.step == 0 {
        half.write_jumps(code, slowly, refuse);
        *(if progress.is_call { &mut progress.extent.call } else { &mut progress.extent.back }) = code.length();
    }
    let (call, back) = (code.base + progress.extent.call as u64, code.base + progress.extent.back as u64);
    let is_last = match progress.is_call {
        true => half.write_call(code, nucleus, half.jumps_before(call), back, progress.step),
        false => half.write_return(code, nucleus, half.jumps_before(back), progress.step),
    };
    progress.end_step(is_last, code.length())
}

/// Jumps to the nucleus, which is too far for those with a condition.
#[derive(Clone, Copy)]
struct Jumps {
    slowly: u64,
    refuse: u64,
}

/// A call, or a return.
struct Half<'a> {
    letters: &'a Letters,
    state: State,
    at: &'a Offsets,
}

impl Half<'_> {
    /// Writes the jumps before the half.
    fn write_jumps(&self, code: &mut Code<'_>, slowly: u64, refuse: u64) {
        code.part("jumps to the nucleus");
        code.jump(slowly);
        if self.letters.bytes().is_some() {
            code.jump(refuse);
        }
    }
    /// Where these stand, if the half begins at `begin`.
    fn jumps_before(&self, begin: u64) -> Jumps {
        match self.letters.bytes() {
            Some(_) => Jumps { slowly: begin - 8, refuse: begin - 4 },
            None => Jumps { slowly: begin - 4, refuse: begin - 4 },
        }
    }
    /// Whether a register has a word for the other side.
    fn passes(&self, register: X) -> bool {
        WORDS[..self.letters.in_registers()].contains(&register) || register == CONTROL && self.letters.has_control()
    }
    /// The register that says how many bytes of the message area go along.
    fn count(&self) -> Option<X> {
        match self.letters.bytes() {
            _ if self.letters.has_control() => Some(CONTROL),
            word => WORDS.get(word?).copied(),
        }
    }

    /// Writes a step of a call; true if it was the last.
    #[inline(never)]
    fn write_call(&self, code: &mut Code<'_>, nucleus: &Nucleus, jumps: Jumps, back: u64, step: u8) -> bool {
        let at = self.at;
        let [next, crossings, frame, share, activation, callee, caller, domain, thread] =
            [X(10), X(9), X(10), X(13), X(12), X(14), X(15), X(17), X(18)];
        match step {
            0 => {
                self.check_length(code, jumps.refuse);

                code.part("the caller's activation keeps where it goes on, and its registers");
                code.load(caller, CPU, at.cpu_activation);
                code.read(X(9), System::Link);
                code.read(X(10), System::Stack);
                code.store_pair(X(9), X(10), caller, at.activation_pc);
                code.read(X(9), System::Pointer);
                code.store(X(9), caller, at.activation_pointer);
                if self.state == State::Preserved {
                    for (first, field) in PRESERVED.into_iter().zip(at.activation_preserved) {
                        code.store_pair(X(first), X(first + 1), caller, field);
                    }
                }
                self.check_entry(code, jumps.slowly);
            }
            1 => {
                code.part("the flow is allowed, both domains live, and nothing is special about them");
                code.load(callee, STATUS, at.entry_object);
                code.load_pair(domain, thread, CPU, at.cpu_domain);
                code.load(X(13), domain, at.domain_as_caller);
                code.load(X(12), callee, at.domain_as_callee);
                code.or(X(13), X(13), X(12));
                code.load(X(12), STATUS, at.entry_pairs);
                code.compare(X(13), X(12));
                code.jump_if(If::NotEqual, jumps.slowly);

                code.part("an activation of the callee is free on this CPU");
                code.load(share, CPU, at.cpu_share);
                code.load_sum(activation, callee, share);
                code.jump_if_zero(activation, jumps.slowly);

                code.part("the chain may be longer");
                code.load32(frame, caller, at.activation_frame);
                code.compare_pages32(frame, nucleus.deepest >> 12);
                code.jump_if(If::AboveOrEqual, jumps.slowly);
            }
            2 => {
                code.part("nothing refuses from here on: it is the top of the chain; other CPUs see caller and thread before they see that");
                code.store_pair(caller, thread, activation, at.activation_caller);
                code.add_pages32(frame, frame, 1 << 4);
                code.store_release32(frame, activation);
                code.load(next, activation, at.activation_next);
                code.store_sum(next, callee, share);
                code.set(X(10), nucleus.calling.into());
                code.store16(X(10), caller, at.activation_frame);
                code.store(activation, caller, at.activation_callee);
                code.store_release(activation, thread);
                code.address_of(X(10), back);
                code.store(X(10), activation, at.activation_back);
                code.add(X(10), domain, share);
                code.load(crossings, X(10), at.share_crossings);
                code.add_value(crossings, crossings, 1);
                code.store(crossings, X(10), at.share_crossings);
            }
            3 => {
                self.copy_message(code, caller, activation);

                code.part("what the entry says; whoever empties it relies on our being in the caller until now");
                let constant = self.letters.find(Letter::Constant).map(|word| WORDS[word]);
                match constant.or(self.letters.has_badge().then_some(STATUS)) {
                    Some(register) => code.load_pair(X(10), register, STATUS, at.entry_word0),
                    None => code.load(X(10), STATUS, at.entry_word0),
                }
            }
            4 => {
                code.part("the CPU is in the callee");
                self.enter(code, activation, callee, [X(13), X(17)]);
            }
            _ => {
                code.part("the callee gets its stack and the words, and nothing else");
                code.load(X(9), activation, at.activation_stack);
                code.write(System::Link, X(10));
                code.write(System::Stack, X(9));
                code.write(System::Flags, ZERO);
                code.write(System::Pointer, ZERO);
                code.load(AREA, activation, at.activation_message);
                self.put_time(code);
                let clears_preserved = self.state == State::Preserved;
                self.clear(code, !self.letters.has_badge(), clears_preserved, true);
                code.leave();
            }
        }
        step >= 5
    }

    /// Writes a step of a return; true if it was the last.
    #[inline(never)]
    fn write_return(&self, code: &mut Code<'_>, nucleus: &Nucleus, jumps: Jumps, step: u8) -> bool {
        let at = self.at;
        let [activation, caller, domain, thread, back_in] = [X(15), X(14), X(13), X(18), X(12)];
        match step {
            0 => {
                self.check_length(code, jumps.refuse);
                self.check_entry(code, jumps.slowly);

                code.part("nothing became special about the two domains, and nobody waits for the activation");
                code.load_pair(domain, thread, CPU, at.cpu_domain);
                code.load(caller, activation, at.activation_caller);
                code.load(back_in, caller, at.activation_domain);
                code.load8(X(11), back_in, at.domain_slow);
                code.load8(X(10), domain, at.domain_slow);
                code.or(X(11), X(11), X(10));
                code.jump_unless_zero(X(11), jumps.slowly);
            }
            1 => {
                self.copy_message(code, activation, caller);
            }
            2 => {
                code.part("the activation is free");
                code.load(X(11), CPU, at.cpu_share);
                code.load_sum(X(10), domain, X(11));
                code.store(X(10), activation, at.activation_next);
                code.store_sum(activation, domain, X(11));
                code.store8(ZERO, activation, at.activation_state);

                code.part("its caller is the top of the chain again");
                code.set(X(10), nucleus.top.into());
                code.store8(X(10), caller, at.activation_state);
                code.store(caller, thread, at.thread_top);
            }
            3 => {
                code.part("the CPU is in the caller");
                self.enter(code, caller, back_in, [X(10), X(11)]);
            }
            _ => {
                code.part("the caller gets its registers and the results, and nothing else");
                code.load_pair(X(9), X(10), caller, at.activation_pc);
                code.write(System::Link, X(9));
                code.write(System::Stack, X(10));
                code.load(X(9), caller, at.activation_pointer);
                code.write(System::Pointer, X(9));
                code.write(System::Flags, ZERO);
                if self.state == State::Preserved {
                    for (first, field) in PRESERVED.into_iter().zip(at.activation_preserved) {
                        match [X(first), X(first + 1)].map(|register| self.passes(register)) {
                            [false, false] => code.load_pair(X(first), X(first + 1), caller, field),
                            [true, false] => code.load(X(first + 1), caller, field + 8),
                            _ => {}
                        }
                    }
                }
                self.put_time(code);
                self.clear(code, true, false, false);
                code.leave();
            }
        }
        step >= 4
    }

    /// Refuses more bytes than a message area has.
    fn check_length(&self, code: &mut Code<'_>, refuse: u64) {
        let Some(word) = self.letters.bytes() else { return };
        code.part("no more bytes than a message area has");
        code.set(X(9), (MESSAGE_BYTES - 8 * self.letters.in_area()) as u32);
        code.compare(WORDS[word], X(9));
        code.jump_if(If::Above, refuse);
    }
    /// The nucleus copies entries, and does whatever else than bytes a control word asks for.
    fn check_entry(&self, code: &mut Code<'_>, slowly: u64) {
        if self.letters.has_control() {
            code.part("the control word asks for bytes only");
            code.compare_pages(CONTROL, MESSAGE_BYTES as u32 >> 12);
            code.jump_if(If::Above, slowly);
        }
        let Some(word) = self.letters.entry() else { return };
        code.part("no entry goes along");
        code.jump_unless_zero(WORDS[word], slowly);
    }

    /// Copies what goes along in the message area of the activation `from`; changes x6, x7, x9 to x11 and x17.
    fn copy_message(&self, code: &mut Code<'_>, from: X, to: X) {
        let (words, bytes, at) = (self.letters.in_area(), self.count(), self.at);
        if words == 0 && bytes.is_none() {
            return;
        }
        let [source, target, one, other, count, rest] = [X(9), X(10), X(6), X(7), X(11), X(17)];
        code.part("words and bytes of the message area");
        if self.letters.has_control() {
            let copying = 27;
            code.jump_if_zero(CONTROL, code.here() + 4 * (1 + copying));
        }
        code.load(source, from, at.activation_area);
        code.load(target, to, at.activation_area);
        let pairs = |code: &mut Code<'_>, count| {
            for _ in 0..count {
                code.take_pair(one, other, source);
                code.give_pair(one, other, target);
            }
        };
        pairs(code, words / 2);
        if !words.is_multiple_of(2) {
            code.load(one, source, 0);
            code.store(one, target, 0);
        }
        let Some(length) = bytes else { return };
        if !words.is_multiple_of(2) {
            code.add_value(source, source, 8);
            code.add_value(target, target, 8);
        }
        code.add_value(count, length, 7);
        code.shift_right(count, count, 3);
        code.subtract(rest, count, 8);
        let over = code.here() + 4 * 11;
        code.jump_if(If::Below, over);
        let again = code.here();
        pairs(code, 4);
        code.subtract(rest, rest, 8);
        code.jump_if(If::AboveOrEqual, again);
        code.skip_if_clear(count, 2, 4);
        pairs(code, 2);
        code.skip_if_clear(count, 1, 2);
        pairs(code, 1);
        code.skip_if_clear(count, 0, 2);
        code.load(one, source, 0);
        code.store(one, target, 0);
    }

    /// The activation's domain is the running one.
    fn enter(&self, code: &mut Code<'_>, activation: X, domain: X, [table, limit]: [X; 2]) {
        let at = self.at;
        code.load_pair(table, limit, domain, at.domain_table);
        code.store_pair(activation, table, CPU, at.cpu_activation);
        code.store(limit, CPU, at.cpu_limit);
        code.store_release(domain, CPU);
        code.load(table, domain, at.domain_root);
        code.write(System::Root, table);
    }

    /// Puts the time stamp where it is asked for.
    fn put_time(&self, code: &mut Code<'_>) {
        for (word, _) in self.letters.iter().filter(|(_, letter)| *letter == Letter::Time) {
            code.part("the time stamp");
            code.read(WORDS[word], System::Count);
        }
    }

    /// Clears the registers in which nothing is passed, two at a time with the zeros above the stack.
    fn clear(&self, code: &mut Code<'_>, status: bool, preserved: bool, keeps_area: bool) {
        let last = if preserved { 30 } else { 18 };
        let is_clear = |register: &u32| match X(*register) {
            STATUS => status,
            AREA if keeps_area => false,
            register => !self.passes(register),
        };
        let mut waits = None;
        for register in (0..=last).filter(is_clear) {
            match waits.take() {
                Some(first) => code.load_pair(X(first), X(register), SP, 0),
                None => waits = Some(register),
            }
        }
        if let Some(last) = waits {
            code.copy(X(last), ZERO);
        }
        if let Some(word) = self.letters.minted_badge() {
            code.copy(WORDS[word], ZERO);
        }
    }
}

/// Whether the code can be made for such objects: what it loads and stores as pairs or without a distance stands so.
pub const fn fits(at: &Offsets) -> bool {
    let mut pair = 0;
    let mut pairs_fit = reaches(at.cpu_activation) && reaches(at.domain_table) && reaches(at.activation_pc);
    pairs_fit = pairs_fit && reaches(at.activation_caller) && reaches(at.entry_word0);
    while pair < PRESERVED.len() {
        pairs_fit = pairs_fit && reaches(at.activation_preserved[pair]);
        pair += 1;
    }
    pairs_fit
        && at.cpu_domain == 0
        && at.cpu_thread == 8
        && at.cpu_table == at.cpu_activation + 8
        && at.domain_limit == at.domain_table + 8
        && at.share_pool == 0
        && at.thread_top == 0
        && at.entry_word1 == at.entry_word0 + 8
        && at.activation_frame == 0
        && at.activation_thread == at.activation_caller + 8
        && at.activation_sp == at.activation_pc + 8
}

/// Whether a pair can be so far behind a register.
const fn reaches(by: i32) -> bool {
    by >= 0 && by < 512 && by % 8 == 0
}
