//! Where each thread stands: the chain of domains that it went into.

use super::story::Call;
use anyhow::{Context, Result, bail};
use std::collections::BTreeMap;

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

/// Chains by the number of their threads.
#[derive(Debug, Default)]
pub struct Chains(BTreeMap<u16, Chain>);

impl Chains {
    /// This number is this thread's from now on.
    pub fn new_thread(&mut self, number: u16, thread: usize) -> Result<()> {
        self.remove(number)?;
        self.0.insert(number, Chain { thread, standings: Vec::new() });
        Ok(())
    }

    /// It is nobody's.
    pub fn remove(&mut self, number: u16) -> Result<()> {
        let open = self.0.remove(&number).is_some_and(|chain| chain.standings.iter().any(|one| one.call.is_some()));
        if open {
            bail!("thread {number} goes in the middle of a call");
        }
        Ok(())
    }

    /// The thread that has this number now.
    pub fn thread(&self, number: u16) -> Result<usize> {
        self.0.get(&number).map(|chain| chain.thread).with_context(|| format!("there is no thread {number}"))
    }

    fn chain(&mut self, number: u16) -> Result<&mut Chain> {
        self.0.get_mut(&number).with_context(|| format!("there is no thread {number}"))
    }

    /// All standings, those of a thread from the bottom up.
    pub fn all(&mut self) -> impl Iterator<Item = &mut Standing> {
        self.0.values_mut().flat_map(|chain| &mut chain.standings)
    }

    /// The thread runs in `domain`. One that did not run before stands at home.
    pub fn runs(&mut self, number: u16, domain: u32, home: u32) -> Result<()> {
        let chain = self.chain(number)?;
        if chain.standings.is_empty() && domain == home {
            chain.standings.push(Standing { domain, call: None, place: 0 });
        }
        expect_top(chain, number, domain)
    }

    /// The thread, which stands in `from`, goes on to where `standing` says.
    pub fn enter(&mut self, number: u16, standing: Standing, from: u32) -> Result<()> {
        let chain = self.chain(number)?;
        if chain.standings.is_empty() {
            // The scheduler's seat begins anew each time.
            chain.standings.push(Standing { domain: from, call: None, place: 0 });
        }
        expect_top(chain, number, from)?;
        chain.standings.push(standing);
        Ok(())
    }

    /// The thread goes back from `from` to `to`; gives where it stood.
    pub fn leave(&mut self, number: u16, from: u32, to: u32) -> Result<Standing> {
        let chain = self.chain(number)?;
        expect_top(chain, number, from)?;
        let standing = chain.standings.pop().context("the chain is empty")?;
        match chain.standings.last() {
            Some(below) if below.domain == to => Ok(standing),
            Some(below) => bail!("thread {number} goes back to domain {to}, but domain {} called", below.domain),
            None => bail!("thread {number} goes back to domain {to}, and nobody called"),
        }
    }

    /// Only `count` are left, the last in `domain`; gives the others, the top first.
    pub fn cut(&mut self, number: u16, domain: u32, count: u64) -> Result<Vec<Standing>> {
        let chain = self.chain(number)?;
        let Some(count) = usize::try_from(count).ok().filter(|count| *count <= chain.standings.len()) else {
            bail!("{count} activations of thread {number} are left, which has {}", chain.standings.len());
        };
        let upper = chain.standings.split_off(count);
        if count > 0 {
            expect_top(chain, number, domain)?;
        }
        Ok(upper.into_iter().rev().collect())
    }

    /// The thread takes over an activation in `domain`, the top first.
    pub fn adopt(&mut self, number: u16, domain: u32, top: bool) -> Result<()> {
        let chain = self.chain(number)?;
        if top && !chain.standings.is_empty() {
            bail!("thread {number} takes over a chain and has one");
        }
        chain.standings.insert(0, Standing { domain, call: None, place: 0 });
        Ok(())
    }
}

fn expect_top(chain: &Chain, number: u16, domain: u32) -> Result<()> {
    match chain.standings.last() {
        Some(top) if top.domain == domain => Ok(()),
        Some(top) => bail!("thread {number} is in domain {domain}, but went to domain {} last", top.domain),
        None => bail!("thread {number} is in domain {domain}, but has no chain"),
    }
}
