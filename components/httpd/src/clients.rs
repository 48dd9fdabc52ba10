//! The connections, by their tokens, and when each is given up.

use alloc::boxed::Box;
use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use crate::client::Client;

/// Connections at the same time.
pub const MAX_CLIENTS: usize = 2048;
/// Connections from which on nobody keeps more than must be.
const CROWD: usize = 64;
/// Bytes of requests and answers kept for all of them together, and for one of them if that is exceeded.
const MAX_KEPT: usize = 1 << 20;
const FAIR: usize = 512;
/// Bits of a token that name the place; those above count how often it was used.
const PLACE_BITS: u32 = 16;

struct Place {
    used: u16,
    client: Option<Box<Client>>,
    /// Bytes that the client kept when it was last looked at.
    kept: usize,
    /// When this place is looked at, `u64::MAX` = never. Not after the client's deadline.
    timer: u64,
}

/// See the module.
pub struct Clients {
    places: Vec<Place>,
    free: Vec<u16>,
    count: usize,
    kept: usize,
    timers: BTreeSet<(u64, u16)>,
}

const fn place_of(token: u32) -> usize {
    (token & ((1 << PLACE_BITS) - 1)) as usize
}

impl Clients {
    /// None.
    pub const fn new() -> Self {
        Self { places: Vec::new(), free: Vec::new(), count: 0, kept: 0, timers: BTreeSet::new() }
    }

    /// How many there are.
    pub const fn len(&self) -> usize {
        self.count
    }

    fn place(&mut self, token: u32) -> Option<&mut Place> {
        self.places.get_mut(place_of(token)).filter(|place| u32::from(place.used) == token >> PLACE_BITS)
    }

    /// The client of this token.
    #[inline]
    pub fn get(&mut self, token: u32) -> Option<&mut Client> {
        self.place(token)?.client.as_deref_mut()
    }

    /// The token that the next client gets.
    pub fn next_token(&mut self) -> Option<u32> {
        if self.free.is_empty() {
            let place = u16::try_from(self.places.len()).ok().filter(|place| usize::from(*place) < MAX_CLIENTS)?;
            self.places.push(Place { used: 0, client: None, kept: 0, timer: u64::MAX });
            self.free.push(place);
        }
        let place = *self.free.last()?;
        Some(u32::from(place) | u32::from(self.places[usize::from(place)].used) << PLACE_BITS)
    }

    /// Puts a client in, with the token that was given last.
    pub fn insert(&mut self, token: u32, client: Client) {
        if let Some(place) = self.place(token) {
            place.client = Some(Box::new(client));
            self.free.pop();
            self.count += 1;
            self.watch(token);
        }
    }

    /// Takes a client out.
    pub fn remove(&mut self, token: u32) -> Option<Client> {
        let place = self.place(token)?;
        let client = place.client.take()?;
        let kept = core::mem::take(&mut place.kept);
        // The listener's token is never that of a client.
        place.used = (place.used + 1) % (u16::MAX - 1);
        let timer = core::mem::replace(&mut place.timer, u64::MAX);
        let number = place_of(token) as u16;
        self.timers.remove(&(timer, number));
        self.free.push(number);
        self.count -= 1;
        self.kept -= kept;
        Some(*client)
    }

    /// The client waits: counts what it keeps; whether it has to go for it.
    pub fn keeps_too_much(&mut self, token: u32) -> bool {
        let (is_crowded, before) = (self.count > CROWD, self.kept);
        let Some(place) = self.place(token) else { return false };
        let Some(client) = &mut place.client else { return false };
        if is_crowded {
            client.keep_little();
        }
        let (now, noted) = (client.kept(), place.kept);
        place.kept = now;
        self.kept = before + now - noted;
        self.kept > MAX_KEPT && now > FAIR
    }

    /// The client's deadline may have changed. One that is later than noted is found when the noted one comes.
    pub fn watch(&mut self, token: u32) {
        let Some(place) = self.place(token) else { return };
        let Some(client) = &place.client else { return };
        let (deadline, noted) = (client.deadline(), place.timer);
        if deadline < noted {
            place.timer = deadline;
            let number = place_of(token) as u16;
            self.timers.remove(&(noted, number));
            self.timers.insert((deadline, number));
        }
    }

    /// When somebody is to be looked at, in nanoseconds since boot.
    pub fn next_deadline(&self) -> u64 {
        self.timers.first().map_or(runtime::abi::NEVER, |(deadline, _)| *deadline)
    }

    /// Somebody whose time is up.
    pub fn expired(&mut self, now: u64) -> Option<u32> {
        while let Some((timer, number)) = self.timers.first().copied().filter(|(timer, _)| *timer <= now) {
            self.timers.remove(&(timer, number));
            let place = &mut self.places[usize::from(number)];
            place.timer = u64::MAX;
            let token = u32::from(number) | u32::from(place.used) << PLACE_BITS;
            if place.client.as_ref().is_some_and(|client| client.deadline() <= now) {
                return Some(token);
            }
            self.watch(token);
        }
        None
    }

    /// Takes out the client that has asked nothing for the longest time; if all are busy, the one whose time is up first.
    pub fn remove_idlest(&mut self) -> Option<Client> {
        let mut all = self.timers.iter().map(|(_, number)| *number);
        let is_idle = |number: &u16| {
            let client = &self.places[usize::from(*number)].client;
            client.as_ref().is_some_and(|client| client.is_idle())
        };
        let number = all.clone().find(is_idle).or_else(|| all.next())?;
        let used = self.places[usize::from(number)].used;
        self.remove(u32::from(number) | u32::from(used) << PLACE_BITS)
    }
}
