//! Portals for x86-64.
//!
//! A call begins with the address of the entry in rax, the user's instruction pointer and flags in rcx and r11, a return with the
//! activation in r11; all other registers are the user's, and the CPU's block is behind `gs`. Interrupts are off, and no stack is
//! there. All checks that can refuse come before the first state is changed.

mod encode;

pub use encode::X86_64;

use crate::code::{AT_ONCE, Code, Extent, Nucleus, Offsets, Progress, Runs, Targets, runs};
use crate::specification::{Letters, MAX_WORDS, REGISTER_WORDS, Specification, State};
use abi::{Control as ControlWord, MESSAGE_BYTES, window};
use encode::Arithmetic::{And, Compare, Or, Xor};
use encode::Place::{At, Cpu, Sum};
use encode::{
    If, LONGEST_CLEAR, R8, R9, R10, R11, R12, R13, R14, R15, RAX, RBP, RBX, RCX, RDI, RDX, RSI, RSP, Register, clear,
};

/// Bits of the last-level entries of page tables (Intel SDM volume 3, 4.5).
pub mod page {
    /// A page is mapped.
    pub const PRESENT: u64 = 1;
    /// It is written.
    pub const WRITABLE: u64 = 2;
    /// It is not cached: registers of a device.
    pub const NOT_CACHED: u64 = 0x18;
    /// Ours: windows may show it. Of registers, and of what is not mapped, never.
    pub const LENT: u64 = 1 << 9;
    /// It is not executed.
    pub const NO_EXECUTE_BIT: u32 = 63;
}

/// Registers of the words, in their order.
const WORDS: [Register; REGISTER_WORDS] = [RDI, RSI, RDX, R8, R9, R12, R13, R14, R15];
/// The word in rdx.
const THIRD: usize = 2;
/// The control word.
const CONTROL: Register = R10;
/// A call begins at a multiple of this.
const LINE: usize = 64;
/// Registers that a function preserves, besides the stack pointer.
const PRESERVED: [Register; 6] = [RBX, RBP, R12, R13, R14, R15];

// Instructions are written when the nucleus is built, and copied when a portal is made. Their runs have numbers. Of some there is one for
// each register that a function preserves, or for each word in a register: these begin here.

/// A preserved register is kept in the activation at r11.
const SAVE: usize = 0;
/// It comes from there.
const LOAD: usize = SAVE + PRESERVED.len();
/// It comes from the activation at rax.
const RESTORE: usize = LOAD + PRESERVED.len();
/// The word is the constant of the entry.
const CONSTANT: usize = RESTORE + PRESERVED.len();
/// Whether it is zero is looked at.
const TEST: usize = CONSTANT + WORDS.len();
/// It is compared with the four bytes that follow.
const COMPARE: usize = TEST + WORDS.len();
/// R10 has it, and 7.
const COUNT: usize = COMPARE + WORDS.len();
/// It is the time stamp, which stands in rdx.
const STAMP: usize = COUNT + WORDS.len();
/// This word of the message area is copied.
const COPY: usize = STAMP + WORDS.len();
/// R13 has the word.
const WINDOW: usize = COPY + MAX_WORDS - REGISTER_WORDS;
/// The word is what r13 has.
const OPENED: usize = WINDOW + WORDS.len();
/// The first of the other runs.
const SINGLE: usize = OPENED + WORDS.len();

runs! {
    /// A run that is there once; from `Pool` on twice, because some portals have a control word.
    Expect Keep Flow Chain Top Return Badge Up Back Control IsControl CountControl CountOnly CountWord ShareAgain AreasOfCall AreasOfReturn
    StripWindow HasWindow OnePage NearPage TableOfPage EntryOfPage MayBeLent Record IsMany Closes
    Source Target CopyBytes Copied Time KeepThird KeepStatus Leave Address Stack Message GoesTo CallerAndGoesTo Pool Take EnterCallee Special Free
    EnterCaller SlotsOfCallee SlotsOfLeft
}
const TWICE: usize = SINGLES.len() - Pool as usize;
const RUNS: usize = SINGLE + SINGLES.len() + TWICE;
const BYTES: usize = 1700;

/// A register in a set of them.
const fn bit(register: Register) -> u16 {
    1 << register.0
}

