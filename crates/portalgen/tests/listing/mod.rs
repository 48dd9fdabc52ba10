//! Listings of portals, compared with checked-in ones. `GOLDEN=write cargo test -p portalgen` writes them anew.

use portalgen::{Extent, Specification};
use std::fmt::Write;
use std::{env, fs, path::Path};

/// Gives the instructions of some code, with their lengths.
pub trait Disassembler {
    fn next(&mut self) -> Option<(usize, String)>;
}

/// Which part of some code begins where.
pub type Parts = Vec<(usize, &'static str)>;

fn list<'a>(
    specification: &Specification,
    write: impl Fn(&Specification) -> (Vec<u8>, Extent, Parts),
    lines: impl Fn(&'a [u8]) -> Box<dyn Disassembler + 'a>,
) -> String {
    let (bytes, extent, parts) = write(specification);
    // Tests end soon.
    let mut lines = lines(Box::leak(bytes.into_boxed_slice()));
    let (mut text, mut at, mut count, mut counts) = (String::new(), 0, 0, true);
    while let Some((length, line)) = lines.next() {
        if at == extent.call {
            let _ = writeln!(text, "  {count} instructions\ncall:");
            count = 0;
        } else if at == extent.back {
            text += "return:\n";
        }
        for (_, what) in parts.iter().filter(|(place, _)| *place == at) {
            let _ = writeln!(text, "  ; {what}");
            counts = *what != "jumps to the nucleus";
        }
        if line != "int3" {
            let _ = writeln!(text, "    {line}");
            count += usize::from(counts);
        }
        // What stands behind is not executed.
        counts &= line != "eret";
        at += length;
    }
    let _ = writeln!(text, "  {count} instructions\n{} bytes", extent.length);
    text
}

/// The chapter on portals shows the listing of one of them.
pub fn in_the_book(isa: &str) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let read = |path: &str| fs::read_to_string(root.join(path)).unwrap_or_else(|error| panic!("{path}: {error}"));
    let listing = read(&format!("golden/{isa}-npciii-i.txt"));
    let chapter = read("../../docs/book/portals.md");
    assert!(chapter.contains(&listing), "put golden/{isa}-npciii-i.txt into docs/book/portals.md");
}

/// Compares the listings of the table with those that are checked in for this ISA.
pub fn compare<'a>(
    isa: &str,
    write: impl Fn(&Specification) -> (Vec<u8>, Extent, Parts),
    lines: impl Fn(&'a [u8]) -> Box<dyn Disassembler + 'a>,
) {
    for text in crate::common::TABLE {
        let specification = Specification::parse(text).expect("a specification");
        let name = String::from_utf8_lossy(text).replace('>', "-");
        let listing = list(&specification, &write, &lines);
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("golden/{isa}-{name}.txt"));
        if env::var_os("GOLDEN").is_some_and(|value| value == "write") {
            fs::write(&path, &listing).expect("golden text written");
        }
        let expected = fs::read_to_string(&path).unwrap_or_default();
        assert!(expected == listing, "{} differs from\n{listing}", path.display());
    }
}
