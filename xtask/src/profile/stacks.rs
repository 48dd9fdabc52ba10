//! The instructions in their order, each at its place in the tree of calls.
//!
//! A stack is a node of that tree. Nothing says which thread runs, so a thread is known by where it goes on: a stack that was left
//! is taken up again by the program whose it is, at the instruction after the one that it was left at. A stack without such a place is a
//! new stack: a thread that begins, a call that comes in. The nucleus's frames stand upon the stack of the program that ran last; after the
//! CPU has waited for an interrupt, upon none.

use super::calls::{Calls, LONGEST, Node, Step, TOP};
use super::record::Record;
use crate::code::{File, is_nucleus, owners};
use crate::isa::Isa;
use anyhow::{Result, ensure};
use std::collections::{BTreeMap, HashMap};

/// Stacks of a program that are kept to be taken up again.
const MOST_LEFT: usize = 64;

/// A function of the nucleus or of a program.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Function {
    /// Its file, by its place, of which the first is the nucleus's; none if it is nobody's known.
    pub file: Option<usize>,
    /// Executed by the nucleus: without a file, the code of portals.
    pub is_nucleus: bool,
    /// Where it begins; 0 if nobody knows.
    pub start: u64,
}

/// An instruction.
#[derive(Clone, Copy)]
struct Place {
    address: u64,
    function: usize,
    step: Step,
}

/// A stack, and the last instruction that was executed on it, if any was.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Stack {
    node: usize,
    last: Option<usize>,
}

impl Stack {
    const fn on(node: usize) -> Self {
        Self { node, last: None }
    }
}

/// See the module.
pub struct Stacks {
    /// All functions, in the order of their numbers.
    pub functions: Vec<Function>,
    /// The tree of calls.
    pub calls: Calls,
    /// How many instructions were executed on which stack at which address.
    pub counts: BTreeMap<(usize, u64), u64>,
}

impl Stacks {
    /// Those of a window of a record: so many instructions come before, and so many are in it.
    pub fn of(record: &Record, files: &[File], isa: Isa, (before, within): (u64, u64)) -> Result<Self> {
        ensure!(within > 0, "nothing was executed");
        ensure!(before + within <= record.total(), "the record ends before the work does");
        let mut replay = Replay::new(record, files, isa);
        let order = record.runs.iter().flat_map(|(first, count)| *first..first + count);
        let mut counts: HashMap<(usize, usize), u64> = HashMap::new();
        for (number, place) in (0..).zip(order) {
            let node = replay.execute(place);
            if (before..before + within).contains(&number) {
                *counts.entry((node, place)).or_default() += 1;
            }
        }
        let mut by_address = BTreeMap::new();
        for ((node, place), times) in counts {
            *by_address.entry((node, replay.places[place].address)).or_default() += times;
        }
        Ok(Self { functions: replay.functions, calls: replay.calls, counts: by_address })
    }
}

/// The stacks while instructions are executed.
struct Replay {
    places: Vec<Place>,
    functions: Vec<Function>,
    calls: Calls,
    /// The nucleus's, if it runs, and what it stands upon.
    nucleus: Option<(Stack, usize)>,
    /// The program's that runs or ran last.
    program: Option<Stack>,
    /// Stacks that were left, by whose they are.
    left: HashMap<Option<usize>, Vec<Stack>>,
}

impl Replay {
    fn new(record: &Record, files: &[File], isa: Isa) -> Self {
        let executed: Vec<usize> =
            (0..record.instructions.len()).filter(|place| record.instructions[*place].times > 0).collect();
        let known: Vec<_> = executed.iter().map(|place| record.instructions[*place].clone()).collect();
        let mut owner = vec![None; record.instructions.len()];
        for (place, known) in executed.into_iter().zip(owners(&known, files)) {
            owner[place] = known;
        }
        let mut numbers: BTreeMap<Function, usize> = BTreeMap::new();
        let mut functions = Vec::new();
        let places = record.instructions.iter().zip(owner).map(|(instruction, file)| {
            let address = instruction.address;
            let start = file.and_then(|file| files[file].function(address)).map_or(0, |(start, _)| start);
            let function = Function { file, is_nucleus: is_nucleus(address), start };
            let number = *numbers.entry(function).or_insert(functions.len());
            if number == functions.len() {
                functions.push(function);
            }
            Place { address, function: number, step: Step::of(isa, instruction.bytes) }
        });
        let places = places.collect();
        Self { places, functions, calls: Calls::new(), nucleus: None, program: None, left: HashMap::new() }
    }

