//! Where each thread stands: the chain of domains that it went into.

use super::story::Call;
use anyhow::{Context, Result, bail};
use std::collections::BTreeMap;
use std::fmt;
use trace::Record;

/// The owner of a chain: a thread with this number, or the seat of a CPU's scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Key {
    /// See the type.
    Thread(u16),
    /// See the type.
    Seat(u8),
}

impl Key {
    /// The chain that the record is about.
    pub fn of(record: &Record) -> Self {
        if record.thread == 0 { Self::Seat(record.cpu) } else { Self::Thread(record.thread) }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Thread(number) => write!(f, "thread {number}"),
            Self::Seat(cpu) => write!(f, "the scheduler of CPU {cpu}"),
        }
    }
}

/// A thread in a domain.
#[derive(Clone, Debug)]
pub struct Standing {
    /// Number of the domain.
    pub domain: u32,
    /// How it got there; nothing where the chain begins, or if it was taken over.
    pub call: Option<Call>,
    /// Place of the call in the story.
    pub place: usize,
}

#[derive(Debug)]
struct Chain {
    /// Which thread, of all that had this number.
    thread: usize,
    /// From the bottom.
    standings: Vec<Standing>,
}

/// All chains.
#[derive(Debug, Default)]
pub struct Chains(BTreeMap<Key, Chain>);

impl Chains {
    /// This key is this thread's from now on.
    pub fn new_thread(&mut self, key: Key, thread: usize) -> Result<()> {
        self.remove(key)?;
        self.0.insert(key, Chain { thread, standings: Vec::new() });
        Ok(())
    }

    /// It is nobody's.
    pub fn remove(&mut self, key: Key) -> Result<()> {
        let open = self.0.remove(&key).is_some_and(|chain| chain.standings.iter().any(|one| one.call.is_some()));
        if open {
            bail!("{key} goes in the middle of a call");
        }
        Ok(())
    }

    /// The thread that has this key now.
    pub fn thread(&self, key: Key) -> Result<usize> {
        self.0.get(&key).map(|chain| chain.thread).with_context(|| format!("there is no {key}"))
    }

    fn chain(&mut self, key: Key) -> Result<&mut Chain> {
        self.0.get_mut(&key).with_context(|| format!("there is no {key}"))
    }

    /// All standings, those of a thread from the bottom up.
    pub fn all(&mut self) -> impl Iterator<Item = &mut Standing> {
        self.0.values_mut().flat_map(|chain| &mut chain.standings)
    }

    /// The thread runs in `domain`. One that did not run before stands at home.
    pub fn runs(&mut self, key: Key, domain: u32, home: u32) -> Result<()> {
        let chain = self.chain(key)?;
        if chain.standings.is_empty() && domain == home {
            chain.standings.push(Standing { domain, call: None, place: 0 });
        }
        expect_top(chain, key, domain)
    }

    /// The thread, which stands in `from`, goes on to where `standing` says.
    pub fn enter(&mut self, key: Key, standing: Standing, from: u32) -> Result<()> {
        let chain = self.chain(key)?;
        if chain.standings.is_empty() {
            // The scheduler's seat begins again each time.
            chain.standings.push(Standing { domain: from, call: None, place: 0 });
        }
        expect_top(chain, key, from)?;
        chain.standings.push(standing);
        Ok(())
    }

    /// The thread goes back from `from` to `to`; gives where it stood.
    pub fn leave(&mut self, key: Key, from: u32, to: u32) -> Result<Standing> {
        let chain = self.chain(key)?;
        expect_top(chain, key, from)?;
        let standing = chain.standings.pop().context("the chain is empty")?;
        match chain.standings.last() {
            Some(below) if below.domain == to => Ok(standing),
            Some(below) => bail!("{key} goes back to domain {to}, but domain {} called", below.domain),
            None => bail!("{key} goes back to domain {to}, and nobody called"),
        }
    }

    /// Only `count` are left, the last in `domain`; gives the others, the top first.
    pub fn cut(&mut self, key: Key, domain: u32, count: u64) -> Result<Vec<Standing>> {
        let chain = self.chain(key)?;
        let Some(count) = usize::try_from(count).ok().filter(|count| *count <= chain.standings.len()) else {
            bail!("{count} activations of {key} are left, which has {}", chain.standings.len());
        };
        let upper = chain.standings.split_off(count);
        if count > 0 {
            expect_top(chain, key, domain)?;
        }
        Ok(upper.into_iter().rev().collect())
    }

    /// The thread takes over an activation in `domain`, the top first.
    pub fn adopt(&mut self, key: Key, domain: u32, top: bool) -> Result<()> {
        let chain = self.chain(key)?;
        if top && !chain.standings.is_empty() {
            bail!("{key} takes over a chain and has one");
        }
        chain.standings.insert(0, Standing { domain, call: None, place: 0 });
        Ok(())
    }
}

fn expect_top(chain: &Chain, key: Key, domain: u32) -> Result<()> {
    match chain.standings.last() {
        Some(top) if top.domain == domain => Ok(()),
        Some(top) => bail!("{key} is in domain {domain}, but went to domain {} last", top.domain),
        None => bail!("{key} is in domain {domain}, but has no chain"),
    }
}
