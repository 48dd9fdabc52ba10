//! Names of code in the book are names in the code: a renamed error or constant is noticed.

use crate::project::read_text;
use anyhow::{Context, Result, bail};
use regex::Regex;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Names that are no name in this tree: a feature of a device, and the client that a chapter has its reader make.
const OTHERS: [&str; 2] = ["GUEST_CSUM", "KvClient"];
/// Decisions speak of what was there when they were made.
const AS_IT_WAS: &str = "docs/decisions";

/// Looks for each `ErrorName` and `CONSTANT_NAME` between backticks in `docs` and the README; the error has all that the code lacks.
pub fn check(root: &Path) -> Result<()> {
    let words = words(&sources(root, &["*.rs", "*.s", "*.ld", "*.toml"])?);
    let mut mistakes = Vec::new();
    for file in files(root, &["docs/*.md", "README.md"])? {
        if file.starts_with(AS_IT_WAS) {
            continue;
        }
        for (line, name) in unknown(&read_text(&root.join(&file))?, &words) {
            mistakes.push(format!("{}:{line}: `{name}` is no name in the code", file.display()));
        }
    }
    if !mistakes.is_empty() {
        bail!("{}", mistakes.join("\n"));
    }
    Ok(())
}

/// Names between backticks that are not among the words, with their lines.
fn unknown(text: &str, words: &BTreeSet<String>) -> Vec<(usize, String)> {
    let quoted = Regex::new("`([^`]+)`").expect("a constant");
    let name =
        Regex::new(r"(?:^|[^\w/.-])([A-Z][a-z]+(?:[A-Z][a-z]+)+|[A-Z]+_[A-Z_]+)(?:$|[^\w-])").expect("a constant");
    let mut found = Vec::new();
    for (number, line) in text.lines().enumerate() {
        for code in quoted.captures_iter(line) {
            let names = name.captures_iter(&code[1]).map(|name| name[1].to_string()).collect::<Vec<_>>();
            let is_unknown = |name: &String| !words.contains(name) && !OTHERS.contains(&name.as_str());
            found.extend(names.into_iter().filter(is_unknown).map(|name| (number + 1, name)));
        }
    }
    found
}

fn words(text: &str) -> BTreeSet<String> {
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').map(String::from).collect()
}

fn sources(root: &Path, patterns: &[&str]) -> Result<String> {
    files(root, patterns)?.iter().map(|file| read_text(&root.join(file))).collect()
}

/// Files that git knows, and that are there.
fn files(root: &Path, patterns: &[&str]) -> Result<Vec<PathBuf>> {
    let output = Command::new("git").args(["ls-files", "--"]).args(patterns).current_dir(root).output();
    let output = output.context("cannot start git")?;
    let listing = String::from_utf8(output.stdout).context("a file name is not UTF-8")?;
    Ok(listing.lines().map(PathBuf::from).filter(|file| root.join(file).is_file()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_the_code_lacks_is_found() {
        let words = words("NotAligned, Error::NoRight; MAX_DEPTH");
        let text =
            "`NoRight` or `Gone`\n`WouldCycle` if `abi::NotAligned`, `[u8; MAX_LENGTH]`, GoneToo and `a/FileName.md`";
        assert_eq!(unknown(text, &words), [(2, "WouldCycle".into()), (2, "MAX_LENGTH".into())]);
    }
}
