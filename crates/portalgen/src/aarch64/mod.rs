//! Portals for AArch64.
//!
//! A call begins with the address of the entry in x8, a return with the activation in x15; x16 is the CPU's block, x14, x15 and x17 are
//! used, and all other registers are the user's. Interrupts are off; the stack pointer is the top of the kernel stack, above which
//! are two words of zeros. All checks that can refuse come before the first state is changed. The code uses x6, x7 and x9 to x18,
//! which a system call destroys anyway.

mod encode;

pub use encode::AArch64;

use crate::code::{Code, Extent, Nucleus, Offsets, Progress, Runs, Targets, runs};
use crate::specification::{Letters, MAX_WORDS, REGISTER_WORDS, Specification, State};
use abi::{MESSAGE_BYTES, window};
use encode::{If, SP, System, X, ZERO};

/// Bits of the last-level entries of page tables (Arm ARM D8.3).
pub mod page {
    /// A page is mapped.
    pub const VALID_BIT: u32 = 0;
    /// Attribute 1 of MAIR_EL1: registers of a device. No other bit of the attribute is used.
    pub const REGISTERS_BIT: u32 = 2;
    /// It is not written.
    pub const READ_ONLY_BIT: u32 = 7;
    /// It is not executed by users.
    pub const UXN_BIT: u32 = 54;
    /// Ours: windows may show it. Of registers, and of what is not mapped, never. For software.
    pub const LENT_BIT: u32 = 55;
    /// Where the address stands.
    pub const ADDRESS: (u32, u32) = (12, 36);
}

/// Registers of the words, in their order.
const WORDS: [X; REGISTER_WORDS] = [X(0), X(1), X(2), X(4), X(5), X(21), X(22), X(23), X(24)];
/// The first register of each pair that a function preserves.
const PRESERVED: [u32; 6] = [19, 21, 23, 25, 27, 29];
/// All of them.
const ALL_PRESERVED: u32 = 0xfff << PRESERVED[0];
/// The address of the message area, for a callee.
const AREA: X = X(6);
/// The control word.
const CONTROL: X = X(3);
/// Status, badge, and the entry.
const STATUS: X = X(8);
/// The CPU's block.
const CPU: X = X(16);
/// The registers of so many words.
const PASSED: [u32; REGISTER_WORDS + 1] = {
    let (mut passed, mut words) = ([0; REGISTER_WORDS + 1], 0);
    while words < REGISTER_WORDS {
        passed[words + 1] = passed[words] | bit(WORDS[words]);
        words += 1;
    }
    passed
};
/// Registers that have nothing for the other side unless something is passed in them: those that a system call destroys.
const CLEARED: u32 = (1 << 19) - 1;

/// A register in a set of them.
const fn bit(register: X) -> u32 {
    1 << register.0
}

runs! {
    /// Instructions that no specification changes. They are written when the nucleus is built, and copied when a portal is made.
    Keep Save Flow Pool Chain Take Count CopyPairs CopyBytes EnterCallee Stack Special Free Up EnterCaller Back Restore
    OnePage NearPage TableOfPage EntryOfPage Writes SlotsOfCallee Record Closes
}
const BYTES: usize = 664;

/// The use of registers in a call, and in a return.
const CALLER: X = X(15);
const ACTIVATION: X = X(12);
const CALLEE: X = X(14);
const RETURNS: X = X(15);
const RETURNS_TO: X = X(14);
/// When bytes are copied.
const SOURCE: X = X(9);
const TARGET: X = X(10);
const ONE: X = X(6);
const OTHER: X = X(7);
const COPIES: X = X(11);
/// When a window is opened: its word.
const OPENED: X = X(6);
/// Instructions of opening it.
const OPENING: u64 = 33;
/// Its last-level entry.
const LENT: X = X(7);
/// Bytes of the instructions that copy two words.
const PAIR_COPY: usize = 8;