    /// An instruction is executed; gives the node that it belongs to.
    fn execute(&mut self, place: usize) -> usize {
        let Place { function, step, .. } = self.places[place];
        if self.functions[function].is_nucleus {
            let (stack, base) = self.nucleus.unwrap_or_else(|| {
                let base = self.program.map_or(TOP, |stack| stack.node);
                (Stack::on(base), base)
            });
            let stack = self.advanced(stack, base, place);
            self.nucleus = Some((stack, base));
            if step == Step::Wait {
                self.leave();
                self.nucleus = Some((Stack::on(TOP), TOP));
            }
            return stack.node;
        }
        let file = self.functions[function].file;
        let same =
            |stack: &Stack| stack.last.is_some_and(|last| self.functions[self.places[last].function].file == file);
        let goes_on = self.nucleus.is_none() && self.program.as_ref().is_some_and(same);
        if !goes_on {
            self.leave();
            self.program = Some(self.taken_up(file, place));
            self.nucleus = None;
        }
        let stack = self.advanced(self.program.unwrap_or(Stack::on(TOP)), TOP, place);
        self.program = Some(stack);
        stack.node
    }

    /// The program's stack is left, perhaps to be taken up again.
    fn leave(&mut self) {
        let Some(stack) = self.program.take() else { return };
        let Some(last) = stack.last else { return };
        let left = self.left.entry(self.functions[self.places[last].function].file).or_default();
        left.retain(|other| *other != stack);
        left.push(stack);
        if left.len() > MOST_LEFT {
            left.remove(0);
        }
    }

    /// The stack of this program that goes on with this instruction: the last one left, of those that fit best.
    fn taken_up(&mut self, file: Option<usize>, place: usize) -> Stack {
        let next = self.places[place];
        let fit = |stack: &Stack| {
            let Some(last) = stack.last.map(|last| self.places[last]) else { return 0 };
            let ahead = next.address.wrapping_sub(last.address);
            match last.step {
                // At the next one, or, after a fault, at the same one again.
                _ if ahead <= LONGEST => 2,
                // An interrupt came after a jump.
                Step::On if last.function == next.function => 1,
                _ => 0,
            }
        };
        let Some(left) = self.left.get_mut(&file) else { return Stack::on(TOP) };
        let best = (0..left.len()).filter(|number| fit(&left[*number]) > 0).max_by_key(|number| fit(&left[*number]));
        best.map_or(Stack::on(TOP), |number| left.remove(number))
    }

