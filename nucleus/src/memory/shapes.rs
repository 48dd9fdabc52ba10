//! Portal code: its memory, and the steps that generate it. Shapes have numbers; number 0, made at boot, is the shape of
//! services that name none.
//!
//! The code lies in pages of the image that are never writable at that address. The lock holder writes it through an alias,
//! mapped only during a step. A shape whose entry was removed keeps its code until each domain that had a service of it is
//! gone: then no thread is in the code, and no call leads there.

use super::own;
use crate::arch::memory::DIRECT;
use crate::arch::paging::Published;
use crate::arch::{paging, portals};
use crate::cpus::assembly;
use crate::objects::arch as registers;
use crate::objects::{Activation, Cpu, Domain, Entry, PerCpu, SLOW_AT, SavedFrame, State, Stop, Thread};
use crate::pointer::{Held, Ref};
use abi::{Control, Error, MAX_SHAPES, info};
use core::cell::Cell;
use core::mem::offset_of;
use portalgen::{AT_ONCE, Code, Extent, Letters, Nucleus, Offsets, Progress, Reading, Specification, Targets};

/// Bytes of a place for the code of a shape.
const PLACE: usize = 1024;
/// Letters of a specification that a step reads.
const LETTERS: usize = 8;
/// Specifications of the shapes made at boot: for services that name no shape (badge, five words, control word), for
/// interfaces of words, and for messages with a window.
const KNOWN: [&[u8]; 3] = [b"npkox5>ox5", b"npkix8>ix8", b"npkox4w>ox5"];
/// Numbers of the shapes with a control word. The slow path relies on there being no others.
const WITH_CONTROL: [usize; 2] = [0, 2];

struct Place {
    specification: Cell<Specification>,
    /// Index plus 1 of the word of calls that is a window; 0 = none.
    window: Cell<u8>,
    /// Offset of the code of a call in the place, and of a return.
    call: Cell<u16>,
    back: Cell<u16>,
    /// Bytes of the code.
    length: Cell<u16>,
    /// Number of domains that have or had a service of the shape, plus its original entries; 0 = the place is free.
    uses: Cell<u32>,
}

impl Place {
    /// Assigns the place to a specification.
    fn specify(&self, specification: Specification) {
        self.window.set(specification.call.window().map_or(0, |word| word as u8 + 1));
        self.specification.set(specification);
    }
    /// Records the layout of the published code, which may be executed from now on.
    fn show(&self, _: Published, extent: &Extent) {
        self.call.set(extent.call as u16);
        self.back.set(extent.back as u16);
        self.length.set(extent.length as u16);
    }
}

struct Shapes {
    places: [Place; MAX_SHAPES],
    /// The activation for which a shape is being made, the shape's number, and the progress.
    maker: Cell<usize>,
    number: Cell<usize>,
    progress: Cell<Progress>,
    /// The specification that it asks for.
    asked: Cell<Reading>,
}

static SHAPES: crate::pointer::Nucleus<Shapes> = crate::pointer::Nucleus::new(Shapes {
    places: [const {
        Place {
            specification: Cell::new(Specification::NONE),
            window: Cell::new(0),
            call: Cell::new(0),
            back: Cell::new(0),
            length: Cell::new(0),
            uses: Cell::new(0),
        }
    }; MAX_SHAPES],
    maker: Cell::new(0),
    number: Cell::new(0),
    progress: Cell::new(Progress::DONE),
    asked: Cell::new(Reading::NONE),
});

unsafe extern "C" {
    static image_portals: u8;
}

/// The address of a shape's code.
fn address(number: usize) -> usize {
    &raw const image_portals as usize + number * PLACE
}

/// Makes the [`KNOWN`] shapes.
#[unsafe(link_section = ".init")]
pub fn init(held: Held) -> Result<(), &'static str> {
    for (number, text) in KNOWN.into_iter().enumerate() {
        let specification = Specification::parse(text).map_err(|_| "no shape for calls")?;
        SHAPES.get(held).places[number].specify(specification);
        let mut progress = Progress::NONE;
        while !write_step(held, number, &mut progress) {}
        take(held, number);
    }
    Ok(())
}