const fn write_run(code: &mut Code<'_, AArch64>, run: Run, nucleus: &Nucleus) {
    let at = &nucleus.offsets;
    let [next, crossings, frame, per_cpu, domain, thread] = [X(10), X(9), X(10), X(13), X(17), X(18)];
    let offset = crossings;
    let [leaves, back_in] = [X(13), X(12)];
    match run {
        Keep => {
            code.load(CALLER, CPU, at.cpu_activation);
            code.read(X(9), System::Link);
            code.read(X(10), System::Stack);
            code.store_pair(X(9), X(10), CALLER, at.activation_pc);
            code.read(X(9), System::Pointer);
            code.store(X(9), CALLER, at.activation_pointer);
        }
        Save => {
            let mut pair = 0;
            while pair < PRESERVED.len() {
                let first = PRESERVED[pair];
                code.store_pair(X(first), X(first + 1), CALLER, at.activation_preserved[pair]);
                pair += 1;
            }
        }
        Restore => {
            let mut pair = 0;
            while pair < PRESERVED.len() {
                let first = PRESERVED[pair];
                code.load_pair(X(first), X(first + 1), RETURNS_TO, at.activation_preserved[pair]);
                pair += 1;
            }
        }
        Flow => {
            code.load(CALLEE, STATUS, at.entry_object);
            code.load_pair(domain, thread, CPU, at.cpu_domain);
            code.load(X(13), domain, at.domain_as_caller);
            code.load(X(12), CALLEE, at.domain_as_callee);
            code.or(X(13), X(13), X(12));
            code.load(X(12), STATUS, at.entry_versions);
            code.compare(X(13), X(12));
        }
        Pool => {
            code.load(offset, CPU, at.cpu_per_cpu_at);
            code.add(per_cpu, CALLEE, offset);
            code.load(ACTIVATION, per_cpu, at.per_cpu_pool);
        }
        Chain => {
            code.load32(frame, CALLER, at.activation_frame);
            code.compare_pages32(frame, nucleus.deepest >> 12);
        }
        Take => {
            code.store_pair(CALLER, thread, ACTIVATION, at.activation_caller);
            code.add_pages32(frame, frame, 1 << 4);
            code.store_release32(frame, ACTIVATION);
            code.load(next, ACTIVATION, at.activation_next);
            code.store(next, per_cpu, at.per_cpu_pool);
            code.set(X(10), nucleus.calling as u32);
            code.store16(X(10), CALLER, at.activation_frame);
            code.store(ACTIVATION, CALLER, at.activation_callee);
            code.store_release(ACTIVATION, thread);
        }
        Count => {
            code.store(X(10), ACTIVATION, at.activation_back);
            code.add(X(10), domain, offset);
            code.load(crossings, X(10), at.per_cpu_crossings);
            code.add_value(crossings, crossings, 1);
            code.store(crossings, X(10), at.per_cpu_crossings);
        }
        CopyPairs => copy_pairs(code, (MAX_WORDS - REGISTER_WORDS) / 2),
        CopyBytes => write_copy(code),
        EnterCallee => enter(code, ACTIVATION, CALLEE, X(13), [X(9), X(17)], at),
        Stack => {
            code.load(X(9), ACTIVATION, at.activation_stack);
            code.write(System::Link, X(10));
            code.write(System::Stack, X(9));
            code.write(System::Flags, ZERO);
            code.write(System::Pointer, ZERO);
            code.load(AREA, ACTIVATION, at.activation_message);
        }
        Special => {
            code.load_pair(leaves, thread, CPU, at.cpu_domain);
            code.load(RETURNS_TO, RETURNS, at.activation_caller);
            code.load(back_in, RETURNS_TO, at.activation_domain);
            code.load8(X(11), back_in, at.domain_slow);
            code.load8(X(10), leaves, at.domain_slow);
            code.or(X(11), X(11), X(10));
        }
        Free => {
            code.load(X(11), CPU, at.cpu_per_cpu_at);
            code.load_sum(X(10), leaves, X(11));
            code.store(X(10), RETURNS, at.activation_next);
            code.store_sum(RETURNS, leaves, X(11));
            code.add(X(17), back_in, X(11));
            code.store8(ZERO, RETURNS, at.activation_state);
        }
        Up => {
            code.set(X(10), nucleus.top as u32);
            code.store8(X(10), RETURNS_TO, at.activation_state);
            code.store(RETURNS_TO, thread, at.thread_top);
        }
        EnterCaller => enter(code, RETURNS_TO, back_in, X(17), [X(10), X(11)], at),
        OnePage => {
            code.and_without(X(7), OPENED, window::WRITABLE_BIT);
            code.and_bits(X(7), X(7), 0, 12);
            code.compare_value(X(7), 1);
        }
        NearPage => {
            code.shift_right(X(7), OPENED, 21);
            code.compare_value(X(7), 512);
        }
        TableOfPage => {
            code.load(X(10), domain, at.domain_low);
            code.load_word_of(X(10), X(10), X(7));
        }
        EntryOfPage => {
            code.and_bits(X(10), X(10), page::ADDRESS.0, page::ADDRESS.1);
            code.or_bits(X(10), X(10), nucleus.direct, 64 - nucleus.direct);
            code.take_bits(X(7), OPENED, 12, 9);
            code.load_word_of(LENT, X(10), X(7));
        }
        Writes => {
            code.flip_bit(X(10), OPENED, window::WRITABLE_BIT);
            code.take_bits(X(10), X(10), window::WRITABLE_BIT, 1);
            code.shift_right(X(11), LENT, page::READ_ONLY_BIT);
            code.and_not(X(11), X(11), X(10));
        }
        SlotsOfCallee => {
            code.or_shifted(LENT, LENT, X(10), page::READ_ONLY_BIT);
            code.or_bits(LENT, LENT, page::UXN_BIT, 1);
            code.load(X(10), per_cpu, at.per_cpu_windows);
        }
        Record => {
            code.load(X(11), ACTIVATION, at.activation_place);
            code.store_sum(LENT, X(10), X(11));
            code.store(OPENED, ACTIVATION, at.activation_window);
            code.load(X(10), ACTIVATION, at.activation_slot);
            code.and_bits(OPENED, OPENED, 0, window::WRITABLE_BIT + 1);
            code.table_barrier();
        }
        Closes => {
            code.add(X(9), leaves, X(11));
            code.load(X(9), X(9), at.per_cpu_windows);
            code.load(X(10), RETURNS, at.activation_place);
            code.store_sum(ZERO, X(9), X(10));
            code.store(ZERO, RETURNS, at.activation_window);
            code.load(X(9), RETURNS, at.activation_slot);
            code.shift_right(X(9), X(9), 12);
            code.read(X(10), System::Root);
            code.and_bits(X(10), X(10), 48, 16);
            code.or(X(9), X(9), X(10));
            code.table_barrier();
            code.drop_page(X(9));
            code.dropped();
        }
        Back => {
            code.load_pair(X(9), X(10), RETURNS_TO, at.activation_pc);
            code.write(System::Link, X(9));
            code.write(System::Stack, X(10));
            code.load(X(9), RETURNS_TO, at.activation_pointer);
            code.write(System::Pointer, X(9));
            code.write(System::Flags, ZERO);
        }
    }
}