/// The registers of so many words.
const PASSED: [u16; REGISTER_WORDS + 1] = {
    let (mut passed, mut words) = ([0; REGISTER_WORDS + 1], 0);
    while words < REGISTER_WORDS {
        passed[words + 1] = passed[words] | bit(WORDS[words]);
        words += 1;
    }
    passed
};

/// All of them.
const ALL_PRESERVED: u16 = {
    let (mut all, mut place) = (0, 0);
    while place < PRESERVED.len() {
        all |= bit(PRESERVED[place]);
        place += 1;
    }
    all
};

/// Registers that have nothing for the other side unless something is passed in them.
const CLEARED: u16 = bit(RAX) | bit(RDX) | bit(RSI) | bit(RDI) | bit(R8) | bit(R9) | bit(R10);
/// Those that have nothing for a callee because a function preserves them; rbx has the address of its message area.
const CLEARED_IN_CALLS: u16 = bit(RBP) | bit(R12) | bit(R13) | bit(R14) | bit(R15);

/// A register that portal code uses: none of the user's, unless there is a control word.
const fn scratch(has_control: bool) -> Register {
    if has_control { R15 } else { R10 }
}

/// Writes portals of a nucleus.
#[derive(Debug)]
pub struct Generator {
    runs: Runs<BYTES, { RUNS + 1 }>,
}

impl Generator {
    /// For this one.
    pub const fn new(nucleus: &Nucleus) -> Self {
        let (mut runs, mut number) = (Runs::NONE, 0);
        while number < RUNS {
            let has_control = number >= SINGLE + SINGLES.len();
            let mut code = runs.begin(number);
            match number {
                ..SINGLE => write_of_register(&mut code, number, &nucleus.offsets),
                _ => {
                    let run = SINGLES[number - SINGLE - if has_control { TWICE } else { 0 }];
                    write_run(&mut code, run, scratch(has_control), nucleus);
                }
            }
            let length = code.length();
            runs.end(number, length);
            number += 1;
        }
        Self { runs }
    }

    /// Writes call and return of a specification.
    pub fn write(&self, code: &mut Code<'_, X86_64>, specification: &Specification, targets: &Targets) -> Extent {
        let mut progress = Progress::NONE;
        self.write_steps(code, specification, targets, &mut progress, usize::MAX);
        progress.extent
    }

    /// Writes steps of call and return until so much was done, or all; true if it was all. The code stands where that of the steps before
    /// ends.
    pub fn write_steps(
        &self,
        code: &mut Code<'_, X86_64>,
        specification: &Specification,
        targets: &Targets,
        progress: &mut Progress,
        effort: usize,
    ) -> bool {
        let has_window = specification.call.window().is_some();
        if !progress.is_call {
            let half = Half::new(self, &specification.result, specification.state, has_window);
            while !progress.is_call && code.effort() < effort {
                let is_last = half.write_return(code, targets, progress.step);
                progress.end_step(is_last, code.length());
            }
        }
        if progress.is_call {
            let half = Half::new(self, &specification.call, specification.state, has_window);
            while !progress.is_done && code.effort() < effort {
                if progress.step == 0 {
                    code.align(LINE);
                    progress.extent.call = code.length();
                    half.check_expected(code, specification, targets.refuse_control);
                }
                let is_last = half.write_call(code, targets, code.base, progress.step);
                progress.end_step(is_last, code.length());
            }
        }
        progress.is_done
    }
}

const fn write_of_register(code: &mut Code<'_, X86_64>, number: usize, at: &Offsets) {
    match number {
        SAVE..LOAD => code.store(At(R11, at.activation_preserved[number - SAVE]), PRESERVED[number - SAVE]),
        LOAD..RESTORE => code.load(PRESERVED[number - LOAD], At(R11, at.activation_preserved[number - LOAD])),
        RESTORE..CONSTANT => code.load(PRESERVED[number - RESTORE], At(RAX, at.activation_preserved[number - RESTORE])),
        CONSTANT..TEST => code.load(WORDS[number - CONSTANT], At(RAX, at.entry_word1)),
        TEST..COMPARE => code.test(WORDS[number - TEST]),
        COMPARE..COUNT => code.compare_with_next(WORDS[number - COMPARE]),
        COUNT..STAMP => code.address(R10, At(WORDS[number - COUNT], 7)),
        STAMP..COPY if WORDS[number - STAMP].0 == RDX.0 => {}
        STAMP..COPY => code.copy(WORDS[number - STAMP], RDX),
        WINDOW..OPENED => code.copy(R13, WORDS[number - WINDOW]),
        OPENED..SINGLE => code.copy(WORDS[number - OPENED], R13),
        _ => {
            code.load(RCX, At(R12, 8 * (number - COPY) as i32));
            code.store(At(R13, 8 * (number - COPY) as i32), RCX);
        }
    }
}