    /// A stack on which an instruction is executed; addresses from `base` on are not its own.
    fn advanced(&mut self, stack: Stack, base: usize, place: usize) -> Stack {
        let Place { address, function, .. } = self.places[place];
        let last = stack.last.map(|last| self.places[last]);
        let mut node = match last {
            Some(Place { step: Step::Call, address: site, .. }) => self.calls.called(stack.node, site, function),
            Some(Place { step: Step::Return, .. }) => self.calls.returned(stack.node, base, address),
            _ => stack.node,
        };
        if node == base {
            // Upon a program's stack: where it was left.
            let site = self.program.filter(|_| base != TOP).and_then(|program| program.last);
            node = self.calls.called(base, site.map_or(0, |site| self.places[site].address), function);
        } else if self.calls.node(node).function != function {
            // A jump to another function, which returns to this one's caller.
            let Node { parent, site, .. } = self.calls.node(node);
            node = self.calls.called(parent, site, function);
        }
        Stack { node, last: Some(place) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counter::{Executed, NUCLEUS_FROM};
    use crate::elf;

    const JUMP: u32 = 0x1400_0000;
    const CALL: u32 = 0x9400_0000;
    const RETURN: u32 = 0xd65f_03c0;
    const SYSTEM_CALL: u32 = 0xd400_0001;
    const WAIT: u32 = 0xd503_207f;

    /// Executes instructions of AArch64 at these addresses; gives for each the addresses at which the functions above it began, and its own.
    /// A function begins at each multiple of 0x100, and what is of which program the next digit of the address says.
    fn paths(steps: &[(u64, u32)]) -> Vec<Vec<u64>> {
        let places = steps.iter().map(|(address, word)| Place {
            address: *address,
            function: (address >> 8) as usize & 0xff,
            step: Step::of(Isa::Aarch64, word.to_le_bytes()),
        });
        let function = |number: u64| Function {
            file: Some(number as usize >> 4),
            is_nucleus: number >> 4 == 0,
            start: number << 8,
        };
        let mut replay = Replay {
            places: places.collect(),
            functions: (0..=0xff).map(function).collect(),
            calls: Calls::new(),
            nucleus: None,
            program: None,
            left: HashMap::new(),
        };
        let path = |place| {
            let node = replay.execute(place);
            replay.calls.path(node).iter().map(|node| (node.function as u64) << 8).collect()
        };
        (0..steps.len()).map(path).collect()
    }

    #[test]
    fn calls_and_returns_are_followed() {
        let steps =
            [(0x1000, CALL), (0x1100, CALL), (0x1200, RETURN), (0x1104, RETURN), (0x1004, JUMP), (0x1300, CALL)];
        let expected: [&[u64]; 6] =
            [&[0x1000], &[0x1000, 0x1100], &[0x1000, 0x1100, 0x1200], &[0x1000, 0x1100], &[0x1000], &[0x1300]];
        assert_eq!(paths(&steps), expected);
    }

    #[test]
    fn the_nucleus_stands_upon_the_program() {
        let steps =
            [(0x1000, CALL), (0x1100, SYSTEM_CALL), (0x0004, CALL), (0x0100, RETURN), (0x0008, JUMP), (0x1104, JUMP)];
        let expected: [&[u64]; 6] = [
            &[0x1000],
            &[0x1000, 0x1100],
            &[0x1000, 0x1100, 0x0000],
            &[0x1000, 0x1100, 0x0000, 0x0100],
            &[0x1000, 0x1100, 0x0000],
            &[0x1000, 0x1100],
        ];
        assert_eq!(paths(&steps), expected);
    }

    #[test]
    fn a_stack_is_taken_up_where_it_was_left() {
        let steps = [
            (0x1000, CALL),
            (0x1100, SYSTEM_CALL),
            (0x0000, JUMP),
            // Another program, which calls back into the first: a stack of its own.
            (0x2000, SYSTEM_CALL),
            (0x0000, JUMP),
            (0x1400, SYSTEM_CALL),
            (0x0000, JUMP),
            (0x2004, SYSTEM_CALL),
            (0x0000, JUMP),
            (0x1104, RETURN),
            (0x1004, JUMP),
        ];
        let paths = paths(&steps);
        assert_eq!(paths[5], [0x1400]);
        assert_eq!(paths[6], [0x1400, 0x0000]);
        assert_eq!(paths[7], [0x2000]);
        assert_eq!(paths[9], [0x1000, 0x1100]);
        assert_eq!(paths[10], [0x1000]);
    }

    #[test]
    fn code_after_a_wait_for_an_interrupt_has_no_caller() {
        let steps = [(0x1000, SYSTEM_CALL), (0x0000, WAIT), (0x0100, JUMP), (0x1004, JUMP)];
        let expected: [&[u64]; 4] = [&[0x1000], &[0x1000, 0x0000], &[0x0100], &[0x1000]];
        assert_eq!(paths(&steps), expected);
    }

    #[test]
    fn after_an_interrupt_a_program_goes_on_elsewhere_in_its_function() {
        let steps = [(0x1000, CALL), (0x1180, JUMP), (0x0000, JUMP), (0x1100, JUMP)];
        assert_eq!(paths(&steps)[3], [0x1000, 0x1100]);
    }

    #[test]
    fn a_window_is_counted_whole() {
        let bytes = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        let functions = elf::functions(&bytes).unwrap();
        let start = functions[0].0;
        let code = elf::loaded(&bytes, start, 4).unwrap().try_into().unwrap();
        let files = [File::of("nucleus", bytes.clone(), vec![]), File::of("program", bytes, functions)];
        let instructions = vec![
            Executed { address: start, page: 1, bytes: code, times: 3 },
            Executed { address: NUCLEUS_FROM, page: 2, bytes: [0xff; 4], times: 2 },
        ];
        let record = Record { instructions, runs: vec![(0, 2), (0, 1), (0, 2)] };
        let of = |window| Stacks::of(&record, &files, Isa::X86_64, window);
        let stacks = of((2, 3)).unwrap();
        assert_eq!(stacks.counts.values().sum::<u64>(), 3);
        let whose: Vec<_> = stacks.functions.iter().map(|function| (function.file, function.is_nucleus)).collect();
        assert_eq!(whose, [(Some(1), false), (None, true)]);
        assert!(of((3, 3)).is_err() && of((3, 0)).is_err());
    }
}
