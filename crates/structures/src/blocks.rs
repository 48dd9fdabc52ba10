//! A buddy allocator over frames (Knuth, *The Art of Computer Programming* 1, 2.5), with two stores of single frames before it.
//!
//! A block of order n is 2^n frames, aligned to its size. The record of its first frame says whether
//! it is free and of which order, and links it into the list of its order.
//!
//! Frames that come back one by one are *loose* at first, in a list of their own from which single frames are taken;
//! they are joined to blocks only when a block is asked for and there is none, a few at a time. Frames full of zeros are
//! kept at hand in an array.

use core::cell::Cell;

#[cfg(test)]
mod tests;

/// Number of a frame; 0 means none.
pub type Frame = usize;

/// Orders of blocks: up to 4 MiB.
pub const ORDERS: usize = 11;
/// Clear frames kept at hand, at most.
pub const CLEARED: usize = 64;
/// Frames that an operation takes one by one, at most, and the order of a block that has so many, and not many more.
const FEW: usize = 3;
/// See `FEW`.
const FEW_ORDER: usize = 2;
/// Frames that [`Blocks::prepare`] joins at once.
const JOINED: usize = 3;

/// The record of each frame.
pub trait Records: Copy {
    /// Whether the frame has a record.
    fn has(self, frame: Frame) -> bool;
    /// The frame is the first of a free block of this order.
    fn set_free(self, frame: Frame, order: usize);
    /// The frame is none.
    fn set_inside(self, frame: Frame);
    /// Whether the frame, which has a record, is the first of a free block of this order.
    fn is_free(self, frame: Frame, order: usize) -> bool;
    /// The order of a free block.
    fn order(self, frame: Frame) -> usize;
    /// The neighbours of a free block in the list of its order: the next, and the one before. Of a loose frame: the next.
    fn links(&self, frame: Frame, order: usize) -> [&Cell<u32>; 2];
}

/// The free frames.
pub struct Blocks {
    lists: [Cell<Frame>; ORDERS],
    /// Frames in blocks, and loose ones.
    free: Cell<usize>,
    cleared: [Cell<u32>; CLEARED],
    cleared_count: Cell<usize>,
    /// First of the loose frames.
    loose: Cell<Frame>,
}

impl Blocks {
    /// Nothing is free.
    pub const fn empty() -> Self {
        Self {
            lists: [const { Cell::new(0) }; ORDERS],
            free: Cell::new(0),
            cleared: [const { Cell::new(0) }; CLEARED],
            cleared_count: Cell::new(0),
            loose: Cell::new(0),
        }
    }

    /// Free frames.
    pub fn free(&self) -> usize {
        self.free.get() + self.cleared_count.get()
    }

    fn push(&self, records: impl Records, frame: Frame, order: usize) {
        let list = &self.lists[order];
        let head = list.get();
        records.set_free(frame, order);
        let [next, previous] = records.links(frame, order);
        next.set(head as u32);
        previous.set(0);
        if head != 0 {
            records.links(head, order)[1].set(frame as u32);
        }
        list.set(frame);
    }

    fn unlink(&self, records: impl Records, frame: Frame) {
        let order = records.order(frame);
        let [next, previous] = records.links(frame, order).map(|link| link.get() as Frame);
        if next != 0 {
            records.links(next, order)[1].set(previous as u32);
        }
        if previous != 0 {
            records.links(previous, order)[0].set(next as u32);
        } else {
            self.lists[order].set(next);
        }
        records.set_inside(frame);
    }

    /// Takes 2^order frames from the blocks.
    #[inline(never)]
    pub fn take_block(&self, records: impl Records, order: usize) -> Option<Frame> {
        let mut found = (order..ORDERS).find(|&order| self.lists[order].get() != 0)?;
        let frame = self.lists[found].get();
        self.unlink(records, frame);
        while found > order {
            found -= 1;
            self.push(records, frame + (1 << found), found);
        }
        self.free.update(|count| count - (1 << order));
        Some(frame)
    }

    /// Whether so many frames are kept one by one.
    fn has_loose(&self, records: impl Records, count: usize) -> bool {
        let mut frame = self.loose.get();
        (1..count).for_each(|_| frame = if frame == 0 { 0 } else { records.links(frame, 0)[0].get() as Frame });
        frame != 0
    }

    /// Has a larger block split into one of this order and the others that are left; false if there is none. They are joined
    /// again when one of them was taken and comes back.
    fn split(&self, records: impl Records, order: usize) -> bool {
        let Some(frame) = self.take_block(records, order) else { return false };
        self.free.update(|count| count + (1 << order));
        self.push(records, frame, order);
        true
    }

    /// Takes a frame that is not kept clear.
    #[inline(always)]
    pub fn take_one(&self, records: impl Records) -> Option<Frame> {
        if self.loose.get() == 0 { self.take_block(records, 0) } else { Some(self.take_loose(records)) }
    }

