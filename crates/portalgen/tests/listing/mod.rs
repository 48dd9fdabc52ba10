//! Listings of portals, compared with checked-in ones. `GOLDEN=write cargo test -p portalgen` writes them anew.

use portalgen::{Extent, Listener, Specification};
use std::cell::RefCell;
use std::fmt::Write;
use std::{env, fs, path::Path};

/// Gives the instructions of some code, with their lengths.
pub trait Disassembler {
    fn next(&mut self) -> Option<(usize, String)>;
}

/// Notes where parts begin.
#[derive(Default)]
pub struct Parts(RefCell<Vec<(usize, &'static str)>>);

impl Listener for &Parts {
    fn part(&mut self, at: usize, what: &'static str) {
        self.0.borrow_mut().push((at, what));
    }
}

fn list<'a>(
    specification: &Specification,
    write: impl Fn(&Specification, &Parts) -> (Vec<u8>, Extent),
    lines: impl Fn(&'a [u8]) -> Box<dyn Disassembler + 'a>,
) -> String {
    let parts = Parts::default();
    let (bytes, extent) = write(specification, &parts);
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
        for (_, what) in parts.0.borrow().iter().filter(|(place, _)| *place == at) {
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

/// Compares the listings of the table with those that are checked in for this ISA.
pub fn compare<'a>(
    isa: &str,
    write: impl Fn(&Specification, &Parts) -> (Vec<u8>, Extent),
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
