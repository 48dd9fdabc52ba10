//! Trees of texts, refusals and their places, and properties of all texts. The effect of texts is tested in `shelleval`.

use proptest::prelude::*;
use shellparse::{Body, Command, Connector, MAX_NESTING, MAX_NODES, Part, Problem, RedirectionKind, quote};

fn parse(text: &str) -> Result<Body, shellparse::Error> {
    shellparse::parse(text, &|| true)
}

/// The words of a text of one simple command, without expansions.
fn words(text: &str) -> Vec<String> {
    let lists = parse(text).unwrap();
    assert_eq!(lists.len(), 1);
    let [(_, pipeline)] = &lists[0].pipelines[..] else { panic!("more than one pipeline") };
    let [Command::Simple(simple)] = &pipeline.commands[..] else { panic!("not one simple command") };
    let piece = |part: &Part| match part {
        Part::Literal(text) | Part::Quoted(text) => text.clone(),
        part => format!("{part:?}"),
    };
    simple.words.iter().map(|word| word.parts.iter().map(piece).collect()).collect()
}

fn refused(text: &str) -> (usize, Problem) {
    let error = parse(text).unwrap_err();
    (error.position, error.problem)
}

fn said(text: &str) -> String {
    let error = parse(text).unwrap_err();
    let (line, column) = error.place(text);
    format!("{line}:{column}: {error}")
}

#[test]
fn words_and_quotes() {
    assert_eq!(words("echo  a\tb"), ["echo", "a", "b"]);
    assert_eq!(words("echo 'a  b' \"c d\" e\\ f"), ["echo", "a  b", "c d", "e f"]);
    assert_eq!(words("a'b'\"c\"d"), ["abcd"]);
    assert_eq!(words("echo a#b #c d"), ["echo", "a#b"]);
    assert_eq!(words("echo a\\\nb \\\n c"), ["echo", "ab", "c"]);
    assert_eq!(words("echo '' \"\""), ["echo", "", ""]);
    assert_eq!(words("echo 2 > f"), ["echo", "2"]);
    assert_eq!(words("echo a2>f if then"), ["echo", "a2", "if", "then"]);
}

#[test]
fn lists_and_redirections() {
    let lists = parse("a | b >> f && c < g 2> h || d; e > i & \nf 2>&1 & g").unwrap();
    let background: Vec<Option<&str>> = lists.iter().map(|list| list.background.as_deref()).collect();
    assert_eq!(background, [None, Some("e > i"), Some("f 2>&1"), None]);
    let connectors: Vec<Connector> = lists[0].pipelines.iter().map(|(connector, _)| *connector).collect();
    assert_eq!(connectors, [Connector::And, Connector::And, Connector::Or]);
    assert_eq!(lists[0].pipelines[0].1.commands.len(), 2);
    let Command::Simple(simple) = &lists[2].pipelines[0].1.commands[0] else { panic!() };
    assert_eq!((simple.redirections[0].stream, simple.redirections[0].kind), (2, RedirectionKind::Duplicate));
    assert_eq!(parse("").unwrap().len(), 0);
    assert_eq!(parse(" # only a comment\n\n").unwrap().len(), 0);
    assert_eq!(parse("a;").unwrap().len(), 1);
}

#[test]
fn the_title_of_a_job_is_one_line_and_short() {
    let long = "x".repeat(100);
    let lists = parse(&format!("if a\nthen b; fi & {long} &")).unwrap();
    assert_eq!(lists[0].background.as_deref(), Some("if a then b; fi"));
    assert_eq!(lists[1].background.as_ref().unwrap().chars().count(), 61);
}

#[test]
fn a_text_that_can_go_on_is_incomplete() {
    let texts = [
        "if a",
        "if a; then",
        "if a; then b",
        "if a; then b; else",
        "while a; do",
        "for",
        "for i",
        "for i in a b",
        "for i in a; do b;",
        "case",
        "case a",
        "case a in",
        "case a in b)",
        "case a in b) c;;",
        "case a in b) c",
        "{ a",
        "( a",
        "f()",
        "f() {",
        "a &&",
        "a ||\n",
        "a |",
        "echo 'a",
        "echo \"a",
        "echo \"$(b",
        "echo $(b",
        "echo $((1 +",
        "echo ${a",
        "echo ${a:-b",
        "a \\",
        "! ( a",
    ];
    for text in texts {
        let error = parse(text).expect_err(text);
        assert!(error.is_incomplete(), "{text}: {error}");
    }
    for text in [
        "a )",
        "fi",
        "if ; then",
        "echo ${}",
        "a | | b",
        "a > | b",
        "a <<b",
        "do",
        "for 1 in",
        "a & & b",
        "a;; b",
        "}",
        "f() a",
    ] {
        let error = parse(text).expect_err(text);
        assert!(!error.is_incomplete(), "{text}: {error}");
    }
}