const fn write_run(code: &mut Code<'_, X86_64>, run: Run, scratch: Register, nucleus: &Nucleus) {
    let at = &nucleus.offsets;
    match run {
        Expect => code.compare_with_next(CONTROL),
        Keep => {
            code.load(R11, Cpu(at.cpu_activation));
            code.store(At(R11, at.activation_pc), RCX);
            code.store(At(R11, at.activation_sp), RSP);
        }
        Flow => {
            code.load(RBP, At(RAX, at.entry_object));
            code.load(RBX, Cpu(at.cpu_domain));
            code.load(RCX, At(RBX, at.domain_as_caller));
            code.or(RCX, At(RBP, at.domain_as_callee));
            code.compare(RCX, At(RAX, at.entry_versions));
        }
        Pool => {
            code.load(scratch, Cpu(at.cpu_per_cpu_at));
            code.load(RCX, Sum(RBP, scratch, at.per_cpu_pool));
            code.test(RCX);
        }
        Chain => code.compare32(At(R11, at.activation_frame), nucleus.deepest),
        Take => {
            code.increment(Sum(RBX, scratch, at.per_cpu_crossings));
            code.load(RBX, At(RCX, at.activation_next));
            code.store(Sum(RBP, scratch, at.per_cpu_pool), RBX);
        }
        Top => {
            code.store(At(RCX, at.activation_caller), R11);
            code.load32(RBX, At(R11, at.activation_frame));
            code.add32(RBX, 1 << 16);
            code.store32(At(RCX, at.activation_frame), RBX);
            code.store16(At(R11, at.activation_frame), nucleus.calling);
            code.store(At(R11, at.activation_callee), RCX);
            code.load(RBX, Cpu(at.cpu_thread));
            code.store(At(RCX, at.activation_thread), RBX);
            code.store(At(RBX, at.thread_top), RCX);
        }
        EnterCallee => {
            code.store(Cpu(at.cpu_activation), RCX);
            enter(code, RBP, scratch, RBX, at);
        }
        Special => {
            code.load(RAX, At(R11, at.activation_caller));
            code.load(RBP, Cpu(at.cpu_domain));
            code.load(RBX, At(RAX, at.activation_domain));
            code.load8(scratch, At(RBP, at.domain_slow));
            code.or8(scratch, At(RBX, at.domain_slow));
        }
        Free => {
            code.load(scratch, Cpu(at.cpu_per_cpu_at));
            code.load(RCX, Sum(RBP, scratch, at.per_cpu_pool));
            code.store(At(R11, at.activation_next), RCX);
            code.store(Sum(RBP, scratch, at.per_cpu_pool), R11);
            code.store8(At(R11, at.activation_state), nucleus.free);
        }
        Up => {
            code.store8(At(RAX, at.activation_state), nucleus.top);
            code.load(RCX, Cpu(at.cpu_thread));
            code.store(At(RCX, at.thread_top), RAX);
            code.store(Cpu(at.cpu_activation), RAX);
        }
        EnterCaller => enter(code, RBX, scratch, RCX, at),
        Stack => code.load(RSP, At(RCX, at.activation_stack)),
        Message => code.load(RBX, At(RCX, at.activation_message)),
        GoesTo => code.copy(RCX, R11),
        CallerAndGoesTo => {
            code.copy(R10, R11);
            code.load(R11, At(RCX, at.activation_caller));
            code.copy(RCX, R10);
        }
        Back => {
            code.load(RCX, At(RAX, at.activation_pc));
            code.load(RSP, At(RAX, at.activation_sp));
        }
        Return => code.store_next(At(RCX, at.activation_back)),
        Badge => code.load(RAX, At(RAX, at.entry_word1)),
        Address => code.load(R11, At(RAX, at.entry_word0)),
        Control => {
            code.compare_with_next(CONTROL);
            code.put(MESSAGE_BYTES as u64, 4);
        }
        StripWindow => {
            code.copy(R12, CONTROL);
            code.change(And, R12, !(ControlWord::WINDOW as i32));
            code.change(Compare, R12, MESSAGE_BYTES as i32);
        }
        HasWindow => code.test_value32(CONTROL, ControlWord::WINDOW as u32),
        OnePage => {
            code.copy32(R12, R13);
            code.change32(And, R12, 0xfff & !(window::WRITABLE as i32));
            code.change32(Compare, R12, 1);
        }
        NearPage => {
            code.copy(R14, R13);
            code.shift_right(R14, 18);
            code.change(And, R14, -8);
            code.change(Compare, R14, 0x1000);
        }
        TableOfPage => {
            code.load(R12, At(RBX, at.domain_low));
            code.load(R12, Sum(R12, R14, 0));
            code.test(R12);
        }
        EntryOfPage => {
            code.change(And, R12, -0x1000);
            code.or(R12, Cpu(at.cpu_direct));
            code.copy(R14, R13);
            code.shift_right(R14, 9);
            code.change32(And, R14, 0xff8);
            code.load(R14, Sum(R12, R14, 0));
        }
        MayBeLent => {
            code.copy32(R12, R13);
            code.shift_right32(R12, window::WRITABLE_BIT as u8 - 1);
            code.change32(And, R12, page::WRITABLE as i32);
            code.change32(Or, R12, page::LENT as i32);
            code.copy32(RBX, R14);
            code.change32(Xor, RBX, (page::LENT | page::WRITABLE) as i32);
            code.test32(RBX, R12);
        }
        SlotsOfCallee => {
            code.change(Or, R12, !(page::WRITABLE as i32));
            code.and_with(R14, R12);
            code.set_bit(R14, page::NO_EXECUTE_BIT as u8);
            code.load(R12, Sum(RBP, scratch, at.per_cpu_windows));
            code.test(R12);
        }
        Record => {
            code.add(R12, At(RCX, at.activation_place));
            code.store(At(R12, 0), R14);
            code.store(At(RCX, at.activation_window), R13);
            code.change32(And, R13, window::FLAGS as i32);
            code.or(R13, At(RCX, at.activation_slot));
            code.load(RBX, Cpu(at.cpu_domain));
        }
        IsMany => {
            code.load(RAX, At(R11, at.activation_window));
            code.change32(And, RAX, (window::PAGES & !1) as i32);
        }
        Closes => {
            code.load(RCX, At(R11, at.activation_window));
            code.test(RCX);
        }
        SlotsOfLeft => {
            code.load(RCX, Sum(RBP, scratch, at.per_cpu_windows));
            code.add(RCX, At(R11, at.activation_place));
            code.store_zero(At(RCX, 0));
            code.store_zero(At(R11, at.activation_window));
        }
        IsControl => code.test(CONTROL),
        CountControl => code.address(RCX, At(CONTROL, 7)),
        CountOnly => code.change32(And, RCX, ControlWord::WINDOW as i32 - 1),
        CountWord => code.copy(RCX, R10),
        ShareAgain => code.load(R10, Cpu(at.cpu_per_cpu_at)),
        Source => code.address_behind_next(R12),
        Target => code.address_behind_next(R13),
        Copied => code.copy(RCX, R14),
        Time => {
            code.copy(R10, RDX);
            code.copy(R11, RAX);
            code.read_time();
            code.shift_left(RDX, 32);
            code.or_with(RDX, RAX);
        }
        KeepThird => code.copy(RDX, R10),
        KeepStatus => code.copy(RAX, R11),
        Leave => code.leave(),
        AreasOfCall => {
            code.copy(R14, RCX);
            code.load(R12, At(R11, at.activation_area));
            code.load(R13, At(RCX, at.activation_area));
        }
        AreasOfReturn => {
            code.load(R12, At(R11, at.activation_area));
            code.load(R13, At(RAX, at.activation_area));
        }
        CopyBytes => {
            code.shift_right(RCX, 3);
            code.exchange(RSI, R12);
            code.exchange(RDI, R13);
            code.copy_words();
            code.copy(RSI, R12);
            code.copy(RDI, R13);
        }
    }
}

