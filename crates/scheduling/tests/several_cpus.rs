//! The policy of several CPUs, on a simulated machine.
#![forbid(unsafe_code)]

mod world;

use proptest::prelude::*;
use world::{Machine, SLICE, State};

/// All start on CPU 0, as the threads of one program do; the spread of their time over so many slices of each.
fn share(cpus: usize, threads: usize, slices: u64) -> (f64, Machine) {
    let mut machine = Machine::new(cpus);
    machine.hogs(threads, 16);
    let ticks = |slices: u64| slices * SLICE * threads as u64 / cpus as u64;
    machine.run(ticks(2));
    let (before, handed) = (machine.used(), machine.nucleus.handed);
    machine.run(ticks(slices));
    machine.nucleus.handed -= handed;
    (machine.spread(&before), machine)
}

#[test]
fn two_hundred_on_two_cpus_are_equal_and_stay_where_they_are() {
    let (spread, machine) = share(2, 200, 40);
    assert!(spread <= 0.05, "spread {spread}");
    // 40 rounds.
    assert!(machine.nucleus.handed <= 80, "{} hand-overs", machine.nucleus.handed);
}

#[test]
fn any_number_of_equal_threads_is_equal() {
    for cpus in [2, 3, 4, 8] {
        for threads in [cpus, cpus + 1, 2 * cpus - 1, 2 * cpus, 3 * cpus + 2, 101] {
            let (spread, machine) = share(cpus, threads, 60);
            assert!(spread <= 0.05, "{threads} threads on {cpus} CPUs: spread {spread}");
            // No more than one per slice.
            let slices = 60 * threads as u64;
            let handed = machine.nucleus.handed;
            assert!(handed <= slices, "{threads} threads on {cpus} CPUs: {handed} hand-overs in {slices} slices");
        }
    }
}

#[test]
fn threads_do_not_move_if_each_has_a_cpu() {
    for cpus in [2, 4, 64] {
        let (_, machine) = share(cpus, cpus, 100);
        assert_eq!(machine.nucleus.handed, 0, "{cpus} threads on {cpus} CPUs");
        let (_, machine) = share(cpus, 1, 100);
        assert_eq!(machine.nucleus.handed, 0, "one thread on {cpus} CPUs");
    }
}

#[test]
fn equal_threads_beside_a_higher_one_are_equal() {
    // The one of higher priority takes half of CPU 0.
    let mut machine = Machine::new(2);
    machine.hogs(9, 16);
    let driver = machine.thread(0, 40, 1);
    let step = |machine: &mut Machine| {
        machine.wake(driver);
        machine.run(3);
        let cpu = machine.nucleus.threads[driver].cpu;
        assert_eq!(machine.running(cpu), Some(driver));
        machine.block(cpu);
        machine.run(3);
    };
    (0..100).for_each(|_| step(&mut machine));
    let before: Vec<u64> = machine.used()[..9].to_vec();
    (0..2000).for_each(|_| step(&mut machine));
    let spread = machine.spread(&before);
    assert!(spread <= 0.05, "spread {spread}");
}

#[test]
fn a_hundred_beside_one_that_wakes_all_the_time_are_equal() {
    // It runs for so many ticks, and waits for so many; somebody is preempted each time.
    for (burst, pause) in [(0, 1), (1, 1), (0, 2), (1, 3), (0, 7), (1, 9), (2, 13), (5, 30)] {
        let mut machine = Machine::new(2);
        machine.hogs(100, 8);
        let driver = machine.thread(0, 30, u64::MAX);
        let slices = |machine: &mut Machine, slices: u64| {
            for _ in 0..(slices * SLICE * 100 / 2).div_ceil(burst + pause) {
                machine.wake(driver);
                machine.run(burst);
                let cpu = machine.nucleus.threads[driver].cpu;
                assert_eq!(machine.running(cpu), Some(driver));
                machine.block(cpu);
                machine.run(pause);
            }
        };
        slices(&mut machine, 4);
        let before = machine.used()[..100].to_vec();
        slices(&mut machine, 40);
        let spread = machine.spread(&before);
        assert!(spread <= 0.05, "{burst} of {} ticks: spread {spread}", burst + pause);
    }
}

