//! A path of this tree that a comment or a page cites exists.
//!
//! Read are comments of Rust and TOML files, and what pages have between backticks. A word is a path of this tree if it begins
//! with one of the `FOLDERS`, or has a slash and one of the `ENDINGS`. It counts from the root, or from any folder
//! above the file that cites it. A path that begins with none of the folders may also be the end of a longer one: a chapter
//! about the nucleus says `control/call.rs`.

use super::parity::{files, root};
use crate::project::read_text;
use anyhow::{Context, Result};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Folders at the root.
const FOLDERS: [&str; 10] =
    ["apps", "components", "crates", "docs", "drivers", "nucleus", "runtime", "systems", "tests", "xtask"];
/// How names of files end that are known without a folder at the root.
const ENDINGS: [&str; 5] = ["rs", "toml", "md", "s", "ld"];
/// Descriptions with mistakes, which cite what is missing.
const WITH_MISTAKES: &str = "tests/systems";
/// Cited paths that are not in the tree, and why.
const ELSEWHERE: [(&str, &str); 9] = [
    ("docs/specs/standard-vga.txt", "a file of QEMU"),
    ("components/greeter", "the reader of a tutorial makes it"),
    ("apps/greet", "the reader of a tutorial makes it"),
    ("crates/protocols/src/kv.rs", "the reader of a tutorial makes it"),
    ("components/store", "the reader of a tutorial makes it"),
    ("apps/kv", "the reader of a tutorial makes it"),
    ("tests/boot/kv.toml", "the reader of a tutorial makes it"),
    ("apps/each", "the reader of a tutorial makes it"),
    ("systems/mine.toml", "an example of a name"),
];

/// The text of a file that may cite paths, by line from 1.
fn prose<'t>(ending: &str, text: &'t str) -> Vec<(usize, &'t str)> {
    let mut found = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let parts: Vec<&str> = match ending {
            "rs" => line.split_once("//").map(|(_, comment)| comment).into_iter().collect(),
            "toml" => line.split_once('#').map(|(_, comment)| comment).into_iter().collect(),
            _ => line.split('`').skip(1).step_by(2).collect(),
        };
        found.extend(parts.into_iter().map(|part| (number + 1, part)));
    }
    found
}

/// The paths that a file cites, each with its line.
fn all_cited<'t>(ending: &str, text: &'t str) -> Vec<(usize, &'t str)> {
    let parts = prose(ending, text).into_iter();
    parts.flat_map(|(line, part)| cited(part).into_iter().map(move |path| (line, path))).collect()
}

/// The words of a text that look like paths of this tree. `/etc/motd` is a path of Cairn's own files.
fn cited(text: &str) -> Vec<&str> {
    let words = text.split(|c: char| !c.is_alphanumeric() && !"_-./*@<>{}…".contains(c));
    let words = words.map(|word| word.trim_end_matches(['.', '-']));
    words.filter(|word| !word.starts_with('/') && is_path(word) && !is_placeholder(word)).collect()
}

fn is_path(word: &str) -> bool {
    let ending = word.rsplit_once('.').map_or("", |(_, ending)| ending);
    word.split_once('/').is_some_and(|(first, _)| FOLDERS.contains(&first) || ENDINGS.contains(&ending))
}

/// A path stands for several if it has a sign as in `tests/boot/*.toml`, or a part in capitals as in `systems/NAME.toml`.
fn is_placeholder(word: &str) -> bool {
    let is_open = |part: &str| {
        let name = part.split('.').next().unwrap_or_default();
        name != "README" && !name.is_empty() && name.chars().all(|c| c.is_ascii_uppercase())
    };
    word.contains(['*', '<', '{', '…', '@']) || word.split('/').any(is_open)
}

/// Whether what `from` cites is there.
fn exists(path: &str, from: &Path, is_there: &dyn Fn(&Path) -> bool, known: &[PathBuf]) -> bool {
    let is_short = path.split_once('/').is_some_and(|(first, _)| !FOLDERS.contains(&first));
    from.ancestors().skip(1).any(|folder| is_there(&folder.join(path)))
        || is_short && known.iter().any(|file| file.ends_with(path))
}

