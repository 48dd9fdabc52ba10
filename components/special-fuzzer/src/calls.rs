//! Drawing the calls.

use abi::layout::{FREE_START, MESSAGE_START, STACKS_START, USER_END};
use abi::rights::{self, MAP_EXECUTE, MAP_GRANT, MAP_READ, MAP_WRITE, UNMAP_SELF};
use abi::{Control, Error, REGISTER_WORDS, info, op};
use fuzzer::histogram::Histogram;
use fuzzer::random::Random;
use portalgen::Specification;
use runtime::entry::{Entry, Owned};
use runtime::{arch, op as operation};

const MACHINE: u64 = abi::layout::SPECIAL as u64;
const MEMORY: u64 = system::MEMORY_INDEX as u64;

/// The entries that calls name, at indices that the runtime does not reach.
const FIRST: u64 = 256;
const ACCOUNT: u64 = FIRST;
const VICTIM: u64 = FIRST + 1;
const SEMAPHORE: u64 = FIRST + 2;
const LINE: u64 = FIRST + 3;
const PORTS: u64 = FIRST + 4;
/// The same without the rights that it takes.
const WEAK: [u64; 4] = [FIRST + 5, FIRST + 6, FIRST + 7, FIRST + 8];
/// A service behind portals of a drawn shape, the portal, and where a callee takes entries in its own table.
const SERVICE: Entry = Entry(FIRST as usize + 10);
const PORTAL: Entry = Entry(FIRST as usize + 11);
const RECEIVES: Entry = Entry(FIRST as usize);
/// The entries that the machine made.
const MADE: u64 = FIRST + 16;
const MADE_MOST: u64 = 40;
/// A domain that is made of what is left.
const HELD: u64 = FIRST + 64;
const END: u64 = HELD + 1;
/// To here the table grows, as places below 600 are named.
const TABLE_END: u64 = 640;

/// The line and the ports of the second serial device, which is not there.
const SPARE_LINE: u64 = 3;
const SPARE_PORTS: u64 = 0x2f8 | 8 << 16;
const PORT_COUNT: u64 = 8;
/// The device's register that does nothing.
const SCRATCH: u64 = 7;

/// Pages that are drawn, here and in the victim.
const AREA: u64 = FREE_START;
const AREA_ORDER: u64 = 6;
/// Calls after which drawn pages go, and after which everything is re-created.
const PAGES_STAY: u64 = 60;
const THINGS_STAY: u64 = 600;

/// Where all memory is drawn to be cut to pieces.
const ALL: u64 = 0x4_0000_0000;
const ALL_ORDER: u64 = 15;
const PAGE: u64 = 4096;

pub struct Caller {
    random: Random,
    counts: Histogram,
    /// Calls through portals of drawn shapes that came back.
    pub answered: u64,
}

/// A service in a domain where nothing else is: answers with its first word. If that is refused, the domain ends by a fault.
unsafe extern "C" fn answer(word: u64) -> ! {
    // SAFETY: nothing refers to the stack.
    unsafe { arch::leave([word; 5], Control(0)) };
    loop {
        // SAFETY: nothing is there.
        unsafe { (PAGE as *mut u64).write_volatile(0) };
    }
}

impl Caller {
    pub fn new(seed: u64) -> Self {
        let mut caller = Self { random: Random(seed), counts: Histogram::empty(), answered: 0 };
        caller.make();
        caller
    }

    fn call(&mut self, index: usize, words: [u64; 6]) -> u64 {
        let [word0, word1, word2, word3, word4, word5] = words;
        // SAFETY: memory comes and goes only in `AREA` and `ALL`, to which nothing refers.
        let (status, ..) = unsafe { arch::call(index, [word0, word1, word2, word3, word4], Control(word5)) };
        self.counts.count(index, status);
        status
    }

    /// Makes what calls name.
    fn make(&mut self) {
        self.call(op::ACCOUNT_NEW, [0, 60, ACCOUNT, 0, 0, 0]);
        self.call(op::DOMAIN_NEW, [ACCOUNT, 0, VICTIM, u64::from_le_bytes(*b"victim\0\0"), 0, 0]);
        self.call(op::SEMAPHORE_NEW, [ACCOUNT, 0, SEMAPHORE, 0, 0, 0]);
        self.call(op::MACHINE, [MACHINE, op::MACHINE_INTERRUPT, SPARE_LINE, LINE, 0, 0]);
        self.call(op::MACHINE, [MACHINE, op::MACHINE_PORTS, SPARE_PORTS, PORTS, 0, 0]);
        for (weak, whole) in WEAK.into_iter().zip([MEMORY, LINE, PORTS, MACHINE]) {
            self.call(op::ENTRY_COPY, [0, whole, 0, weak, rights::COPY.into(), 0]);
        }
    }

    fn unmap(&mut self, domain: u64, address: u64, order: u64) {
        self.call(op::UNMAP, [domain, address, order, MAP_READ | UNMAP_SELF, 0, 0]);
    }

    fn clear_area(&mut self) {
        [0, VICTIM].into_iter().for_each(|domain| self.unmap(domain, AREA, AREA_ORDER));
    }

