//! The graph of calls: call entries put together by caller, callee and service.

use abi::info::Portal;
use abi::layout;
use alloc::vec::Vec;

/// Bytes of the longest name of a service.
pub const MAX_NAME: usize = 64;

/// A name that was published, or one that an index of the table stands for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Service {
    /// Reached through another service: an open file, a connection.
    Unnamed,
    /// The purpose of an index below `FIRST_FREE`.
    WellKnown(&'static str),
    /// The place of its name in [`Services`].
    Published(u8),
}

/// The meaning of a call entry's index.
pub fn well_known(index: u64) -> Option<&'static str> {
    match usize::try_from(index).ok()? {
        index if layout::PAGE_FAULT.contains(&index) => Some("page faults"),
        layout::EXCEPTION => Some("exceptions"),
        layout::PARENT => Some("parent"),
        layout::SIGMA0 => Some("memory"),
        layout::NAMES => Some("names"),
        _ => None,
    }
}

/// Where call entries made from a service enter which domain.
type Place = (u64, u64);

#[derive(Clone, Copy)]
struct Known {
    place: Place,
    /// `None`: nobody published it.
    name: Option<([u8; MAX_NAME], u8)>,
}

/// Names of services by the place where they enter, as far as they were found out. Numbers of domains are not
/// used again, so nothing here becomes wrong; a service that finds no room has no name until [`Self::make_room`].
pub struct Services<const COUNT: usize> {
    known: [Option<Known>; COUNT],
}

impl<const COUNT: usize> Services<COUNT> {
    /// Nothing is known yet.
    pub const fn new() -> Self {
        const { assert!(COUNT <= 256) };
        Self { known: [None; COUNT] }
    }

    /// Forgets everything if there is no room. Services that were found before mean nothing afterwards.
    pub fn make_room(&mut self) {
        if self.known.iter().all(Option::is_some) {
            self.known.fill(None);
        }
    }

    /// The service that a portal leads to; `None` = not found out yet.
    pub fn find(&self, portal: &Portal) -> Option<Service> {
        if let Some(name) = well_known(portal.index) {
            return Some(Service::WellKnown(name));
        }
        let place = (portal.to, portal.service);
        let (number, known) = self.known.iter().flatten().enumerate().find(|(_, known)| known.place == place)?;
        Some(if known.name.is_some() { Service::Published(number as u8) } else { Service::Unnamed })
    }

    /// Notes the name with which a portal's service was published, `None` if with none.
    pub fn note(&mut self, portal: &Portal, name: Option<&[u8]>) {
        let place = (portal.to, portal.service);
        let name = name.map(|name| {
            let mut bytes = [0; MAX_NAME];
            let length = name.len().min(MAX_NAME);
            bytes[..length].copy_from_slice(&name[..length]);
            (bytes, length as u8)
        });
        let is_free = |known: &Option<Known>| known.is_none_or(|known| known.place == place);
        if let Some(known) = self.known.iter_mut().find(|known| is_free(known)) {
            *known = Some(Known { place, name });
        }
    }

    /// The name of a service; empty if it has none.
    pub fn name(&self, service: Service) -> &[u8] {
        match service {
            Service::Unnamed => &[],
            Service::WellKnown(name) => name.as_bytes(),
            Service::Published(number) => match self.known.get(usize::from(number)) {
                Some(Some(Known { name: Some((bytes, length)), .. })) => &bytes[..usize::from(*length)],
                _ => &[],
            },
        }
    }
}

impl<const COUNT: usize> Default for Services<COUNT> {
    fn default() -> Self {
        Self::new()
    }
}

/// Call entries of one domain to one service of another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Edge {
    /// Number of the domain that can call.
    pub from: u64,
    /// Number of the domain that is called.
    pub to: u64,
    /// The service.
    pub service: Service,
    /// How many entries.
    pub entries: u64,
}

/// All edges, as many as there is room for.
pub struct Edges {
    edges: Vec<Edge>,
    /// An edge found no room.
    lost: bool,
}

impl Edges {
    /// None, and no room for any.
    pub const fn new() -> Self {
        Self { edges: Vec::new(), lost: false }
    }

    /// None, with room for so many, taken once.
    pub fn with_room(count: usize) -> Self {
        Self { edges: Vec::with_capacity(count), lost: false }
    }

    /// Forgets all.
    pub fn clear(&mut self) {
        self.edges.clear();
        self.lost = false;
    }

    /// Counts a call entry.
    pub fn add(&mut self, from: u64, to: u64, service: Service) {
        let same = |edge: &&mut Edge| (edge.from, edge.to, edge.service) == (from, to, service);
        // Entries of one domain come one after the other: its edges are the last ones.
        if let Some(edge) = self.edges.iter_mut().rev().find(same) {
            edge.entries += 1;
        } else if self.edges.len() < self.edges.capacity() {
            self.edges.push(Edge { from, to, service, entries: 1 });
        } else {
            self.lost = true;
        }
    }

    /// All of them.
    pub fn all(&self) -> &[Edge] {
        &self.edges
    }

    /// Whether every call entry found room.
    pub fn is_complete(&self) -> bool {
        !self.lost
    }
}

impl Default for Edges {
    fn default() -> Self {
        Self::new()
    }
}