#[test]
fn refusals_name_the_place() {
    assert_eq!(refused("echo 'abc"), (5, Problem::Unclosed("'")));
    assert_eq!(refused("echo a\"b c"), (6, Problem::Unclosed("\"")));
    assert_eq!(refused("echo ${a"), (5, Problem::Unclosed("${")));
    assert_eq!(refused("echo ${a b}"), (5, Problem::BadVariable));
    assert_eq!(refused("echo ${}"), (5, Problem::BadVariable));
    assert_eq!(refused("echo a\\"), (6, Problem::NothingToEscape));
    assert_eq!(refused("| a"), (0, Problem::MissingCommand("|")));
    assert_eq!(refused("a |"), (2, Problem::Unfinished("|")));
    assert_eq!(refused("a | | b"), (4, Problem::MissingCommand("|")));
    assert_eq!(refused("a ; ; b"), (4, Problem::MissingCommand(";")));
    assert_eq!(refused("a & ; b"), (4, Problem::MissingCommand(";")));
    assert_eq!(refused("a >"), (2, Problem::MissingFile(">")));
    assert_eq!(refused("a > | b"), (2, Problem::MissingFile(">")));
    assert_eq!(refused("if a; then b"), (0, Problem::Unclosed("if")));
    assert_eq!(refused("if a; b; done"), (9, Problem::Missing("then")));
    assert_eq!(refused("if ; then a; fi"), (3, Problem::MissingCommand(";")));
    assert_eq!(refused("if a; then fi"), (11, Problem::MissingCommand("fi")));
    assert_eq!(refused("while a; do done"), (12, Problem::MissingCommand("done")));
    assert_eq!(refused("a; fi"), (3, Problem::Unexpected("fi")));
    assert_eq!(refused("a )"), (2, Problem::Unexpected(")")));
    assert_eq!(refused("echo $(a; done)"), (10, Problem::Unexpected("done")));
    assert_eq!(refused("{ a; } b"), (7, Problem::Unexpected("word")));
    assert_eq!(refused("for 1 in a; do b; done"), (4, Problem::MissingName("for")));
    assert_eq!(refused("case a in b c) d;; esac"), (12, Problem::Missing(")")));
    assert_eq!(refused("a b (c)"), (4, Problem::Unexpected("(")));
    assert_eq!(refused("f() echo"), (4, Problem::Missing("{")));
    assert_eq!(refused("!"), (1, Problem::MissingCommand("end")));
    assert_eq!(refused("> f (a)"), (4, Problem::Unexpected("(")));
}

/// A construct of other shells is refused by its name, and never taken for something else.
#[test]
fn unsupported_syntax_is_named() {
    let texts = [
        ("a << b", "`<<`"),
        ("a <<< b", "`<<`"),
        ("a <> b", "`<>`"),
        ("a &> b", "`&>`"),
        ("a |& b", "`|&`"),
        ("a <(b)", "`<(`"),
        ("a >(b)", "`>(`"),
        ("echo `a`", "backquotes"),
        ("echo \"`a`\"", "backquotes"),
        ("[[ a ]]", "[["),
        ("((1))", "`((`"),
        ("function f { a; }", "function"),
        ("select a in b; do c; done", "select"),
        ("exec a", "exec"),
        ("trap a", "trap"),
        ("alias a=b", "alias"),
        ("readonly a=b", "readonly"),
        ("declare a", "declare"),
        ("source a", "source"),
        ("getopts a b", "getopts"),
        ("echo $$", "`$$`"),
        ("echo $!", "`$!`"),
        ("echo $-", "`$-`"),
        ("echo ${a/b/c}", "`${NAME/…}`"),
        ("echo ${a:1}", "`${NAME:NUMBER}`"),
        ("a+=b", "`NAME+=`"),
        ("echo 3> f", "streams"),
        ("echo >&3", "`>&`"),
        ("echo >&-", "`>&`"),
        ("echo ~root", "`~NAME`"),
        ("x=~root/a", "`~NAME`"),
        ("echo \"${a-\"b\"}\"", "`\"`"),
        ("echo $((1) + (2))", "`$((`"),
        ("case a in b) c;& esac", "`;&`"),
        ("command a", "command"),
    ];
    for (text, name) in texts {
        let error = parse(text).expect_err(text);
        let Problem::Unsupported(what) = error.problem else { panic!("{text}: {error}") };
        assert!(what.contains(name), "{text}: {error}");
    }
    // Quoted, and elsewhere than where they would mean it, they are words.
    assert_eq!(words("echo '[[' function '`' exec source a+=b \\~root x~y ~root'x'")[1..4], ["[[", "function", "`"]);
}

