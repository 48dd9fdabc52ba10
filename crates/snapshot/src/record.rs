//! Records from the bytes that the nucleus writes: words of eight bytes, little-endian, in the order of the
//! fields. `None` if there are fewer bytes than the record has.

use abi::info::{Counters, Cpu, Domain, Frames, Portal, Thread};

/// The words of a record of any kind.
pub fn words<const COUNT: usize>(bytes: &[u8]) -> Option<[u64; COUNT]> {
    let mut words = [0; COUNT];
    let mut from = bytes.as_chunks::<8>().0.iter();
    for word in &mut words {
        *word = u64::from_le_bytes(*from.next()?);
    }
    Some(words)
}

const fn words_of<T>() -> usize {
    size_of::<T>() / 8
}

/// A domain.
pub fn domain(bytes: &[u8]) -> Option<Domain> {
    let [
        number,
        parent,
        name0,
        name1,
        state,
        status,
        charged,
        limit,
        threads,
        activations,
        crossings,
        pages,
        pair,
        table,
    ] = words::<{ words_of::<Domain>() }>(bytes)?;
    let mut name = [0; 16];
    name.copy_from_slice([name0, name1].map(u64::to_le_bytes).as_flattened());
    Some(Domain {
        number,
        parent,
        name,
        state,
        status,
        charged,
        limit,
        threads,
        activations,
        crossings,
        pages,
        pair,
        table,
    })
}

/// A thread.
pub fn thread(bytes: &[u8]) -> Option<Thread> {
    let [number, home, now, state, priority, depth, used, cpu, cpus] = words::<{ words_of::<Thread>() }>(bytes)?;
    Some(Thread { number, home, now, state, priority, depth, used, cpu, cpus })
}

/// Where the frames are.
pub fn frames(bytes: &[u8]) -> Option<Frames> {
    let [total, charged, free, boot] = words::<{ words_of::<Frames>() }>(bytes)?;
    Some(Frames { total, charged, free, boot })
}

/// A call entry.
pub fn portal(bytes: &[u8]) -> Option<Portal> {
    let [from, index, to, service, badge] = words::<{ words_of::<Portal>() }>(bytes)?;
    Some(Portal { from, index, to, service, badge })
}

/// The nucleus's counters.
pub fn counters(bytes: &[u8]) -> Option<Counters> {
    let words = words::<{ words_of::<Counters>() }>(bytes)?;
    let [uptime, faults, interrupts, dispatches, deaths, splits, standby, domains, restarts, ..] = words;
    let [.., root_writes, invalidations, longest, longest_by, again, not_runnable] = words;
    Some(Counters {
        uptime,
        faults,
        interrupts,
        dispatches,
        deaths,
        splits,
        standby,
        domains,
        restarts,
        root_writes,
        invalidations,
        longest,
        longest_by,
        again,
        not_runnable,
    })
}

/// A CPU.
pub fn cpu(bytes: &[u8]) -> Option<Cpu> {
    let words = words::<{ words_of::<Cpu>() }>(bytes)?;
    let [number, identity, state, thread, scheduler, idle, dispatches, interrupts, ..] = words;
    let [.., received, wakes, halts, lock_waits, lock_waited, lock_longest, longest, longest_by] = words;
    Some(Cpu {
        number,
        identity,
        state,
        thread,
        scheduler,
        idle,
        dispatches,
        interrupts,
        received,
        wakes,
        halts,
        lock_waits,
        lock_waited,
        lock_longest,
        longest,
        longest_by,
    })
}
