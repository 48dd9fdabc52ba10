//! Memory of the host for a pool.

use crate::pool::{Id, Memory, Node};
use std::vec::Vec;

/// Lists of nodes by their hashes, for so many nodes.
const LISTS: usize = 1 << 14;

/// Nodes, as many as one likes to allow.
pub struct Heap {
    nodes: Vec<Node>,
    free: Vec<Id>,
    lists: Vec<Option<Id>>,
    most: usize,
}

impl Heap {
    /// Room for so many nodes.
    pub fn new(most: usize) -> Self {
        Self { nodes: Vec::new(), free: Vec::new(), lists: std::vec![None; LISTS], most }
    }

    /// Nodes that somebody has.
    pub fn used(&self) -> usize {
        self.nodes.len() - self.free.len()
    }

    /// Another limit.
    pub fn limit(&mut self, most: usize) {
        self.most = most;
    }
}

fn place(id: Id) -> usize {
    id.number() as usize - 1
}

impl Memory for Heap {
    fn node(&self, id: Id) -> &Node {
        &self.nodes[place(id)]
    }

    fn node_mut(&mut self, id: Id) -> &mut Node {
        &mut self.nodes[place(id)]
    }

    fn allocate(&mut self) -> Option<Id> {
        if self.used() >= self.most {
            return None;
        }
        self.free.pop().or_else(|| {
            self.nodes.push(Node::EMPTY);
            Id::new(self.nodes.len() as u32)
        })
    }

    fn free(&mut self, id: Id) {
        self.free.push(id);
    }

    fn first(&self, hash: u64) -> Option<Id> {
        self.lists[hash as usize % LISTS]
    }

    fn set_first(&mut self, hash: u64, first: Option<Id>) {
        self.lists[hash as usize % LISTS] = first;
    }
}