#[test]
fn messages_are_for_people() {
    assert_eq!(said("echo 'x"), "1:6: `'` is never closed");
    assert_eq!(said("ls |"), "1:4: a command is missing after `|`");
    assert_eq!(said("a\nif b\nthen\n  c ä )"), "4:7: `fi` is missing");
    assert_eq!(said("for i in a\nb; done"), "2:1: `do` is missing");
    assert_eq!(said("if a; then\n\nb"), "1:1: `if` is never closed");
    assert_eq!(said("a ;\n; b"), "2:1: a command is missing at `;`");
    assert_eq!(said("a &&\n\n| b"), "3:1: a command is missing at `|`");
    assert_eq!(said("a << b"), "1:3: this shell does not know `<<` (here-documents)");
}

#[test]
fn nesting_has_a_limit() {
    for open in [
        "{ ",
        "( ",
        "echo $(",
        "if ",
        "while ",
        "case a in b) ",
        "echo ${a-",
        "echo \"${a-$(",
        "f() { ",
        "echo $((${a-",
    ] {
        assert_eq!(parse(&open.repeat(100_000)).unwrap_err().problem, Problem::TooDeep, "{open}");
    }
    let groups = |depth: usize| format!("{}a{}", "{ ".repeat(depth), "; }".repeat(depth));
    assert!(parse(&groups(MAX_NESTING)).is_ok());
    assert_eq!(parse(&groups(MAX_NESTING + 1)).unwrap_err().problem, Problem::TooDeep);
}

#[test]
fn length_has_a_limit() {
    assert!(parse(&"a;".repeat(MAX_NODES / 2)).is_ok());
    let texts =
        ["a;".repeat(MAX_NODES), "a ".repeat(MAX_NODES + 1), "$a".repeat(MAX_NODES + 1), ">f ".repeat(MAX_NODES + 1)];
    for text in texts {
        assert_eq!(parse(&text).unwrap_err().problem, Problem::TooLong);
    }
    let room = core::cell::Cell::new(10);
    let short = || {
        room.set(room.get() - 1);
        room.get() > 0
    };
    assert_eq!(shellparse::parse(&"a ".repeat(100), &short).unwrap_err().problem, Problem::TooLong);
}

/// Texts of what the language is made of.
fn pieces() -> impl Strategy<Value = String> {
    let pieces = [
        "if", "then", "elif", "else", "fi", "while", "until", "do", "done", "for", "case", "esac", "in", "{", "}", "!",
        "time", "(", ")", ";", ";;", "&", "&&", "|", "||", "\n", ">", ">>", "<", "2>&1", "$(", "$((", "))", "${", "}",
        "${a:-", "$a", "$@", "\"", "'", "\\", "`", "~", "*", "[", "#", "a", "b=", "ä", "1", "f()", " ", "<<",
    ];
    proptest::collection::vec((proptest::sample::select(pieces.to_vec()), any::<bool>()), 0..30).prop_map(|list| {
        list.iter().map(|(piece, blank)| format!("{piece}{}", if *blank { " " } else { "" })).collect()
    })
}

fn check(text: &str) -> Result<(), TestCaseError> {
    if let Err(error) = parse(text) {
        prop_assert!(error.position <= text.len());
        prop_assert!(text.is_char_boundary(error.position));
        let (line, column) = error.place(text);
        prop_assert!(line >= 1 && line <= text.matches('\n').count() + 1 && column >= 1);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn no_text_panics_and_positions_are_inside(text in any::<String>()) {
        check(&text)?;
    }

    #[test]
    fn no_text_of_the_language_panics(text in pieces()) {
        check(&text)?;
    }

    #[test]
    fn any_text_survives_quoting(text in any::<String>()) {
        prop_assert_eq!(words(&format!("x {}", quote(&text))), vec!["x".to_string(), text]);
    }
}
