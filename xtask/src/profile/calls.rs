//! The effect of an instruction on a stack, and the tree of calls.
//!
//! Sources: Intel SDM volume 2 (CALL, RET, SYSCALL, HLT); Arm ARM (DDI 0487), C4.1 (BL, BLR, RET, SVC, WFI).

use crate::isa::Isa;
use std::collections::HashMap;

/// The continuation after an instruction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// The next one, or one that it jumps to.
    On,
    /// The function that it calls.
    Call,
    /// Where its function was called.
    Return,
    /// The nucleus, which it calls.
    SystemCall,
    /// An interrupt: it waits for one.
    Wait,
}

impl Step {
    /// Of the instruction with these first bytes.
    pub fn of(isa: Isa, bytes: [u8; 4]) -> Self {
        match isa {
            Isa::X86_64 => x86_64(&bytes),
            Isa::Aarch64 => aarch64(u32::from_le_bytes(bytes)),
        }
    }
}

fn x86_64(bytes: &[u8]) -> Step {
    let is_prefix = |byte: &u8| matches!(byte, 0x2e | 0x3e | 0x40..=0x4f | 0x64..=0x67 | 0xf2 | 0xf3);
    let start = bytes.iter().position(|byte| !is_prefix(byte)).unwrap_or(bytes.len());
    match bytes[start..] {
        [0xe8, ..] => Step::Call,
        [0xff, operands, ..] if operands >> 3 & 7 == 2 => Step::Call,
        [0xc2 | 0xc3, ..] => Step::Return,
        [0x0f, 0x05, ..] => Step::SystemCall,
        [0xf4, ..] => Step::Wait,
        _ => Step::On,
    }
}

fn aarch64(word: u32) -> Step {
    match word {
        _ if word & 0xfc00_0000 == 0x9400_0000 || word & 0xffff_fc1f == 0xd63f_0000 => Step::Call,
        _ if word & 0xffff_fc1f == 0xd65f_0000 => Step::Return,
        _ if word & 0xffe0_001f == 0xd400_0001 => Step::SystemCall,
        0xd503_207f => Step::Wait,
        _ => Step::On,
    }
}

/// Bytes of the longest instruction: a return leads behind the call by no more.
pub const LONGEST: u64 = 15;
/// Calls within calls that are kept apart.
const MAX_DEPTH: u32 = 200;

/// A function, as it was called.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Node {
    /// The node of the caller.
    pub parent: usize,
    /// Where in the caller it was called; 0 = nobody knows.
    pub site: u64,
    /// Which function.
    pub function: usize,
    depth: u32,
}

/// All functions as they were called; the first node is none, but above all.
pub struct Calls {
    nodes: Vec<Node>,
    known: HashMap<Node, usize>,
}

/// The node above all.
pub const TOP: usize = 0;

impl Calls {
    /// None yet.
    pub fn new() -> Self {
        Self { nodes: vec![Node { parent: TOP, site: 0, function: usize::MAX, depth: 0 }], known: HashMap::new() }
    }

    /// A node.
    pub fn node(&self, node: usize) -> Node {
        self.nodes[node]
    }

    /// The node of a function that is called there.
    pub fn called(&mut self, parent: usize, site: u64, function: usize) -> usize {
        let parent = if self.nodes[parent].depth < MAX_DEPTH { parent } else { self.nodes[parent].parent };
        let node = Node { parent, site, function, depth: self.nodes[parent].depth + 1 };
        let next = self.nodes.len();
        let found = *self.known.entry(node).or_insert(next);
        if found == next {
            self.nodes.push(node);
        }
        found
    }

    /// Where a return leads that goes on at this address: the caller that called right before it. The same node if
    /// that call was not seen. Nobody above `base` is returned to.
    pub fn returned(&self, from: usize, base: usize, address: u64) -> usize {
        let mut node = from;
        while node != base && node != TOP {
            let Node { parent, site, .. } = self.nodes[node];
            if site != 0 && parent != base && (1..=LONGEST).contains(&address.wrapping_sub(site)) {
                return parent;
            }
            node = parent;
        }
        from
    }

    /// The nodes from the top down to this one.
    pub fn path(&self, mut node: usize) -> Vec<Node> {
        let mut path = Vec::new();
        while node != TOP {
            path.push(self.nodes[node]);
            node = self.nodes[node].parent;
        }
        path.reverse();
        path
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_of_x86_64() {
        for (bytes, step) in [
            ([0xe8, 1, 2, 3], Step::Call),
            ([0xff, 0xd0, 0, 0], Step::Call),       // call rax
            ([0x41, 0xff, 0x54, 0x24], Step::Call), // call [r12 + …]
            ([0xff, 0x15, 1, 2], Step::Call),       // call [rip + …]
            ([0xff, 0xe0, 0, 0], Step::On),         // jmp rax
            ([0xff, 0xc0, 0, 0], Step::On),         // inc eax
            ([0xc3, 0, 0, 0], Step::Return),
            ([0xf3, 0xc3, 0, 0], Step::Return),
            ([0x0f, 0x05, 0, 0], Step::SystemCall),
            ([0xf4, 0, 0, 0], Step::Wait),
            ([0x48, 0x89, 0xe5, 0], Step::On),
        ] {
            assert_eq!(Step::of(Isa::X86_64, bytes), step, "{bytes:x?}");
        }
    }

    #[test]
    fn steps_of_aarch64() {
        for (word, step) in [
            (0x9400_0010_u32, Step::Call),   // bl
            (0xd63f_0100, Step::Call),       // blr x8
            (0xd61f_0100, Step::On),         // br x8
            (0xd65f_03c0, Step::Return),     // ret
            (0xd400_0001, Step::SystemCall), // svc 0
            (0xd503_207f, Step::Wait),       // wfi
            (0x1400_0010, Step::On),         // b
        ] {
            assert_eq!(Step::of(Isa::Aarch64, word.to_le_bytes()), step, "{word:x}");
        }
    }

    #[test]
    fn a_return_finds_its_call() {
        let mut calls = Calls::new();
        let main = calls.called(TOP, 0, 1);
        let inner = calls.called(main, 0x100, 2);
        let innermost = calls.called(inner, 0x200, 3);
        assert_eq!(calls.called(inner, 0x200, 3), innermost);
        assert_eq!(calls.returned(innermost, TOP, 0x205), inner);
        // Two at once: the one between jumped to what it called last.
        assert_eq!(calls.returned(innermost, TOP, 0x105), main);
        assert_eq!(calls.returned(innermost, TOP, 0x300), innermost);
        assert_eq!(calls.returned(innermost, main, 0x105), innermost);
        assert_eq!(calls.path(innermost).iter().map(|node| node.function).collect::<Vec<_>>(), [1, 2, 3]);
    }

    #[test]
    fn recursion_has_an_end() {
        let mut calls = Calls::new();
        let mut node = TOP;
        for _ in 0..10 * MAX_DEPTH {
            node = calls.called(node, 0x10, 1);
        }
        assert_eq!(calls.path(node).len(), MAX_DEPTH as usize);
    }
}
