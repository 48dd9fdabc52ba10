//! Small crates, and what is said of them.

use super::{LIST, List, Unit, complaints};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// A crate `c` of these files of its folder `src`.
fn unit(files: &[(&str, &str)]) -> Unit {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let root = std::env::temp_dir().join(format!("cairn-layers-{}-{number}", std::process::id()));
    for (path, text) in files {
        let path: PathBuf = root.join("c/src").join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let unit = Unit::read(&root, Path::new("c"), &root.join("c/src/main.rs"));
    fs::remove_dir_all(root).unwrap();
    unit.unwrap()
}

/// The imports, as `a.rs:1 x of b.rs`.
fn imports(files: &[(&str, &str)]) -> Vec<String> {
    let unit = unit(files);
    let name = |file: usize| unit.files[file].path.strip_prefix("c/src").unwrap().display();
    let line = |import: &super::Import| {
        format!("{}:{} {} of {}", name(import.from), import.line, import.item, name(import.to))
    };
    unit.imports.iter().map(line).collect()
}

fn said(files: &[(&str, &str)], list: &str) -> Vec<String> {
    complaints(&[unit(files)], &toml::from_str::<List>(list).unwrap())
}

const CYCLE: [(&str, &str); 3] = [
    ("main.rs", "mod a;\nmod b;\nfn main() { a::f() }"),
    ("a.rs", "use crate::b::T;\npub fn f() { T::g() }"),
    ("b.rs", "pub struct T;\nimpl T { pub fn g() {\n    crate::a::f()\n} }"),
];
const CYCLE_SAID: &str = "c: a cycle of imports\n  \
    c/src/a.rs:1 imports `T` of c/src/b.rs\n  \
    c/src/b.rs:3 imports `f` of c/src/a.rs";

#[test]
fn paths_lead_to_the_file_that_defines() {
    let b = ("b.rs", "pub struct T; pub mod inner { pub fn deep() {} }");
    let at = |text: &str| imports(&[("main.rs", "mod a; mod b;"), ("a.rs", text), b]);
    for text in [
        "use crate::b::T;",
        "use super::b::{self, T as U};",
        "use {crate::b::{T, inner}};",
        "use crate::b; fn f(_: b::T) {}",
        "use crate::b as c; fn f(_: Option<c::T>) {}",
        "mod m { use super::super::b::T; }",
        "mod m { use super::*; fn f(_: b::T) {} } use crate::b;",
        "fn f() { println!(\"{:?}\", crate::b::T) }",
    ] {
        assert_eq!(at(text), ["a.rs:1 T of b.rs"], "{text}");
    }
    assert_eq!(at("\nfn f() { crate::b::inner::deep() }"), ["a.rs:2 deep of b.rs"]);
    assert_eq!(at("use crate::b::*;"), ["a.rs:1 * of b.rs"]);
    assert_eq!(at("use crate::b::made_by_a_macro;"), ["a.rs:1 made_by_a_macro of b.rs"]);
}

#[test]
fn re_exports_are_passed_through() {
    let files = |a| {
        [
            ("main.rs", "mod a; mod f;"),
            ("a.rs", a),
            ("f/mod.rs", "mod x;\nmod y;\npub use x::*;\npub use y::Y;"),
            ("f/x.rs", "pub struct X;"),
            ("f/y.rs", "pub struct Y;"),
        ]
    };
    assert_eq!(imports(&files("use crate::f::{X, Y};")), ["a.rs:1 X of f/x.rs", "a.rs:1 Y of f/y.rs"]);
    let used = [("main.rs", "mod a;\npub use a::T;\nfn f(_: T) {}"), ("a.rs", "pub struct T;")];
    assert_eq!(imports(&used), ["main.rs:3 T of a.rs"]);
}

#[test]
fn names_that_are_no_imports_are_ignored() {
    let a = |text| [("main.rs", "mod a; mod b; use other::b_fn;"), ("a.rs", text), ("b.rs", "pub struct T;")];
    for text in [
        "use crate::b;",
        "// crate::b::T\n/* crate::b::T */ const X: &str = \"crate::b::T\";",
        "#[cfg(test)]\nuse crate::b::T;",
        "#[cfg(test)]\n#[allow(x)]\nmod tests { use crate::b::T; }",
        "#[cfg(test)]\nfn f(a: u8, b: [u8; 2]) { crate::b::T }",
        "struct S {\n    #[cfg(test)]\n    x: crate::b::T,\n}",
        "use b::T; use std::b::T as U;",
        "fn f(x: X) { x.b::<u8>(); self::f(x) }",
        "use crate::b_fn; fn f() { b_fn() }",
    ] {
        assert!(imports(&a(text)).is_empty(), "{text}: {:?}", imports(&a(text)));
    }
    let file = [("main.rs", "mod a; mod b;"), ("a.rs", "#![cfg(test)]\nuse crate::b::T;"), ("b.rs", "pub struct T;")];
    assert!(imports(&file).is_empty());
    assert_eq!(imports(&a("#[cfg(not(test))]\nuse crate::b::T;")), ["a.rs:2 T of b.rs"]);
}

#[test]
fn a_cycle_of_files_is_named_line_by_line() {
    assert_eq!(said(&CYCLE, ""), [CYCLE_SAID]);
}

#[test]
fn a_parent_and_its_child() {
    let child = ("a.rs", "use super::T;\npub fn f(_: T) {}");
    assert!(said(&[("main.rs", "mod a; struct T;"), child], "").is_empty(), "the child is above");
    assert_eq!(
        said(&[("main.rs", "mod a; struct T;\nfn main() { a::f(T) }"), child], ""),
        ["c: a cycle of imports\n  \
          c/src/main.rs:2 imports `f` of c/src/a.rs\n  \
          c/src/a.rs:1 imports `T` of c/src/main.rs"]
    );
}

/// No file uses one that uses it, but each folder uses the other.
const FOLDERS: [(&str, &str); 7] = [
    ("main.rs", "mod p; mod q;"),
    ("p/mod.rs", "pub mod low; mod high;"),
    ("p/low.rs", "pub struct T;"),
    ("p/high.rs", "use crate::q::high::f;"),
    ("q/mod.rs", "pub mod high; mod low;"),
    ("q/high.rs", "pub fn f() {}"),
    ("q/low.rs", "\nuse crate::p::low::T;"),
];

#[test]
fn a_cycle_of_folders() {
    let cycle = "c: a cycle of imports\n  \
        c/src/p/high.rs:1 imports `f` of c/src/q/high.rs\n  \
        c/src/q/low.rs:2 imports `T` of c/src/p/low.rs";
    assert_eq!(said(&FOLDERS, ""), [cycle]);
    let row = "[[import]]\nfrom = \"c/src/p\"\nto = \"c/src/q\"\nreason = \"because\"";
    assert_eq!(
        said(&FOLDERS, row),
        [format!("{LIST}: c/src/p to c/src/q: these are folders, between which nothing is excepted")]
    );
}

#[test]
fn rows_except_and_are_needed() {
    let row = |from: &str, to: &str, reason: &str| {
        format!("[[import]]\nfrom = \"c/src/{from}\"\nto = \"c/src/{to}\"\nreason = \"{reason}\"\n")
    };
    assert!(said(&CYCLE, &row("b.rs", "a.rs", "because")).is_empty());
    assert_eq!(said(&CYCLE, &row("b.rs", "a.rs", " ")), [format!("{LIST}: a row gives no reason")]);
    let needless = format!("{LIST}: c/src/main.rs to c/src/a.rs: without this row there is no cycle");
    assert_eq!(said(&CYCLE, &row("main.rs", "a.rs", "because")), [CYCLE_SAID.into(), needless.clone()]);
    let both = row("b.rs", "a.rs", "because") + &row("main.rs", "a.rs", "because");
    assert_eq!(said(&CYCLE, &both), [needless]);
}

#[test]
fn crates_are_left_out_as_long_as_they_have_cycles() {
    let row = |place: &str| format!("[[left_out]]\ncrate = \"{place}\"\nreason = \"because\"");
    assert!(said(&CYCLE, &row("c")).is_empty());
    assert_eq!(said(&CYCLE, &row("d")), [CYCLE_SAID.into(), format!("{LIST}: d is left out and has no cycle")]);
    assert_eq!(said(&[("main.rs", "")], &row("c")), [format!("{LIST}: c is left out and has no cycle")]);
}

#[test]
fn a_file_that_is_missing_is_an_error() {
    let root = std::env::temp_dir().join(format!("cairn-layers-missing-{}", std::process::id()));
    fs::create_dir_all(&root).unwrap();
    fs::write(root.join("main.rs"), "\nmod a;").unwrap();
    let error = Unit::read(&root, Path::new("c"), &root.join("main.rs")).err().map(|error| format!("{error:#}"));
    fs::remove_dir_all(&root).unwrap();
    assert!(error.is_some_and(|error| error.ends_with("main.rs: line 2: no file of module `a`")));
}

#[test]
fn a_module_in_the_file_of_another_crate_is_none_of_this_one() {
    let main = "#[path = \"../../other/src/a.rs\"]\nmod a;\nmod b;\npub struct Main;";
    let found = imports(&[("main.rs", main), ("b.rs", "use crate::a::T; use crate::Main; fn f(_: crate::a::U) {}")]);
    assert_eq!(found, ["b.rs:1 Main of main.rs"]);
}

#[test]
fn names_that_lead_to_each_other_end() {
    let b = "pub use crate::a::*; use other::prelude::*; pub use crate::a::x as y;";
    let a = "pub use crate::b::*; use other::prelude::*; pub use crate::b::y as x; fn f() { crate::b::nothing() }";
    assert_eq!(imports(&[("main.rs", "mod a; mod b;"), ("a.rs", a), ("b.rs", b)]), ["a.rs:1 nothing of b.rs"]);
}

/// The page of the book names the folders of the nucleus from the top down, and each file where it is.
#[test]
fn the_book_has_the_layers_of_the_nucleus() {
    let root = crate::test::parity::root();
    let page = fs::read_to_string(root.join("docs/book/nucleus.md")).unwrap();
    let mut rows: Vec<(String, String)> = Vec::new();
    for row in page.lines().filter_map(|line| line.strip_prefix("| ")).filter(|row| row.contains('`')) {
        let (folder, rest) = row.split_once('|').unwrap();
        match folder.trim().strip_prefix('`').and_then(|folder| folder.strip_suffix("/`")) {
            Some(folder) => rows.push((folder.into(), rest.into())),
            None => rows.last_mut().unwrap().1 += rest,
        }
    }
    let unit = Unit::read(&root, Path::new("nucleus"), &root.join("nucleus/src/main.rs")).unwrap();
    let place = |folder: &str| rows.iter().position(|(name, _)| name == folder);
    for file in unit.files.iter().filter(|file| file.module.len() > 1 && !file.path.ends_with("mod.rs")) {
        let (folder, name) = (&file.module[0], &file.module[1]);
        let at = place(folder).unwrap_or_else(|| panic!("docs/book/nucleus.md has no folder `{folder}/`"));
        let is_named =
            folder == "arch" || ["`", "`, ", "/"].iter().any(|end| rows[at].1.contains(&format!("`{name}{end}")));
        assert!(is_named, "docs/book/nucleus.md does not name {}", file.path.display());
    }
    for import in &unit.imports {
        let [from, to] =
            [import.from, import.to].map(|file| unit.files[file].module.first().and_then(|name| place(name)));
        let (Some(from), Some(to)) = (from, to) else { continue };
        assert!(from <= to, "docs/book/nucleus.md has `{}/` above `{}/`", rows[to].0, rows[from].0);
    }
}
