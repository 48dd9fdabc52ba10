//! Shares of time: on one CPU, where the queues alone decide, and on simulated machines of several.
#![forbid(unsafe_code)]

#[expect(dead_code, reason = "other tests use the rest of it")]
mod world;

use abi::sched::{BEHIND, ThreadWord};
use proptest::prelude::*;
use scheduling::queues::Queues;
use world::{Machine, PERIOD, SLICE};

/// The share of the components of the default system.
const SHARE: u8 = 60;
/// Of a period, what others have at least: a slice is what goes unnoticed.
const REST: u64 = PERIOD * (100 - SHARE as u64) / 100 - SLICE;

/// Threads with a share on CPU 0: of `priorities`, which never wait.
fn greedy(machine: &mut Machine, priorities: &[u8]) -> Vec<usize> {
    let threads: Vec<usize> = priorities.iter().map(|priority| machine.thread(0, *priority, u64::MAX)).collect();
    for thread in &threads {
        machine.give_share(*thread, SHARE);
        machine.wake(*thread);
    }
    threads
}

fn used(machine: &Machine, threads: &[usize]) -> u64 {
    threads.iter().map(|thread| machine.nucleus.threads[*thread].used).sum()
}

#[test]
fn programs_keep_their_part_of_each_period() {
    for cpus in [1, 2, 3] {
        let mut machine = Machine::new(cpus);
        let network = greedy(&mut machine, &[43, 34, 28, 28, 28, 28]);
        let programs: Vec<usize> = (0..cpus).map(|_| machine.hog(0, 16)).collect();
        machine.run(3 * PERIOD);
        for _ in 0..20 {
            let before = [used(&machine, &network), used(&machine, &programs)];
            machine.run(PERIOD);
            let [theirs, ours] = [used(&machine, &network) - before[0], used(&machine, &programs) - before[1]];
            assert!(ours >= cpus as u64 * REST, "{cpus} CPUs: programs had {ours} of {}", cpus as u64 * PERIOD);
            // And the network its share, but for what it did not ask for at a period's end.
            assert!(theirs >= cpus as u64 * (PERIOD * u64::from(SHARE) / 100 - SLICE), "{cpus} CPUs: it had {theirs}");
        }
    }
}

#[test]
fn short_bursts_are_counted() {
    // It runs for 3 ticks and waits for one: no slice of it ever ends.
    let mut machine = Machine::new(1);
    let network = greedy(&mut machine, &[43]);
    let program = machine.hog(0, 16);
    machine.run(PERIOD);
    let before = machine.nucleus.threads[program].used;
    for _ in 0..10 * PERIOD {
        if machine.running(0) == Some(network[0]) {
            machine.run(3);
            if machine.running(0) == Some(network[0]) {
                machine.block(0);
            }
        }
        machine.run(1);
        machine.wake(network[0]);
    }
    let periods = machine.nucleus.now / PERIOD - 1;
    let ours = machine.nucleus.threads[program].used - before;
    assert!(ours >= periods * REST, "{ours} ticks in {periods} periods");
}

#[test]
fn unused_time_goes_to_those_past_their_share() {
    let mut machine = Machine::new(1);
    let network = greedy(&mut machine, &[43, 28]);
    machine.run(10 * PERIOD);
    assert_eq!(used(&machine, &network), 10 * PERIOD);
    // Nor does it count later: a program that comes has its part of the next period, and no more.
    let program = machine.hog(0, 16);
    machine.run(10 * PERIOD);
    let ours = machine.nucleus.threads[program].used;
    assert!(ours <= 10 * (PERIOD * (100 - u64::from(SHARE)) / 100 + SLICE), "{ours}");
}

#[test]
fn others_keep_their_priorities() {
    // A component without a share goes on before the network and before programs.
    let mut machine = Machine::new(1);
    greedy(&mut machine, &[43, 28]);
    machine.hog(0, 16);
    machine.run(2 * PERIOD);
    let pager = machine.hog(0, 48);
    let before = machine.nucleus.threads[pager].used;
    machine.run(PERIOD);
    assert_eq!(machine.nucleus.threads[pager].used - before, PERIOD);
}