/// A step of writing the code of a shape; true after the last one, which publishes the code. Of code that is longer than a place
/// only the beginning is written.
#[inline(never)]
fn write_step(held: Held, number: usize, progress: &mut Progress) -> bool {
    let (base, place) = (address(number), &SHAPES.get(held).places[number]);
    own::write(held, base, PLACE, |bytes| {
        let mut code = Code::new(bytes, base as u64).go_on(progress.extent.length);
        let (specification, targets) = (place.specification.get(), targets());
        GENERATOR.write_steps(&mut code, &specification, &targets, progress, portals::EFFORT);
    });
    if progress.is_done() {
        place.show(paging::publish(own::frame_of_image(base)), &progress.extent);
    }
    progress.is_done()
}

/// A step of making a shape for `maker`: `Repeat` until it is complete, then its number.
#[inline(never)]
pub fn make_step(maker: Ref<Activation>, text: &[u8]) -> Result<usize, Stop> {
    let held = maker.held();
    let shapes = SHAPES.get(held);
    if maker.progress.get() == 0 || shapes.maker.get() != maker.address() {
        // Abandons the unfinished shape of another activation, which restarts.
        shapes.asked.set(Reading::NONE);
        shapes.maker.set(maker.address());
        maker.progress.set(BEGUN);
    }
    match maker.progress.get() {
        BEGUN => {
            let mut reading = shapes.asked.get();
            if reading.go_on(text, LETTERS).map_err(|_| Error::BadSpecification)? {
                maker.progress.set(READ);
            }
            shapes.asked.set(reading);
            return Err(Stop::Repeat);
        }
        READ => {
            find(held)?;
            maker.progress.set(FOUND);
            return Err(Stop::Repeat);
        }
        _ => {}
    }
    let (number, mut progress) = (shapes.number.get(), shapes.progress.get());
    if !progress.is_done() {
        write_step(held, number, &mut progress);
        shapes.progress.set(progress);
        return Err(Stop::Repeat);
    }
    // Nobody gets a shape of which only the beginning is there: its place stays free.
    if progress.extent.length > PLACE - AT_ONCE {
        return Err(Error::CodeTooLong.into());
    }
    Ok(number)
}

/// Progress of [`make_step`]: it reads the specification; the specification is read; the shape has a place.
const BEGUN: u64 = 1;
const READ: u64 = 2;
const FOUND: u64 = 3;

/// Finds the requested shape, or else a free place for it.
fn find(held: Held) -> Result<(), Error> {
    let shapes = SHAPES.get(held);
    let specification = shapes.asked.get().specification;
    let is_known = |number: &usize| shapes.places[*number].specification.get() == specification;
    let is_other = specification.call.has_control() && !WITH_CONTROL.iter().any(is_known);
    if specification.needs_trust() || is_other {
        return Err(Error::NotOffered);
    }
    let mut found = None;
    for (number, place) in shapes.places.iter().enumerate() {
        if place.uses.get() == 0 {
            found = found.or(Some((number, Progress::NONE)));
        } else if place.specification.get() == specification {
            found = Some((number, Progress::DONE));
            break;
        }
    }
    let (number, progress) = found.ok_or(Error::TooManyShapes)?;
    shapes.progress.set(progress);
    shapes.places[number].specify(specification);
    shapes.number.set(number);
    Ok(())
}

/// Counts an original entry of the shape that was just made.
pub fn take(held: Held, number: usize) {
    let shapes = SHAPES.get(held);
    shapes.maker.set(0);
    shapes.places[number].uses.update(|uses| uses + 1);
}

/// Uncounts the original entry of a shape, which is removed.
pub fn retire(entry: Ref<Entry>) {
    release(entry.held(), number(entry));
}

fn release(held: Held, number: usize) {
    SHAPES.get(held).places[number].uses.update(|uses| uses - 1);
}

/// The number of the shape that an entry refers to.
pub fn number(entry: Ref<Entry>) -> usize {
    entry.word0.get() as usize
}

/// Counts a domain that has a service of this shape, once.
pub fn own(domain: Ref<Domain>, number: usize) {
    if number != 0 && domain.shapes.get() >> number & 1 == 0 {
        domain.shapes.update(|shapes| shapes | 1 << number);
        SHAPES.get(domain.held()).places[number].uses.update(|uses| uses + 1);
    }
}

