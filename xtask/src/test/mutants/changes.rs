//! Changes of a line or two that a careless hand could make, made from sources: of Rust along its syntax, of assembly by
//! instructions. The operators are those of `cargo-mutants`, and what this system adds: rights, and registers that stay.

use anyhow::{Context, Result};
use proc_macro2::{Span, TokenStream, TokenTree};
use std::ops::Range;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{BinOp, Block, Expr, Lit, ReturnType, Signature, Stmt, Type, UnOp};

/// A change of one place of a file, which keeps the number of lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Bytes of the source that go.
    pub at: Range<usize>,
    /// The text that replaces them.
    pub new: String,
    /// Its first line, from 1.
    pub line: usize,
    /// Its kind, in a few words.
    pub about: &'static str,
}

impl Change {
    /// The source with the change.
    pub fn apply(&self, source: &str) -> String {
        let mut changed = source.to_owned();
        changed.replace_range(self.at.clone(), &self.new);
        changed
    }
}

/// All changes of a Rust file.
pub fn of_rust(source: &str) -> Result<Vec<Change>> {
    let file = syn::parse_file(source).context("not parsed as Rust")?;
    let mut maker = Maker { source, changes: Vec::new(), bounds: 0 };
    maker.visit_file(&file);
    Ok(maker.changes)
}

/// Rights, of which one may stand where another should. Both lists go round.
const RIGHTS: &[&[&str]] =
    &[&["COPY", "READ", "WRITE", "CONTROL", "USE", "MINT"], &["MAP_READ", "MAP_WRITE", "MAP_EXECUTE"]];

struct Maker<'s> {
    source: &'s str,
    changes: Vec<Change>,
    /// Not 0: in a comparison or a constant, where a number is a bound.
    bounds: usize,
}

impl Maker<'_> {
    fn add(&mut self, at: Range<usize>, new: impl Into<String>, about: &'static str) {
        let line = self.source[..at.start].matches('\n').count() + 1;
        self.changes.push(Change { at, new: new.into(), line, about });
    }

    fn replace(&mut self, span: Span, new: impl Into<String>, about: &'static str) {
        self.add(span.byte_range(), new, about);
    }

    /// Leaves out something that may have several lines.
    fn remove(&mut self, span: Span, about: &'static str) {
        let at = span.byte_range();
        let lines = "\n".repeat(self.source[at.clone()].matches('\n').count());
        self.add(at, lines, about);
    }

    /// A function that ends at once, with each result that its type has for that.
    fn end_early(&mut self, signature: &Signature, block: &Block) {
        if signature.constness.is_some() || block.stmts.is_empty() {
            return;
        }
        let results: &[&str] = match &signature.output {
            ReturnType::Default => &["return;"],
            ReturnType::Type(_, kind) => match &**kind {
                Type::Path(path) => match path.path.segments.last() {
                    Some(last) if last.ident == "bool" => &["return true;", "return false;"],
                    Some(last) if last.ident == "Option" => &["return None;"],
                    Some(last) if last.ident == "Result" && is_of_nothing(&last.arguments) => &["return Ok(());"],
                    _ => &[],
                },
                _ => &[],
            },
        };
        let start = block.brace_token.span.open().byte_range().end;
        for result in results {
            self.add(start..start, format!(" {result}"), "ends at once");
        }
    }
}

/// Whether a result's value is `()`.
fn is_of_nothing(arguments: &syn::PathArguments) -> bool {
    let syn::PathArguments::AngleBracketed(arguments) = arguments else { return false };
    matches!(arguments.args.first(), Some(syn::GenericArgument::Type(Type::Tuple(tuple))) if tuple.elems.is_empty())
}

fn is_for_tests(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let has_word =
            |tokens: &TokenStream| tokens.to_string().split(|c: char| !c.is_alphanumeric()).any(|it| it == "test");
        attribute.path().is_ident("test")
            || attribute.meta.require_list().is_ok_and(|list| list.path.is_ident("cfg") && has_word(&list.tokens))
    })
}