    fn clear(&mut self) {
        self.clear_area();
        // Domains before accounts.
        for index in (FIRST + 1..END).chain([ACCOUNT]) {
            let _ = operation::entry_remove(Entry::OWN, Entry(index as usize));
        }
    }

    /// Ends it; gives what was answered. The log rings `bell` from now on, as it cannot ring nothing.
    pub fn end(mut self, bell: Entry) -> Histogram {
        self.call(op::MACHINE, [MACHINE, op::MACHINE_LOG_SEMAPHORE, bell.0 as u64, 0, 0, 0]);
        self.clear();
        self.counts
    }

    /// Nearly always `index`.
    fn mostly(&mut self, index: u64, weak: u64) -> u64 {
        match self.random.below(24) {
            0 => weak,
            1 => self.random.below(600),
            2 => self.random.one(&[SEMAPHORE, VICTIM, ACCOUNT, FIRST + 9]),
            _ => index,
        }
    }

    /// Makes one call.
    pub fn step(&mut self, number: u64) {
        if number.is_multiple_of(PAGES_STAY) {
            self.clear_area();
        }
        if number % THINGS_STAY == THINGS_STAY - 1 {
            self.clear();
            self.make();
        }
        match self.random.below(9) {
            8 => self.shape(),
            0..3 => self.draw(),
            3 => self.bind(),
            4 => self.port(),
            5 => self.info(),
            _ => self.machine(),
        }
    }

    fn draw(&mut self) {
        let random = &mut self.random;
        let account = random.one(&[0, 0, ACCOUNT, ACCOUNT, ACCOUNT, VICTIM]);
        let domain = random.one(&[0, 0, 0, VICTIM, VICTIM, VICTIM, ACCOUNT]);
        let crooked = [0, AREA + 8, MESSAGE_START, USER_END, 1 << 63, u64::MAX];
        let inside = AREA + random.below(1 << AREA_ORDER) * PAGE;
        let address = if random.once_in(16) { random.one(&crooked) } else { inside };
        let order = if random.once_in(12) { random.one(&[1, 2, 3, 36, u64::MAX]) } else { 0 };
        let some = [MAP_READ, MAP_READ | MAP_EXECUTE, MAP_WRITE | MAP_EXECUTE, MAP_GRANT, 16, u64::MAX];
        let rights = if random.once_in(8) { random.one(&some) } else { MAP_READ | MAP_WRITE };
        let memory = self.mostly(MEMORY, WEAK[0]);
        self.call(op::DRAW, [memory, account, domain, address, order, rights]);
    }

    fn bind(&mut self) {
        let line = self.mostly(LINE, WEAK[1]);
        let semaphore = match self.random.below(4) {
            0 => 0,
            1 => self.random.below(600),
            _ => SEMAPHORE,
        };
        self.call(op::INTERRUPT_BIND, [line, semaphore, 0, 0, 0, 0]);
    }

    fn port(&mut self) {
        let ports = self.mostly(PORTS, WEAK[2]);
        // Our own line to the world is nobody's toy.
        let ports = if ports == abi::layout::IO_PORTS as u64 { PORTS } else { ports };
        let beyond = self.random.one(&[PORT_COUNT, 1 << 16, u64::MAX]);
        let offset = if self.random.once_in(6) { beyond } else { self.random.below(PORT_COUNT) };
        let (offset, way) = match self.random.below(6) {
            0 => (SCRATCH, op::IO_WRITE),
            1 => (offset, 2 + self.random.below(9)),
            _ => (offset, op::IO_READ),
        };
        let value = self.random.any();
        self.call(op::IO, [ports, offset, value, way, 0, 0]);
    }

    fn info(&mut self) {
        let machine = self.mostly(MACHINE, WEAK[3]);
        let what = if self.random.once_in(6) { self.random.any() } else { self.random.below(6) };
        let position = match self.random.below(3) {
            0 => self.random.any(),
            // As the list of portals has them: a domain's number and an index of its table.
            1 => info::Portal::position(self.random.below(300), self.random.below(5000)),
            _ => self.random.below(300),
        };
        self.call(op::INFO, [machine, what, position, 0, 0, 0]);
    }

    /// A specification of a few letters, most of which can be; the portal is called once, and goes.
    fn shape(&mut self) {
        let machine = self.mostly(MACHINE, WEAK[3]);
        let mut text = *b"npiiiiiiiiii";
        let length = 2 + self.random.below(11) as usize;
        for letter in &mut text[2..length.min(6)] {
            *letter = self.random.one(b"iiiitx2bdgkwac>");
        }
        if self.random.once_in(8) {
            text[0] = self.random.one(b"nsmp");
        }
        let text = &text[..length.min(text.len())];
        let made = operation::shape_new(Entry(machine as usize), text);
        self.counts.count(op::SHAPE_NEW, made.as_ref().err().map_or(0, |error| *error as u64));
        if let Ok(shape) = made {
            let shape = Owned::new(shape);
            let expects = Specification::parse(text).ok().and_then(|specification| specification.expects());
            if let Some(expected) = expects {
                let status = self.cross(shape.entry(), expected);
                self.answered += u64::from(status == Ok(0));
            }
            for index in [PORTAL, SERVICE] {
                let _ = operation::entry_remove(Entry::OWN, index);
            }
        }
    }

