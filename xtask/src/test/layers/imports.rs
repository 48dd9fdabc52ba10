//! The graph of imports: the files of a crate, and between them the imports of what ships.
//!
//! An import is a path to an item of another file, in a `use` or in the code. Three things are none: the declaration of a
//! module, a `use` of a module (the paths through it are), and a re-export, because a name is followed to the file
//! that defines it. Code under `#[cfg(test)]` is not read. Methods are not seen: their callers got the type somewhere.
//!
//! This reads tokens, not Rust: macros are read as they stand, and a local variable may pass for an item of the same name.

use crate::project::read_text;
use crate::scan::{Texts, Token, tokens, without_comments};
use anyhow::{Context, Result, bail};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// A source file.
#[derive(Debug)]
pub struct File {
    /// Where it lies.
    pub path: PathBuf,
    /// Its module, from the root of the crate.
    pub module: Vec<String>,
}

/// One file uses an item of another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Import {
    /// Number of the file that imports.
    pub from: usize,
    /// Line, from 1.
    pub line: usize,
    /// Number of the file that defines the item.
    pub to: usize,
    /// The item.
    pub item: String,
}

/// The files that are modules of a program or library, and the first import of each item of another.
pub fn imports(root: &Path) -> Result<(Vec<File>, Vec<Import>)> {
    let mut crate_ = Crate::default();
    crate_.file(root, Vec::new(), None)?;
    let imports = crate_.imports();
    Ok((crate_.files, imports))
}

/// The modules of a crate; the first is its root.
#[derive(Default)]
struct Crate {
    files: Vec<File>,
    modules: Vec<Module>,
}

struct Module {
    file: usize,
    parent: Option<usize>,
    children: BTreeMap<String, usize>,
    /// The items that it defines, those in functions included.
    items: BTreeSet<String>,
    uses: Vec<Use>,
    /// The tokens that are neither a `use` nor another module.
    code: Vec<Token>,
}

/// One name of a `use`.
struct Use {
    line: usize,
    path: Vec<String>,
    /// None: all names of the module.
    name: Option<String>,
    is_reexport: bool,
}

/// The target of a path.
#[derive(PartialEq, Eq)]
enum Target {
    Module(usize),
    /// Of this file.
    Item(usize, String),
    /// The module of this file has it, if anything does: a macro may make it.
    Unseen(usize, String),
}

/// Words before the name of an item.
const DEFINES: [&str; 9] = ["fn", "struct", "enum", "union", "trait", "const", "static", "type", "macro_rules"];
/// Words that may begin an item, after which it ends with its braces or a semicolon.
const BEGINS: [&str; 7] = ["pub", "mod", "use", "impl", "unsafe", "extern", "async"];
/// No path has more parts.
const LONGEST: usize = 12;
/// The paths that were looked up on the way to an item, each with its module.
type Seen = BTreeSet<(usize, Vec<String>)>;

impl Crate {
    /// Reads a file and the files of its modules.
    fn file(&mut self, path: &Path, module: Vec<String>, parent: Option<usize>) -> Result<usize> {
        let tokens = tokens(&without_comments(&read_text(path)?, Texts::Blank));
        self.files.push(File { path: path.into(), module: module.clone() });
        let folder = match (parent, path.file_stem().and_then(|stem| stem.to_str())) {
            (None, _) | (_, Some("mod")) => path.parent().unwrap_or(path).to_path_buf(),
            _ => path.with_extension(""),
        };
        let is_test = [&["#", "!"], &TEST[1..]].concat();
        let tokens = if starts(&tokens, &is_test) { &[] } else { &tokens[..] };
        self.module(tokens, self.files.len() - 1, &folder, &module, parent)
            .with_context(|| format!("cannot read {}", path.display()))
    }