impl<'ast> Visit<'ast> for Maker<'_> {
    fn visit_attribute(&mut self, _: &'ast syn::Attribute) {}

    fn visit_item(&mut self, item: &'ast syn::Item) {
        let attributes = match item {
            syn::Item::Mod(it) => &it.attrs,
            syn::Item::Fn(it) => &it.attrs,
            syn::Item::Impl(it) => &it.attrs,
            _ => &Vec::new(),
        };
        if !is_for_tests(attributes) {
            visit::visit_item(self, item);
        }
    }

    fn visit_item_fn(&mut self, it: &'ast syn::ItemFn) {
        self.end_early(&it.sig, &it.block);
        visit::visit_item_fn(self, it);
    }

    fn visit_impl_item_fn(&mut self, it: &'ast syn::ImplItemFn) {
        if !is_for_tests(&it.attrs) {
            self.end_early(&it.sig, &it.block);
            visit::visit_impl_item_fn(self, it);
        }
    }

    fn visit_item_const(&mut self, it: &'ast syn::ItemConst) {
        self.bounds += 1;
        self.visit_expr(&it.expr);
        self.bounds -= 1;
    }

    fn visit_stmt(&mut self, statement: &'ast Stmt) {
        match statement {
            Stmt::Expr(Expr::Try(expression), Some(_)) => {
                self.remove(statement.span(), "leaves out a check");
                let question = expression.question_token.span.byte_range();
                let start = statement.span().byte_range().start;
                let call = &self.source[start..question.start];
                self.add(start..question.end, format!("let _ = {call}"), "ignores an error");
            }
            Stmt::Expr(Expr::Call(_) | Expr::MethodCall(_) | Expr::Assign(_), Some(_)) => {
                self.remove(statement.span(), "leaves out a statement");
            }
            Stmt::Expr(Expr::Binary(binary), Some(_)) if is_assignment(&binary.op) => {
                self.remove(statement.span(), "leaves out a statement");
            }
            _ => {}
        }
        visit::visit_stmt(self, statement);
    }

    fn visit_expr_binary(&mut self, it: &'ast syn::ExprBinary) {
        let others: &[&str] = match it.op {
            BinOp::Eq(_) => &["!="],
            BinOp::Ne(_) => &["=="],
            BinOp::Lt(_) => &["<=", ">="],
            BinOp::Le(_) => &["<", ">"],
            BinOp::Gt(_) => &[">=", "<="],
            BinOp::Ge(_) => &[">", "<"],
            BinOp::And(_) => &["||"],
            BinOp::Or(_) => &["&&"],
            BinOp::Add(_) => &["-"],
            BinOp::Sub(_) => &["+"],
            BinOp::BitAnd(_) => &["|"],
            BinOp::BitOr(_) => &["&"],
            BinOp::Shl(_) => &[">>"],
            BinOp::Shr(_) => &["<<"],
            BinOp::AddAssign(_) => &["-="],
            BinOp::SubAssign(_) => &["+="],
            _ => &[],
        };
        for other in others {
            self.replace(it.op.span(), *other, "another operator");
        }
        if matches!(it.op, BinOp::And(_) | BinOp::Or(_)) {
            let neutral = if matches!(it.op, BinOp::And(_)) { "true" } else { "false" };
            for side in [&it.left, &it.right] {
                if !matches!(**side, Expr::Let(_)) {
                    self.replace(side.span(), neutral, "leaves out a condition");
                }
            }
        }
        let is_comparison =
            matches!(it.op, BinOp::Eq(_) | BinOp::Ne(_) | BinOp::Lt(_) | BinOp::Le(_) | BinOp::Gt(_) | BinOp::Ge(_));
        self.bounds += usize::from(is_comparison);
        visit::visit_expr_binary(self, it);
        self.bounds -= usize::from(is_comparison);
    }

    fn visit_expr_unary(&mut self, it: &'ast syn::ExprUnary) {
        if matches!(it.op, UnOp::Not(_)) {
            self.replace(it.op.span(), "", "the opposite");
        }
        visit::visit_expr_unary(self, it);
    }

    fn visit_expr_if(&mut self, it: &'ast syn::ExprIf) {
        if !matches!(*it.cond, Expr::Let(_) | Expr::Binary(_)) {
            for always in ["true", "false"] {
                self.replace(it.cond.span(), always, "a condition without a look");
            }
        }
        visit::visit_expr_if(self, it);
    }

    fn visit_expr_lit(&mut self, it: &'ast syn::ExprLit) {
        if self.bounds > 0
            && let Lit::Int(number) = &it.lit
            && let Ok(value) = number.base10_parse::<u64>()
        {
            let next = format!("{}{}", value.wrapping_add(1), number.suffix());
            self.replace(number.span(), next, "a bound moved by one");
        }
    }

    fn visit_expr_path(&mut self, it: &'ast syn::ExprPath) {
        if let Some(name) = it.path.segments.last().map(|last| &last.ident) {
            for list in RIGHTS {
                if let Some(place) = list.iter().position(|right| name == right) {
                    self.replace(name.span(), list[(place + 1) % list.len()], "another right");
                }
            }
        }
        visit::visit_expr_path(self, it);
    }

    fn visit_macro(&mut self, it: &'ast syn::Macro) {
        let is_assembly = it.path.segments.last().is_some_and(|last| last.ident == "asm" || last.ident == "naked_asm");
        if is_assembly {
            for token in it.tokens.clone() {
                if let TokenTree::Literal(text) = token
                    && text.to_string().starts_with('"')
                {
                    self.replace(text.span(), "\"\"", "leaves out an instruction");
                }
            }
        }
    }
}

