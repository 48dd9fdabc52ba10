//! The startup page: a reader gets exactly the written data.
#![allow(missing_docs)]

use loader::startup::{Contents, write};
use loader::{Startup, StartupError};
use proptest::prelude::*;

const CONTENTS: Contents<'static> = Contents {
    schedule: 16 | 5000 << 8,
    name: "cat",
    streams: ["console", "pipe:7", "null"],
    compartments: &[("diary", u64::MAX >> 1), ("", 4)],
};

fn page() -> ([u8; 4096], usize) {
    let mut page = [0; 4096];
    let used = write(&mut page, &CONTENTS, ["cat", "-n"], ["HOME=/", "EMPTY="], [("machine", 47)]).unwrap();
    (page, used)
}

#[test]
fn a_startup_page_is_read_as_written() {
    let (page, used) = page();
    for bytes in [&page[..], &page[..used]] {
        let startup = Startup::read(bytes).unwrap();
        assert_eq!(startup.schedule, 16 | 5000 << 8);
        assert_eq!((startup.name, startup.streams), ("cat", ["console", "pipe:7", "null"]));
        assert!(startup.arguments().eq(["cat", "-n"]));
        assert!(startup.environment().eq(["HOME=/", "EMPTY="]));
        assert_eq!((startup.variable("HOME"), startup.variable("EMPTY")), (Some("/"), Some("")));
        assert_eq!(startup.variable("HOM"), None);
        assert!(startup.portals().eq([("machine", 47)]));
        assert!(startup.compartments().eq([("diary", u64::MAX >> 1), ("", 4)]));
    }
}

#[test]
fn each_error() {
    let (page, used) = page();
    let patched = |offset: usize, byte: u8| {
        let mut page = page;
        page[offset] = byte;
        Startup::read(&page).map(drop)
    };
    assert_eq!(patched(0, b'x'), Err(StartupError::NotStartup));
    assert_eq!(Startup::read(&page[..31]), Err(StartupError::BadLength));
    assert_eq!(Startup::read(&page[..used - 1]), Err(StartupError::BadLength));
    assert_eq!(patched(9, 0x20), Err(StartupError::BadLength));
    assert_eq!(Startup::read(&[page, page].concat()), Err(StartupError::BadLength));
    assert_eq!(patched(8, used as u8 + 1), Err(StartupError::BadString));
    assert_eq!(patched(24, 3), Err(StartupError::BadString));
    assert_eq!(patched(24, 1), Err(StartupError::BadString));
    assert_eq!(patched(33, 0xff), Err(StartupError::BadString));
    assert_eq!(patched(34, 0xff), Err(StartupError::BadText));
    assert_eq!(patched(34, 0), Err(StartupError::BadText));
    assert_eq!(patched(12, 1), Err(StartupError::Reserved));
    assert_eq!(patched(30, 1), Err(StartupError::BadString));
    assert_eq!(patched(30, 3), Err(StartupError::BadString));
    let long = "x".repeat(4096);
    let mut page = [0; 4096];
    assert_eq!(write(&mut page, &CONTENTS, [&long[..]], [], []), Err(StartupError::TooLong));
    assert_eq!(write(&mut page[..20], &CONTENTS, [], [], []), Err(StartupError::TooLong));
    assert_eq!(write(&mut page, &CONTENTS, ["a\0b"], [], []), Err(StartupError::BadText));
}

proptest! {
    #[test]
    fn any_strings(
        arguments in proptest::collection::vec("[^\0]{0,20}", 0..20),
        environment in proptest::collection::vec("[^\0]{0,20}", 0..20),
    ) {
        let mut page = [0; 4096];
        let strings = |list: &[String]| list.to_vec();
        let used = write(
            &mut page, &CONTENTS, arguments.iter().map(String::as_str), environment.iter().map(String::as_str), [],
        ).unwrap();
        let startup = Startup::read(&page[..used]).unwrap();
        prop_assert_eq!(startup.arguments().map(String::from).collect::<Vec<_>>(), strings(&arguments));
        prop_assert_eq!(startup.environment().map(String::from).collect::<Vec<_>>(), strings(&environment));
    }

    #[test]
    fn mutations_never_panic(changes in proptest::collection::vec((0usize..120, any::<u8>()), 1..6)) {
        let (mut page, _) = page();
        for (offset, byte) in changes {
            page[offset] = byte;
        }
        if let Ok(startup) = Startup::read(&page) {
            let strings = startup.arguments().count() + startup.environment().count() + startup.portals().count();
            let strings = strings + startup.compartments().count();
            prop_assert!(strings < 2048);
        }
    }
}