/// The domain at `domain` is the running one; `per_cpu` has the offset of this CPU's state. Changes `scratch`.
const fn enter(code: &mut Code<'_, X86_64>, domain: Register, per_cpu: Register, scratch: Register, at: &Offsets) {
    code.store(Cpu(at.cpu_domain), domain);
    code.load(scratch, At(domain, at.domain_table));
    code.store(Cpu(at.cpu_table), scratch);
    code.load(scratch, At(domain, at.domain_limit));
    code.store(Cpu(at.cpu_limit), scratch);
    code.load(scratch, Sum(domain, per_cpu, at.per_cpu_root));
    code.load_root(scratch);
}

/// A call, or a return.
struct Half<'a> {
    letters: &'a Letters,
    state: State,
    runs: &'a Runs<BYTES, { RUNS + 1 }>,
    has_control: bool,
    /// The call passes a window.
    has_window: bool,
    /// The registers that have a word for the other side, a bit for each.
    passed: u16,
    /// Registers that a function preserves and the code uses.
    used: u16,
}

impl<'a> Half<'a> {
    fn new(generator: &'a Generator, letters: &'a Letters, state: State, has_window: bool) -> Self {
        let passed = PASSED[letters.in_registers()];
        let has_control = letters.has_control();
        let has_message = has_control || letters.bytes().is_some() || letters.in_area() > 0;
        let used = bit(RBX) | bit(RBP) | if has_message { bit(R12) | bit(R13) | bit(R14) } else { 0 };
        Self { letters, state, runs: &generator.runs, has_control, has_window, passed, used }
    }
    /// Writes instructions that are the same for other specifications.
    fn run(&self, code: &mut Code<'_, X86_64>, run: Run) {
        let again = if run as usize >= Pool as usize && self.has_control { TWICE } else { 0 };
        self.runs(code, SINGLE + run as usize + again, 1);
    }
    /// Writes so many runs, from this one on.
    fn runs(&self, code: &mut Code<'_, X86_64>, first: usize, count: usize) {
        code.append(self.runs.get(first, count));
    }
    /// Writes one for each preserved register of a set.
    fn each(&self, code: &mut Code<'_, X86_64>, first: usize, registers: u16) {
        match registers & ALL_PRESERVED {
            0 => return,
            ALL_PRESERVED => return self.runs(code, first, PRESERVED.len()),
            _ => {}
        }
        for (place, register) in PRESERVED.iter().enumerate() {
            if registers & bit(*register) != 0 {
                self.runs(code, first + place, 1);
            }
        }
    }

