//! How long a lock is held: instructions that a CPU executes from the one after the lock was taken to the one that gives
//! it back, both included, of that CPU alone.
//!
//! A file says where that is: lines `from ADDRESS` (instructions at lower addresses are not looked at), `taken ADDRESS` (the
//! first instruction with the lock; any number of such lines) and `given ADDRESS` (the last one), hexadecimal
//! with `0x`. At the end the results are written to another file:
//!
//! ```text
//! holds 1234                      times that the lock was given back by a CPU that had taken it
//! instructions 56789              executed meanwhile, of all these times
//! strayed 0                       times that it was given back by a CPU that had not taken it; a CPU
//!                                 may have begun with it, and give it back once
//! longest 150 0xa000 0xa100 2     instructions, first and last address, CPU
//! at 0xa000                       an address of the longest, of each 16th instruction
//! ```

use abi::MAX_CPUS;
use std::fmt::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Of so many instructions the address of one is kept, up to so many.
const SAMPLED: u64 = 16;
const MAX_SAMPLES: usize = 4096;

/// Where the lock is taken and given back.
#[derive(Debug, PartialEq, Eq)]
pub struct Places {
    from: u64,
    taken: Vec<u64>,
    given: Vec<u64>,
}

/// The role of an instruction for the lock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// Not looked at.
    Outside,
    /// Counts, if this CPU has the lock.
    Inside,
    /// The first with the lock.
    Taken,
    /// The last with the lock.
    Given,
}

impl Places {
    /// Reads such a file.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut places = Self { from: 0, taken: Vec::new(), given: Vec::new() };
        for line in text.lines() {
            let parts = line.split_once(' ').and_then(|(word, address)| Some((word, address.strip_prefix("0x")?)));
            match parts.map(|(word, address)| (word, u64::from_str_radix(address, 16))) {
                Some(("from", Ok(address))) => places.from = address,
                Some(("taken", Ok(address))) => places.taken.push(address),
                Some(("given", Ok(address))) => places.given.push(address),
                _ => return Err(format!("a line is `from`, `taken` or `given` with an address, and not `{line}`")),
            }
        }
        match places.taken.is_empty() || places.given.is_empty() {
            true => Err("the lock is taken or given back nowhere".into()),
            false => Ok(places),
        }
    }

    /// The role of the instruction at this address.
    pub fn role(&self, address: u64) -> Role {
        match address {
            _ if address < self.from => Role::Outside,
            _ if self.given.contains(&address) => Role::Given,
            _ if self.taken.contains(&address) => Role::Taken,
            _ => Role::Inside,
        }
    }
}

/// From taking to giving back.
#[derive(Clone, Default)]
struct Hold {
    instructions: u64,
    first: u64,
    last: u64,
    samples: Vec<u64>,
}

impl Hold {
    fn step(&mut self, address: u64) {
        if self.instructions.is_multiple_of(SAMPLED) && self.samples.len() < MAX_SAMPLES {
            self.samples.push(address);
        }
        self.instructions += 1;
        self.last = address;
    }
}

#[derive(Default)]
struct Cpu {
    /// It has taken the lock or given it back: before, nobody knows whether it has it.
    known: bool,
    /// The lock is this CPU's.
    holds: bool,
    present: Hold,
    longest: Hold,
    times: u64,
    instructions: u64,
    strayed: u64,
}

impl Cpu {
    const NEW: Self = Self {
        known: false,
        holds: false,
        present: Hold { instructions: 0, first: 0, last: 0, samples: Vec::new() },
        longest: Hold { instructions: 0, first: 0, last: 0, samples: Vec::new() },
        times: 0,
        instructions: 0,
        strayed: 0,
    };

    /// This CPU is about to execute this instruction.
    fn step(&mut self, role: Role, address: u64) {
        let known = self.known;
        self.known |= matches!(role, Role::Taken | Role::Given);
        match role {
            Role::Outside => return,
            // Where its waiting ended, and once more after the place where it began to wait.
            Role::Inside | Role::Taken if self.holds => {}
            Role::Inside => return,
            Role::Taken => {
                self.holds = true;
                self.present.instructions = 0;
                self.present.first = address;
                self.present.samples.clear();
            }
            Role::Given if !self.holds => {
                self.strayed += u64::from(known);
                return;
            }
            Role::Given => self.holds = false,
        }
        self.present.step(address);
        if role == Role::Given {
            self.times += 1;
            self.instructions += self.present.instructions;
            if self.present.instructions > self.longest.instructions {
                std::mem::swap(&mut self.present, &mut self.longest);
            }
        }
    }
}

/// The use of the lock by all CPUs; of each, whether it has the lock: most instructions are executed without.
pub struct Holds([(AtomicBool, Mutex<Cpu>); MAX_CPUS]);

