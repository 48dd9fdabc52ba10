//! Listings of portals, compared with checked-in ones. `GOLDEN=write cargo test -p portalgen` writes them again.

use listing::{Isa, Portal, specification};
use std::{env, fs, path::Path};

/// The chapter on portals shows the listing of one of them.
pub fn in_the_book(isa: &str) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let read = |path: &str| fs::read_to_string(root.join(path)).unwrap_or_else(|error| panic!("{path}: {error}"));
    let listing = read(&format!("golden/{isa}-npciii-i.txt"));
    let chapter = read("../../docs/book/portals.md");
    assert!(chapter.contains(&listing), "put golden/{isa}-npciii-i.txt into docs/book/portals.md");
}

/// Whether the labels of caller and callee allow the call is asked in eight instructions, one of which finds the callee. The way
/// back asks nothing: a change of labels ends the calls that it forbids.
pub fn the_label_check_is_short(isa: Isa) {
    for text in crate::common::TABLE {
        let portal = specification(&String::from_utf8_lossy(text)).and_then(|it| Portal::generated(isa, &it));
        let listing = portal.expect("a portal").to_string();
        let checks: Vec<_> = listing.split("  ; ").filter(|part| part.starts_with("the flow is allowed")).collect();
        let instructions = checks.iter().map(|check| check.trim_end().lines().count() - 1).collect::<Vec<_>>();
        assert!(matches!(instructions[..], [1..=8]), "{}: {checks:?}", String::from_utf8_lossy(text));
    }
}

/// Compares the listings of the table with those that are checked in for this ISA.
pub fn compare(isa: Isa, folder: &str) {
    for text in crate::common::TABLE {
        let text = String::from_utf8_lossy(text);
        let portal = specification(&text).and_then(|specification| Portal::generated(isa, &specification));
        let listing = portal.expect("a portal").to_string();
        let name = text.replace('>', "-");
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("golden/{folder}-{name}.txt"));
        if env::var_os("GOLDEN").is_some_and(|value| value == "write") {
            fs::write(&path, &listing).expect("golden text written");
        }
        let expected = fs::read_to_string(&path).unwrap_or_default();
        assert!(expected == listing, "{} differs from\n{listing}", path.display());
    }
}
