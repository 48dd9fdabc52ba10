//! The book's chapter about testing, and the list in the module above, name the groups that there are; the chapter names the options of
//! `./x test`, too.

use super::GROUPS;
use super::parity::root;
use super::promises::cells;
use crate::command_line::TestOptions;
use crate::project::read_text;
use anyhow::Result;
use clap::Args;
use std::collections::BTreeSet;

/// The names between backticks in the first cells of all tables.
fn named(text: &str) -> BTreeSet<String> {
    let first = cells(text).into_iter().filter_map(|(_, cells)| cells.first().copied());
    first.flat_map(|cell| cell.split('`').skip(1).step_by(2)).map(String::from).collect()
}

/// The options between backticks: in a command `./x test …`, or alone.
fn options(text: &str) -> BTreeSet<String> {
    let spans = text.split('`').skip(1).step_by(2);
    let spans = spans.filter(|span| span.starts_with("./x test") || span.starts_with("--"));
    spans.flat_map(str::split_whitespace).filter_map(|word| word.strip_prefix("--")).map(String::from).collect()
}

fn chapter() -> Result<String> {
    read_text(&root().join("docs/book/testing.md"))
}

#[test]
fn each_group_has_its_row() -> Result<()> {
    let groups: BTreeSet<String> = GROUPS.iter().map(|group| group.to_string()).collect();
    let chapter = chapter()?;
    let book = chapter.split("\n## ").next().unwrap_or_default();
    assert_eq!(named(book), groups, "left: docs/book/testing.md, right: the groups");
    let module = read_text(&root().join("xtask/src/test/mod.rs"))?;
    let comment: Vec<&str> = module.lines().filter_map(|line| line.strip_prefix("//! ")).collect();
    assert_eq!(named(&comment.join("\n")), groups, "left: xtask/src/test/mod.rs, right: the groups");
    Ok(())
}

#[test]
fn each_option_is_in_the_book() -> Result<()> {
    let command = TestOptions::augment_args(clap::Command::new("test"));
    let known: BTreeSet<String> = command.get_arguments().filter_map(|one| one.get_long()).map(String::from).collect();
    let chapter = chapter()?;
    let book = options(&chapter);
    let missing: Vec<_> = known.difference(&book).collect();
    assert!(missing.is_empty(), "docs/book/testing.md does not have {missing:?}");
    // Options of other commands stand in the sections about those.
    let of_test = chapter.split("\n## The syscall fuzzer\n").next().unwrap_or_default();
    let others: Vec<_> = options(of_test).difference(&known).cloned().collect();
    assert!(others.is_empty(), "`./x test` has no {others:?}");
    Ok(())
}

#[test]
fn names_and_options_are_found() {
    let text = "| group | what |\n|---|---|\n| `a`, `b` | `c` |\n| none | `d` |\n\n`--one 7` `./x test --two --three` `./x run --four`\n";
    let set = |names: &[&str]| names.iter().map(|name| name.to_string()).collect::<BTreeSet<_>>();
    assert_eq!(named(text), set(&["a", "b"]));
    assert_eq!(options(text), set(&["one", "two", "three"]));
}