    fn module(
        &mut self,
        tokens: &[Token],
        file: usize,
        folder: &Path,
        path: &[String],
        parent: Option<usize>,
    ) -> Result<usize> {
        let number = self.modules.len();
        let (children, items, uses, code) = <_>::default();
        self.modules.push(Module { file, parent, children, items, uses, code });
        let mut at = 0;
        while let Some(token) = tokens.get(at) {
            let text = |ahead: usize| tokens.get(at + ahead).map_or("", |token| &token.text);
            if starts(&tokens[at..], &TEST) {
                at = after_item(tokens, at + TEST.len());
            } else if token.text == "mod" && matches!(text(2), ";" | "{") {
                let name = text(1).to_string();
                if is_elsewhere(&tokens[..at]) {
                    let path = vec![format!("::{name}")];
                    self.modules[number].uses.push(Use {
                        name: Some(name),
                        path,
                        line: token.line,
                        is_reexport: false,
                    });
                    at += 3;
                    continue;
                }
                let path = [path, std::slice::from_ref(&name)].concat();
                let folder = folder.join(&name);
                let end = close(tokens, at + 2);
                let child = if text(2) == "{" {
                    self.module(&tokens[at + 3..end], file, &folder, &path, Some(number))?
                } else {
                    let files = [folder.with_extension("rs"), folder.join("mod.rs")];
                    let Some(file) = files.iter().find(|file| file.is_file()) else {
                        bail!("line {}: no file of module `{name}`", token.line);
                    };
                    self.file(file, path, Some(number))?
                };
                self.modules[number].children.insert(name, child);
                at = end + 1;
            } else if token.text == "use" && text(1) != "<" {
                let before = at.checked_sub(1).map_or("", |before| &tokens[before].text);
                let end = at + tokens[at..].iter().position(|token| token.text == ";").context("`use` without end")?;
                let uses = &mut self.modules[number].uses;
                tree(&tokens[at + 1..end], &[], matches!(before, "pub" | ")"), uses);
                at = end + 1;
            } else {
                let module = &mut self.modules[number];
                if DEFINES.contains(&token.text.as_str()) {
                    let name = if text(1) == "!" { text(2) } else { text(1) };
                    module.items.insert(name.into());
                }
                module.code.push(token.clone());
                at += 1;
            }
        }
        Ok(number)
    }

    /// The first import of each item.
    fn imports(&self) -> Vec<Import> {
        let mut found: Vec<Import> = Vec::new();
        for (number, module) in self.modules.iter().enumerate() {
            for one in module.uses.iter().filter(|one| !one.is_reexport) {
                for target in self.resolve(number, &one.path, &mut Seen::new()) {
                    let target = match (target, &one.name) {
                        (Target::Module(glob), None) => Target::Item(self.modules[glob].file, "*".into()),
                        (target, _) => target,
                    };
                    found.extend(self.import(module.file, one.line, target));
                }
            }
            for (at, token) in module.code.iter().enumerate() {
                if begins_path(&module.code[..at], token) {
                    let path = path_from(&module.code[at..]);
                    for target in self.resolve(number, &path, &mut Seen::new()) {
                        found.extend(self.import(module.file, token.line, target));
                    }
                }
            }
        }
        found.sort_by(|one, other| {
            (one.from, one.to, &one.item, one.line).cmp(&(other.from, other.to, &other.item, other.line))
        });
        found.dedup_by(|one, first| (one.from, one.to, &one.item) == (first.from, first.to, &first.item));
        found
    }

    fn import(&self, from: usize, line: usize, target: Target) -> Option<Import> {
        match target {
            Target::Item(to, item) | Target::Unseen(to, item) if to != from => Some(Import { from, line, to, item }),
            _ => None,
        }
    }

    /// The meaning of a path in a module; nothing if it leads out of the crate.
    fn resolve(&self, module: usize, path: &[String], seen: &mut Seen) -> Vec<Target> {
        let Some((first, rest)) = path.split_first() else { return vec![Target::Module(module)] };
        match first.as_str() {
            "crate" => self.below(0, rest, seen),
            "self" => self.below(module, rest, seen),
            "super" => self.modules[module].parent.map_or(Vec::new(), |parent| match rest.first() {
                Some(again) if again == "super" => self.resolve(parent, rest, seen),
                _ => self.below(parent, rest, seen),
            }),
            _ => self.named(module, path, seen),
        }
    }

    /// The same for a path that begins with what the module has.
    fn below(&self, module: usize, path: &[String], seen: &mut Seen) -> Vec<Target> {
        let found = if path.is_empty() { vec![Target::Module(module)] } else { self.named(module, path, seen) };
        match path.first() {
            Some(name) if found.is_empty() && !self.uses_name(module, name) => {
                vec![Target::Unseen(self.modules[module].file, name.clone())]
            }
            _ => found,
        }
    }

    /// Whether the module has the name from elsewhere: from another crate, if it leads nowhere.
    fn uses_name(&self, module: usize, name: &str) -> bool {
        self.modules[module].uses.iter().any(|one| one.name.as_deref() == Some(name))
    }