impl Holds {
    /// Nothing yet.
    pub const fn new() -> Self {
        Self([const { (AtomicBool::new(false), Mutex::new(Cpu::NEW)) }; MAX_CPUS])
    }

    /// A CPU is about to execute this instruction.
    pub fn step(&self, cpu: usize, role: Role, address: u64) {
        let Some((has_lock, cpu)) = self.0.get(cpu) else { return };
        // Only this CPU's thread changes it.
        if role != Role::Inside || has_lock.load(Ordering::Relaxed) {
            let mut cpu = lock(cpu);
            cpu.step(role, address);
            has_lock.store(cpu.holds, Ordering::Relaxed);
        }
    }

    /// Instructions of all times that are over.
    pub fn instructions(&self) -> u64 {
        self.0.iter().map(|(_, cpu)| lock(cpu).instructions).sum()
    }

    /// The results so far.
    pub fn results(&self) -> String {
        let (mut times, mut instructions, mut strayed) = (0, 0, 0);
        let mut longest = (Hold::default(), 0);
        for (number, cpu) in self.0.iter().map(|(_, cpu)| lock(cpu)).enumerate() {
            times += cpu.times;
            instructions += cpu.instructions;
            strayed += cpu.strayed;
            if cpu.longest.instructions > longest.0.instructions {
                longest = (cpu.longest.clone(), number);
            }
        }
        let (longest, cpu) = longest;
        let mut text = format!(
            "holds {times}\ninstructions {instructions}\nstrayed {strayed}\nlongest {} {:#x} {:#x} {cpu}\n",
            longest.instructions, longest.first, longest.last
        );
        for address in longest.samples {
            // Writing to a text does not fail.
            let _ = writeln!(text, "at {address:#x}");
        }
        text
    }
}

/// The lock is taken even if its thread panicked: each change leaves a CPU's record consistent.
fn lock(cpu: &Mutex<Cpu>) -> MutexGuard<'_, Cpu> {
    cpu.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places() -> Places {
        Places::parse("from 0x100\ntaken 0x110\ntaken 0x120\ngiven 0x118\ngiven 0x128\n").unwrap()
    }

    /// CPUs execute instructions at these addresses, in this order.
    fn run(steps: &[(usize, u64)]) -> String {
        let (places, holds) = (places(), Holds::new());
        for &(cpu, address) in steps {
            holds.step(cpu, places.role(address), address);
        }
        holds.results()
    }

    #[test]
    fn places_are_read() {
        let expected = [(0x50, Role::Outside), (0x110, Role::Taken), (0x128, Role::Given), (0x111, Role::Inside)];
        for (address, role) in expected {
            assert_eq!(places().role(address), role, "{address:#x}");
        }
        for bad in ["taken 0x1\n", "given 0x1\n", "taken 12\ngiven 0x1", "taken 0xg\ngiven 0x1", "held 0x1", "taken"] {
            assert!(Places::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn the_longest_is_reported_with_its_place() {
        let steps = [0x108, 0x110, 0x118, 0x119, 0x120, 0x121, 0x122, 0x128, 0x110, 0x118].map(|address| (0, address));
        let expected = "holds 3\ninstructions 8\nstrayed 0\nlongest 4 0x120 0x128 0\nat 0x120\n";
        assert_eq!(run(&steps), expected);
    }

    #[test]
    fn others_and_what_lies_outside_do_not_count() {
        // CPU 0 has the lock; 1 waits meanwhile; an instruction of a program comes between.
        let steps = [(0, 0x110), (1, 0x108), (1, 0x109), (0, 0x111), (1, 0x109), (0, 0x20), (0, 0x118), (1, 0x120)];
        assert!(run(&steps).starts_with("holds 1\ninstructions 3\nstrayed 0\nlongest 3 0x110 0x118 0\n"));
    }

    #[test]
    fn unmatched_takes_and_releases_are_counted() {
        assert!(run(&[(0, 0x110), (0, 0x110), (0, 0x118), (0, 0x118)]).contains("strayed 1\nlongest 3 "));
        // The lock is given back by a CPU that may have begun with it, and once more.
        assert!(run(&[(0, 0x110), (1, 0x118)]).contains("holds 0\ninstructions 0\nstrayed 0\n"));
        assert!(run(&[(0, 0x110), (1, 0x118), (1, 0x118)]).contains("holds 0\ninstructions 0\nstrayed 1\n"));
        assert_eq!(run(&[(99, 0x110), (99, 0x118)]), run(&[]));
    }

    #[test]
    fn addresses_are_sampled() {
        let mut steps = vec![(3, 0x110)];
        steps.extend((0..40).map(|step| (3, 0x200 + step)));
        steps.push((3, 0x118));
        let results = run(&steps);
        assert!(results.ends_with("longest 42 0x110 0x118 3\nat 0x110\nat 0x20f\nat 0x21f\n"), "{results}");
    }
}
