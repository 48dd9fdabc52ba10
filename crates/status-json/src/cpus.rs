//! How busy CPUs were, from two readings of their records.

use abi::info::{Cpu, cpu_state};

/// Thousandths of a time in which a CPU had something to do; `None` if it is none that runs, or there was no time.
///
/// `before`: its record at the start of the time; nothing = the time began with the CPU. `elapsed`: nanoseconds.
/// Readings are never taken at quite the moments between which the time is measured: the result is kept within
/// 0 and 1,000.
pub fn load(before: Option<&Cpu>, after: &Cpu, elapsed: u64) -> Option<u64> {
    if after.state == cpu_state::OFFLINE || elapsed == 0 {
        return None;
    }
    let idle = after.idle.saturating_sub(before.map_or(0, |before| before.idle));
    let busy = elapsed.saturating_sub(idle);
    Some((u128::from(busy) * 1000 / u128::from(elapsed)) as u64)
}

/// Mean nanoseconds of a wait for the nucleus's lock; 0 if there was none.
pub fn mean_wait(cpu: &Cpu) -> u64 {
    cpu.lock_waited.checked_div(cpu.lock_waits).unwrap_or(0)
}

/// The name of a state.
pub fn state(cpu: &Cpu) -> &'static str {
    match cpu.state {
        cpu_state::OFFLINE => "offline",
        cpu_state::IDLE => "idle",
        cpu_state::BUSY => "busy",
        cpu_state::SCHEDULES => "schedules",
        _ => "?",
    }
}

/// A bit for each CPU that runs.
pub fn online<'a>(cpus: impl IntoIterator<Item = &'a Cpu>) -> u64 {
    let running = cpus.into_iter().filter(|cpu| cpu.state != cpu_state::OFFLINE);
    running.fold(0, |set, cpu| set | 1u64.checked_shl(cpu.number as u32).unwrap_or(0))
}