/// Uncounts a domain in all its shapes: it is freed, with all its services and activations.
pub fn disown(domain: Ref<Domain>) {
    for number in (1..MAX_SHAPES).filter(|number| domain.shapes.get() >> number & 1 != 0) {
        release(domain.held(), number);
    }
}

/// The shape with this number, unless it has a control word.
#[inline(always)]
fn numbered(held: Held, number: usize) -> Option<&'static Place> {
    SHAPES.get(held).places.get(number).filter(|_| !WITH_CONTROL.contains(&number))
}

/// The index of the word that is a window in calls by this entry, unless a control word says that it is none.
#[inline(always)]
pub fn window(entry: Ref<Entry>) -> Option<usize> {
    window_of(entry.held(), entry.shape())
}

fn window_of(held: Held, number: usize) -> Option<usize> {
    (SHAPES.get(held).places.get(number)?.window.get() as usize).checked_sub(1)
}

/// Whether calls of the shape with this number may pass windows.
pub fn numbered_passes_windows(held: Held, number: usize) -> bool {
    window_of(held, number).is_some()
}

/// Whether calls to a service may pass windows.
pub fn passes_windows(service: Ref<Entry>) -> bool {
    window(service).is_some()
}

/// Whether the domain has services whose calls pass windows.
pub fn takes_windows(domain: Ref<Domain>) -> bool {
    let owns = |number: &usize| domain.shapes.get() >> number & 1 != 0;
    (1..MAX_SHAPES).filter(owns).any(|number| window_of(domain.held(), number).is_some())
}

/// The letters of a call by this entry; None: its control word decides.
#[inline(always)]
pub fn of(entry: Ref<Entry>) -> Option<Letters> {
    numbered(entry.held(), entry.shape()).map(|place| place.specification.get().call)
}

/// Restores the control word of a call that may be restarted: the one that the portal code checked.
pub fn keep_expected(caller: Ref<Activation>, entry: Ref<Entry>) {
    let place = numbered(entry.held(), entry.shape());
    if let Some(what) = place.and_then(|place| place.specification.get().expects()) {
        caller.registers.set_control(Control::expecting(what).0);
    }
}

/// The letters of the return from this activation; None: its control word decides.
#[inline(always)]
pub fn behind(activation: Ref<Activation>) -> Option<Letters> {
    let number = activation.back.get().wrapping_sub(address(0)) / PLACE;
    numbered(activation.held(), number).map(|place| place.specification.get().result)
}

/// The address of the portal code for a call by this entry.
pub fn call(entry: Ref<Entry>) -> usize {
    let number = entry.shape();
    address(number) + SHAPES.get(entry.held()).places[number].call.get() as usize
}

/// Lets an activation, called by this entry, return through portal code, as after a call on the fast path.
pub fn set_back(activation: Ref<Activation>, entry: Ref<Entry>) {
    let number = entry.shape();
    activation.back.set(address(number) + SHAPES.get(entry.held()).places[number].back.get() as usize);
}

/// The number of the first shape in use from a number on.
pub fn first_from(held: Held, number: u64) -> Option<u64> {
    let numbers = usize::try_from(number).ok()?..MAX_SHAPES;
    numbers.into_iter().find(|number| SHAPES.get(held).places[*number].uses.get() != 0).map(|number| number as u64)
}

/// The record of the first shape in use from a number on.
pub fn record(held: Held, first: u64) -> Option<info::Shape> {
    let number = first_from(held, first)?;
    let place = &SHAPES.get(held).places[number as usize];
    Some(info::Shape {
        number,
        uses: place.uses.get().into(),
        call: place.call.get().into(),
        back: place.back.get().into(),
        length: place.length.get().into(),
        specification: place.specification.get().text(),
    })
}

/// A piece of a shape's code, from `byte` on.
pub fn code(held: Held, number: usize, byte: usize) -> Option<info::Code> {
    let place = SHAPES.get(held).places.get(number)?;
    if place.uses.get() == 0 || byte >= place.length.get() as usize {
        return None;
    }
    let mut bytes = [0; size_of::<info::Code>()];
    let count = bytes.len().min(PLACE - byte);
    // SAFETY: the bytes lie in the place of a shape in use, which is readable and not written while the lock is held here.
    bytes[..count]
        .copy_from_slice(unsafe { core::slice::from_raw_parts((address(number) + byte) as *const u8, count) });
    Some(info::Code { bytes })
}

