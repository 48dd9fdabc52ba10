//! What lines mean, what is refused and where, and properties of all lines.

use proptest::prelude::*;
use shellparse::{Connector, Problem, RedirectionKind, Word, parse, quote};

fn expand(word: &Word) -> Option<String> {
    word.expand(7, &|name| (name == "NAME").then(|| "a  b;c".to_string()))
}

/// The words of a script of one simple command.
fn words(line: &str) -> Vec<String> {
    let lists = parse(line).unwrap();
    assert_eq!(lists.len(), 1);
    assert!(lists[0].rest.is_empty());
    assert_eq!(lists[0].first.commands.len(), 1);
    lists[0].first.commands[0].words.iter().filter_map(expand).collect()
}

fn refused(line: &str) -> (usize, Problem) {
    let error = parse(line).unwrap_err();
    (error.position, error.problem)
}

#[test]
fn words_quotes_and_variables() {
    assert_eq!(words("echo  a\tb"), ["echo", "a", "b"]);
    assert_eq!(words("echo 'a  b' \"c d\" e\\ f"), ["echo", "a  b", "c d", "e f"]);
    assert_eq!(words("a'b'\"c\"d"), ["abcd"]);
    assert_eq!(words("echo $NAME x$NAME"), ["echo", "a  b;c", "xa  b;c"]);
    assert_eq!(words("echo '$NAME' \\$NAME \"\\$NAME $NAME\""), ["echo", "$NAME", "$NAME", "$NAME a  b;c"]);
    assert_eq!(words("echo $? ${?} ${NAME}s $NAMEs"), ["echo", "7", "7", "a  b;cs"]);
    assert_eq!(words("echo $NONE '' \"$NONE\""), ["echo", "", ""]);
    assert_eq!(words("echo 5$ $ a$1"), ["echo", "5$", "$", "a$1"]);
    assert_eq!(words("echo a#b #c d"), ["echo", "a#b"]);
    assert_eq!(words("echo a\\\nb"), ["echo", "ab"]);
    assert_eq!(words("echo \"a\\b\""), ["echo", "a\\b"]);
}

#[test]
fn lists_pipelines_redirections() {
    let line = "a | b >> f && c < g 2> h || d; e > i &\nf & g";
    let lists = parse(line).unwrap();
    let texts: Vec<&str> = lists.iter().map(|list| list.text(line)).collect();
    assert_eq!(texts, ["a | b >> f && c < g 2> h || d", "e > i", "f", "g"]);
    assert_eq!(lists.iter().map(|list| list.background).collect::<Vec<_>>(), [false, true, true, false]);
    assert_eq!(lists[0].first.commands.len(), 2);
    assert_eq!(lists[0].first.commands[1].redirections[0].kind, RedirectionKind::Append);
    let kinds: Vec<_> = lists[0].rest[0].1.commands[0].redirections.iter().map(|r| r.kind).collect();
    assert_eq!(kinds, [RedirectionKind::Input, RedirectionKind::Error]);
    assert_eq!([lists[0].rest[0].0, lists[0].rest[1].0], [Connector::And, Connector::Or]);
    assert_eq!(parse("").unwrap(), []);
    assert_eq!(parse(" # only a comment\n\n").unwrap(), []);
    assert_eq!(parse("a;").unwrap().len(), 1);
    assert_eq!(parse("a &&\nb").unwrap().len(), 1);
    assert_eq!(parse("> empty").unwrap()[0].first.commands[0].words.len(), 0);
    assert_eq!(words("echo 2 > f"), ["echo", "2"]);
    assert_eq!(words("echo a2>f"), ["echo", "a2"]);
}

#[test]
fn refusals_name_the_place() {
    assert_eq!(refused("echo 'abc"), (5, Problem::UnclosedQuote('\'')));
    assert_eq!(refused("echo a\"b c"), (6, Problem::UnclosedQuote('"')));
    assert_eq!(refused("echo ${a"), (5, Problem::UnclosedBrace));
    assert_eq!(refused("echo ${a b}"), (5, Problem::BadVariable));
    assert_eq!(refused("echo ${}"), (5, Problem::BadVariable));
    assert_eq!(refused("echo a\\"), (6, Problem::NothingToEscape));
    assert_eq!(refused("| a"), (0, Problem::MissingCommand("|")));
    assert_eq!(refused("a |"), (2, Problem::MissingCommand("|")));
    assert_eq!(refused("a | | b"), (4, Problem::MissingCommand("|")));
    assert_eq!(refused("a &&"), (2, Problem::MissingCommand("&&")));
    assert_eq!(refused("a &&\n"), (2, Problem::MissingCommand("&&")));
    assert_eq!(refused("a ; ; b"), (4, Problem::MissingCommand(";")));
    assert_eq!(refused("a & ; b"), (4, Problem::MissingCommand(";")));
    assert_eq!(refused("; a"), (0, Problem::MissingCommand(";")));
    assert_eq!(refused("a >"), (2, Problem::MissingFile(">")));
    assert_eq!(refused("a > | b"), (2, Problem::MissingFile(">")));
    assert_eq!(refused("a > b >> c"), (6, Problem::RedirectedTwice("output")));
    assert_eq!(refused("a 2>&1"), (2, Problem::Unsupported("`>&`")));
    assert_eq!(refused("a << b"), (2, Problem::Unsupported("`<<`")));
    assert_eq!(refused("a $(b)"), (2, Problem::Unsupported("command substitution")));
    assert_eq!(refused("(a)"), (0, Problem::Unsupported("parentheses (quote them)")));
}

#[test]
fn messages_are_for_people() {
    assert_eq!(parse("a > b >> c").unwrap_err().to_string(), "standard output is redirected twice (at character 7)");
    assert_eq!(parse("echo 'x").unwrap_err().to_string(), "the quote ' is never closed (at character 6)");
    assert_eq!(parse("ls |").unwrap_err().to_string(), "a command is missing at `|` (at character 4)");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn no_line_panics_and_positions_are_inside(line in "[ab '\"\\\\$?{};&|<>#2\n(ä`]{0,40}") {
        match parse(&line) {
            Err(error) => {
                prop_assert!(error.position <= line.len());
                prop_assert!(line.is_char_boundary(error.position));
            }
            Ok(lists) => {
                for list in &lists {
                    let pipelines = core::iter::once(&list.first).chain(list.rest.iter().map(|(_, p)| p));
                    for command in pipelines.flat_map(|p| &p.commands) {
                        prop_assert!(!command.words.is_empty() || !command.redirections.is_empty());
                    }
                    // A list's own text means the same as in its line.
                    let again = parse(list.text(&line)).unwrap();
                    prop_assert_eq!(again.len(), 1);
                    prop_assert_eq!(again[0].first.commands.len(), list.first.commands.len());
                }
            }
        }
    }

    #[test]
    fn any_text_survives_quoting(text in any::<String>()) {
        prop_assert_eq!(words(&format!("x {}", quote(&text))), vec!["x".to_string(), text]);
    }

    #[test]
    fn any_variable_value_is_one_word(value in any::<String>()) {
        let lists = parse("x $V").unwrap();
        let word = lists[0].first.commands[0].words[1].expand(0, &|_| Some(value.clone()));
        prop_assert_eq!(word.unwrap_or_default(), value);
    }
}
