//! Pipes: bounded buffers between two programs.
//!
//! A call that must wait keeps an activation, and file calls need activations too: only
//! [`MAX_WAITING`] may wait at the same time, the others come back as interrupted and are tried again
//! by the runtime. A pipe does not outlive this component; its ends then see an error.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use interfaces::pipes::{PipeError, PipesServer};
use runtime::sync::{Condvar, Mutex, MutexGuard};

/// Bytes in a pipe.
const CAPACITY: usize = 16 * 1024;
/// Pipes at the same time.
const MAX_PIPES: usize = 64;
/// Calls that may wait at the same time.
pub const MAX_WAITING: usize = 16;

struct Pipe {
    number: u64,
    bytes: VecDeque<u8>,
    read_closed: bool,
    write_closed: bool,
}

struct Table {
    pipes: Vec<Pipe>,
    last: u64,
    waiting: usize,
}

impl Table {
    fn pipe(&mut self, number: u64) -> Result<&mut Pipe, PipeError> {
        self.pipes.iter_mut().find(|pipe| pipe.number == number).ok_or(PipeError::NoSuchPipe)
    }

    fn close(&mut self, number: u64, end: impl FnOnce(&mut Pipe)) -> Result<(), PipeError> {
        let pipe = self.pipe(number)?;
        end(pipe);
        if pipe.read_closed && pipe.write_closed {
            self.pipes.retain(|pipe| pipe.number != number);
        }
        Ok(())
    }
}

static TABLE: Mutex<Table> = Mutex::new(Table { pipes: Vec::new(), last: 0, waiting: 0 });
/// Something changed in some pipe.
static CHANGED: Condvar = Condvar::new();

/// Waits until something changes.
fn wait(mut table: MutexGuard<'static, Table>) -> Result<MutexGuard<'static, Table>, PipeError> {
    if table.waiting >= MAX_WAITING {
        return Err(PipeError::Interrupted);
    }
    table.waiting += 1;
    let mut table = CHANGED.wait(table);
    table.waiting -= 1;
    Ok(table)
}

/// The interface.
pub struct Pipes;

impl PipesServer for Pipes {
    fn create(&self, _badge: u64) -> Result<u64, PipeError> {
        let mut table = TABLE.lock();
        if table.pipes.len() >= MAX_PIPES {
            return Err(PipeError::Full);
        }
        // Starting from the clock: a number from before a restart means no new pipe.
        table.last = (table.last + 1).max(runtime::op::clock() >> 10);
        let number = table.last;
        table.pipes.push(Pipe { number, bytes: VecDeque::new(), read_closed: false, write_closed: false });
        Ok(number)
    }

    fn read(&self, _badge: u64, pipe: u64, into: &mut [u8]) -> Result<usize, PipeError> {
        let mut table = TABLE.lock();
        loop {
            let found = table.pipe(pipe)?;
            if !found.bytes.is_empty() || found.write_closed || into.is_empty() {
                let count = found.bytes.len().min(into.len());
                for (place, byte) in into.iter_mut().zip(found.bytes.drain(..count)) {
                    *place = byte;
                }
                CHANGED.notify_all();
                return Ok(count);
            }
            table = wait(table)?;
        }
    }

    fn write(&self, _badge: u64, pipe: u64, bytes: &[u8]) -> Result<usize, PipeError> {
        let mut table = TABLE.lock();
        loop {
            let found = table.pipe(pipe)?;
            if found.read_closed {
                return Err(PipeError::Closed);
            }
            let room = CAPACITY - found.bytes.len();
            if room > 0 || bytes.is_empty() {
                let count = room.min(bytes.len());
                found.bytes.extend(&bytes[..count]);
                CHANGED.notify_all();
                return Ok(count);
            }
            table = wait(table)?;
        }
    }

    fn close_read(&self, _badge: u64, pipe: u64) -> Result<(), PipeError> {
        let result = TABLE.lock().close(pipe, |pipe| pipe.read_closed = true);
        CHANGED.notify_all();
        result
    }

    fn close_write(&self, _badge: u64, pipe: u64) -> Result<(), PipeError> {
        let result = TABLE.lock().close(pipe, |pipe| pipe.write_closed = true);
        CHANGED.notify_all();
        result
    }
}