#[test]
fn a_pair_that_wakes_each_other_meets_on_one_cpu() {
    for cpus in [2, 4, 8] {
        let mut machine = Machine::new(cpus);
        let (ping, pong) = (machine.thread(cpus - 1, 16, u64::MAX), machine.thread(cpus / 2 - 1, 16, u64::MAX));
        machine.wake(ping);
        let round = |machine: &mut Machine| {
            for (from, to) in [(ping, pong), (pong, ping)] {
                let cpu = machine.nucleus.threads[from].cpu;
                assert_eq!(machine.running(cpu), Some(from));
                machine.wake(to);
                machine.block(cpu);
                machine.check();
            }
        };
        (0..200).for_each(|_| round(&mut machine));
        assert_eq!(machine.nucleus.threads[ping].cpu, machine.nucleus.threads[pong].cpu);
        assert!(machine.nucleus.handed <= 2, "{} hand-overs", machine.nucleus.handed);
        let handed = machine.nucleus.handed;
        (0..2000).for_each(|_| round(&mut machine));
        assert_eq!(machine.nucleus.handed, handed, "they go on moving");
    }
}

#[test]
fn a_higher_priority_finds_a_cpu_that_runs_a_lower_one() {
    let mut machine = Machine::new(4);
    machine.hogs(8, 10);
    machine.run(10 * SLICE);
    let high: Vec<usize> = (0..3).map(|_| machine.hog(0, 20)).collect();
    machine.run(1);
    // The last two were queued behind the first, on CPU 0.
    machine.run(SLICE);
    let before = machine.used();
    machine.run(100 * SLICE);
    for number in high {
        let used = machine.nucleus.threads[number].used - before[number - 1];
        assert_eq!(used, 100 * SLICE, "thread {number}");
    }
    let low: Vec<u64> = (1..9).map(|number| machine.nucleus.threads[number].used - before[number - 1]).collect();
    assert_eq!(low.iter().sum::<u64>(), 100 * SLICE);
}

#[test]
fn a_thread_preempted_repeatedly_moves_to_a_cpu_of_lower_priority() {
    for (burst, pause) in [(1, 1), (3, 0), (5, 5), (9, 1), (90, 10)] {
        let mut machine = Machine::new(2);
        machine.hog(1, 8);
        let (driver, middle) = (machine.thread(0, 16, u64::MAX), machine.hog(0, 12));
        machine.run(1);
        let (before, start) = (machine.used()[middle - 1], machine.nucleus.now);
        for _ in 0..1000 {
            machine.wake(driver);
            machine.run(burst);
            let cpu = machine.nucleus.threads[driver].cpu;
            assert_eq!(machine.running(cpu), Some(driver));
            machine.block(cpu);
            machine.run(pause);
        }
        let lost = machine.nucleus.now - start - (machine.used()[middle - 1] - before);
        assert!(lost <= burst + 2 * SLICE, "{burst} of {} ticks: it lost {lost}", burst + pause);
        // It and the lower one change places.
        let moves: u64 = machine.nucleus.threads.iter().map(|thread| thread.moves).sum();
        assert_eq!(moves, 2, "{burst} of {} ticks", burst + pause);
    }
}

#[test]
fn a_cpu_looks_for_higher_priorities_before_it_runs_a_lower_one() {
    let mut machine = Machine::new(2);
    let (first, second) = (machine.hog(0, 30), machine.hog(1, 30));
    let middle = machine.thread(0, 20, 3);
    machine.hog(1, 10);
    machine.wake(middle);
    machine.run(3 * SLICE);
    assert_eq!(machine.nucleus.threads[middle].used, 0);
    // CPU 1 has only the lowest left.
    let cpu = machine.nucleus.threads[second].cpu;
    machine.block(cpu);
    assert_eq!(machine.running(cpu), Some(middle));
    assert_eq!(machine.nucleus.threads[first].state, State::Running);
}

#[test]
fn a_thread_that_may_not_leave_stays_and_delays_nobody() {
    let mut machine = Machine::new(4);
    let pinned: Vec<usize> = (0..3).map(|_| machine.thread(0, 16, 1)).collect();
    let half: Vec<usize> = (0..3).map(|_| machine.thread(0, 16, 3)).collect();
    pinned.iter().chain(&half).for_each(|number| machine.wake(*number));
    let free: Vec<usize> = (0..2).map(|_| machine.hog(0, 16)).collect();
    machine.run(400 * SLICE);
    let thread = |number: &usize| &machine.nucleus.threads[*number];
    assert!(pinned.iter().all(|number| thread(number).moves == 0));
    assert!(half.iter().all(|number| thread(number).cpu < 2));
    // The free ones have CPUs 2 and 3; the others share two, in whatever way.
    assert!(free.iter().all(|number| thread(number).used >= 380 * SLICE), "{:?}", machine.used());
    assert!(half.iter().all(|number| thread(number).used >= 95 * SLICE), "{:?}", machine.used());
    assert!(pinned.iter().all(|number| thread(number).used >= 90 * SLICE), "{:?}", machine.used());
}