/// The activation's domain is the running one; `per_cpu` is what that has on this CPU.
const fn enter(
    code: &mut Code<'_, AArch64>,
    activation: X,
    domain: X,
    per_cpu: X,
    [table, limit]: [X; 2],
    at: &Offsets,
) {
    code.load_pair(table, limit, domain, at.domain_table);
    code.store_pair(activation, table, CPU, at.cpu_activation);
    code.store(limit, CPU, at.cpu_limit);
    code.store_release(domain, CPU);
    code.load(table, per_cpu, at.per_cpu_root);
    code.write(System::Root, table);
}

/// Copies words, so many as [`COPIES`] has eighths.
const fn write_copy(code: &mut Code<'_, AArch64>) {
    let rest = X(17);
    code.shift_right(COPIES, COPIES, 3);
    code.subtract(rest, COPIES, 8);
    let over = code.here() + 4 * 11;
    code.jump_if(If::Below, over);
    let again = code.here();
    copy_pairs(code, 4);
    code.subtract(rest, rest, 8);
    code.jump_if(If::AboveOrEqual, again);
    code.skip_if_clear(COPIES, 2, 4);
    copy_pairs(code, 2);
    code.skip_if_clear(COPIES, 1, 2);
    copy_pairs(code, 1);
    code.skip_if_clear(COPIES, 0, 2);
    copy_word(code);
}

