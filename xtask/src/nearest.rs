//! Suggests existing names in place of one that does not exist.

use std::cmp::Reverse;
use system::host::distance;

/// So many are suggested.
const MOST: usize = 3;

/// `; did you mean …?` with up to three of the known names, or nothing if none is like it.
pub fn meant<'k>(name: &str, known: impl IntoIterator<Item = &'k str>) -> String {
    let names: Vec<String> = nearest(name, known).into_iter().map(|name| format!("`{name}`")).collect();
    match &names[..] {
        [] => String::new(),
        [one] => format!("; did you mean {one}?"),
        [first @ .., last] => format!("; did you mean {} or {last}?", first.join(", ")),
    }
}

/// The known names that are like this one, the nearest first: those that have all parts of its path in this order, then
/// those with the same last part, then those that differ in few letters, then those that it is a part of.
fn nearest<'k>(name: &str, known: impl IntoIterator<Item = &'k str>) -> Vec<&'k str> {
    let parts: Vec<&str> = name.split("::").collect();
    let rank = |other: &str| {
        let mut rest = other.split("::");
        let far = distance(name, other);
        let found = parts.iter().filter(|part| rest.by_ref().any(|it| it == **part)).count();
        match () {
            () if found == parts.len() => Some((0, Reverse(found), far)),
            () if parts.len() > 1 && other.rsplit("::").next() == parts.last().copied() => {
                Some((1, Reverse(found), far))
            }
            () if far <= 1 + name.len() / 5 => Some((2, Reverse(0), far)),
            () if name.len() > 2 && other.contains(name) => Some((3, Reverse(0), far)),
            () => None,
        }
    };
    let mut ranked: Vec<_> = known.into_iter().filter_map(|other| Some((rank(other)?, other))).collect();
    ranked.sort_unstable();
    ranked.dedup();
    ranked.into_iter().map(|(_, other)| other).take(MOST).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TESTS: [&str; 6] = [
        "protocols::golden::layouts",
        "protocols::golden::errors",
        "protocols::endpoints::addresses_are_what_they_were",
        "cpio::read::tests::bad_magic",
        "cpio::write::tests::layouts",
        "shell-ls",
    ];

    #[test]
    fn parts_that_were_left_out_are_found() {
        assert_eq!(nearest("protocols::layouts", TESTS), ["protocols::golden::layouts", "cpio::write::tests::layouts"]);
        assert_eq!(nearest("cpio::bad_magic", TESTS), ["cpio::read::tests::bad_magic"]);
        assert_eq!(nearest("cpio::tests", TESTS), ["cpio::write::tests::layouts", "cpio::read::tests::bad_magic"]);
        assert_eq!(nearest("golden", TESTS), ["protocols::golden::errors", "protocols::golden::layouts"]);
    }

    #[test]
    fn a_wrong_letter_is_found_and_nothing_where_nothing_is_like_it() {
        assert_eq!(meant("shel-ls", TESTS), "; did you mean `shell-ls`?");
        assert_eq!(meant("cpio::read::tests::bad_majic", TESTS), "; did you mean `cpio::read::tests::bad_magic`?");
        assert_eq!(meant("shell", TESTS), "; did you mean `shell-ls`?");
        assert_eq!(meant("everything", TESTS), "");
        assert_eq!(meant("cpi", ["abi"]), "");
        let two = "; did you mean `protocols::golden::errors` or `protocols::golden::layouts`?";
        assert_eq!(meant("golden", TESTS), two);
    }
}
