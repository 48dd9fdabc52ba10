//! The texts of all errors against the list that is checked in. `GOLDEN=write cargo test -p loader` writes it again.
#![allow(missing_docs)]

use loader::{ProgramError, StartupError};
use std::fmt::Display;

fn lines(errors: &[impl Display]) -> String {
    errors.iter().map(|error| format!("{error}\n")).collect()
}

#[test]
fn each_error_has_its_text() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/golden/errors.txt");
    let text = lines(ProgramError::ALL) + "\n" + &lines(StartupError::ALL);
    if std::env::var_os("GOLDEN").is_some() {
        std::fs::write(path, &text).expect("golden text written");
    }
    assert_eq!(std::fs::read_to_string(path).expect("golden text"), text);
    let mut all: Vec<_> = text.lines().collect();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), ProgramError::ALL.len() + StartupError::ALL.len() + 1, "two errors have the same text");
}
