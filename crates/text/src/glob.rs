//! Patterns of names: `*`, `?`, `[a-z]`, `[!a-z]`, and `\` before a character that means itself.

/// How letters are compared.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Case {
    /// A capital one is another one.
    Distinct,
    /// Capital letters of ASCII are the same as small ones.
    Same,
}

/// Whether a pattern describes all of a name.
pub fn matches(pattern: &str, name: &str, case: Case) -> bool {
    let (mut pattern, mut name) = (pattern, name);
    // Where the last `*` was, and what it has not taken yet: it takes one more character whenever the rest does not fit.
    let mut retry: Option<(&str, &str)> = None;
    loop {
        if let Some(rest) = pattern.strip_prefix('*') {
            retry = Some((rest, name));
            pattern = rest;
            continue;
        }
        let mut left = name.chars();
        match (one(pattern, left.next(), case), name.is_empty() && pattern.is_empty()) {
            (_, true) => return true,
            (Some(rest), _) => {
                pattern = rest;
                name = left.as_str();
            }
            (None, _) => {
                let Some((rest, from)) = retry else { return false };
                let mut from = from.chars();
                if from.next().is_none() {
                    return false;
                }
                retry = Some((rest, from.as_str()));
                pattern = rest;
                name = from.as_str();
            }
        }
    }
}

/// The pattern after its first element, if that describes the character.
fn one(pattern: &str, character: Option<char>, case: Case) -> Option<&str> {
    let fold = |character: char| if case == Case::Same { character.to_ascii_lowercase() } else { character };
    let character = fold(character?);
    let mut rest = pattern.chars();
    let is_it = match rest.next()? {
        '?' => true,
        '[' => match class(rest.as_str(), |low, high| (fold(low)..=fold(high)).contains(&character)) {
            Some((is_in, behind)) => {
                rest = behind.chars();
                is_in
            }
            None => character == '[',
        },
        '\\' => rest.next().is_some_and(|literal| fold(literal) == character),
        literal => fold(literal) == character,
    };
    is_it.then_some(rest.as_str())
}

/// Whether one of the ranges of a class has it, and what follows the class; `None` if it does not end.
fn class(text: &str, mut has: impl FnMut(char, char) -> bool) -> Option<(bool, &str)> {
    let (negated, mut rest) = match text.strip_prefix(['!', '^']) {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let mut found = false;
    let mut is_first = true;
    loop {
        let mut characters = rest.chars();
        let low = match characters.next()? {
            ']' if !is_first => return Some((found != negated, characters.as_str())),
            '\\' => characters.next()?,
            low => low,
        };
        is_first = false;
        rest = characters.as_str();
        let mut high = low;
        if let Some(behind) = rest.strip_prefix('-').filter(|behind| !behind.starts_with(']')) {
            let mut characters = behind.chars();
            high = characters.next()?;
            rest = characters.as_str();
        }
        found |= has(low, high);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns() {
        for (pattern, name) in [
            ("", ""),
            ("*", ""),
            ("*", "any.thing"),
            ("*.rs", "a.b.rs"),
            ("a*b*c", "aXbYbZc"),
            ("?", "ü"),
            ("[a-c]x", "bx"),
            ("[!a-c]", "d"),
            ("[]]", "]"),
            ("[a-]", "-"),
            ("\\*", "*"),
            ("[", "["),
            ("a[", "a["),
        ] {
            assert!(matches(pattern, name, Case::Distinct), "{pattern} {name}");
        }
        for (pattern, name) in [("", "a"), ("?", ""), ("*.rs", "rs"), ("[!a]", "a"), ("A", "a"), ("a*b", "ac")] {
            assert!(!matches(pattern, name, Case::Distinct), "{pattern} {name}");
        }
        assert!(matches("READ[L-N]E*", "readme.md", Case::Same));
    }

    #[test]
    fn many_stars_take_no_time() {
        let name = ["a"; 5000].concat();
        assert!(!matches(&["*a"; 100].concat(), &(name + "b"), Case::Distinct));
    }
}
