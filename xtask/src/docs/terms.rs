//! Names of code in the book are names in the code: a renamed error or constant is noticed.

use crate::project::{files, read_text};
use anyhow::{Result, bail};
use regex::Regex;
use std::collections::BTreeSet;
use std::path::Path;

/// Names that are no name in this tree: a feature of a device, and the client that a chapter has its reader make.
const OTHERS: [&str; 2] = ["GUEST_CSUM", "KvClient"];
/// Decisions speak of what was there when they were made.
const AS_IT_WAS: &str = "docs/decisions";

/// Looks for each `ErrorName` and `CONSTANT_NAME` between backticks in `docs` and the README; the error has all that the code lacks.
pub fn check(root: &Path) -> Result<()> {
    let mut words = BTreeSet::new();
    for file in files(root, &["*.rs", "*.s", "*.ld", "*.toml"])? {
        words.extend(words_of(&read_text(&root.join(file))?));
    }
    let names = Names::new();
    let mut mistakes = Vec::new();
    for file in files(root, &["docs/*.md", "README.md"])? {
        if file.starts_with(AS_IT_WAS) {
            continue;
        }
        for (line, name) in names.unknown(&read_text(&root.join(&file))?, &words) {
            mistakes.push(format!("{}:{line}: `{name}` is no name in the code", file.display()));
        }
    }
    if !mistakes.is_empty() {
        bail!("{}", mistakes.join("\n"));
    }
    Ok(())
}

/// How names of code look in the book.
struct Names {
    /// Text between backticks.
    quoted: Regex,
    /// In that, a name of several words.
    name: Regex,
}

impl Names {
    fn new() -> Self {
        let regex = |pattern| Regex::new(pattern).expect("a constant");
        let name = r"(?:^|[^\w/.-])([A-Z][a-z]+(?:[A-Z][a-z]+)+|[A-Z]+_[A-Z_]+)(?:$|[^\w-])";
        Self { quoted: regex("`([^`]+)`"), name: regex(name) }
    }

    /// Names that are not among the words, with their lines.
    fn unknown(&self, text: &str, words: &BTreeSet<String>) -> Vec<(usize, String)> {
        let mut found = Vec::new();
        for (number, line) in text.lines().enumerate() {
            for code in self.quoted.captures_iter(line).filter_map(|code| code.get(1)) {
                let names = self.name.captures_iter(code.as_str()).map(|name| name[1].to_string());
                let unknown = names.filter(|name| !words.contains(name) && !OTHERS.contains(&name.as_str()));
                found.extend(unknown.map(|name| (number + 1, name)));
            }
        }
        found
    }
}

fn words_of(text: &str) -> impl Iterator<Item = String> {
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').map(String::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_the_code_lacks_is_found() {
        let words = words_of("NotAligned, Error::NoRight; MAX_DEPTH").collect();
        let text =
            "`NoRight` or `Gone`\n`WouldCycle` if `abi::NotAligned`, `[u8; MAX_LENGTH]`, GoneToo and `a/FileName.md`";
        assert_eq!(Names::new().unknown(text, &words), [(2, "WouldCycle".into()), (2, "MAX_LENGTH".into())]);
    }
}