#[test]
fn yielding_all_the_time_moves_nothing() {
    let mut machine = Machine::new(2);
    machine.hogs(3, 16);
    machine.run(3 * SLICE + SLICE / 2);
    let handed = machine.nucleus.handed;
    for _ in 0..1000 {
        machine.yields(0);
        machine.yields(1);
        machine.check();
    }
    assert_eq!(machine.nucleus.handed, handed);
}

/// The possible events.
#[derive(Clone, Debug)]
enum Step {
    Ticks(u64),
    Wake(usize),
    /// While the next instance is at work.
    WakeLater(usize),
    Block(usize),
    Yield(usize),
    End(usize),
    KillInstance(usize),
    Prioritize(usize, u8),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (1u64..25).prop_map(Step::Ticks),
        6 => (0usize..64).prop_map(Step::Wake),
        4 => (0usize..64).prop_map(Step::WakeLater),
        6 => (0usize..8).prop_map(Step::Block),
        3 => (0usize..8).prop_map(Step::Yield),
        1 => (0usize..8).prop_map(Step::End),
        1 => (0usize..8).prop_map(Step::KillInstance),
        1 => (0usize..64, 0u8..4).prop_map(|(thread, priority)| Step::Prioritize(thread, priority * 10)),
    ]
}

proptest! {
    #[test]
    fn nothing_is_lost(
        cpus in 1usize..9,
        threads in prop::collection::vec((0u8..4, any::<u64>()), 1..30),
        steps in prop::collection::vec(step(), 1..300),
    ) {
        let mut machine = Machine::new(cpus);
        for (priority, allowed) in threads {
            // Half of them may run anywhere.
            let allowed = if allowed & 1 << 63 != 0 { u64::MAX } else { allowed };
            let home = (0..cpus).find(|cpu| allowed >> cpu & 1 != 0);
            machine.thread(home.unwrap_or(0), priority * 10, if home.is_some() { allowed } else { 1 });
        }
        let count = machine.nucleus.threads.len() - 1;
        for step in steps {
            match step {
                Step::Ticks(ticks) => machine.run(ticks),
                Step::Wake(thread) => machine.wake(1 + thread % count),
                Step::WakeLater(thread) => machine.nucleus.surprise = Some(1 + thread % count),
                Step::Block(cpu) => machine.block(cpu % cpus),
                Step::Yield(cpu) => machine.yields(cpu % cpus),
                Step::End(cpu) => machine.end(cpu % cpus),
                Step::KillInstance(cpu) => machine.kill_instance(cpu % cpus),
                Step::Prioritize(thread, priority) => machine.prioritize(1 + thread % count, priority),
            }
            machine.check();
        }
        // Nobody rests while another could give something away.
        machine.nucleus.surprise = None;
        machine.run(3 * SLICE);
        let idle = (0..cpus).any(|cpu| machine.running(cpu).is_none());
        let free = |thread: &&world::Thread| thread.state == State::Ready && thread.allowed == u64::MAX;
        let waiting = machine.nucleus.threads.iter().filter(free).count();
        prop_assert!(!idle || waiting == 0, "{waiting} wait for a CPU while one rests");
    }

    #[test]
    fn random_loads_do_not_bounce(seed in any::<u64>(), cpus in 2usize..5) {
        // Each thread works for a while, then waits for a while.
        let mut machine = Machine::new(cpus);
        let threads: Vec<usize> = (0..cpus).map(|cpu| machine.thread(cpu, 16, u64::MAX)).collect();
        let mut state = seed | 1;
        let mut random = |below: u64| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state % below
        };
        let mut wakes = 0;
        for _ in 0..4000 {
            let thread = threads[random(threads.len() as u64) as usize];
            match machine.nucleus.threads[thread].state {
                State::Blocked => {
                    wakes += 1;
                    machine.wake(thread);
                }
                State::Running => machine.block(machine.nucleus.threads[thread].cpu),
                _ => {}
            }
            machine.run(random(2));
        }
        let handed = machine.nucleus.handed;
        prop_assert!(handed * 10 <= wakes + 100, "{handed} hand-overs in {wakes} wakes");
    }
}