    /// Writes a step of a call; true if it was the last.
    #[inline(never)]
    fn write_call(&self, code: &mut Code<'_, X86_64>, targets: &Targets, back: u64, step: u8) -> bool {
        let slowly = targets.call_slow_path(self.letters);
        let constant = self.letters.constant();
        match step {
            0 => {
                self.check_length(code, targets.refuse_call);

                code.part("the caller's activation keeps where it goes on, and its registers");
                self.run(code, Keep);
                match self.state {
                    State::Preserved => self.runs(code, SAVE, PRESERVED.len()),
                    State::Minimal => self.each(code, SAVE, self.used),
                }
                self.check_entry(code, slowly);
            }
            1 => {
                code.part("the flow is allowed, both domains live, and nothing is special about them");
                self.run(code, Flow);
                code.jump_if(If::NotEqual, slowly);

                code.part("an activation of the callee is free on this CPU");
                self.run(code, Pool);
                code.jump_if(If::Equal, slowly);

                code.part("the chain may be longer");
                self.run(code, Chain);
                code.jump_if(If::AboveOrEqual, slowly);
            }
            2 => self.open_window(code, slowly),
            3 => {
                code.part("nothing refuses from here on: the activation leaves the pool");
                self.run(code, Take);

                code.part("it is the top of the chain; other CPUs see caller and thread before they see that");
                self.run(code, Top);
                self.run(code, Return);
                code.put(back, 4);
            }
            4 => self.copy_words(code, true),
            5 => self.copy_bytes(code, true),
            6 => {
                code.part("what the entry says; a CPU that empties it relies on our being in the caller until now");
                self.run(code, Address);
                if let Some(word) = constant {
                    self.runs(code, CONSTANT + word, 1);
                }
                if self.letters.has_badge() {
                    self.run(code, Badge);
                }

                code.part("the CPU is in the callee");
                self.run(code, EnterCallee);
            }
            7 => {
                code.part("the callee gets its stack and the words, and nothing else");
                self.run(code, Stack);
                let kept = match self.state {
                    State::Preserved => {
                        self.run(code, Message);
                        self.passed
                    }
                    State::Minimal => !0,
                };
                let constant = constant.map_or(0, |word| bit(WORDS[word]));
                let loaded = self.used & kept & !constant;
                self.run(code, if loaded == 0 { GoesTo } else { CallerAndGoesTo });
                self.each(code, LOAD, loaded);
            }
            8 => self.put_time(code),
            _ => {
                let kept = if self.letters.has_badge() { bit(RAX) } else { 0 };
                let preserved = if self.state == State::Preserved { CLEARED_IN_CALLS } else { 0 };
                self.clear(code, (CLEARED | preserved) & !kept);
                self.run(code, Leave);
            }
        }
        step >= 9
    }