    /// Takes the first of the loose frames; there is one.
    #[inline(always)]
    fn take_loose(&self, records: impl Records) -> Frame {
        let frame = self.loose.get();
        self.loose.set(records.links(frame, 0)[0].get() as Frame);
        self.free.update(|count| count - 1);
        frame
    }

    /// Whether a frame is loose.
    #[inline(always)]
    pub fn has_any_loose(&self) -> bool {
        self.loose.get() != 0
    }

    /// Makes 2^order frames of a block loose; false if there is none.
    #[cold]
    fn loosen(&self, records: impl Records, order: usize) -> bool {
        let Some(first) = self.take_block(records, order) else { return false };
        (first..first + (1 << order)).for_each(|frame| self.give_one(records, frame));
        true
    }

    fn give_one(&self, records: impl Records, frame: Frame) {
        records.links(frame, 0)[0].set(self.loose.replace(frame) as u32);
        self.free.update(|count| count + 1);
    }

    /// Gives 2^order frames back to the blocks, and joins them with their buddies.
    pub fn give_block(&self, records: impl Records, mut frame: Frame, mut order: usize) {
        self.free.update(|count| count + (1 << order));
        while order + 1 < ORDERS {
            let buddy = frame ^ (1 << order);
            if !records.has(buddy) || buddy == 0 || !records.is_free(buddy, order) {
                break;
            }
            self.unlink(records, buddy);
            records.set_inside(frame);
            frame = frame.min(buddy);
            order += 1;
        }
        self.push(records, frame, order);
    }

    /// Takes 2^order frames; single ones from those kept clear if there are no others.
    pub fn take(&self, records: impl Records, order: usize) -> Option<Frame> {
        if order > 0 {
            return self.take_block(records, order);
        }
        self.take_one(records).or_else(|| self.take_clear())
    }

    /// Gives 2^order frames back.
    pub fn give(&self, records: impl Records, frame: Frame, order: usize) {
        if order == 0 { self.give_one(records, frame) } else { self.give_block(records, frame, order) }
    }

    /// Takes a frame full of zeros, if one is kept.
    #[inline(always)]
    pub fn take_clear(&self) -> Option<Frame> {
        let count = self.cleared_count.get().checked_sub(1)?;
        self.cleared_count.set(count);
        Some(self.cleared[count].get() as Frame)
    }

    /// Gives back a frame that is full of zeros.
    pub fn give_clear(&self, records: impl Records, frame: Frame) {
        if self.cleared_count.get() == CLEARED {
            return self.give_one(records, frame);
        }
        self.keep_clear(frame);
    }

    /// Keeps a frame that is full of zeros; there is room for it.
    #[inline(always)]
    fn keep_clear(&self, frame: Frame) {
        let count = self.cleared_count.get();
        self.cleared[count].set(frame as u32);
        self.cleared_count.set(count + 1);
    }

    /// Has one more frame cleared for later; false when `most` are at hand or memory is scarce.
    #[inline(always)]
    pub fn clear_ahead(&self, records: impl Records, most: usize, clear: impl FnOnce(Frame)) -> bool {
        self.cleared_count.get() < most.min(CLEARED) && self.clear_one(records, clear)
    }

    fn clear_one(&self, records: impl Records, clear: impl FnOnce(Frame)) -> bool {
        if self.free.get() < 4 * CLEARED {
            return false;
        }
        if self.loose.get() == 0 && !self.loosen(records, 0) {
            return false;
        }
        let frame = self.take_loose(records);
        clear(frame);
        records.set_inside(frame);
        self.keep_clear(frame);
        true
    }

    /// One step towards a block of this order that is taken as it is, or, for order 0, towards a few frames that are taken in few
    /// instructions: splits a larger block, keeps the frames of a small one singly, or joins some that are kept so. False when there is
    /// nothing to do, or nothing to do it with.
    pub fn prepare(&self, records: impl Records, order: usize) -> bool {
        let wanted = if order == 0 { FEW_ORDER } else { order };
        if order >= ORDERS || order == 0 && self.has_loose(records, FEW) {
            return false;
        }
        match self.lists[wanted..].iter().position(|first| first.get() != 0) {
            Some(0) if order == 0 => return self.loosen(records, FEW_ORDER),
            Some(above) => return above > 0 && self.split(records, wanted),
            None => {}
        }
        if order == 0 || self.loose.get() == 0 && self.cleared_count.get() == 0 {
            return false;
        }
        for _ in 0..JOINED {
            if self.loose.get() != 0 {
                self.give_block(records, self.take_loose(records), 0);
            } else if let Some(frame) = self.take_clear() {
                self.give_block(records, frame, 0);
            }
        }
        true
    }
}