fn is_assignment(op: &BinOp) -> bool {
    matches!(
        op,
        BinOp::AddAssign(_)
            | BinOp::SubAssign(_)
            | BinOp::BitAndAssign(_)
            | BinOp::BitOrAssign(_)
            | BinOp::BitXorAssign(_)
    )
}

/// Conditions of jumps, and their opposites.
const JUMPS: &[[&str; 2]] = &[
    ["je", "jne"],
    ["jz", "jnz"],
    ["ja", "jbe"],
    ["jae", "jb"],
    ["jl", "jge"],
    ["jg", "jle"],
    ["js", "jns"],
    ["jc", "jnc"],
    ["b.eq", "b.ne"],
    ["b.hi", "b.ls"],
    ["b.hs", "b.lo"],
    ["b.lt", "b.ge"],
    ["b.gt", "b.le"],
    ["b.mi", "b.pl"],
    ["cbz", "cbnz"],
    ["tbz", "tbnz"],
];

/// All changes of an assembly file: an instruction is left out, a jump has the opposite condition, two instructions
/// change their places.
pub fn of_assembly(source: &str) -> Vec<Change> {
    let mut changes = Vec::new();
    let mut last: Option<Range<usize>> = None;
    let mut start = 0;
    for (number, text) in source.split_inclusive('\n').enumerate() {
        let line = number + 1;
        let found = instruction(text).map(|at| start + at.start..start + at.end);
        start += text.len();
        let Some(at) = found else {
            last = None;
            continue;
        };
        let own = &source[at.clone()];
        changes.push(Change { at: at.clone(), new: String::new(), line, about: "leaves out an instruction" });
        let (name, rest) = own.split_at(own.find(char::is_whitespace).unwrap_or(own.len()));
        let opposite = JUMPS.iter().find_map(|[one, other]| match name {
            _ if name == *one => Some(other),
            _ if name == *other => Some(one),
            _ => None,
        });
        if let Some(opposite) = opposite {
            changes.push(Change { at: at.clone(), new: format!("{opposite}{rest}"), line, about: "the opposite" });
        }
        if let Some(before) = last.replace(at.clone()) {
            let (first, between) = (&source[before.clone()], &source[before.end..at.start]);
            if first != own && !between.contains(':') {
                let new = format!("{own}{between}{first}");
                let at = before.start..at.end;
                changes.push(Change { at, new, line: line - 1, about: "swaps two instructions" });
            }
        }
    }
    changes
}