    /// Writes a step of a return; true if it was the last.
    #[inline(never)]
    fn write_return(&self, code: &mut Code<'_, X86_64>, targets: &Targets, step: u8) -> bool {
        // The callee's own registers are of no use any more, unless it preserved them for the caller, or they are words.
        let kept = match self.state {
            State::Preserved => self.passed,
            State::Minimal => !0,
        };
        match step {
            0 => {
                self.check_length(code, targets.refuse_return);
                self.check_entry(code, targets.return_slowly);
                if self.has_window {
                    code.part("the window has one page, or there is none");
                    self.run(code, IsMany);
                    code.jump_if(If::NotEqual, targets.return_slowly);
                }

                self.each(code, SAVE, self.used & kept);
                code.part("nothing became special about the two domains, and nobody waits for the activation");
                self.run(code, Special);
                code.jump_if(
                    If::NotEqual,
                    match self.state {
                        _ if self.has_control => targets.return_slowly_with_control,
                        State::Preserved => targets.return_slowly_spoiled,
                        State::Minimal => targets.return_slowly_kept,
                    },
                );
            }
            1 => self.copy_words(code, false),
            2 => self.copy_bytes(code, false),
            3 => {
                code.part("the activation is free");
                self.run(code, Free);
                self.close_window(code);

                code.part("its caller is the top of the chain again");
                self.run(code, Up);

                code.part("the CPU is in the caller");
                self.run(code, EnterCaller);
            }
            4 => {
                code.part("the caller gets its registers and the results, and nothing else");
                self.run(code, Back);
                self.each(code, RESTORE, !kept);
                self.each(code, LOAD, self.used & kept);
            }
            5 => self.put_time(code),
            _ => {
                self.clear(code, CLEARED);
                self.run(code, Leave);
            }
        }
        step >= 6
    }

    /// Refuses a caller that expects something else.
    fn check_expected(&self, code: &mut Code<'_, X86_64>, specification: &Specification, refuse: u64) {
        let Some(what) = specification.expects() else { return };
        code.part("the caller expects what goes along");
        self.run(code, Expect);
        code.put(abi::Control::expecting(what).0, 4);
        code.jump_if(If::NotEqual, refuse);
    }
    /// Refuses more bytes than a message area has.
    fn check_length(&self, code: &mut Code<'_, X86_64>, refuse: u64) {
        let Some(word) = self.letters.bytes() else { return };
        code.part("no more bytes than a message area has");
        self.runs(code, COMPARE + word, 1);
        code.put((MESSAGE_BYTES - 8 * self.letters.in_area()) as u64, 4);
        code.jump_if(If::Above, refuse);
    }
    /// The nucleus copies entries, and does whatever else than bytes a control word asks for.
    fn check_entry(&self, code: &mut Code<'_, X86_64>, slowly: u64) {
        if self.has_control {
            code.part("the control word asks for bytes only");
            self.run(code, if self.letters.window().is_some() { StripWindow } else { Control });
            code.jump_if(If::Above, slowly);
        }
        let Some(word) = self.letters.for_nucleus() else { return };
        code.part("no entry goes along, or no page");
        self.runs(code, TEST + word, 1);
        code.jump_if(If::NotEqual, slowly);
    }

    /// Opens the window: its page stands in the slot of the activation at rcx then. One page, where the caller has it in its lowest GiB:
    /// all else is done on the slow path. Changes r12 to r14.
    fn open_window(&self, code: &mut Code<'_, X86_64>, slowly: u64) {
        let Some(word) = self.letters.window() else { return };
        code.part("a window goes along");
        if self.has_control {
            self.run(code, HasWindow);
        } else {
            self.runs(code, TEST + word, 1);
        }
        let over = code.skip_far_if(If::Equal);
        self.runs(code, WINDOW + word, 1);
        code.part("it is one page, the caller has it, and may lend it so");
        for (run, condition) in [(OnePage, If::NotEqual), (NearPage, If::AboveOrEqual), (TableOfPage, If::Equal)] {
            self.run(code, run);
            code.jump_if(condition, slowly);
        }
        self.run(code, EntryOfPage);
        self.run(code, MayBeLent);
        code.jump_if(If::NotEqual, slowly);
        code.part("the callee sees it in the slot of the activation, and executes nothing there");
        self.run(code, SlotsOfCallee);
        code.jump_if(If::Equal, slowly);
        self.run(code, Record);
        self.runs(code, OPENED + word, 1);
        code.skip_far_to_here(over);
    }

