//! Random numbers that nobody can foretell: a generator (crate `csprng`) and its two sources, the processor's
//! instruction and a device's driver ([`protocols::entropy`]).
//!
//! Either source alone is enough, and it says in the log what it has. Without any it refuses and asks again. A
//! new instance knows nothing of the one before it: it begins with new seeds.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

mod sources;

use csprng::Pool;
use idl::{Reply, Request};
use protocols::random::{DEVICE, MAX_RANDOM, PROCESSOR, RandomError, RandomServer};
use runtime::server::{self, Serve};
use runtime::sync::Mutex;

use sources::SOURCE_NAMES;

runtime::entry!(main);

/// Calls are short and hold one lock.
const ACTIVATIONS: usize = 2;

struct State {
    pool: Pool,
}

static STATE: Mutex<State> = Mutex::new(State { pool: Pool::new() });

impl State {
    /// Asks sources, if it is time to.
    fn seed(&mut self) {
        let now = runtime::op::clock();
        let due = self.pool.due(now);
        let before = self.pool.contributed();
        let Some(seeds) = sources::ask(due) else { return };
        let outcome = self.pool.contribute(runtime::op::clock(), seeds.given(), &seeds.salt);
        for ((name, outcome), bit) in SOURCE_NAMES.iter().zip(outcome).zip(0..) {
            match outcome {
                Err(cause) if before >> bit & 1 != 0 || self.pool.seeds() == 0 => {
                    runtime::log!("{name} does not count as a seed any more: {cause}");
                }
                Ok(true) if before >> bit & 1 == 0 => runtime::log!("seeded by {name}"),
                _ => {}
            }
        }
    }
}

struct Random;

impl Serve for Random {
    fn serve(request: &mut Request<'_>) -> Reply {
        Random.dispatch(request)
    }
}

impl RandomServer for Random {
    fn fill(&self, _badge: u64, into: &mut [u8]) -> Result<usize, RandomError> {
        let count = into.len().min(MAX_RANDOM);
        let mut state = STATE.lock();
        state.seed();
        state.pool.fill(&mut into[..count]).map_err(|_| RandomError::NotReady)?;
        Ok(count)
    }

    fn sources(&self, _badge: u64) -> Result<(u64, u64), RandomError> {
        let mut state = STATE.lock();
        state.seed();
        // The pool's sources are in the order of the interface's bits.
        const { assert!(PROCESSOR == 1 && DEVICE == 2) };
        Ok((state.pool.contributed(), state.pool.seeds()))
    }
}

fn main() -> u8 {
    if !csprng::works() {
        runtime::log!("the cipher does not give what its standard says: this program was built wrongly");
        return 1;
    }
    let mut state = STATE.lock();
    sources::wait();
    state.seed();
    if state.pool.seeds() == 0 {
        runtime::log!("no source of randomness answers yet: requests are refused until one does");
    }
    drop(state);
    match server::publish::<Random>("random", ACTIVATIONS) {
        Ok(_) => server::park(),
        Err(error) => {
            runtime::log!("cannot serve: {error}");
            1
        }
    }
}
