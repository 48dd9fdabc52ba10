//! The public items of a Rust file: modules, public functions with the types of their parameters, public methods, types,
//! constants, and what is used publicly. Not a parser of Rust: it knows the items of files in `arch` folders, and gives an error for
//! anything else.

use crate::scan::{Texts, tokens, without_comments};
use anyhow::{Result, bail};
use std::collections::BTreeSet;

/// The public items, each as a line such as `fn Type::name(u64) -> bool`.
pub fn items(source: &str) -> Result<BTreeSet<String>> {
    let tokens = tokens(&without_comments(source, Texts::Blank));
    let tokens: Vec<&str> = tokens.iter().map(|token| token.text.as_str()).collect();
    let mut found = BTreeSet::new();
    Reader { tokens: &tokens, at: 0, found: &mut found }.items("", Block::Module)?;
    Ok(found)
}

/// The block that encloses items.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Block {
    Module,
    /// `impl`, and whatever else has items that count if they are public.
    Type,
    /// `extern`
    Foreign,
}

struct Reader<'t> {
    tokens: &'t [&'t str],
    at: usize,
    found: &'t mut BTreeSet<String>,
}

impl<'t> Reader<'t> {
    fn peek(&self) -> &'t str {
        self.tokens.get(self.at).copied().unwrap_or_default()
    }

    fn next(&mut self) -> &'t str {
        let token = self.peek();
        self.at += 1;
        token
    }

    fn take(&mut self, wanted: &str) -> bool {
        let is_there = self.peek() == wanted;
        self.at += usize::from(is_there);
        is_there
    }

    /// The tokens between a bracket, which is next, and the one that closes it.
    fn brackets(&mut self) -> Result<&'t [&'t str]> {
        let start = self.at + 1;
        let mut depth = 0_usize;
        while self.at < self.tokens.len() {
            match self.next() {
                "(" | "[" | "{" => depth += 1,
                ")" | "]" | "}" if depth == 1 => return Ok(&self.tokens[start..self.at - 1]),
                ")" | "]" | "}" if depth > 0 => depth -= 1,
                _ if depth == 0 => break,
                _ => {}
            }
        }
        bail!("a bracket is missing after `{}`", self.tokens.get(start..).unwrap_or_default().join(" "));
    }

    /// Tokens up to one of these, which stands in no bracket and stays.
    fn up_to(&mut self, ends: &[&str]) -> Result<Vec<&'t str>> {
        let start = self.at;
        while self.at < self.tokens.len() && !ends.contains(&self.peek()) {
            match self.peek() {
                "(" | "[" | "{" => drop(self.brackets()?),
                _ => self.at += 1,
            }
        }
        if self.at == self.tokens.len() {
            bail!("`{}` does not end", self.tokens[start..].join(" "));
        }
        Ok(self.tokens[start..self.at].to_vec())
    }

    fn items(&mut self, path: &str, within: Block) -> Result<()> {
        while self.at < self.tokens.len() {
            self.item(path, within)?;
        }
        Ok(())
    }

    /// The items in the braces that come next.
    fn nested(&mut self, path: &str, within: Block) -> Result<()> {
        let tokens = self.brackets()?;
        Reader { tokens, at: 0, found: self.found }.items(path, within)
    }

    fn item(&mut self, path: &str, within: Block) -> Result<()> {
        let mut is_for_tests = false;
        while self.take("#") {
            self.take("!");
            is_for_tests |= self.brackets()? == ["cfg", "(", "test", ")"];
        }
        let mut is_public = self.take("pub");
        if is_public && self.peek() == "(" {
            is_public = self.brackets()? == ["crate"];
        }
        let is_public = is_public && !is_for_tests;
        let mut modifiers = String::new();
        loop {
            match (self.peek(), self.tokens.get(self.at + 1).copied().unwrap_or_default()) {
                ("const", "fn" | "unsafe" | "extern") => self.at += 1,
                ("unsafe", _) | ("extern", "fn") => modifiers = modifiers + self.next() + " ",
                ("extern", "{") => {
                    self.at += 1;
                    return self.nested(path, Block::Foreign);
                }
                _ => break,
            }
        }
        match self.next() {
            "fn" => {
                let line = self.function(path, if within == Block::Foreign { "unsafe extern " } else { &modifiers })?;
                self.add(is_public, line);
            }
            "mod" => {
                let name = format!("{path}{}", self.next());
                self.add(!is_for_tests, format!("mod {name}"));
                if !self.take(";") {
                    let tokens = self.brackets()?;
                    if !is_for_tests {
                        Reader { tokens, at: 0, found: self.found }.items(&format!("{name}::"), within)?;
                    }
                }
            }
            "struct" | "enum" | "union" | "trait" => {
                let name = self.next();
                self.add(is_public, format!("type {path}{name}"));
                self.up_to(&[";", "{"]).map(drop)?;
                self.end_of_item()?;
            }
            "type" => {
                let name = self.next();
                self.add(is_public, format!("type {path}{name}"));
                self.up_to(&[";"])?;
                self.at += 1;
            }
            kind @ ("const" | "static") => {
                self.take("mut");
                let name = self.next();
                self.take(":");
                let of = joined(&self.up_to(&["=", ";"])?);
                self.add(is_public && name != "_", format!("{kind} {path}{name}: {of}"));
                self.up_to(&[";"])?;
                self.at += 1;
            }
            "use" => {
                let tree = self.up_to(&[";"])?;
                self.at += 1;
                for name in leaves(&tree) {
                    self.add(is_public, format!("use {path}{name}"));
                }
            }
            "impl" => {
                let header = self.impl_header()?;
                let of_trait = header.contains(&"for");
                let name = header.first().copied().unwrap_or_default();
                let tokens = self.brackets()?;
                if !of_trait && !is_for_tests {
                    Reader { tokens, at: 0, found: self.found }.items(&format!("{path}{name}::"), Block::Type)?;
                }
            }
            name if self.is_macro() => {
                self.at += usize::from(name == "macro_rules");
                self.brackets()?;
                self.take(";");
            }
            other => bail!("no item that is known begins with `{other}`"),
        }
        Ok(())
    }

    /// After the first word of a path: takes the rest of it, and the `!` of a macro.
    fn is_macro(&mut self) -> bool {
        while self.take("::") {
            self.at += 1;
        }
        self.take("!")
    }

    fn add(&mut self, counts: bool, line: String) {
        if counts {
            self.found.insert(line);
        }
    }

    fn end_of_item(&mut self) -> Result<()> {
        if self.take(";") {
            return Ok(());
        }
        self.brackets().map(drop)
    }

    /// After `impl`: the tokens up to the braces, without parameters that come first.
    fn impl_header(&mut self) -> Result<Vec<&'t str>> {
        if self.peek() == "<" {
            let mut depth = 0_usize;
            loop {
                match self.next() {
                    "<" => depth += 1,
                    ">" if depth == 1 => break,
                    ">" => depth -= 1,
                    "" => bail!("the parameters of an `impl` do not end"),
                    _ => {}
                }
            }
        }
        self.up_to(&["{"])
    }

    /// After `fn`: name, parameters of types, types of parameters, and result.
    fn function(&mut self, path: &str, modifiers: &str) -> Result<String> {
        let name = self.next();
        let mut head = String::new();
        let mut depth = 0_usize;
        while depth > 0 || self.peek() != "(" {
            match self.next() {
                "" => bail!("`fn {name}` has no parameters"),
                "<" => depth += 1,
                ">" => depth = depth.saturating_sub(1),
                _ => {}
            }
            head += self.tokens[self.at - 1];
            head.push(' ');
        }
        let parameters: Vec<String> = parameters(self.brackets()?).iter().map(|one| joined(one)).collect();
        let result = joined(&self.up_to(&["{", ";"])?);
        self.end_of_item()?;
        let line = format!("{modifiers}fn {path}{name}{}({}) {result}", head.trim_end(), parameters.join(", "));
        Ok(line.trim_end().into())
    }
}

