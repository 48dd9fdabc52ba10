//! The functions of streams that the end of a program, a panic and a connection need. They go through here, so that programs which never
//! print do not carry streams.

use core::fmt;
use core::sync::atomic::{AtomicPtr, Ordering};

#[derive(Clone, Copy)]
pub(crate) struct Hooks {
    /// Writes out what was collected.
    pub(crate) flush: fn(),
    /// Reports a panic, or a service that could not be reached, to a person. False: nobody reads that.
    pub(crate) report: fn(fmt::Arguments<'_>) -> bool,
}

static HOOKS: AtomicPtr<Hooks> = AtomicPtr::new(core::ptr::null_mut());

/// From now on there are these.
pub(crate) fn set(hooks: &'static Hooks) {
    // A value the compiler cannot see through: else it puts the functions where the hooks are called.
    HOOKS.store(core::hint::black_box((&raw const *hooks).cast_mut()), Ordering::Relaxed);
}

/// Writes out what was collected, if anything was printed.
pub(crate) fn flush() {
    if let Some(hooks) = hooks() {
        (hooks.flush)();
    }
}

/// Reports it to a person, if anything may have been printed. False: nobody got the report.
pub(crate) fn report(text: fmt::Arguments<'_>) -> bool {
    hooks().is_some_and(|hooks| (hooks.report)(text))
}

fn hooks() -> Option<Hooks> {
    // SAFETY: null, or a static, which nobody writes.
    unsafe { HOOKS.load(Ordering::Relaxed).as_ref() }.copied()
}
