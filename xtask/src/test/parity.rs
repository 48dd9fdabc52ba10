//! The layer below portable code is the same on each ISA: folders that mirror each other, public items of the same names,
//! functions with the same parameters and results.
//!
//! The layer is what `pub` items of an `arch` folder are. Items that only the folder itself uses are `pub(super)` or private, and
//! may differ. Functions of one ISA may be `const` where those of another are not; parameters may be called differently.

use super::items::items;
use crate::project::read_text;
use anyhow::{Context, Result, bail};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// The ISAs, as Rust calls them.
pub const ISAS: [&str; 2] = ["x86_64", "aarch64"];

/// The repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// All files with this ending below a folder, but for what is built.
pub fn files(folder: &Path, ending: &str) -> Result<Vec<PathBuf>> {
    let mut all = Vec::new();
    for entry in fs::read_dir(folder).with_context(|| format!("cannot list {}", folder.display()))? {
        let path = entry?.path();
        if path.is_dir() {
            if !path.ends_with("target") && !path.ends_with(".git") {
                all.extend(files(&path, ending)?);
            }
        } else if path.extension().is_some_and(|extension| extension == ending) {
            all.push(path);
        }
    }
    all.sort();
    Ok(all)
}

/// The folders that hold one folder or file per ISA.
pub fn layers() -> Result<Vec<PathBuf>> {
    let all = files(&root(), "rs")?;
    Ok(all
        .into_iter()
        .filter(|path| path.ends_with("arch/mod.rs"))
        .filter_map(|path| path.parent().map(Into::into))
        .collect())
}

/// Items of modules, by path below a folder; the first has no name.
type Offers = BTreeMap<String, BTreeSet<String>>;

/// The items that an ISA's folder or file offers.
fn offers(layer: &Path, isa: &str) -> Result<Offers> {
    let (folder, single) = (layer.join(isa), layer.join(format!("{isa}.rs")));
    match (folder.is_dir(), single.is_file()) {
        (true, false) => offers_of(&folder, &files(&folder, "rs")?),
        (false, true) => offers_of(&folder, &[single]),
        _ => bail!("{} has not one folder or file for {isa}", layer.display()),
    }
}

fn offers_of(folder: &Path, sources: &[PathBuf]) -> Result<Offers> {
    sources
        .iter()
        .map(|path| {
            let name = path.strip_prefix(folder).map_or(String::new(), |name| name.display().to_string());
            let items = items(&read_text(path)?).with_context(|| format!("{} is not understood", path.display()))?;
            Ok((name.trim_end_matches("mod.rs").into(), items))
        })
        .collect()
}

/// The items that one of two has and the other has not.
fn differences<'t>(ours: &'t Offers, theirs: &'t Offers) -> impl Iterator<Item = String> + 't {
    ours.iter().flat_map(|(module, items)| {
        let there = theirs.get(module);
        let missing = there.is_none().then(|| format!("the file {module}"));
        let lacks = items.iter().filter(move |item| there.is_some_and(|there| !there.contains(*item)));
        missing.into_iter().chain(lacks.map(move |item| format!("{module}: {item}")))
    })
}

#[test]
fn isa_folders_offer_the_same() -> Result<()> {
    let mut wrong = Vec::new();
    for layer in layers()? {
        let [first, second] = [offers(&layer, ISAS[0])?, offers(&layer, ISAS[1])?];
        for (isa, found) in [(ISAS[1], differences(&first, &second)), (ISAS[0], differences(&second, &first))] {
            wrong.extend(found.map(|what| format!("{}: {isa} lacks {what}", layer.display())));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}

/// The layer is exactly what `./x test isa` compiles portable code against.
#[test]
fn stubs_offer_the_same() -> Result<()> {
    let stubs = root().join(super::isa::STUBS);
    let mut wrong = Vec::new();
    for (name, layer) in super::isa::LAYERS {
        let folder = stubs.join(name);
        let stubs = offers_of(&folder, &files(&folder, "rs")?)?;
        let real = offers(&root().join(layer), ISAS[0])?;
        wrong.extend(differences(&real, &stubs).map(|what| format!("tests/isa/{name} lacks {what}")));
        wrong.extend(differences(&stubs, &real).map(|what| format!("tests/isa/{name} alone has {what}")));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}

/// The page of the book that describes the layer names all of it.
#[test]
fn the_book_names_all_of_the_layer() -> Result<()> {
    let page = read_text(&root().join("docs/book/porting.md"))?;
    let words: BTreeSet<_> = page.split(|c: char| !c.is_alphanumeric() && c != '_').collect();
    let mut missing = Vec::new();
    for (name, _) in super::isa::LAYERS {
        let folder = root().join(super::isa::STUBS).join(name);
        for (module, items) in offers_of(&folder, &files(&folder, "rs")?)? {
            let names = items.iter().filter_map(|item| name_of(item)).filter(|name| !words.contains(name));
            missing.extend(names.map(|item| format!("{name}, {module}: {item}")));
        }
    }
    assert!(missing.is_empty(), "docs/book/porting.md does not name\n{}", missing.join("\n"));
    Ok(())
}

/// The name in a line of [`items`].
fn name_of(item: &str) -> Option<&str> {
    let kinds = ["unsafe", "extern", "fn", "mod", "type", "const", "static", "use"];
    let word = item.split([' ', '(', '<']).find(|word| !kinds.contains(word))?;
    let path = word.trim_end_matches(':');
    Some(path.rsplit_once("::").map_or(path, |(_, name)| name))
}

#[test]
fn names_are_read_from_items() {
    for (item, name) in [
        ("unsafe extern fn leave(u64) -> !", "leave"),
        ("fn Registers::word(& self, usize) -> u64", "word"),
        ("const LINES: usize", "LINES"),
        ("unsafe fn operation0< const INDEX : usize >() -> u64", "operation0"),
        ("mod call", "call"),
    ] {
        assert_eq!(name_of(item), Some(name), "{item}");
    }
}

#[test]
fn layers_are_found() -> Result<()> {
    let layers = layers()?;
    for known in ["nucleus/src/arch", "runtime/src/arch", "apps/negtest/src/arch"] {
        assert!(layers.iter().any(|layer| layer.ends_with(known)), "{known} is not among {layers:?}");
    }
    Ok(())
}

#[test]
fn differences_are_reported() {
    let one = |text: &str| BTreeMap::from([("a.rs".to_string(), items(text).unwrap_or_default())]);
    let found = |ours, theirs| differences(&one(ours), &one(theirs)).collect::<Vec<_>>();
    assert_eq!(found("pub fn f(a: u8) {}", "pub fn f(b: u8) {}"), Vec::<String>::new());
    assert_eq!(found("pub fn f(a: u8) {}", "pub fn f(a: u16) {}"), ["a.rs: fn f(u8)"]);
    assert_eq!(found("fn f() {}", ""), Vec::<String>::new());
    let none = differences(&one(""), &BTreeMap::new()).collect::<Vec<_>>();
    assert_eq!(none, ["the file a.rs"]);
}