/// Tokens as a text. Of a path the last part counts: it may be written with those before it or without.
fn joined(tokens: &[&str]) -> String {
    let is_word = |token: &str| token.chars().all(|c| c.is_alphanumeric() || c == '_');
    let leads_on = |at: usize| is_word(tokens[at]) && tokens.get(at + 1) == Some(&"::");
    let last = |at: &usize| tokens[*at] != "::" && !leads_on(*at);
    (0..tokens.len()).filter(last).map(|at| tokens[at]).collect::<Vec<_>>().join(" ")
}

/// The types of parameters; `self` as it is.
fn parameters<'t>(tokens: &[&'t str]) -> Vec<Vec<&'t str>> {
    let mut all: Vec<Vec<&str>> = vec![Vec::new()];
    let mut depth = 0_usize;
    for token in tokens {
        match *token {
            "(" | "[" | "{" | "<" => depth += 1,
            ")" | "]" | "}" | ">" => depth = depth.saturating_sub(1),
            "," if depth == 0 => {
                all.push(Vec::new());
                continue;
            }
            // The token before is the name.
            ":" if depth == 0 => {
                all.last_mut().map(Vec::clear);
                continue;
            }
            _ => {}
        }
        if let Some(last) = all.last_mut() {
            last.push(*token);
        }
    }
    all.retain(|one| !one.is_empty());
    all
}