#[test]
fn cited_paths_exist() -> Result<()> {
    let root = root();
    let mut known = Vec::new();
    for ending in ENDINGS {
        for path in files(&root, ending)? {
            known.push(path.strip_prefix(&root).context("a file elsewhere")?.to_path_buf());
        }
    }
    let mut wrong = Vec::new();
    let mut used = BTreeSet::new();
    for file in known.iter().filter(|file| !file.starts_with(WITH_MISTAKES)) {
        let ending = file.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
        if !["rs", "toml", "md"].contains(&ending) {
            continue;
        }
        let text = read_text(&root.join(file))?;
        for (line, path) in all_cited(ending, &text) {
            if exists(path, file, &|path| root.join(path).exists(), &known) {
                continue;
            }
            match ELSEWHERE.iter().find(|(other, _)| *other == path) {
                Some((other, _)) => drop(used.insert(*other)),
                None => wrong.push(format!("{}:{line}: there is no {path}", file.display())),
            }
        }
    }
    let unused = ELSEWHERE.iter().filter(|(path, _)| !used.contains(*path));
    wrong.extend(unused.map(|(path, why)| format!("no file cites {path} any more ({why})")));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}

#[test]
fn a_path_that_is_gone_is_noticed() {
    let known = ["nucleus/src/control/call.rs", "crates/cpio/tests/whole.rs", "docs/book/README.md"].map(PathBuf::from);
    let is_there = |path: &Path| known.iter().any(|file| file.starts_with(path));
    let found = |path: &str| exists(path, Path::new("crates/cpio/src/lib.rs"), &is_there, &known);
    for path in ["nucleus/src/control/", "control/call.rs", "tests/whole.rs", "docs/book/README.md"] {
        assert!(found(path), "{path}");
    }
    for path in ["nucleus/src/control/gone.rs", "control/gone.rs", "ontrol/call.rs", "docs/README.md", "book/README"] {
        assert!(!found(path), "{path}");
    }
}

#[test]
fn paths_are_found_in_comments_and_between_backticks() {
    let mark = "//";
    let rust =
        format!("let a = 1; {mark} `crates/a.rs`,\nlet b = \"apps/b\";\n{mark}! apps/c. https:{mark}host/d.md\n");
    assert_eq!(all_cited("rs", &rust), [(1, "crates/a.rs"), (3, "apps/c")]);
    assert_eq!(all_cited("toml", "file = \"apps/a\" # systems/b.toml:12\n"), [(1, "systems/b.toml")]);
    let page = "apps/a `apps/b` apps/c\n`./x test a/d.md` `tests/boot/e.toml:3`\n";
    assert_eq!(all_cited("md", page), [(1, "apps/b"), (2, "a/d.md"), (2, "tests/boot/e.toml")]);
}

#[test]
fn paths_outside_the_tree_are_ignored() {
    let others = "/etc/motd.md tests/boot/*.toml systems/NAME.toml drivers/CLASS/DEVICE nucleus/<isa>/ crates/{name} and/or lib.rs";
    assert_eq!(cited(others), [""; 0]);
    assert_eq!(cited("docs/README.md"), ["docs/README.md"]);
}

#[test]
fn each_folder_has_its_row() -> Result<()> {
    for (page, heading) in [("README.md", "\n## Layout\n"), ("docs/book/what-cairn-is.md", "\n## The tree\n")] {
        let text = read_text(&root().join(page))?;
        let table = text.split(heading).nth(1).and_then(|rest| rest.split("\n## ").next()).unwrap_or_default();
        for folder in FOLDERS {
            assert!(root().join(folder).is_dir(), "there is no folder {folder}");
            assert!(table.contains(&format!("\n| `{folder}/` | ")), "{page} has no row for {folder}");
        }
    }
    Ok(())
}
