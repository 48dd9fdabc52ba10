//! The jobs in the background, and the one that Ctrl-C ends.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, Ordering};

use runtime::child::Child;
use runtime::sync::{Condvar, Mutex};
use runtime::thread;
use shelleval::Shell;

use crate::terminal::say;

/// The running parts of a line, or a job.
pub struct Work {
    programs: Mutex<Vec<Arc<Child>>>,
    stopped: AtomicBool,
}

/// It is held by the threads that work for it, and by those that may end it.
pub type Running = Arc<Work>;

impl Work {
    /// Nothing yet.
    pub fn running() -> Running {
        Arc::new(Self { programs: Mutex::new(Vec::new()), stopped: AtomicBool::new(false) })
    }

    /// A program that it started; ended if all of it was meanwhile.
    pub fn add(&self, program: &Arc<Child>) {
        self.programs.lock().push(program.clone());
        if self.is_stopped() {
            let _ = program.kill();
        }
    }

    /// The program ended.
    pub fn remove(&self, program: &Arc<Child>) {
        self.programs.lock().retain(|running| !Arc::ptr_eq(running, program));
    }

    /// No program that it started runs.
    pub fn is_idle(&self) -> bool {
        self.programs.lock().is_empty()
    }

    /// It is to start nothing more.
    pub fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
        let programs = self.programs.lock().clone();
        for program in programs {
            let _ = program.kill();
        }
    }
}

/// Jobs at the same time: each has a thread of the shell.
const MAX_JOBS: usize = 16;

struct Job {
    number: u64,
    /// The shell that owns the job.
    shell: Shell,
    title: String,
    running: Running,
    ended: Option<u64>,
    /// Its end needs no report: somebody waits for it.
    awaited: bool,
}

static JOBS: Mutex<Vec<Job>> = Mutex::new(Vec::new());
static ENDED: Condvar = Condvar::new();
static FOREGROUND: Mutex<Option<Running>> = Mutex::new(None);

/// Sets the job that Ctrl-C ends from now on.
pub fn set_foreground(running: Option<Running>) {
    *FOREGROUND.lock() = running;
}

/// Whether Ctrl-C would end something.
pub fn has_foreground() -> bool {
    FOREGROUND.lock().is_some()
}

/// Ends what runs in the foreground.
pub fn kill_foreground() {
    let running = FOREGROUND.lock().clone();
    if let Some(running) = running {
        running.stop();
    }
}

/// Starts a job of a shell; gives its number.
pub fn start(shell: &Shell, title: String, work: impl FnOnce(Running) -> u64 + Send + 'static) -> Result<u64, String> {
    let mut jobs = JOBS.lock();
    if jobs.len() >= MAX_JOBS {
        return Err(format!("there are {MAX_JOBS} jobs, as many as there can be: wait for one"));
    }
    let number = jobs.iter().map(|job| job.number).max().unwrap_or(0) + 1;
    let running = Work::running();
    jobs.push(Job { number, shell: shell.clone(), title, running: running.clone(), ended: None, awaited: false });
    drop(jobs);
    let started = thread::spawn(move || {
        let status = work(running);
        if let Some(job) = JOBS.lock().iter_mut().find(|job| job.number == number) {
            job.ended = Some(status);
        }
        ENDED.notify_all();
    });
    match started {
        Ok(_) => Ok(number),
        Err(error) => {
            JOBS.lock().retain(|job| job.number != number);
            Err(error.to_string())
        }
    }
}

/// Reports which jobs ended, and forgets them.
pub fn report_ended() {
    let mut jobs = JOBS.lock();
    for job in jobs.iter().filter(|job| !job.awaited) {
        match job.ended {
            Some(0) => say!("[{}] done: {}", job.number, job.title),
            Some(status) => say!("[{}] ended with status {status}: {}", job.number, job.title),
            None => {}
        }
    }
    jobs.retain(|job| job.ended.is_none() || job.awaited);
}

/// All jobs as text. Those of others than this shell say so: of its subshells, of the shell that it is one of, of the start of the system.
pub fn list(shell: &Shell) -> String {
    let mut text = String::new();
    for job in JOBS.lock().iter() {
        let state = if job.ended.is_some() { "ended" } else { "running" };
        let whose = if job.shell.is(shell) { "" } else { ", of another shell" };
        text.push_str(&alloc::format!("[{}] {state}{whose}: {}\n", job.number, job.title));
    }
    text
}

/// Waits for a job (`None`: the newest of this shell) and lets Ctrl-C end it; gives its status. `None` if there is no such job.
pub fn bring_to_foreground(shell: &Shell, number: Option<u64>) -> Option<u64> {
    let mut jobs = JOBS.lock();
    let index = match number {
        Some(number) => jobs.iter().position(|job| job.number == number)?,
        None => jobs.iter().rposition(|job| job.shell.is(shell))?,
    };
    let job = &mut jobs[index];
    job.awaited = true;
    let number = job.number;
    set_foreground(Some(job.running.clone()));
    loop {
        let index = jobs.iter().position(|job| job.number == number)?;
        if let Some(status) = jobs[index].ended {
            jobs.remove(index);
            return Some(status);
        }
        jobs = ENDED.wait(jobs);
    }
}

/// Ends a job. False if there is no such job.
pub fn end(number: u64) -> bool {
    let running = JOBS.lock().iter().find(|job| job.number == number).map(|job| job.running.clone());
    match running {
        Some(running) => {
            running.stop();
            true
        }
        None => false,
    }
}

/// Numbers of a shell's own jobs.
pub fn numbers(shell: &Shell) -> Vec<u64> {
    JOBS.lock().iter().filter(|job| job.shell.is(shell)).map(|job| job.number).collect()
}