/// Where in a line its instruction stands, without label and comment.
fn instruction(line: &str) -> Option<Range<usize>> {
    let end = ["//", "#"].iter().filter_map(|sign| comment(line, sign)).min().unwrap_or(line.len());
    let code = &line[..end];
    let start = code.find(':').map_or(0, |colon| colon + 1);
    let text = code[start..].trim();
    let is_instruction = text.starts_with(|c: char| c.is_ascii_alphabetic());
    let at = start + code[start..].len() - code[start..].trim_start().len();
    is_instruction.then(|| at..at + text.len())
}

/// Where a comment begins. `#` also stands before a number.
fn comment(line: &str, sign: &str) -> Option<usize> {
    let at = line.find(sign)?;
    let is_comment = sign != "#" || line[at + 1..].starts_with(' ');
    is_comment.then_some(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The changed lines.
    fn changed(source: &str, changes: &[Change]) -> Vec<String> {
        let text = |change: &Change| {
            let all = change.apply(source);
            assert_eq!(all.lines().count(), source.lines().count(), "another number of lines: {all}");
            let line = all.lines().nth(change.line - 1).unwrap_or_default();
            line.trim().to_owned()
        };
        changes.iter().map(text).collect()
    }

    #[test]
    fn comparisons_conditions_and_bounds() -> Result<()> {
        let source = "fn f(a: u64) -> u64 {\n    if a < 4 && !is(a) {\n        g(1);\n    }\n    a + 2\n}\n";
        assert_eq!(
            changed(source, &of_rust(source)?),
            [
                "if a < 4 || !is(a) {",
                "if true && !is(a) {",
                "if a < 4 && true {",
                "if a <= 4 && !is(a) {",
                "if a >= 4 && !is(a) {",
                "if a < 5 && !is(a) {",
                "if a < 4 && is(a) {",
                "",
                "a - 2",
            ]
        );
        Ok(())
    }

    #[test]
    fn errors_early_ends_and_rights() -> Result<()> {
        let source = "fn f() -> Result<(), E> {\n    check(rights::USE)?;\n    done()\n}\nfn b() -> bool {\n    x\n}\n";
        assert_eq!(
            changed(source, &of_rust(source)?),
            [
                "fn f() -> Result<(), E> { return Ok(());",
                "",
                "let _ = check(rights::USE);",
                "check(rights::MINT)?;",
                "fn b() -> bool { return true;",
                "fn b() -> bool { return false;",
            ]
        );
        Ok(())
    }

    #[test]
    fn tests_and_texts_stay() -> Result<()> {
        let source = "#[cfg(test)]\nmod tests {\n    fn f() { g(); }\n}\n#[test]\nfn t() { g(); }\nfn k() -> u8 {\n    assert!(a < 1);\n    0\n}\n";
        assert_eq!(of_rust(source)?, []);
        assert!(of_rust("fn f( {").is_err());
        Ok(())
    }

    #[test]
    fn a_statement_of_several_lines_goes_whole() -> Result<()> {
        let source = "fn f() -> u8 {\n    g(\n        1,\n    );\n    2\n}\n";
        let changes = of_rust(source)?;
        assert_eq!(changes.len(), 1);
        assert_eq!(changes[0].apply(source), "fn f() -> u8 {\n    \n\n\n    2\n}\n");
        Ok(())
    }

    #[test]
    fn instructions_go_turn_and_swap() {
        let source = ".globl f\nf:  mov rax, rbx   # why\n    jz 1f\n1:  ret\n    mov x0, #4   // to x0\n";
        assert_eq!(
            changed(source, &of_assembly(source)),
            ["f:     # why", "", "jnz 1f", "f:  jz 1f   # why", "1:", "// to x0", "1:  mov x0, #4",]
        );
    }

    #[test]
    fn instructions_in_rust_go() -> Result<()> {
        let source = "unsafe fn f() -> u8 {\n    naked_asm!(\n        \"mov rax, rbx\",\n        \"ret\",\n        a = const 1,\n    )\n}\n";
        assert_eq!(changed(source, &of_rust(source)?), ["\"\",", "\"\","]);
        Ok(())
    }
}
