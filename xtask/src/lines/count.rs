//! Counting lines of code: of Rust, of assembly, of link scripts.

use crate::scan::{Texts, without_comments};

/// Lines that are neither empty nor comments only. Assembly of some ISAs has comments that begin with `#`, which in Rust are
/// attributes and in other assembly numbers: only a line that begins so is one.
pub fn of_assembly(source: &str) -> usize {
    let code: Vec<&str> = source.lines().filter(|line| !line.trim_start().starts_with('#')).collect();
    full_lines(&without_comments(&code.join("\n"), Texts::Kept)).count()
}

/// Lines of Rust that are neither empty, nor comments only, nor of tests.
pub fn of_rust(source: &str) -> usize {
    let tests = lines_of_tests(source);
    let code = without_comments(source, Texts::Kept);
    full_lines(&code).filter(|number| !tests.iter().any(|range| range.contains(number))).count()
}

/// Modules in files of their own that are for tests.
pub fn test_modules(source: &str) -> Vec<String> {
    let code = without_comments(source, Texts::Blank);
    let after = |start: usize| code[start..].trim_start().strip_prefix("mod ");
    let modules = attributes(&code).filter_map(after);
    modules.filter_map(|rest| Some(rest[..rest.find([';', '{'])?].trim().to_string())).collect()
}

/// Numbers of the lines on which something stands.
fn full_lines(code: &str) -> impl Iterator<Item = usize> + '_ {
    code.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()).map(|(number, _)| number)
}

/// Where what follows each `#[cfg(test)]` begins.
fn attributes(code: &str) -> impl Iterator<Item = usize> + '_ {
    const FOR_TESTS: &str = "#[cfg(test)]";
    code.match_indices(FOR_TESTS).map(|(at, _)| at + FOR_TESTS.len())
}

/// Lines from each `#[cfg(test)]` to the end of the item that it is for.
fn lines_of_tests(source: &str) -> Vec<std::ops::RangeInclusive<usize>> {
    let code = without_comments(source, Texts::Blank);
    let line_of = |at: usize| code[..at].matches('\n').count();
    attributes(&code)
        .map(|start| {
            let mut depth = 0_usize;
            let end = code[start..].char_indices().find(|(_, character)| match character {
                '{' => {
                    depth += 1;
                    false
                }
                '}' => {
                    depth = depth.saturating_sub(1);
                    depth == 0
                }
                ';' => depth == 0,
                _ => false,
            });
            line_of(start)..=line_of(start + end.map_or(code.len() - start, |(at, _)| at))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{of_assembly, of_rust, test_modules};

    #[test]
    fn comments_and_empty_lines_do_not_count() {
        assert_eq!(of_rust("//! What\n\n/// Doc\nfn f() {} // end\n/* a\n b */\n    \nfn g() {\n    1;\n}\n"), 4);
        assert_eq!(of_rust("let text = \"// not a comment\n\n/* nor this */\";\n"), 2);
        assert_eq!(of_rust("fn f() /* a */ {}\n/* b */ fn g() {}\n"), 2);
        assert_eq!(of_rust(""), 0);
    }

    #[test]
    fn texts_count() {
        assert_eq!(of_rust("asm!(\n    \"mov x0, x1\",\n    \"// nothing\",\n)\n"), 4);
    }

    #[test]
    fn tests_do_not_count() {
        let source = "fn f() {}\n#[cfg(test)]\nmod tests {\n    fn g() { \"}\"; }\n}\nfn h() {}\n#[cfg(test)]\nmod more;\nfn i() {}\n";
        assert_eq!(of_rust(source), 3);
        assert_eq!(test_modules(source), ["tests", "more"]);
        assert_eq!(of_rust("#[cfg(test)]\nuse a::{b, c};\nfn f() {}\n"), 1);
    }

    #[test]
    fn assembly_has_its_comments() {
        assert_eq!(of_assembly("# a\n  # b\nmov rax, 1 # c\n\n// d\nadd x0, x0, #4\n/* e */\n"), 2);
    }
}