/// The names that a `use` brings.
fn leaves<'t>(tree: &[&'t str]) -> Vec<&'t str> {
    let mut names = Vec::new();
    for (index, token) in tree.iter().enumerate() {
        let ends = matches!(tree.get(index + 1), None | Some(&"," | &"}"));
        if ends && !matches!(*token, "}" | "," | "{") {
            names.push(*token);
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::items;

    fn lines(source: &str) -> Vec<String> {
        items(source).map(|items| items.into_iter().collect()).unwrap_or_else(|error| vec![error.to_string()])
    }

    #[test]
    fn functions_have_types() {
        assert_eq!(
            lines("pub fn f(a: u8, mut b: &[u8; 4]) -> Result<(), E> { g(1) }"),
            ["fn f(u8, & [ u8 ; 4 ]) -> Result < ( ) , E >"]
        );
        assert_eq!(lines("#[inline(always)]\npub const fn f() {}"), ["fn f()"]);
        assert_eq!(lines("pub fn f(a: &a::b::C) -> d::E {}"), ["fn f(& C) -> E"]);
        assert_eq!(lines("pub unsafe extern \"C\" fn f() -> ! { loop {} }"), ["unsafe extern fn f() -> !"]);
        assert_eq!(
            lines("pub fn f<const N: usize, F: Fn(u8) -> u8>(f: F) {}"),
            ["fn f< const N : usize , F : Fn ( u8 ) -> u8 >(F)"]
        );
        assert_eq!(
            lines("unsafe extern \"C\" { pub fn f(x: u8) -> !; pub static S: u8; fn g(); }"),
            ["static S: u8", "unsafe extern fn f(u8) -> !"]
        );
        assert_eq!(lines("pub fn f(_: u8) {} // pub fn g() {}"), ["fn f(u8)"]);
    }

    #[test]
    fn only_what_is_public_counts() {
        assert!(
            lines(
                "fn f() {} pub(super) fn g() {} const A: u8 = 1; use a::b; macro_rules! m { () => { pub fn h() {} }; }"
            )
            .is_empty()
        );
        assert!(
            lines("m! { pub fn f() {} } a::b::m!(pub fn g() {}); impl Drop for A { fn drop(&mut self) {} }").is_empty()
        );
        assert!(lines("const _: () = assert!(true); #[cfg(test)] pub fn f() {}").is_empty());
        assert_eq!(lines("pub(crate) fn f() {}"), ["fn f()"]);
    }

    #[test]
    fn items_of_all_kinds() {
        assert_eq!(lines("mod a; pub mod b; mod c { pub fn f() {} }"), ["fn c::f()", "mod a", "mod b", "mod c"]);
        assert_eq!(
            lines("pub struct A { x: u8 } pub struct B(u8); pub enum C { D } pub type E = u8;"),
            ["type A", "type B", "type C", "type E"]
        );
        assert_eq!(
            lines("impl<T> A<T> { pub fn f(&self, x: T) {} fn g(self) {} pub const B: u8 = 1; }"),
            ["const A::B: u8", "fn A::f(& self, T)"]
        );
        assert_eq!(
            lines("pub const A: [u8; 2] = [1; 2]; pub static mut B: u8 = 1;"),
            ["const A: [ u8 ; 2 ]", "static B: u8"]
        );
        assert_eq!(lines("pub use a::{b, c as d, e::*};"), ["use *", "use b", "use d"]);
    }

    #[test]
    fn malformed_sources_are_errors() {
        for source in ["pub fn f(", "mod a {", "5", "pub const A: u8"] {
            assert!(items(source).is_err(), "{source}");
        }
    }
}