    /// The same, and nothing if the module has no such name.
    fn named(&self, number: usize, path: &[String], seen: &mut Seen) -> Vec<Target> {
        let (module, name, rest) = (&self.modules[number], &path[0], &path[1..]);
        // Names that lead to each other, one that is reached by several ways, a glob of another crate that grows for ever.
        if path.len() > LONGEST || !seen.insert((number, path.to_vec())) {
            return Vec::new();
        }
        let is_item = module.items.contains(name);
        // A function may be called as a module is; a longer path goes through the module.
        if let Some(child) = module.children.get(name).filter(|_| !is_item || !rest.is_empty()) {
            return self.below(*child, rest, seen);
        }
        if is_item {
            return vec![Target::Item(module.file, name.clone())];
        }
        let named = |one: &&Use| one.name.as_ref().is_none_or(|alias| alias == name);
        let mut found = Vec::new();
        for one in module.uses.iter().filter(named) {
            let is_glob = one.name.is_none();
            let path = [&one.path[..], if is_glob { path } else { rest }].concat();
            let targets = self.resolve(number, &path, seen).into_iter();
            found.extend(targets.filter(|target| !is_glob || !matches!(target, Target::Unseen(..))));
        }
        found
    }
}

/// The attribute of code that is only for tests.
const TEST: [&str; 7] = ["#", "[", "cfg", "(", "test", ")", "]"];

/// Whether what follows has an attribute that says in which file it is: that of another crate, which is none of this one's.
fn is_elsewhere(before: &[Token]) -> bool {
    let start = before.iter().rposition(|token| token.text == "#").map_or(&[][..], |start| &before[start..]);
    // Its end is the end of what comes before.
    starts(start, &["#", "[", "path", "="]) && close(start, 1) + 1 == start.len()
}

fn starts(tokens: &[Token], texts: &[&str]) -> bool {
    tokens.len() >= texts.len() && tokens.iter().zip(texts).all(|(token, text)| token.text == *text)
}

/// The place of the bracket that closes the one here; here, if there is none.
fn close(tokens: &[Token], at: usize) -> usize {
    let mut depth = 0_usize;
    for (place, token) in tokens.iter().enumerate().skip(at) {
        match token.text.as_str() {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 {
            return place;
        }
    }
    tokens.len()
}

/// The place after an item, or after a field, a variant or an arm.
fn after_item(tokens: &[Token], mut at: usize) -> usize {
    while tokens.get(at).is_some_and(|token| token.text == "#") {
        at = close(tokens, at + 1) + 1;
    }
    let first = tokens.get(at).map_or("", |token| &token.text);
    let is_item = DEFINES.contains(&first) || BEGINS.contains(&first);
    let is_use = tokens[at..].iter().take_while(|token| token.text != "{").any(|token| token.text == "use");
    while let Some(token) = tokens.get(at) {
        let end = close(tokens, at);
        match token.text.as_str() {
            ";" => return end + 1,
            "{" if is_item && !is_use => return end + 1,
            "," if !is_item => return end + 1,
            ")" | "]" | "}" => return at,
            _ => at = end + 1,
        }
    }
    at
}

/// Adds the names of a `use`.
fn tree(tokens: &[Token], before: &[String], is_reexport: bool, uses: &mut Vec<Use>) {
    let mut path = before.to_vec();
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        let line = token.line;
        match token.text.as_str() {
            "{" => {
                let end = close(tokens, at);
                tree(&tokens[at + 1..end], &path, is_reexport, uses);
                at = end + 1;
                continue;
            }
            "*" => uses.push(Use { line, path: path.clone(), name: None, is_reexport }),
            "," => path = before.to_vec(),
            "::" => {}
            name => {
                if name != "self" || path.is_empty() {
                    path.push(name.into());
                }
                let alias = match tokens.get(at + 1).map(|token| token.text.as_str()) {
                    Some("::") => None,
                    Some("as") => {
                        at += 2;
                        tokens.get(at).map(|token| token.text.clone())
                    }
                    _ => path.last().cloned(),
                };
                uses.extend(alias.map(|name| Use { line, path: path.clone(), name: Some(name), is_reexport }));
            }
        }
        at += 1;
    }
}

/// Whether a token is the first of a path.
fn begins_path(before: &[Token], token: &Token) -> bool {
    let is_name = token.text.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_');
    let ahead = |count: usize| before.len().checked_sub(count).map_or("", |at| &before[at].text);
    is_name
        && match ahead(1) {
            "::" => false,
            "." => ahead(2) == ".",
            word => !DEFINES.contains(&word),
        }
}

/// The path that begins here; one name is a path as well.
fn path_from(tokens: &[Token]) -> Vec<String> {
    let mut path = vec![tokens[0].text.clone()];
    for pair in tokens[1..].chunks_exact(2) {
        let is_name = pair[1].text.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_');
        if pair[0].text != "::" || !is_name {
            break;
        }
        path.push(pair[1].text.clone());
    }
    path
}
