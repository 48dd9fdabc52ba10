//! Threads that do something at the same time, each on a CPU of its own.
//!
//! They meet, begin together, and the row reports how long it took until the last one was done. A thread that
//! cannot be where it should be begins nothing, but the others do not wait for it for ever.

use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, Ordering};
use runtime::arch::relax;

use runtime::arch::ticks;
use runtime::entry::Entry;
use runtime::sync::Mutex;
use runtime::thread::spawn;
use runtime::{op, program};
use tool::inspect;

/// The work of each thread: it gets its CPU's number, and calls [`Meeting::timed`] once.
pub type Work = fn(usize, &Meeting) -> Result<(), String>;

/// Where they meet.
pub struct Meeting {
    expected: u64,
    arrived: AtomicU64,
    /// Ticks when all were there; 0 = not yet.
    began: AtomicU64,
    done: AtomicU64,
    /// Ticks when the last one was done.
    ended: AtomicU64,
    problem: Mutex<Option<String>>,
}

impl Meeting {
    /// Waits for the others, and times what all of them do then.
    pub fn timed(&self, work: impl FnOnce()) {
        if self.arrived.fetch_add(1, Ordering::AcqRel) + 1 == self.expected {
            self.began.store(ticks(), Ordering::Release);
        }
        while self.began.load(Ordering::Acquire) == 0 {
            relax();
        }
        work();
        if self.done.fetch_add(1, Ordering::AcqRel) + 1 == self.expected {
            self.ended.store(ticks(), Ordering::Release);
        }
    }

    fn attend(&self, cpu: usize, work: Work) {
        if let Err(problem) = stay_on(cpu).and_then(|()| work(cpu, self)) {
            *self.problem.lock() = Some(problem);
            // Nothing if it was timed before it went wrong: then more than all are done.
            self.timed(|| ());
        }
    }
}

/// Has threads do this, one on each of the first so many CPUs; gives the ticks from start to end.
pub fn together(cpus: usize, work: Work) -> Result<u64, String> {
    let meeting = Arc::new(Meeting {
        expected: cpus as u64,
        arrived: AtomicU64::new(0),
        began: AtomicU64::new(0),
        done: AtomicU64::new(0),
        ended: AtomicU64::new(0),
        problem: Mutex::new(None),
    });
    let threads: Result<Vec<_>, _> = (0..cpus)
        .map(|cpu| {
            let meeting = meeting.clone();
            spawn(move || meeting.attend(cpu, work))
        })
        .collect();
    // If one cannot start, those that did wait until this program ends, which is soon.
    threads.map_err(|error| error.to_string())?.into_iter().for_each(|thread| thread.join());
    match meeting.problem.lock().take() {
        Some(problem) => Err(problem),
        None => Ok(meeting.ended.load(Ordering::Acquire) - meeting.began.load(Ordering::Acquire)),
    }
}

/// From now on the running thread runs on this CPU only.
pub fn stay_on(cpu: usize) -> Result<(), String> {
    let refused = |error| alloc::format!("no thread can run on CPU {cpu} only: {error}");
    op::thread_schedule_on(Entry::OWN, program::schedule(), 1 << cpu).map_err(refused)?;
    let number = op::thread_id();
    match inspect::own::<runtime::abi::info::Thread>()
        .map_err(|error| error.to_string())?
        .iter()
        .find(|thread| thread.number == number)
    {
        Some(thread) if thread.cpu == cpu as u64 => Ok(()),
        Some(thread) => Err(alloc::format!("a thread that is to run on CPU {cpu} runs on CPU {}", thread.cpu)),
        None => Err("the running thread is none of those that the nucleus reports".into()),
    }
}