    /// Closes the window of the activation at r11, of one page, if there is one.
    fn close_window(&self, code: &mut Code<'_, X86_64>) {
        if !self.has_window {
            return;
        }
        code.part("the window closes: the root that is loaded next drops its translation");
        self.run(code, Closes);
        let over = code.skip_if(If::Equal);
        self.run(code, SlotsOfLeft);
        code.skip_to_here(over);
    }

    /// Copies words of the message area of the activation at r11 to that at rcx in a call, at rax in a return, and has it ready for bytes;
    /// changes r12 to r14, and rcx in a return. With a control word there are none: see [`Self::copy_bytes`].
    fn copy_words(&self, code: &mut Code<'_, X86_64>, is_call: bool) {
        let (words, bytes) = (self.letters.in_area(), self.letters.bytes());
        if self.has_control || words == 0 && bytes.is_none() {
            return;
        }
        code.part("words and bytes of the message area");
        if let Some(word) = bytes {
            self.runs(code, COUNT + word, 1);
        }
        self.run(code, if is_call { AreasOfCall } else { AreasOfReturn });
        self.runs(code, COPY, words);
    }

    /// Copies the bytes behind them; changes the same, and r10 in a return with a word that counts bytes.
    fn copy_bytes(&self, code: &mut Code<'_, X86_64>, is_call: bool) {
        let (words, has_bytes) = (self.letters.in_area(), self.letters.bytes().is_some());
        if words == 0 && !has_bytes && !self.has_control {
            return;
        }
        let over = self.has_control.then(|| {
            code.part("words and bytes of the message area");
            self.run(code, IsControl);
            let over = code.skip_if(If::Equal);
            self.run(code, if is_call { AreasOfCall } else { AreasOfReturn });
            over
        });
        if self.has_control || has_bytes {
            if words > 0 {
                for run in [Source, Target] {
                    self.run(code, run);
                    code.put(8 * words as u64, 1);
                }
            }
            self.run(code, if self.has_control { CountControl } else { CountWord });
            if self.has_control && self.letters.window().is_some() {
                self.run(code, CountOnly);
            }
            self.run(code, CopyBytes);
        }
        if is_call {
            self.run(code, Copied);
            if has_bytes {
                self.run(code, ShareAgain);
            }
        }
        if let Some(skip) = over {
            code.skip_to_here(skip);
        }
    }

    /// Puts the time stamp where it is asked for, when r10 and r11 are free.
    fn put_time(&self, code: &mut Code<'_, X86_64>) {
        if self.letters.times() == 0 {
            return;
        }
        code.part("the time stamp");
        self.run(code, Time);
        let mut left = self.letters.times();
        while left != 0 {
            let first = left.trailing_zeros();
            let count = (left >> first).trailing_ones();
            self.runs(code, STAMP + first as usize, count as usize);
            left &= !0 << (first + count);
        }
        if self.letters.times() >> THIRD & 1 == 0 {
            self.run(code, KeepThird);
        }
        self.run(code, KeepStatus);
    }

    /// Clears those of these registers that pass nothing.
    fn clear(&self, code: &mut Code<'_, X86_64>, registers: u16) {
        let control = if self.has_control { bit(CONTROL) } else { 0 };
        let badge = self.letters.minted_badge().map_or(0, |word| bit(WORDS[word]));
        let mut left = (registers | badge) & !(self.passed & !badge | control);
        // Several instructions are put together, and written at once.
        let (mut bits, mut bytes) = (0, 0);
        while left != 0 {
            let (instruction, count) = clear(Register(left.trailing_zeros() as u8));
            bits |= instruction << (8 * bytes);
            bytes += count;
            left &= left - 1;
            if bytes > AT_ONCE - LONGEST_CLEAR || left == 0 {
                code.put(bits, bytes);
                bits = 0;
                bytes = 0;
            }
        }
    }
}