static GENERATOR: portals::Generator = portals::Generator::new(&Nucleus {
    offsets: OFFSETS,
    calling: SavedFrame::Call as u16 | (State::Calling as u16) << 8,
    top: State::Top as u8,
    free: State::Free as u8,
    deepest: (abi::MAX_DEPTH as u32 - 1) << 16,
    direct: DIRECT.trailing_zeros(),
});

/// Targets of portal code that cannot make a crossing itself.
fn targets() -> Targets {
    let address = |code: unsafe extern "C" fn()| code as *const () as u64;
    Targets {
        call_slowly: address(assembly::portal_call_slowly),
        call_slowly_with_control: address(assembly::portal_call_with_control),
        return_slowly: address(assembly::portal_return_slowly),
        return_slowly_spoiled: address(assembly::portal_return_spoiled),
        return_slowly_with_control: address(assembly::portal_return_with_control),
        return_slowly_kept: address(assembly::portal_return_kept),
        refuse_call: address(assembly::portal_refuse_call),
        refuse_control: address(assembly::portal_refuse_control),
        refuse_return: address(assembly::portal_refuse_return),
    }
}

const OFFSETS: Offsets = Offsets {
    cpu_domain: offset_of!(Cpu, domain) as i32,
    cpu_thread: offset_of!(Cpu, thread) as i32,
    cpu_activation: offset_of!(Cpu, activation) as i32,
    cpu_table: offset_of!(Cpu, table) as i32,
    cpu_limit: offset_of!(Cpu, limit) as i32,
    cpu_per_cpu_at: offset_of!(Cpu, per_cpu_at) as i32,
    domain_table: offset_of!(Domain, table) as i32,
    domain_limit: offset_of!(Domain, limit) as i32,
    domain_as_caller: offset_of!(Domain, as_caller) as i32,
    domain_as_callee: offset_of!(Domain, as_callee) as i32,
    domain_slow: SLOW_AT as i32,
    per_cpu_pool: offset_of!(PerCpu, pool) as i32,
    per_cpu_crossings: offset_of!(PerCpu, crossings) as i32,
    per_cpu_root: offset_of!(PerCpu, root) as i32,
    per_cpu_windows: offset_of!(PerCpu, windows) as i32,
    domain_low: offset_of!(Domain, low) as i32,
    cpu_direct: offset_of!(Cpu, direct) as i32,
    thread_top: offset_of!(Thread, top) as i32,
    entry_object: offset_of!(Entry, object) as i32,
    entry_word0: offset_of!(Entry, word0) as i32,
    entry_word1: offset_of!(Entry, word1) as i32,
    entry_versions: offset_of!(Entry, versions) as i32,
    activation_frame: offset_of!(Activation, frame) as i32,
    activation_state: offset_of!(Activation, state) as i32,
    activation_next: offset_of!(Activation, next) as i32,
    activation_caller: offset_of!(Activation, caller) as i32,
    activation_callee: offset_of!(Activation, callee) as i32,
    activation_thread: offset_of!(Activation, thread) as i32,
    activation_domain: offset_of!(Activation, domain) as i32,
    activation_stack: offset_of!(Activation, stack) as i32,
    activation_area: offset_of!(Activation, message_kernel) as i32,
    activation_message: offset_of!(Activation, message) as i32,
    activation_window: offset_of!(Activation, window) as i32,
    activation_slot: offset_of!(Activation, slot) as i32,
    activation_place: offset_of!(Activation, slot_offset) as i32,
    activation_back: offset_of!(Activation, back) as i32,
    activation_pc: offset_of!(Activation, registers.pc) as i32,
    activation_sp: offset_of!(Activation, registers.sp) as i32,
    activation_preserved: {
        let mut places = [0; 6];
        let mut place = 0;
        while place < places.len() {
            places[place] = (offset_of!(Activation, registers) + registers::PRESERVED[place]) as i32;
            place += 1;
        }
        places
    },
    activation_pointer: (offset_of!(Activation, registers) + registers::POINTER) as i32,
};
