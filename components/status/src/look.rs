//! Asks the nucleus for its lists, `roottask` how often it started what again, and `names` what services are
//! called.
//!
//! # Names of services
//! The nucleus knows call entries by the place where they enter a domain. Which name leads there is found out by
//! opening each name once and looking where the entry that came leads; it is removed at once.

use abi::info::{self, Record};
use alloc::vec::Vec;
use protocols::listing::Listing;
use protocols::names::NamesClient;
use protocols::parent::ParentClient;
use runtime::entry::Owned;
use runtime::{Direct, Entry, op};
use status_json::portals::{Edges, Service, Services};
use status_json::write::{Domain, Lists, Machine, write};

/// Domains and threads that are reported, edges, and services whose names are kept.
const DOMAINS: usize = 96;
const THREADS: usize = 160;
const EDGES: usize = 256;
const SERVICES: usize = 64;
/// How often the domains are looked at until memory stood still meanwhile.
const TRIES: u32 = 4;
/// Bytes of names asked for at once.
const NAMES_BYTES: usize = 512;
/// Longest name of a service.
const NAME_BYTES: usize = protocols::names::MAX_NAME;

/// The findings so far, and room for more.
pub struct Looked {
    cpus: Vec<info::Cpu>,
    domains: Vec<Domain>,
    threads: Vec<info::Thread>,
    edges: Edges,
    services: Services<SERVICES>,
    /// The number of our own domain.
    own: u64,
}

/// Shows all records of a kind, but those of tainted domains, to `look`: the network takes no taint. False if there was an error before the end.
fn walk<R: Record>(mut look: impl FnMut(R)) -> bool {
    op::untainted_records(Entry::SPECIAL).try_for_each(|record| record.map(&mut look)).is_ok()
}

impl Looked {
    /// Nothing yet, and all the room there will be.
    pub fn new() -> Self {
        Self {
            cpus: Vec::with_capacity(abi::MAX_CPUS),
            domains: Vec::with_capacity(DOMAINS),
            threads: Vec::with_capacity(THREADS),
            edges: Edges::with_room(EDGES),
            services: Services::new(),
            own: op::domain_number(Entry::DOMAIN).unwrap_or(0),
        }
    }

    /// Looks at everything and writes it; false if the nucleus says nothing. Each record is of one moment. While the
    /// domains are looked at others may run: if frames came or went meanwhile it is repeated, a few times.
    pub fn look(&mut self, into: &mut Vec<u8>) -> bool {
        let mut tries = TRIES;
        let (frames, counters, mut complete) = loop {
            let frames = || op::record::<info::Frames>(Entry::SPECIAL, 0);
            let (Ok((before, _)), Ok((counters, _))) = (frames(), op::record(Entry::SPECIAL, 0)) else { return false };
            let complete = self.look_at_domains();
            tries -= 1;
            if tries == 0 || frames().is_ok_and(|(after, _)| after.charged == before.charged) {
                break (before, counters, complete);
            }
        };
        complete &= self.look_at_cpus();
        complete &= self.look_at_portals();
        let Self { cpus, domains, threads, edges, services, .. } = self;
        let lists = Lists { cpus, domains, threads, edges: edges.all(), are_complete: complete };
        write(into, &Machine { frames, counters }, &lists, |service| services.name(service))
    }

    /// The domains with their threads and restarts; whether these are all.
    fn look_at_domains(&mut self) -> bool {
        let Self { domains, threads, .. } = self;
        domains.clear();
        threads.clear();
        let (mut count, room) = (0, domains.capacity());
        let newest = room / 2;
        let reported = walk(|record: info::Domain| {
            let domain = Domain { record, priority: 0, used: 0, restarts: None };
            // The newest come first. If there are too many, the middle is left out: components are the oldest.
            if domains.len() < room {
                domains.push(domain);
            } else {
                domains[newest + count % (room - newest)] = domain;
            }
            count += 1;
        });
        let mut fits = count <= room;
        domains.sort_unstable_by_key(|domain| domain.record.number);
        let mut complete = reported && fits;
        complete &= walk(|thread: info::Thread| {
            if let Some(domain) = find(domains, thread.home) {
                domain.priority = domain.priority.max(thread.priority);
                domain.used += thread.used;
            }
            fits &= threads.len() < threads.capacity();
            if fits {
                threads.push(thread);
            }
        });
        complete &= fits;
        threads.sort_unstable_by_key(|thread| thread.number);
        let parent = ParentClient(Direct(Entry::PARENT));
        let mut after = 0;
        loop {
            match parent.restarts(after) {
                Ok((number, restarts)) if number > after => {
                    if let Some(domain) = find(domains, number) {
                        domain.restarts = Some(restarts);
                    }
                    after = number;
                }
                Ok(_) => return complete,
                Err(_) => return false,
            }
        }
    }

    /// The CPUs; whether these are all.
    fn look_at_cpus(&mut self) -> bool {
        let cpus = &mut self.cpus;
        cpus.clear();
        let mut fits = true;
        let reported = walk(|cpu: info::Cpu| {
            fits &= cpus.len() < cpus.capacity();
            if fits {
                cpus.push(cpu);
            }
        });
        reported && fits
    }

    /// The portals; whether these are all.
    fn look_at_portals(&mut self) -> bool {
        self.services.make_room();
        self.edges.clear();
        let Self { edges, services, own, .. } = self;
        // The names are asked for once, when there is a service that was not seen before.
        let (mut asked, mut names_known) = (false, false);
        let complete = walk(|portal: info::Portal| {
            if portal.index == 0 {
                return;
            }
            let mut service = services.find(&portal);
            if service.is_none() && !asked {
                asked = true;
                names_known = find_names(services, *own);
                service = services.find(&portal);
            }
            if service.is_none() && names_known {
                services.note(&portal, None);
            }
            edges.add(portal.from, portal.to, service.unwrap_or(Service::Unnamed));
        });
        complete && edges.is_complete()
    }
}

/// The domain with this number; they are sorted by it.
fn find(domains: &mut [Domain], number: u64) -> Option<&mut Domain> {
    let place = domains.binary_search_by_key(&number, |domain| domain.record.number).ok()?;
    domains.get_mut(place)
}

/// Opens every name there is and notes where it leads; false if there is no name service.
fn find_names<const COUNT: usize>(services: &mut Services<COUNT>, own: u64) -> bool {
    let names = NamesClient(Direct(Entry::NAMES));
    let mut list = [0; NAMES_BYTES];
    let mut position = 0;
    loop {
        let Ok((bytes, next)) = names.list(position, &mut list) else { return false };
        for record in Listing(list.get(..bytes).unwrap_or_default()) {
            let Ok(name) = core::str::from_utf8(record.name) else { continue };
            let Ok(entry) = names.open(name) else { continue };
            let entry = Owned::new(entry.into());
            let index = entry.entry().0 as u64;
            let found = op::record::<info::Portal>(Entry::SPECIAL, info::Portal::position(own, index));
            if let Ok((portal, _)) = found
                && (portal.from, portal.index) == (own, index)
            {
                services.note(&portal, Some(name.as_bytes()));
            }
        }
        if next <= position {
            return true;
        }
        position = next;
    }
}

const _: () = assert!(NAME_BYTES == status_json::portals::MAX_NAME);
