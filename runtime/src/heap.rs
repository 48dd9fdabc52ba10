//! The heap: grows upwards from where the program ends. Its pages are asked of `sigma0` before they are used, and charged
//! to this domain's account: when that is exhausted, the allocation fails, and nobody dies of a page fault.
//!
//! A server can have a part of its heap kept ([`keep`]), with which the calls that are under way are finished when no page
//! can be had any more. Once it is used, calls that need memory are refused until it is there again; see `server`. Pages that
//! the heap has it never gives back: a program that allocates much and frees it has [`reserve`]d it.

use core::alloc::GlobalAlloc;
use core::alloc::Layout;
use core::cell::UnsafeCell;
use core::ptr::NonNull;

use core::sync::atomic::Ordering;

use abi::PAGE_BYTES;
use abi::layout::TABLE_MAP;
use abi::rights::{MAP_READ, MAP_WRITE, UNMAP_SELF};
use idl::Failure;
use protocols::sigma0::{Sigma0Client, Sigma0Error};
use talc::DefaultBinning;
use talc::base::Talc;
use talc::base::binning::Binning;
use talc::source::Source;

use crate::connection::Direct;
use crate::kept::SHORT;
use crate::sync::RawMutex;
use crate::{Entry, op, startup};

/// The heap grows by multiples of this.
const PAGE: u64 = PAGE_BYTES as u64;
/// The allocator's overhead besides the bytes asked for: its lists at the first growth, then tags.
const FIRST_MARGIN: u64 = 0x800;
const MARGIN: u64 = 0x40;

/// Hands out the address range.
#[derive(Debug)]
struct Range {
    /// 0 at first.
    end: u64,
    claimed: Option<NonNull<u8>>,
}

// SAFETY: uses neither an allocator nor anything that allocates.
unsafe impl Source for Range {
    fn acquire<B: Binning>(talc: &mut Talc<Self, B>, layout: Layout) -> Result<(), ()> {
        // The first blocks lie in the last page of the program, which is there.
        let (start, first, margin) = match talc.source.end {
            0 => (startup::image_end(), startup::heap_start(), FIRST_MARGIN),
            end => (end, end, MARGIN),
        };
        let bytes = (layout.size() as u64).checked_add(layout.align() as u64 + margin).ok_or(())?;
        let end = start.checked_add(bytes).and_then(|end| end.checked_next_multiple_of(PAGE)).ok_or(())?;
        if end > TABLE_MAP {
            return Err(());
        }
        draw(first, end)?;
        talc.source.end = end;
        talc.source.claimed = match talc.source.claimed.take() {
            // SAFETY: the range up to TABLE_MAP belongs to this allocator alone; `claimed` is the end
            // that it last gave.
            Some(old) => Some(unsafe { talc.extend(old, end as *mut u8) }),
            // SAFETY: the range up to TABLE_MAP belongs to this allocator alone, and nothing of it was claimed before.
            None => unsafe { talc.claim(start as *mut u8, (end - start) as usize) },
        };
        talc.source.claimed.map(drop).ok_or(())
    }
}

/// Draws the pages from `first` to `end`, all or none. Nothing refers to them yet.
#[cold]
#[inline(never)]
pub(crate) fn draw(first: u64, end: u64) -> Result<(), ()> {
    let pages = |end| (first..end).step_by(PAGE_BYTES);
    let refused = pages(end).find(|page| {
        match Sigma0Client(Direct(Entry::SIGMA0)).draw(*page, 0, MAP_READ | MAP_WRITE) {
            // There from an earlier attempt that came to nothing, should giving back have failed.
            Ok(()) | Err(Failure::Refused(Sigma0Error::Occupied)) => false,
            Err(_) => true,
        }
    });
    let Some(refused) = refused else { return Ok(()) };
    for page in pages(refused) {
        // SAFETY: nothing refers to these pages. One that stays is found by the next attempt.
        let _ = unsafe { op::unmap(Entry::OWN, page, 0, MAP_READ | UNMAP_SELF) };
    }
    Err(())
}

/// The allocator, and what is kept of it.
struct State {
    talc: Talc<Range, DefaultBinning>,
    /// How much is kept; nothing of size 0.
    layout: Layout,
    kept: Option<NonNull<u8>>,
}

impl State {
    /// Allocates, with what is kept if need be. The layout is not empty.
    fn allocate(&mut self, layout: Layout) -> Option<NonNull<u8>> {
        // SAFETY: not empty, says the caller.
        unsafe { self.talc.allocate(layout) }.or_else(|| self.allocate_of_kept(layout))
    }