const fn copy_pairs(code: &mut Code<'_, AArch64>, count: usize) {
    let mut pair = 0;
    while pair < count {
        code.take_pair(ONE, OTHER, SOURCE);
        code.give_pair(ONE, OTHER, TARGET);
        pair += 1;
    }
}

const fn copy_word(code: &mut Code<'_, AArch64>) {
    code.load(ONE, SOURCE, 0);
    code.store(ONE, TARGET, 0);
}

/// Writes portals of a nucleus.
#[derive(Debug)]
pub struct Generator {
    at: Offsets,
    runs: Runs<BYTES, { SINGLES.len() + 1 }>,
}

impl Generator {
    /// For this one.
    pub const fn new(nucleus: &Nucleus) -> Self {
        assert!(fits(&nucleus.offsets), "pairs do not stand behind each other");
        let (mut runs, mut number) = (Runs::NONE, 0);
        while number < SINGLES.len() {
            let mut code = runs.begin(number);
            write_run(&mut code, SINGLES[number], nucleus);
            let length = code.length();
            runs.end(number, length);
            number += 1;
        }
        Self { at: nucleus.offsets, runs }
    }

    /// Writes call and return of a specification.
    pub fn write(&self, code: &mut Code<'_, AArch64>, specification: &Specification, targets: &Targets) -> Extent {
        let mut progress = Progress::NONE;
        self.write_steps(code, specification, targets, &mut progress, usize::MAX);
        progress.extent
    }

    /// Writes steps of call and return until so much was done, or all; true if it was all. The code stands where that of the steps before
    /// ends.
    pub fn write_steps(
        &self,
        code: &mut Code<'_, AArch64>,
        specification: &Specification,
        targets: &Targets,
        progress: &mut Progress,
        effort: usize,
    ) -> bool {
        let has_window = specification.call.window().is_some();
        if !progress.is_call {
            let half = Half::new(self, &specification.result, specification.state, None, has_window);
            while !progress.is_call && code.effort() < effort {
                if progress.step == 0 {
                    half.write_jumps(code, [targets.return_slowly, targets.refuse_return, targets.refuse_control]);
                    progress.extent.back = code.length();
                }
                let jumps = half.jumps_before(code.base + progress.extent.back as u64);
                let is_last = half.write_return(code, jumps, progress.step);
                progress.end_step(is_last, code.length());
            }
        }
        if progress.is_call {
            let letters = &specification.call;
            let half = Half::new(self, letters, specification.state, specification.expects(), has_window);
            while !progress.is_done && code.effort() < effort {
                if progress.step == 0 {
                    half.write_jumps(
                        code,
                        [targets.call_slow_path(letters), targets.refuse_call, targets.refuse_control],
                    );
                    progress.extent.call = code.length();
                }
                let jumps = half.jumps_before(code.base + progress.extent.call as u64);
                let back = code.base + progress.extent.back as u64;
                let is_last = half.write_call(code, jumps, back, progress.step);
                progress.end_step(is_last, code.length());
            }
        }
        progress.is_done
    }
}

/// Jumps to the nucleus, which is too far for those with a condition.
#[derive(Clone, Copy)]
struct Jumps {
    slowly: u64,
    /// For more bytes than fit.
    refuse: u64,
    /// For a control word of another shape.
    refuse_control: u64,
}

/// A call, or a return.
struct Half<'a> {
    letters: &'a Letters,
    state: State,
    /// The value that the caller must expect.
    expected: Option<u64>,
    /// The call passes a window.
    has_window: bool,
    at: &'a Offsets,
    runs: &'a Runs<BYTES, { SINGLES.len() + 1 }>,
    /// The registers that have a word for the other side, a bit for each.
    passed: u32,
}

