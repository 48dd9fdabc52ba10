//! Threads of the shell besides those of jobs: a bounded number.

use alloc::string::{String, ToString};
use alloc::sync::Arc;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use runtime::thread::{self, Thread};

/// At the same time.
const MAX_THREADS: usize = 20;

static COUNT: AtomicUsize = AtomicUsize::new(0);

/// Counts a thread as long as it lives.
struct Counted;

impl Drop for Counted {
    fn drop(&mut self) {
        COUNT.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A running thread, and the status with which it ends.
pub struct Working {
    thread: Thread,
    status: Arc<AtomicU64>,
}

impl Working {
    /// Waits for its end; gives its status.
    pub fn join(self) -> u64 {
        self.thread.join();
        self.status.load(Ordering::Acquire)
    }
}

/// Starts one.
pub fn start(work: impl FnOnce() -> u64 + Send + 'static) -> Result<Working, String> {
    let counted = Counted;
    if COUNT.fetch_add(1, Ordering::Relaxed) >= MAX_THREADS {
        return Err(alloc::format!("subshells at the same time: at most {MAX_THREADS}"));
    }
    let status = Arc::new(AtomicU64::new(0));
    let result = status.clone();
    let run = move || {
        result.store(work(), Ordering::Release);
        drop(counted);
    };
    thread::spawn(run).map(|thread| Working { thread, status }).map_err(|error| error.to_string())
}
