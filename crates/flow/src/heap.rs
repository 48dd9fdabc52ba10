//! Memory for a pool from an allocator.

use crate::pool::{Id, Memory, Node};
use alloc::vec::Vec;

/// Nodes, as many as one likes to allow. Owners are numbers.
pub struct Heap {
    nodes: Vec<(Node, usize)>,
    free: Vec<Id>,
    used: usize,
    most: usize,
}

impl Heap {
    /// Room for so many nodes.
    pub fn new(most: usize) -> Self {
        Self { nodes: Vec::new(), free: Vec::new(), used: 0, most }
    }

    /// Nodes that somebody has.
    pub fn used(&self) -> usize {
        self.used
    }

    /// Of these, those of one owner.
    pub fn used_by(&self, owner: usize) -> usize {
        let all = self.nodes.iter().filter(|(_, other)| *other == owner).count();
        all - self.free.iter().filter(|id| self.nodes[place(**id)].1 == owner).count()
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
        &self.nodes[place(id)].0
    }

    fn node_mut(&mut self, id: Id) -> &mut Node {
        &mut self.nodes[place(id)].0
    }

    fn owner(&self, id: Id) -> usize {
        self.nodes[place(id)].1
    }

    fn allocate(&mut self, owner: usize) -> Option<Id> {
        if self.used >= self.most {
            return None;
        }
        self.used += 1;
        let Some(id) = self.free.pop() else {
            self.nodes.push((Node::EMPTY, owner));
            return Id::new(self.nodes.len() as u32);
        };
        self.nodes[place(id)].1 = owner;
        Some(id)
    }

    fn free(&mut self, id: Id) {
        self.used -= 1;
        self.free.push(id);
    }
}
