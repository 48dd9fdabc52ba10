//! Every relative link and picture of the README and of `docs` leads somewhere, and every chapter is listed.

use super::pages::Page;
use crate::nearest::meant;
use crate::project::read_text;
use anyhow::{Context, Result, bail};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Component, Path, PathBuf};

/// The group of tests that this is.
pub const NAME: &str = "links";
/// Pages outside of `docs`.
const OTHERS: [&str; 2] = ["README.md", "systems/README.md"];
/// Lists of all pages beside them.
const LISTS: [&str; 2] = ["docs/book/README.md", "docs/decisions/README.md"];

/// The facts about a tree that the check needs.
struct Tree {
    pages: BTreeMap<PathBuf, Page>,
    /// All files of `docs`, pages and pictures.
    files: BTreeSet<PathBuf>,
}

/// Checks the pages of a tree without the network; the error has all mistakes.
pub fn check(root: &Path) -> Result<()> {
    let mut files = BTreeSet::from(OTHERS.map(PathBuf::from));
    collect(root, Path::new("docs"), &mut files)?;
    let mut pages = BTreeMap::new();
    for file in files.iter().filter(|file| file.extension().is_some_and(|extension| extension == "md")) {
        pages.insert(file.clone(), Page::read(&read_text(&root.join(file))?));
    }
    let tree = Tree { pages, files };
    let mut mistakes = Vec::new();
    for (file, page) in &tree.pages {
        for (line, link) in &page.links {
            if let Err(mistake) = tree.follow(file, link, &|path| root.join(path).exists()) {
                mistakes.push(format!("{}:{line}: {mistake}", file.display()));
            }
        }
    }
    LISTS.iter().for_each(|list| mistakes.extend(tree.unlisted(Path::new(list))));
    if !mistakes.is_empty() {
        bail!("{}", mistakes.join("\n"));
    }
    Ok(())
}

impl Tree {
    /// Where a link of a file leads; an error if that is not there. Addresses elsewhere are taken as they are.
    fn follow(&self, from: &Path, link: &str, exists: &dyn Fn(&Path) -> bool) -> Result<(), String> {
        if link.contains("://") || link.starts_with("mailto:") {
            return Ok(());
        }
        let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
        let folder = from.parent().unwrap_or(Path::new(""));
        let target = if path.is_empty() { from.to_path_buf() } else { plain(&folder.join(path)) };
        if target.starts_with("..") || path.starts_with('/') || !exists(&target) {
            let known: Vec<String> = self.files.iter().map(|file| between(folder, file)).collect();
            return Err(format!("`{link}` leads to no file{}", meant(path, known.iter().map(String::as_str))));
        }
        match self.pages.get(&target) {
            Some(page) if !anchor.is_empty() && !page.anchors.contains(anchor) => {
                let meant = meant(anchor, page.anchors.iter().map(String::as_str));
                Err(format!("`{link}`: {} has no heading `#{anchor}`{meant}", target.display()))
            }
            _ => Ok(()),
        }
    }

    /// Pages beside a list that it has no link to.
    fn unlisted(&self, list: &Path) -> Vec<String> {
        let folder = list.parent().unwrap_or(Path::new(""));
        let links = self.pages.get(list).into_iter().flat_map(|page| &page.links);
        let listed: BTreeSet<PathBuf> = links.map(|(_, link)| plain(&folder.join(link))).collect();
        let beside = self.pages.keys().filter(|page| page.parent() == Some(folder) && *page != list);
        let missing = beside.filter(|page| !listed.contains(*page));
        missing.map(|page| format!("{}: {} is not listed: add a line for it", list.display(), page.display())).collect()
    }
}

/// All files of a folder and below.
pub fn collect(root: &Path, folder: &Path, files: &mut BTreeSet<PathBuf>) -> Result<()> {
    let listing = fs::read_dir(root.join(folder)).with_context(|| format!("cannot list {}", folder.display()))?;
    for entry in listing {
        let path = folder.join(entry?.file_name());
        if root.join(&path).is_dir() {
            collect(root, &path, files)?;
        } else {
            files.insert(path);
        }
    }
    Ok(())
}

/// A path without `.` and `..`, but for those that lead out of the tree.
pub fn plain(path: &Path) -> PathBuf {
    path.components().fold(PathBuf::new(), |mut plain, part| {
        match part {
            Component::CurDir => {}
            Component::ParentDir if plain.file_name().is_some() => drop(plain.pop()),
            other => plain.push(other),
        }
        plain
    })
}

/// The link from a folder to a file.
fn between(folder: &Path, file: &Path) -> String {
    let shared = folder.components().zip(file.components()).take_while(|(a, b)| a == b).count();
    let up = folder.components().skip(shared).map(|_| "..".into());
    let down = file.components().skip(shared).map(|part| part.as_os_str().to_string_lossy().into_owned());
    up.chain(down).collect::<Vec<String>>().join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree() -> Tree {
        let page = |text| Page::read(text);
        let pages = [
            ("docs/book/README.md", page("[a](a.md) [caveats](../caveats.md)")),
            ("docs/book/a.md", page("# First part\n## What it is")),
            ("docs/caveats.md", page("# Caveats")),
        ];
        let pages: BTreeMap<PathBuf, Page> = pages.map(|(path, page)| (path.into(), page)).into();
        let files = pages.keys().cloned().chain(["docs/book/pictures/p.svg".into()]).collect();
        Tree { pages, files }
    }

    fn follow(from: &str, link: &str) -> String {
        let tree = tree();
        tree.follow(Path::new(from), link, &|path| tree.files.contains(path)).err().unwrap_or_default()
    }

    #[test]
    fn good_links_are_followed() {
        for link in ["a.md", "a.md#first-part", "./a.md", "../caveats.md#caveats", "pictures/p.svg", "https://x/y#z"] {
            assert_eq!(follow("docs/book/README.md", link), "", "{link}");
        }
        assert_eq!(follow("docs/book/a.md", "#what-it-is"), "");
    }

    #[test]
    fn broken_links_are_reported_with_a_suggestion() {
        for (link, mistake) in [
            ("b.md", "`b.md` leads to no file; did you mean `a.md`?"),
            ("caveats.md", "`caveats.md` leads to no file; did you mean `../caveats.md`?"),
            ("picture/p.svg", "`picture/p.svg` leads to no file; did you mean `pictures/p.svg`?"),
            ("../../../x", "`../../../x` leads to no file"),
            ("/docs/caveats.md", "`/docs/caveats.md` leads to no file"),
            (
                "a.md#first-prt",
                "`a.md#first-prt`: docs/book/a.md has no heading `#first-prt`; did you mean `first-part`?",
            ),
        ] {
            assert_eq!(follow("docs/book/README.md", link), mistake);
        }
    }

    #[test]
    fn a_chapter_that_is_not_listed_is_reported() {
        let mut tree = tree();
        assert_eq!(tree.unlisted(Path::new("docs/book/README.md")), [""; 0]);
        tree.pages.insert("docs/book/new.md".into(), Page::default());
        let expected = "docs/book/README.md: docs/book/new.md is not listed: add a line for it";
        assert_eq!(tree.unlisted(Path::new("docs/book/README.md")), [expected]);
    }
}