#[test]
fn threads_without_share_that_never_wait_leave_nothing() {
    for cpus in [1, 2] {
        let mut machine = Machine::new(cpus);
        let programs: Vec<usize> = (0..cpus).map(|_| machine.hog(0, 16)).collect();
        machine.run(2 * PERIOD);
        // On each CPU one as the shell, and one of those above it.
        let trusted: Vec<usize> = (0..cpus).map(|cpu| machine.hog(cpu, if cpu == 0 { 24 } else { 32 })).collect();
        machine.run(PERIOD);
        let before = [used(&machine, &programs), used(&machine, &trusted)];
        machine.run(PERIOD);
        assert_eq!(used(&machine, &programs), before[0], "{cpus} CPUs");
        assert_eq!(used(&machine, &trusted), before[1] + cpus as u64 * PERIOD, "{cpus} CPUs");
    }
}

#[test]
fn a_thread_with_a_waiter_runs_past_its_share() {
    let mut machine = Machine::new(1);
    let network = greedy(&mut machine, &[34]);
    let program = machine.hog(0, 16);
    while machine.running(0) != Some(program) {
        machine.run(1);
    }
    // It has used up its share; somebody without one waits for it.
    machine.give_share(network[0], 0);
    machine.run(SLICE);
    assert_eq!(machine.running(0), Some(network[0]));
    // No longer.
    machine.give_share(network[0], SHARE);
    machine.run(SLICE);
    assert_eq!(machine.running(0), Some(program));
}

#[test]
fn the_successor_of_a_scheduler_keeps_the_share() {
    let mut machine = Machine::new(1);
    greedy(&mut machine, &[43, 34, 28]);
    let program = machine.hog(0, 16);
    machine.run(PERIOD + SLICE);
    machine.kill_instance(0);
    // It knows nothing of the period: another one begins.
    let before = machine.nucleus.threads[program].used;
    machine.run(10 * PERIOD);
    let ours = machine.nucleus.threads[program].used - before;
    assert!(ours >= 9 * REST, "{ours}");
}

proptest! {
    /// The queues alone, as on a machine with one CPU: a thread is taken only when none precedes it, by the priorities
    /// that count now.
    #[test]
    fn the_highest_that_counts_is_taken(
        steps in prop::collection::vec((1usize..20, 0u8..4, any::<bool>(), 0u64..30), 1..200),
    ) {
        let mut queues = Queues::new();
        let (mut now, mut began, mut used) = (1000, 0, 0);
        // Priority and share of those that are queued.
        let mut queued = [None; 20];
        let mut running: Option<(usize, bool)> = None;
        for (number, priority, has_share, ticks) in steps {
            let priority = 16 + 9 * priority;
            now += ticks;
            if let Some((_, true)) = running {
                used += ticks;
            }
            running = None;
            let word = ThreadWord::new(number, priority).with_share(if has_share { SHARE } else { 0 });
            queues.append(word);
            queued[number] = Some((priority, has_share));
            if queues.is_watched() {
                queues.look(now, PERIOD);
                if now - began >= PERIOD {
                    (began, used) = (now, 0);
                }
            }
            let is_over = used * 100 >= PERIOD * u64::from(SHARE);
            let counts = |entry: Option<(u8, bool)>| {
                entry.map(|(priority, has_share)| if has_share && is_over { priority.min(BEHIND) } else { priority })
            };
            if ticks % 3 != 0 {
                let taken = queues.take();
                prop_assert!(taken != 0);
                prop_assert_eq!(counts(queued[taken]), queued.iter().filter_map(|entry| counts(*entry)).max());
                running = queued[taken].take().map(|(_, has_share)| (taken, has_share));
            }
        }
    }
}