impl<'a> Half<'a> {
    fn new(
        generator: &'a Generator,
        letters: &'a Letters,
        state: State,
        expected: Option<u64>,
        has_window: bool,
    ) -> Self {
        let words = PASSED[letters.in_registers()];
        let control = if letters.has_control() { bit(CONTROL) } else { 0 };
        let passed = words | control;
        Self { letters, state, expected, has_window, at: &generator.at, runs: &generator.runs, passed }
    }
    /// Writes instructions that are the same for other specifications.
    fn run(&self, code: &mut Code<'_, AArch64>, run: Run) {
        code.append(self.runs.get(run as usize, 1));
    }
    /// Writes the jumps before the half.
    fn write_jumps(&self, code: &mut Code<'_, AArch64>, [slowly, refuse, refuse_control]: [u64; 3]) {
        code.part("jumps to the nucleus");
        code.jump(slowly);
        if self.letters.bytes().is_some() {
            code.jump(refuse);
        }
        if self.expected.is_some() {
            code.jump(refuse_control);
        }
    }
    /// Where these stand, if the half begins at `begin`. Those that are not there are not used.
    fn jumps_before(&self, begin: u64) -> Jumps {
        let refuse_control = begin - 4 * self.expected.is_some() as u64;
        let refuse = refuse_control - 4 * self.letters.bytes().is_some() as u64;
        Jumps { slowly: refuse - 4, refuse, refuse_control }
    }
    /// Whether a register has a word for the other side.
    fn passes(&self, register: X) -> bool {
        self.passed >> register.0 & 1 != 0
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
    fn write_call(&self, code: &mut Code<'_, AArch64>, jumps: Jumps, back: u64, step: u8) -> bool {
        match step {
            0 => {
                self.check_expected(code, jumps.refuse_control);
                self.check_length(code, jumps.refuse);
            }
            1 => {
                code.part("the caller's activation keeps where it goes on, and its registers");
                self.run(code, Keep);
                if self.state == State::Preserved {
                    self.run(code, Save);
                }
                self.check_entry(code, jumps.slowly);
            }
            2 => {
                code.part("the flow is allowed, both domains live, and nothing is special about them");
                self.run(code, Flow);
                code.jump_if(If::NotEqual, jumps.slowly);

                code.part("an activation of the callee is free on this CPU");
                self.run(code, Pool);
                code.jump_if_zero(ACTIVATION, jumps.slowly);

                code.part("the chain may be longer");
                self.run(code, Chain);
                code.jump_if(If::AboveOrEqual, jumps.slowly);
            }
            3 => self.open_window(code, jumps.slowly),
            4 => {
                code.part("nothing refuses from here on: it is the top of the chain; other CPUs see caller and thread before they see that");
                self.run(code, Take);
                code.address_of(X(10), back);
                self.run(code, Count);
            }
            5 => self.copy_message(code, CALLER, ACTIVATION),
            6 => {
                code.part("what the entry says; a CPU that empties it relies on our being in the caller until now");
                let constant = self.letters.constant().map(|word| WORDS[word]);
                match constant.or(self.letters.has_badge().then_some(STATUS)) {
                    Some(register) => code.load_pair(X(10), register, STATUS, self.at.entry_word0),
                    None => code.load(X(10), STATUS, self.at.entry_word0),
                }

                code.part("the CPU is in the callee");
                self.run(code, EnterCallee);
            }
            7 => {
                code.part("the callee gets its stack and the words, and nothing else");
                self.run(code, Stack);
            }
            8 => self.put_time(code),
            _ => {
                self.clear(code, self.cleared_in_call());
                code.leave();
            }
        }
        step >= 9
    }

    /// Registers that have nothing for the callee.
    fn cleared_in_call(&self) -> u32 {
        let kept = bit(AREA) | if self.letters.has_badge() { bit(STATUS) } else { 0 };
        let preserved = if self.state == State::Preserved { !CLEARED & !bit(ZERO) } else { 0 };
        (CLEARED | preserved) & !kept
    }

    /// Writes a step of a return; true if it was the last.
    #[inline(never)]
    fn write_return(&self, code: &mut Code<'_, AArch64>, jumps: Jumps, step: u8) -> bool {
        match step {
            0 => {
                self.check_length(code, jumps.refuse);
                self.check_entry(code, jumps.slowly);
                if self.has_window {
                    code.part("the window has one page, or there is none");
                    code.load(X(10), RETURNS, self.at.activation_window);
                    code.test_bits(X(10), 1, 4);
                    code.jump_if(If::NotEqual, jumps.slowly);
                }

                code.part("nothing became special about the two domains, and nobody waits for the activation");
                self.run(code, Special);
                code.jump_unless_zero(X(11), jumps.slowly);
            }
            1 => self.copy_message(code, RETURNS, RETURNS_TO),
            2 => {
                code.part("the activation is free");
                self.run(code, Free);
                self.close_window(code);

                code.part("its caller is the top of the chain again");
                self.run(code, Up);

                code.part("the CPU is in the caller");
                self.run(code, EnterCaller);
            }
            3 => {
                code.part("the caller gets its registers and the results, and nothing else");
                self.run(code, Back);
                if self.state == State::Preserved && self.passed & ALL_PRESERVED == 0 {
                    self.run(code, Restore);
                } else if self.state == State::Preserved {
                    for (first, field) in PRESERVED.into_iter().zip(self.at.activation_preserved) {
                        match [X(first), X(first + 1)].map(|register| self.passes(register)) {
                            [false, false] => code.load_pair(X(first), X(first + 1), RETURNS_TO, field),
                            [true, false] => code.load(X(first + 1), RETURNS_TO, field + 8),
                            _ => {}
                        }
                    }
                }
            }
            4 => self.put_time(code),
            _ => {
                self.clear(code, CLEARED);
                code.leave();
            }
        }
        step >= 5
    }

    /// Refuses a caller that expects something else.
    fn check_expected(&self, code: &mut Code<'_, AArch64>, refuse: u64) {
        let Some(what) = self.expected else { return };
        code.part("the caller expects what goes along");
        code.compare_complement(CONTROL, what as u32);
        code.jump_if(If::NotEqual, refuse);
    }
    /// Refuses more bytes than a message area has.
    fn check_length(&self, code: &mut Code<'_, AArch64>, refuse: u64) {
        let Some(word) = self.letters.bytes() else { return };
        code.part("no more bytes than a message area has");
        code.set(X(9), (MESSAGE_BYTES - 8 * self.letters.in_area()) as u32);
        code.compare(WORDS[word], X(9));
        code.jump_if(If::Above, refuse);
    }
    /// The nucleus copies entries, and does whatever else than bytes a control word asks for.
    fn check_entry(&self, code: &mut Code<'_, AArch64>, slowly: u64) {
        if self.letters.has_control() {
            code.part("the control word asks for bytes only");
            let bytes = match self.letters.window() {
                Some(_) => {
                    code.and_without(X(9), CONTROL, abi::WINDOW_BIT);
                    X(9)
                }
                None => CONTROL,
            };
            code.compare_pages(bytes, MESSAGE_BYTES as u32 >> 12);
            code.jump_if(If::Above, slowly);
        }
        let Some(word) = self.letters.for_nucleus() else { return };
        code.part("no entry goes along, or no page");
        code.jump_unless_zero(WORDS[word], slowly);
    }

    /// Opens the window: its page stands in the slot of the activation then. One page, where the caller has it in its lowest GiB: all else
    /// is done on the slow path. Changes x6, x7, x10 and x11.
    fn open_window(&self, code: &mut Code<'_, AArch64>, slowly: u64) {
        let Some(word) = self.letters.window().map(|word| WORDS[word]) else { return };
        code.part("a window goes along");
        let over = code.here() + 4 * OPENING;
        if self.letters.has_control() {
            code.jump_if_clear(CONTROL, abi::WINDOW_BIT, over);
        } else {
            code.jump_if_zero(word, over);
        }
        code.copy(OPENED, word);
        code.part("it is one page, the caller has it, and may lend it so");
        self.run(code, OnePage);
        code.jump_if(If::NotEqual, slowly);
        self.run(code, NearPage);
        code.jump_if(If::AboveOrEqual, slowly);
        self.run(code, TableOfPage);
        code.jump_if_zero(X(10), slowly);
        self.run(code, EntryOfPage);
        code.jump_if_clear(LENT, page::LENT_BIT, slowly);
        self.run(code, Writes);
        code.jump_if_set(X(11), 0, slowly);
        code.part("the callee sees it in the slot of the activation, and executes nothing there");
        self.run(code, SlotsOfCallee);
        code.jump_if_zero(X(10), slowly);
        self.run(code, Record);
        code.or(word, OPENED, X(10));
        assert!(code.here() == over);
        code.load32(X(10), CALLER, self.at.activation_frame);
    }

    /// Closes the window of the activation that returns, of one page, if there is one. Changes x9 and x10.
    fn close_window(&self, code: &mut Code<'_, AArch64>) {
        if !self.has_window {
            return;
        }
        code.part("the window closes, and its translation is dropped");
        code.load(X(10), RETURNS, self.at.activation_window);
        let closing = self.runs.get(Closes as usize, 1).len() as u64;
        code.jump_if_zero(X(10), code.here() + 4 + closing);
        self.run(code, Closes);
    }

    /// Copies what goes along in the message area of the activation `from`; changes x6, x7, x9 to x11 and x17.
    fn copy_message(&self, code: &mut Code<'_, AArch64>, from: X, to: X) {
        let (words, bytes, at) = (self.letters.in_area(), self.count(), self.at);
        if words == 0 && bytes.is_none() {
            return;
        }
        code.part("words and bytes of the message area");
        if self.letters.has_control() {
            let copying = if self.letters.window().is_some() { 28 } else { 27 };
            code.jump_if_zero(CONTROL, code.here() + 4 * (1 + copying));
        }
        code.load(SOURCE, from, at.activation_area);
        code.load(TARGET, to, at.activation_area);
        code.append(&self.runs.get(CopyPairs as usize, 1)[..PAIR_COPY * (words / 2)]);
        if !words.is_multiple_of(2) {
            copy_word(code);
        }
        let Some(length) = bytes else { return };
        if !words.is_multiple_of(2) {
            code.add_value(SOURCE, SOURCE, 8);
            code.add_value(TARGET, TARGET, 8);
        }
        code.add_value(COPIES, length, 7);
        if self.letters.has_control() && self.letters.window().is_some() {
            code.and_bits(COPIES, COPIES, 0, abi::WINDOW_BIT);
        }
        self.run(code, CopyBytes);
    }

    /// Puts the time stamp where it is asked for.
    fn put_time(&self, code: &mut Code<'_, AArch64>) {
        if self.letters.times() == 0 {
            return;
        }
        for (word, register) in WORDS.into_iter().enumerate() {
            if self.letters.times() >> word & 1 != 0 {
                code.part("the time stamp");
                code.read(register, System::Count);
            }
        }
    }

    /// Clears those of these registers that pass nothing, two at a time with the zeros above the stack.
    #[inline(never)]
    fn clear(&self, code: &mut Code<'_, AArch64>, registers: u32) {
        let badge = self.letters.minted_badge().map_or(0, |word| bit(WORDS[word]));
        let mut left = (registers | badge) & !(self.passed & !badge);
        let count = left.count_ones();
        let mut next = || {
            let register = X(left.trailing_zeros());
            left &= left.wrapping_sub(1);
            register
        };
        // Two pairs are written at once.
        for _ in 0..count / 4 {
            code.load_pairs([[next(), next()], [next(), next()]], SP);
        }
        if count & 2 != 0 {
            code.load_pair(next(), next(), SP, 0);
        }
        if count & 1 != 0 {
            code.copy(next(), ZERO);
        }
    }
}

/// Whether the code can be made for such objects: it loads and stores some fields as pairs or without a distance.
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
        && at.per_cpu_pool == 0
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
