//! `admin`, and the compartments that the description declares: their handles, which last as long as the machine runs, and the
//! labels of their components.

use crate::plan::plan;
use abi::{Error, level};
use alloc::vec::Vec;
use protocols::listing::{Record, Writer};
use protocols::parent::{ADMIN, DECLARED, OF_PROGRAM};
use runtime::label::{Labels, secret};
use runtime::op;
use runtime::sync::Once;
use system::{ADMIN_COMPARTMENT, Component, Levels};

/// That of `admin`, then by number of the compartment.
static HANDLES: Once<Result<Vec<u64>, Error>> = Once::new();

/// Makes the handles.
pub fn make_handles() -> Result<(), Error> {
    let handles = || (0..=plan().system.compartments().count()).map(|_| op::label_handle()).collect();
    HANDLES.get_or_make(handles).as_ref().map(drop).map_err(|error| *error)
}

fn handles() -> Option<(u64, &'static [u64])> {
    HANDLES.get()?.as_ref().ok()?.split_first().map(|(admin, declared)| (*admin, declared))
}

/// 8 · handle + level of these compartments.
fn entries(levels: Levels<'_>) -> impl Iterator<Item = u64> + Clone {
    levels.filter_map(|(number, level)| {
        let (admin, declared) = handles()?;
        let handle = if number == system::ADMIN { admin } else { *declared.get(usize::from(number))? };
        Some(handle << 3 | level)
    })
}

/// The labels with which a component starts. None: the usual ones, or those of the trusted.
pub fn labels(component: &Component<'_>) -> Result<Option<Labels>, Error> {
    let mut entries = entries(component.levels).peekable();
    if entries.peek().is_none() { Ok(None) } else { Labels::new(entries).map(Some) }
}

/// The compartments of a component with their names, for its startup page.
pub fn named(component: &Component<'static>) -> Vec<(&'static str, u64)> {
    let name = |number| match number {
        system::ADMIN => ADMIN_COMPARTMENT,
        declared => plan().system.compartments().nth(declared.into()).unwrap_or_default(),
    };
    component.levels.zip(entries(component.levels)).map(|((number, _), entry)| (name(number), entry)).collect()
}

/// Writes what a component has, as many as fit; gives the bytes.
pub fn write(component: &Component<'_>, into: &mut [u8]) -> usize {
    let all = component.trusted.then_some(level::STAR);
    let mut used = 0;
    for (entry, place) in all.into_iter().chain(entries(component.levels)).zip(into.as_chunks_mut::<8>().0) {
        *place = entry.to_le_bytes();
        used += place.len();
    }
    used
}

/// Writes the compartments, and those that programs have, from a position on.
pub fn list(position: u64, into: &mut [u8]) -> (usize, u64) {
    let (admin, handles) = handles().unzip();
    let admin = admin.map(|handle| (ADMIN, handle << 3 | level::ZERO, ADMIN_COMPARTMENT));
    let handles = handles.into_iter().flatten();
    let declared = plan().system.compartments().zip(handles);
    let declared = declared.map(|(name, handle)| (DECLARED, secret(*handle), name));
    let programs = plan().system.programs();
    let of_programs =
        programs.flat_map(|program| entries(program.levels).map(move |entry| (OF_PROGRAM, entry, program.name)));
    let mut writer = Writer::new(into);
    for (number, (tag, value, name)) in
        (0..).zip(admin.into_iter().chain(declared).chain(of_programs)).skip(position as usize)
    {
        if !writer.push(Record { tag, value, name: name.as_bytes() }) {
            return (writer.used(), number);
        }
    }
    (writer.used(), 0)
}