    /// Calls a service of this shape, in a domain of its own, by a caller that expects this. Gives the call's status.
    fn cross(&mut self, shape: Entry, expected: u64) -> Result<u64, Error> {
        let domain = Owned::new(operation::domain_new(Entry(ACCOUNT as usize), 0, "callee")?);
        let code = answer as *const () as u64;
        let page = code & !(PAGE - 1);
        // SAFETY: another domain's; code, which is shared to be read and executed, and made to be entered by a call.
        let service = unsafe {
            operation::map(domain.entry(), page, page, 0, MAP_READ | MAP_EXECUTE)?;
            operation::activation_new(domain.entry(), STACKS_START + PAGE, RECEIVES)?;
            operation::service_new_at(domain.entry(), code, 0, shape, Entry::OWN)?
        };
        operation::entry_copy(domain.entry(), service, Entry::OWN, SERVICE, rights::ALL)?;
        operation::portal_new(Entry::OWN, SERVICE, self.random.below(600), PORTAL, 0)?;
        let words = [(); REGISTER_WORDS].map(|()| match self.random.below(4) {
            0 => 0,
            1 => self.random.below(600),
            2 => AREA + self.random.below(1 << AREA_ORDER) * PAGE + self.random.below(64),
            _ => self.random.any() | 1 << 63,
        });
        // SAFETY: pages go and are shown only of `AREA`, to which nothing refers; other words are no addresses of ours.
        Ok(unsafe { arch::call_all_words(PORTAL.0, words, Control::expecting(expected)) }.0)
    }

    fn machine(&mut self) {
        let machine = self.mostly(MACHINE, WEAK[3]);
        let place = match self.random.below(12) {
            0 => 0,
            1 => self.random.below(600),
            _ => MADE + self.random.below(MADE_MOST),
        };
        if (MADE..MADE + MADE_MOST).contains(&place) && !self.random.once_in(8) {
            let _ = operation::entry_remove(Entry::OWN, Entry(place as usize));
        }
        let random = &mut self.random;
        let (what, value) = match random.below(12) {
            0..4 => (op::MACHINE_INTERRUPT, random.below(28)),
            4..8 => (op::MACHINE_PORTS, random.below(0x1_0000) | random.below(4) << 16),
            8 => (op::MACHINE_LOG_SEMAPHORE, random.one(&[SEMAPHORE, SEMAPHORE, VICTIM, 1 << 40])),
            9 => (op::MACHINE_ARCHIVE, random.one(&[VICTIM, ACCOUNT, 1 << 40])),
            // Registers and physical addresses only for a holder of the machine: that is nobody here.
            10 => (random.one(&[op::MACHINE_PORTS, op::MACHINE_DEVICE, op::MACHINE_PHYSICAL]), random.any()),
            // Everything but the end of the machine.
            _ => (1 + random.below(u64::MAX), random.any()),
        };
        let status = self.call(op::MACHINE, [machine, what, value, place, 0, 0]);
        let made = status == 0 && matches!(what, op::MACHINE_INTERRUPT | op::MACHINE_PORTS);
        if made && place == 0 {
            self.clear_stray();
        } else if made && !(MADE..MADE + MADE_MOST).contains(&place) {
            // Elsewhere nobody would remove it.
            let _ = operation::entry_remove(Entry::OWN, Entry(place as usize));
        }
    }

    /// Removes what the nucleus put where it chose: somewhere in the table.
    fn clear_stray(&mut self) {
        for index in (abi::layout::FIRST_FREE as u64..FIRST).chain(END..TABLE_END) {
            let kind = operation::entry_info(Entry::OWN, Entry(index as usize)).map(|(kind, _)| kind);
            if matches!(kind, Ok(rights::Kind::Interrupt | rights::Kind::IoPorts)) {
                let _ = operation::entry_remove(Entry::OWN, Entry(index as usize));
            }
        }
    }

    /// Takes all memory page by page and gives every second one back, so that no two free frames adjoin: whether a domain
    /// can be made all the same.
    pub fn cut_memory_to_pieces(&mut self) -> bool {
        let mut pages = 0;
        while pages < 1 << ALL_ORDER
            && self.call(op::DRAW, [MEMORY, 0, 0, ALL + pages * PAGE, 0, MAP_READ | MAP_WRITE]) == 0
        {
            pages += 1;
        }
        (0..pages).step_by(2).for_each(|page| self.unmap(0, ALL + page * PAGE, 0));
        let status = self.call(op::DOMAIN_NEW, [0, 0, HELD, u64::from_le_bytes(*b"small\0\0\0"), 0, 0]);
        let _ = operation::entry_remove(Entry::OWN, Entry(HELD as usize));
        self.unmap(0, ALL, ALL_ORDER);
        pages > 1 && status == 0
    }
}
