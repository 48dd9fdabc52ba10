//! The domains that try flows, tainted and not, and what becomes of what they do.

use abi::level::{ONE, THREE, TWO};
use abi::rights::ALL;
use abi::{Error, info};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use runtime::Entry;
use runtime::entry::Owned;
use runtime::op::{self, LabelFrom};

use crate::table::child::{Child, Page, Program, Step, Unit};

/// The steps of a child. It is shown to one at a time.
pub static STEPS: Page = Page::new();
/// A page that children share with us.
pub static COMMON: Page = Page::new();

pub const MACHINE: Entry = Entry::SPECIAL;
/// Where a child puts what it makes.
pub const MADE: u64 = 120;
/// Where a child of a world has a copy of the world's semaphore.
pub const HAS: u64 = 125;
/// Frames of an account.
pub const FRAMES: u64 = 64;
/// A handle that nobody owns.
pub const NOBODYS: u64 = 5;

pub type Outcome<T> = Result<T, String>;

pub fn text(error: Error) -> String {
    error.text().into()
}

/// Whether something is tainted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Side {
    Usual,
    Tainted,
}

/// A handle that we own, both labels of a domain that is tainted by it and accepts that, the label {1}, and a semaphore of ours.
pub struct World {
    pub handle: u64,
    pub semaphore: Owned,
    pub plain: Owned,
    pub send: Owned,
    pub receive: Owned,
}

impl World {
    pub fn new() -> Outcome<Self> {
        let handle = op::label_handle().map_err(text)?;
        op::label_receive(handle, THREE).map_err(text)?;
        let label = |level| -> Result<Owned, Error> {
            let label = Owned::new(op::label_new(LabelFrom::Level(level))?);
            op::label_put(label.entry(), handle, THREE)?;
            Ok(label)
        };
        let semaphore = Owned::new(op::semaphore_new(Entry::OWN, 0).map_err(text)?);
        let plain = Owned::new(op::label_new(LabelFrom::Level(ONE)).map_err(text)?);
        Ok(Self { handle, semaphore, plain, send: label(ONE).map_err(text)?, receive: label(TWO).map_err(text)? })
    }

    pub fn account(&self, side: Side) -> Result<Owned, Error> {
        let account = match side {
            Side::Usual => op::account_new(Entry::OWN, FRAMES),
            Side::Tainted => op::account_new_labelled(Entry::OWN, FRAMES, 0, self.send.entry()),
        };
        account.map(Owned::new)
    }

    /// A child, and an account of its own that pays for it.
    pub fn paid_child(&self, side: Side) -> Outcome<(Owned, Child)> {
        let account = self.account(side).map_err(text)?;
        let child = self.child(side, &account).map_err(text)?;
        Ok((account, child))
    }

    pub fn child(&self, side: Side, account: &Owned) -> Result<Child, Error> {
        let labels = (side == Side::Tainted).then(|| [self.send.entry(), self.receive.entry()]);
        self.labelled_child(account, labels)
    }

    /// A child with these labels, or with the usual ones.
    pub fn labelled_child(&self, account: &Owned, labels: Option<[Entry; 2]>) -> Result<Child, Error> {
        let child = child(account, labels)?;
        let place = Entry(HAS as usize);
        op::entry_copy(Entry::OWN, self.semaphore.entry(), child.domain.entry(), place, ALL).map(|_| child)
    }
}

/// A domain with these labels, or with the usual ones, that does steps.
pub fn child(account: &Owned, labels: Option<[Entry; 2]>) -> Result<Child, Error> {
    // With an activation its labels are fixed, so it may get semaphores that are judged no more.
    let child = Child::labelled(Unit::None, account.entry(), 1, 1, labels)?;
    child.show(&STEPS, 1, false)?;
    Ok(child)
}

/// The status with which a child ended.
pub fn status_of(child: &Child) -> Outcome<u64> {
    child.dies()?;
    let number = op::domain_number(child.domain.entry()).map_err(text)?;
    let (record, _) = op::record::<info::Domain>(MACHINE, number + 1).map_err(text)?;
    Ok(record.status)
}

/// Lets a child do steps; gives the status of the last.
pub fn does(child: &Child, steps: &[Step]) -> Outcome<u64> {
    STEPS.set_steps(0, steps);
    let _thread = child.start(Program::Steps(0)).map_err(text)?;
    status_of(child)
}

/// The outcomes of operations, by their statuses.
pub fn named(ends: &[u64]) -> String {
    let names = ends.iter().map(|end| match Error::from_status(*end) {
        Ok(()) => "done".into(),
        Err(error) => format!("{error:?}"),
    });
    names.collect::<Vec<String>>().join(", ")
}
