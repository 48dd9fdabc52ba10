//! Where machine code is written, and what it refers to.

use crate::specification::Letters;
use core::marker::PhantomData;

/// Bytes that an instruction is written in at a time.
pub const AT_ONCE: usize = size_of::<u64>();
/// Parts that some code has at most.
#[cfg(feature = "listing")]
const MAX_PARTS: usize = 32;

/// Code that is being written, in the instructions of an ISA: the functions that it has for that.
#[derive(Debug)]
pub struct Code<'a, Isa> {
    bytes: &'a mut [u8],
    length: usize,
    effort: usize,
    /// Where the first byte is going to stand.
    pub base: u64,
    isa: PhantomData<Isa>,
    /// Which part of the code begins where, for listings.
    #[cfg(feature = "listing")]
    parts: ([(usize, &'static str); MAX_PARTS], usize),
}

impl<'a, Isa> Code<'a, Isa> {
    /// Writes to `bytes`, which are going to stand at `base`.
    pub const fn new(bytes: &'a mut [u8], base: u64) -> Self {
        Self {
            bytes,
            length: 0,
            effort: 0,
            base,
            isa: PhantomData,
            #[cfg(feature = "listing")]
            parts: ([(0, ""); MAX_PARTS], 0),
        }
    }
    /// Goes on after what was written by another one.
    pub fn go_on(self, length: usize) -> Self {
        Self { length, ..self }
    }
    /// Here begins another part.
    #[inline(always)]
    pub const fn part(&mut self, what: &'static str) {
        #[cfg(feature = "listing")]
        {
            self.parts.0[self.parts.1] = (self.length, what);
            self.parts.1 += 1;
        }
        let _ = what;
    }
    /// Where each part begins.
    #[cfg(feature = "listing")]
    pub fn parts(&self) -> &[(usize, &'static str)] {
        &self.parts.0[..self.parts.1]
    }
    /// Bytes so far.
    pub const fn length(&self) -> usize {
        self.length
    }
    /// How often something was written.
    pub const fn effort(&self) -> usize {
        self.effort
    }
    /// Whether all of it was written.
    pub const fn fits(&self) -> bool {
        self.length + AT_ONCE <= self.bytes.len()
    }
    /// Where the next byte is going to stand.
    pub(crate) const fn here(&self) -> u64 {
        self.base + self.length as u64
    }
    /// Appends the lowest `count` bytes, 8 at most. Bytes that do not fit are counted and not written.
    #[inline(never)]
    pub(crate) const fn put(&mut self, bits: u64, count: usize) {
        if let Some((_, rest)) = self.bytes.split_at_mut_checked(self.length)
            && let Some(place) = rest.first_chunk_mut()
        {
            *place = bits.to_le_bytes();
        }
        self.length += count;
        self.effort += 1;
    }
    /// Forgets the last bytes.
    pub(crate) const fn take_back(&mut self, count: usize) {
        self.length -= count;
    }
    /// Appends.
    pub(crate) fn append(&mut self, more: &[u8]) {
        if let Some(place) = self.bytes.get_mut(self.length..self.length + more.len()) {
            place.copy_from_slice(more);
        }
        self.length += more.len();
        self.effort += 1;
    }
    /// Writes over the four bytes that stand there.
    pub(crate) fn patch4(&mut self, at: u64, value: u32) {
        (at..).zip(value.to_le_bytes()).for_each(|(at, byte)| self.patch(at, byte));
    }
    /// Writes over the byte that stands there.
    pub(crate) fn patch(&mut self, at: u64, byte: u8) {
        if let Some(place) = self.bytes.get_mut((at - self.base) as usize) {
            *place = byte;
        }
    }
}

/// Bytes from the start of each object of the nucleus to what portal code uses.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs, reason = "named as the fields of the nucleus's objects")]
pub struct Offsets {
    pub cpu_domain: i32,
    pub cpu_thread: i32,
    pub cpu_activation: i32,
    pub cpu_table: i32,
    pub cpu_limit: i32,
    pub cpu_per_cpu_at: i32,
    pub domain_table: i32,
    pub domain_limit: i32,
    /// The caller's half of the mark that the entry of a crossing must have: its label-pair id.
    pub domain_as_caller: i32,
    /// The callee's half: its label-pair id, 32 bits higher. Any other bit that is set in one of the two sends the crossing to the slow path.
    pub domain_as_callee: i32,
    pub domain_slow: i32,
    /// The last table but one of its lowest GiB: where a window is looked for.
    pub domain_low: i32,
    /// x86-64: the offset from a physical address to its address in the direct map.
    pub cpu_direct: i32,
    pub per_cpu_pool: i32,
    pub per_cpu_crossings: i32,
    /// The page tables of the domain on this CPU.
    pub per_cpu_root: i32,
    /// Entries of the pages of windows on this CPU, 0 = there are none yet.
    pub per_cpu_windows: i32,
    pub thread_top: i32,
    pub entry_object: i32,
    pub entry_word0: i32,
    pub entry_word1: i32,
    pub entry_versions: i32,
    pub activation_frame: i32,
    pub activation_state: i32,
    pub activation_next: i32,
    pub activation_caller: i32,
    pub activation_callee: i32,
    pub activation_thread: i32,
    pub activation_domain: i32,
    pub activation_stack: i32,
    /// Where the nucleus sees its message area.
    pub activation_area: i32,
    /// Where the user sees it.
    pub activation_message: i32,
    /// The window that its caller opened, 0 = none.
    pub activation_window: i32,
    /// Where the first page of its windows stands in the domain's space, and bytes to its entry among those of windows.
    pub activation_slot: i32,
    /// See `activation_slot`.
    pub activation_place: i32,
    /// Where its return goes on.
    pub activation_back: i32,
    /// Where the user goes on, its stack pointer behind it.
    pub activation_pc: i32,
    pub activation_sp: i32,
    /// x86-64: rbx, rbp, r12 to r15. AArch64: the pairs from x19 on.
    pub activation_preserved: [i32; 6],
    /// AArch64: the thread pointer.
    pub activation_pointer: i32,
}

/// The facts about the nucleus that portal code needs.
#[derive(Clone, Copy, Debug)]
pub struct Nucleus {
    /// Where things stand.
    pub offsets: Offsets,
    /// Frame and state (the byte behind it) of an activation that calls.
    pub calling: u16,
    /// State of an activation at the end of a chain.
    pub top: u8,
    /// State of a free activation.
    pub free: u8,
    /// A frame word (frame, state, depth in the high half) from this on: the chain is as long as it may be.
    pub deepest: u32,
    /// Start of the direct map, where the nucleus sees tables: the bits from one on.
    pub direct: u32,
}

/// Where portal code goes on if it cannot do what it is for.
#[derive(Clone, Copy, Debug)]
pub struct Targets {
    /// The slow path of a call: the caller's activation has the registers that a function preserves, and where to go on; the words
    /// are the caller's.
    pub call_slowly: u64,
    /// The same, where the control word is the caller's, too.
    pub call_slowly_with_control: u64,
    /// The slow path of a return: all registers are the callee's but rax, r11 (the activation), and r10
    /// if that has no control word.
    pub return_slowly: u64,
    /// The same, where the nucleus has used rbx and rbp, which nobody needs.
    pub return_slowly_spoiled: u64,
    /// The same, where r10 has a control word, and the nucleus has used r15, too.
    pub return_slowly_with_control: u64,
    /// The same, where the activation has the callee's rbx and rbp.
    pub return_slowly_kept: u64,
    /// The call is refused as `BadArgument`: all registers are the caller's.
    pub refuse_call: u64,
    /// The same, as `BadControl`.
    pub refuse_control: u64,
    /// As [`Self::refuse_call`], for a return.
    pub refuse_return: u64,
}

impl Targets {
    /// The slow path of a call with these letters.
    pub(crate) fn call_slow_path(&self, letters: &Letters) -> u64 {
        if letters.has_control() { self.call_slowly_with_control } else { self.call_slowly }
    }
}

/// Runs of instructions that are the same whatever is passed: they are written when the nucleus is built, and copied. Each has a number;
/// `STARTS` is one more than there are.
#[derive(Debug)]
pub struct Runs<const BYTES: usize, const STARTS: usize> {
    bytes: [u8; BYTES],
    starts: [u16; STARTS],
}

impl<const BYTES: usize, const STARTS: usize> Runs<BYTES, STARTS> {
    /// No instructions in any of them.
    pub(crate) const NONE: Self = Self { bytes: [0; BYTES], starts: [0; STARTS] };

    /// Writes one, after those before it.
    pub(crate) const fn begin<Isa>(&mut self, number: usize) -> Code<'_, Isa> {
        Code::new(self.bytes.split_at_mut(self.starts[number] as usize).1, 0)
    }
    /// Notes the length of the part that was begun.
    pub(crate) const fn end(&mut self, number: usize, length: usize) {
        let end = self.starts[number] as usize + length;
        assert!(end + AT_ONCE <= BYTES);
        self.starts[number + 1] = end as u16;
    }
    /// The instructions of so many, from this one on.
    pub(crate) fn get(&self, number: usize, count: usize) -> &[u8] {
        &self.bytes[self.starts[number] as usize..self.starts[number + count] as usize]
    }
}

/// Names runs, in the order of their numbers.
macro_rules! runs {
    ($(#[$about:meta])* $($name:ident)*) => {
        $(#[$about])*
        #[derive(Clone, Copy)]
        enum Run { $($name),* }
        use Run::{$($name),*};
        const SINGLES: [Run; [$($name),*].len()] = [$($name),*];
    };
}
pub(crate) use runs;

/// How far code is written: it can be written a step at a time, each of some twenty instructions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Progress {
    /// Steps of the half that is being written.
    pub(crate) step: u8,
    /// Which half that is: the return comes first.
    pub(crate) is_call: bool,
    pub(crate) is_done: bool,
    /// Where both halves begin, and how long the code is.
    pub extent: Extent,
}

impl Progress {
    /// A step was written, perhaps the last one of its half, and the code is so long now.
    pub(crate) const fn end_step(&mut self, is_last: bool, length: usize) {
        self.step += 1;
        self.extent.length = length;
        self.is_done = is_last && self.is_call;
        if is_last && !self.is_call {
            self.is_call = true;
            self.step = 0;
        }
    }

    /// Nothing is written.
    pub const NONE: Self =
        Self { step: 0, is_call: false, is_done: false, extent: Extent { call: 0, back: 0, length: 0 } };

    /// All is written.
    pub const DONE: Self = Self { is_done: true, ..Self::NONE };

    /// Whether all is written.
    pub const fn is_done(&self) -> bool {
        self.is_done
    }
}

/// Where the two halves of a shape begin, in bytes, and how long both are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Extent {
    /// The call.
    pub call: usize,
    /// The return.
    pub back: usize,
    /// All.
    pub length: usize,
}