    /// As [`State::allocate`], from what is kept, which is used then.
    #[cold]
    #[inline(never)]
    fn allocate_of_kept(&mut self, layout: Layout) -> Option<NonNull<u8>> {
        let kept = self.kept.take()?;
        SHORT.store((&raw const KEEP_AGAIN).cast_mut(), Ordering::Relaxed);
        // SAFETY: allocated with this layout, and nobody's any more.
        unsafe { self.talc.deallocate(kept.as_ptr(), self.layout) };
        // SAFETY: not empty, says the caller of `allocate`.
        unsafe { self.talc.allocate(layout) }
    }

    /// Keeps as much as is to be kept; whether that is there.
    fn keep(&mut self) -> bool {
        if self.kept.is_none() {
            // SAFETY: nobody sets an empty layout.
            self.kept = unsafe { self.talc.allocate(self.layout) };
        }
        if self.kept.is_some() {
            SHORT.store(core::ptr::null_mut(), Ordering::Relaxed);
        }
        self.kept.is_some()
    }
}

/// The function that `server` calls when the kept part was used.
static KEEP_AGAIN: fn() -> bool = || HEAP.with(State::keep);

/// Has so many bytes kept from now on; see the module. False if they cannot be had.
pub fn keep(bytes: usize) -> bool {
    let Ok(layout) = Layout::from_size_align(bytes.max(1), 16) else { return false };
    HEAP.with(|state| {
        if state.kept.is_none() {
            state.layout = layout;
        }
        state.keep()
    })
}

/// Makes the heap so many bytes larger; see the module. False if they cannot be had.
pub fn reserve(bytes: usize) -> bool {
    let Ok(layout) = Layout::from_size_align(bytes.max(1), 16) else { return false };
    HEAP.with(|State { talc, .. }| {
        // SAFETY: not empty.
        let Some(place) = (unsafe { talc.allocate(layout) }) else { return false };
        // SAFETY: just allocated with this layout. Pages that the heap has it keeps.
        unsafe { talc.deallocate(place.as_ptr(), layout) };
        true
    })
}

/// The allocator behind the runtime's mutex.
struct Heap {
    lock: RawMutex,
    state: UnsafeCell<State>,
}

// SAFETY: used under the lock only.
unsafe impl Sync for Heap {}

#[cfg_attr(target_os = "none", global_allocator)]
static HEAP: Heap = Heap {
    lock: RawMutex::new(),
    state: UnsafeCell::new(State {
        talc: Talc::new(Range { end: 0, claimed: None }),
        layout: Layout::new::<u8>(),
        kept: None,
    }),
};

impl Heap {
    fn with<R>(&self, work: impl FnOnce(&mut State) -> R) -> R {
        self.lock.lock();
        // SAFETY: under the lock.
        let result = work(unsafe { &mut *self.state.get() });
        self.lock.unlock();
        result
    }
}

// SAFETY: the allocator does what `GlobalAlloc` asks; the mutex makes it safe for several threads.
unsafe impl GlobalAlloc for Heap {
    #[inline(never)]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // The caller's layout is not empty.
        self.with(|state| state.allocate(layout)).map_or(core::ptr::null_mut(), NonNull::as_ptr)
    }

    #[inline(never)]
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller has it from `alloc` with this layout.
        self.with(|state| unsafe { state.talc.deallocate(pointer, layout) });
    }

    #[inline(never)]
    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let in_place = self.with(|State { talc, .. }| {
            if size <= layout.size() {
                // SAFETY: the caller has it from `alloc` with this layout; the size is not zero.
                unsafe { talc.shrink(pointer, layout, size) };
                return true;
            }
            // SAFETY: the caller has it from `alloc` with this layout; the size is larger.
            unsafe { talc.try_grow_in_place(pointer, layout, size) }
        });
        if in_place {
            return pointer;
        }
        // SAFETY: the caller's size, rounded to the alignment, is a valid layout.
        let new = unsafe { Layout::from_size_align_unchecked(size, layout.align()) };
        // SAFETY: `new` is not empty; both blocks hold `layout.size()` bytes and do not overlap.
        unsafe {
            let place = self.alloc(new);
            if !place.is_null() {
                core::ptr::copy_nonoverlapping(pointer, place, layout.size());
                self.dealloc(pointer, layout);
            }
            place
        }
    }
}
