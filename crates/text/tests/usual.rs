//! Each tool beside the tool of that name of this computer: output and status must be the same.
#![allow(missing_docs)]

mod host;

use host::Host;
use proptest::prelude::*;

/// A poem, more or less: repeated lines, capital letters, numbers, fields, an open end.
const TEXT: &str =
    "banana 3\nApple 10\napple 2\nbanana 3\nbanana 3\n\nCherry:7\n  indented 1.5\ncherry:-7\n10 apples\n9 pears\nlast";

fn files() -> Host {
    let host = Host::new();
    host.file("text", TEXT.as_bytes());
    host.file("other", TEXT.replace("apple 2", "apple two").replace("9 pears\n", "").as_bytes());
    host.file("numbers", (1..=300).map(|number| format!("{number}\n")).collect::<String>().as_bytes());
    host.file("empty", b"");
    host.file("binary", b"text\nwith a\0zero\nand text\n");
    host.file("tree/one.rs", b"fn one() {}\n");
    host.file("tree/two.txt", b"apple\n");
    host.file("tree/below/three.rs", b"fn three() {}\napple\n");
    host.file("tree/below/deeper/four", b"4");
    host.file("keys", b"b 2 x\na 10 y\nc 2 a\na 9 z\n  d 2 b\n");
    host.file("colons", b"x:3:b\ny::a\nx:20:c\nz:3\n:1:d\n");
    host
}

/// Runs these calls, each with the text as standard input, too.
fn same(calls: &[&str]) {
    let host = files();
    for call in calls {
        host.same(&host::words(call), TEXT.as_bytes());
    }
}

#[test]
fn head() {
    same(&[
        "head",
        "head numbers",
        "head -n 3 numbers text",
        "head -3 numbers",
        "head -n0 text",
        "head -c 20 text empty numbers",
        "head -c0 text",
        "head -q -n 1 text numbers",
        "head -v -n 1 text",
        "head -n 500 text -",
        "head missing text",
        "head tree",
        "head -n 99999999999 text",
        "head -- text",
    ]);
}

#[test]
fn tail() {
    same(&[
        "tail",
        "tail numbers",
        "tail -n 3 numbers text",
        "tail -3 numbers",
        "tail -n0 text",
        "tail -c 20 text empty numbers",
        "tail -c0 text",
        "tail -n +299 numbers",
        "tail -n +1 text",
        "tail -n +0 text",
        "tail -c +100 text",
        "tail -c +0 text",
        "tail -q -n 1 text numbers",
        "tail -v -n1 text",
        "tail -n 500 text -",
        "tail missing text",
        "tail -c 99999999999 text",
        "tail -n +99999999 text",
    ]);
}

#[test]
fn sort() {
    same(&[
        "sort text",
        "sort",
        "sort -r text",
        "sort -n text",
        "sort -n -r text",
        "sort -f text",
        "sort -u text",
        "sort -f -u text",
        "sort -n -u text",
        "sort -b text",
        "sort -k 2 keys",
        "sort -k 2,2 keys",
        "sort -k 2n keys",
        "sort -k 2,2n -k 1,1r keys",
        "sort -k 3 keys",
        "sort -k1.2,1.3 text",
        "sort -s -k 2,2n keys",
        "sort -r -k 2,2 keys",
        "sort -k 2b,2 keys",
        "sort -t : -k 2 colons",
        "sort -t : -k 2n colons",
        "sort -t: -k3,3 -k2,2nr colons",
        "sort -u -t : -k 1,1 colons",
        "sort -c numbers",
        "sort -c -n numbers",
        "sort -c -n -u numbers",
        "sort text numbers keys",
        "sort missing text",
        "sort empty",
        "sort tree",
        "sort -f -r -s text",
        "sort -k 1,1.2b -k 2.1b,2.2 keys",
        "sort -k 9 keys",
        "sort -nr -k2 keys",
    ]);
}

#[test]
fn sort_writes_to_a_file_that_it_reads() {
    let host = files();
    for program in [Host::ours, Host::theirs] {
        host.file("text", TEXT.as_bytes());
        assert_eq!(program(&host, &["sort", "-o", "text", "text"], b"").status, 0);
        assert!(host.read("text").starts_with(b"\n  indented 1.5\n10 apples\n"));
    }
}

#[test]
fn uniq() {
    same(&[
        "uniq",
        "uniq text",
        "uniq -c text",
        "uniq -d text",
        "uniq -u text",
        "uniq -c -d text",
        "uniq -i text",
        "uniq -i -c text",
        "uniq -d -u text",
        "uniq empty",
        "uniq missing",
        "uniq -c -",
        "uniq tree",
    ]);
    let host = files();
    host.same(&["uniq", "text", "to"], b"");
    assert_eq!(
        host.read("to"),
        TEXT.replace("banana 3\nbanana 3", "banana 3").as_bytes().iter().copied().chain([b'\n']).collect::<Vec<_>>()
    );
}

#[test]
fn tee() {
    let host = files();
    for program in [Host::ours, Host::theirs] {
        host.file("one", b"before");
        host.file("two", b"before");
        assert_eq!(program(&host, &["tee", "one", "two"], b"text").stdout, b"text");
        assert_eq!(program(&host, &["tee", "-a", "two"], b" more").stdout, b" more");
        assert_eq!((host.read("one"), host.read("two")), (b"text".to_vec(), b"text more".to_vec()));
        let ended = program(&host, &["tee", "tree", "one"], b"all the same");
        assert_eq!(
            (ended.status, ended.stdout, host.read("one")),
            (1, b"all the same".to_vec(), b"all the same".to_vec())
        );
    }
}

#[test]
fn touch() {
    let host = files();
    for (program, name) in [(Host::ours as fn(&Host, &[&str], &[u8]) -> host::Ended, "ours"), (Host::theirs, "theirs")]
    {
        assert_eq!(program(&host, &["touch", "text", name], b"").status, 0);
        assert_eq!((host.read("text"), host.read(name)), (TEXT.as_bytes().to_vec(), Vec::new()));
        assert_eq!(program(&host, &["touch", "-c", "none"], b"").status, 0);
        assert!(!host.path("none").exists());
        assert_eq!(program(&host, &["touch", "none/in/this"], b"").status, 1);
    }
}

#[test]
fn env() {
    same(&["env", "env -i", "env -i A=1 B=2", "env -u A", "env A=other C=", "env -i A=1 A=2 B=", "env - X=y"]);
}

#[test]
fn env_starts_programs() {
    let host = files();
    for program in [Host::ours, Host::theirs] {
        let ended = program(&host, &["env", "-i", "A=1", "/bin/sh", "-c", "echo $A-$B; exit 3"], b"");
        assert_eq!((ended.stdout, ended.status), (b"1-\n".to_vec(), 3));
        assert_eq!(program(&host, &["env", "no-such-program"], b"").status, 127);
        assert_eq!(program(&host, &["env", "--nonsense", "sh"], b"").status, 125);
    }
}

#[test]
fn seq() {
    same(&[
        "seq 5",
        "seq 0",
        "seq 2 6",
        "seq 10 -3 1",
        "seq 1 2 10",
        "seq -3 3",
        "seq 1 0.25 2",
        "seq .5 1",
        "seq 1.5 3",
        "seq -w 8 11",
        "seq -w -2 2",
        "seq -w 1 .5 3",
        "seq -s , 5",
        "seq -s , 1",
        "seq 5 1",
        "seq 3 3",
        "seq 1 1 0",
        "seq 1 2.5",
        "seq -1",
        "seq 007 009",
        "seq 1e",
        "seq",
        "seq 1 0 3",
        "seq 1 2 3 4",
    ]);
}

#[test]
fn which() {
    let host = files();
    for name in ["sh", "cat", "no-such-program", "/bin/sh"] {
        host.same(&["which", name], b"");
    }
    host.same(&["which", "sh", "no-such-program", "cat"], b"");
}

#[test]
fn find() {
    let host = files();
    for call in [
        "find",
        "find tree",
        "find tree/",
        "find . -name *.rs",
        "find tree -type f",
        "find tree -type d",
        "find tree -not -name *.rs -type f",
        "find tree ! -type d",
        "find tree -maxdepth 0",
        "find tree -maxdepth 1",
        "find tree -iname *.RS",
        "find tree -path *below*",
        "find tree -name [!o]*.rs",
        "find tree -name t??.txt",
        "find missing tree",
        "find text",
        "find tree -nonsense",
        "find tree -name",
        "find tree -print",
        "find tree text -name t*",
    ] {
        host.same_lines(&host::words(call), b"");
    }
}

#[test]
fn hexdump() {
    same(&[
        "hexdump text",
        "hexdump -C text",
        "hexdump",
        "hexdump -C -n 20 text",
        "hexdump -C -s 5 text",
        "hexdump -s 17 -n 3 text numbers",
        "hexdump -C empty",
        "hexdump missing",
        "hexdump -C missing text",
        "hexdump -v text",
        "hexdump -C text binary",
        "hexdump -n0 text",
    ]);
    let host = Host::new();
    host.file("zeros", &[0; 100]);
    host.file("bytes", &(0..=255).collect::<Vec<u8>>());
    for call in [
        "hexdump zeros",
        "hexdump -C zeros",
        "hexdump -C -v zeros",
        "hexdump -C bytes zeros",
        "hexdump bytes",
        "hexdump -C -s 90 zeros bytes",
    ] {
        host.same(&host::words(call), b"");
    }
}

#[test]
fn grep() {
    same(&[
        "grep apple text",
        "grep apple",
        "grep -i APPLE text",
        "grep -v a text",
        "grep -n apple text",
        "grep -c banana text other",
        "grep -l apple text numbers other",
        "grep -L apple text numbers other",
        "grep -o a. text",
        "grep -on [0-9]* text",
        "grep -w apple text",
        "grep -x apple text",
        "grep -x -F last text",
        "grep -F 1.5 text",
        "grep 1.5 text",
        "grep -q apple text",
        "grep -q nothing text",
        "grep nothing text",
        "grep apple missing",
        "grep -s apple missing text",
        "grep -q apple text missing",
        "grep -e apple -e cherry text",
        "grep -m 2 banana text",
        "grep -H last text",
        "grep -h last text other",
        "grep a binary",
        "grep -a zero binary",
        "grep -c a binary",
        "grep -v zzz binary",
        "grep -l zero binary",
        "grep apple tree text",
        "grep -A 1 Cherry text",
        "grep -B 1 Cherry text",
        "grep -C 1 -n apple text other",
        "grep -1 last text",
        "grep -A 1 banana text",
        "grep -m1 -A2 banana text",
        "grep -E",
        "grep -Z",
        "grep -e",
        "grep -n '' text",
        "grep -c '' empty",
        "grep -c ^$ text",
        "grep -n $ text",
        "grep -io apple text",
        "grep -ov apple text",
        "grep -cv apple text",
        "grep -lv apple text numbers",
    ]);
}

#[test]
fn grep_goes_through_directories() {
    let host = files();
    for call in [
        "grep -r apple tree",
        "grep -rl fn tree",
        "grep -rc e tree",
        "grep -rh fn",
        "grep -r 4 .",
        "grep -rn fn missing tree text",
    ] {
        host.same_lines(&host::words(call), b"");
    }
}

#[test]
fn expressions() {
    let host = Host::new();
    let text = "abc\nab\nabab\naab\na.c\na*c\na+c\n(a)\n{a}\na{2}\naa\nx|y\nxy\n[z]\nfoo bar\nfoobar\nfoo_bar\n^start\nend$\n\\back\nA-Z\n\
        a]b\nTab\there\n12 34\n-5\n\nAbC\nfoo\nbar\n";
    host.file("text", text.as_bytes());
    let both = [
        "abc",
        "a.c",
        "a*c",
        "^a",
        "b$",
        "^$",
        "a*",
        "[abc]",
        "[^abc]",
        "[a-c]x*",
        "[]a]",
        "[^]a]",
        "[a-]",
        "[-a]",
        "[[:digit:]]",
        "[[:alpha:]][[:digit:]]",
        "[^[:space:]]",
        "[[:upper:]]",
        "[[:punct:]]",
        "\\.",
        "\\*",
        "\\[",
        "\\\\",
        "\\^",
        "\\$",
        "[.]",
        "[*]",
        "[\\]",
        "\\bfoo\\b",
        "\\<foo",
        "foo\\>",
        "\\Bbar",
        "\\w",
        "\\W",
        "\\s",
        "\\S",
        "a**",
        "x*",
        ".",
        ".*",
        "a.*b",
        "[[=a=]]",
        "[[.-.]]",
        "[[:nonsense:]]",
        "[a",
        "[z-a]",
        "a\\",
        "[]abc",
        "foo.bar",
        "^^start",
        "end$$",
    ];
    let basic = [
        "a\\+",
        "a\\?b",
        "\\(ab\\)*",
        "\\(ab\\)\\{2\\}",
        "x\\|y",
        "a+c",
        "x|y",
        "(a)",
        "{a}",
        "a{2}",
        "a\\{2\\}",
        "a\\{1,\\}b",
        "a\\{,1\\}b",
        "*c",
        "^*",
        "\\(*a\\)",
        "\\(^a\\)",
        "\\(b$\\)",
        "a^",
        "$a",
        "^ab\\|bar$",
        "\\(a",
        "a\\)",
        "a\\{1",
        "a\\{2,1\\}",
        "a\\{x\\}",
        "foo\\( \\|_\\)bar",
    ];
    let extended = [
        "a+",
        "a?b",
        "(ab)*",
        "(ab){2}",
        "x|y",
        "x\\|y",
        "a\\+c",
        "\\(a\\)",
        "\\{a\\}",
        "a{2}",
        "a{1,}b",
        "a{,1}b",
        "(^a|b$)",
        "()",
        "a|",
        "|a",
        "(a",
        "a)",
        "a{2,1}",
        "a{x}",
        "foo( |_)?bar",
        "(foo|foobar)",
        "(a|ab)(c|bcd)?",
        "([a-z]+)_\\w+",
        "(a*)+",
        "((a))",
        "a{99999}",
        "(foo|bar)+",
        "^(foo|bar)$",
        "a{0}b",
        "[0-9]+ [0-9]+",
    ];
    for (option, expressions) in [("-G", &both[..]), ("-E", &both), ("-F", &both), ("-G", &basic), ("-E", &extended)] {
        for expression in expressions {
            for more in ["-n", "-no", "-nw", "-nx", "-ni", "-c"] {
                host.same(&["grep", option, more, "-e", expression, "text"], b"");
            }
        }
    }
    // The tools agree that these mean nothing to them, or ours says so.
    let ended = host.ours(&["grep", "\\(a\\)\\1", "text"], b"");
    assert_eq!((ended.status, &ended.stderr[..]), (2, "grep: \\(a\\)\\1: \\1: there are no back references\n"));
    let ended = host.ours(&["grep", "-E", "(a{1000}){1000}", "text"], b"");
    assert_eq!(
        (ended.status, &ended.stderr[..]),
        (2, "grep: (a{1000}){1000}: the expression takes more than 256 KiB\n")
    );
    let deep = format!("{}a{}", "(".repeat(1000), ")".repeat(1000));
    let ended = host.ours(&["grep", "-E", &deep, "text"], b"");
    assert_eq!(ended.status, 2);
    assert!(ended.stderr.ends_with(": more than 60 groups in each other\n"), "{}", ended.stderr);
}

#[test]
fn characters_beyond_ascii() {
    let host = Host::new().with("LC_ALL", "C.UTF-8");
    host.file("text", "grün\ngrau\nüber\n日本\n".as_bytes());
    for expression in ["gr.n", "gr[äü]n", "[^a-z]", "^.$", "^..$", "ü", "日.", "gr[^a]n", "gr..n"] {
        host.same(&["grep", "-n", expression, "text"], b"");
        host.same(&["grep", "-o", expression, "text"], b"");
    }
}

#[test]
fn diff() {
    let host = files();
    host.file("same", TEXT.as_bytes());
    host.file("first", b"a\nb\nc\nd\ne\nf\ng\nh\ni\nj\nk\nl\nm\n");
    host.file("second", b"a\nB\nc\nd\ne\nf\ng\nh\ni\nj\nk\nL\nm\nn\n");
    host.file("near", b"a\nB\nc\nd\ne\nf\ng\nh\nI\nj\nk\nl\nm\n");
    host.file("far", b"a\nB\nc\nd\ne\nf\ng\nh\ni\nJ\nk\nl\nm\n");
    host.file("third", b"0\na\nb\nc\nd\ne\nf\ng\nh\ni\nj\nk\nl");
    for call in [
        "diff -u text other",
        "diff -u text same",
        "diff -s text same",
        "diff -q text other",
        "diff -qs text same",
        "diff -u first second",
        "diff -U 0 first second",
        "diff -U1 first second",
        "diff -u first third",
        "diff -u first near",
        "diff -u first far",
        "diff -u second third",
        "diff -u empty first",
        "diff -u first empty",
        "diff -q binary text",
        "diff -u -a binary empty",
        "diff -u missing text",
        "diff -u text missing",
        "diff text",
        "diff text text text",
        "diff -u -L one -L other text other",
        "diff -u tree/two.txt tree/below",
        "diff -u first -",
        "diff -u - text",
        "diff -U 99 first second",
    ] {
        host.same_hunks(&host::words(call), TEXT.as_bytes());
    }
    // The status of this has changed in the usual tool.
    let ended = host.ours(&["diff", "binary", "text"], b"");
    assert_eq!((ended.status, &ended.stdout[..]), (1, &b"Binary files binary and text differ\n"[..]));
}

#[test]
fn closed_output_ends_a_tool_quietly() {
    let host = files();
    for call in [
        "head text",
        "tail text",
        "sort text",
        "uniq text",
        "grep a text",
        "seq 100000000",
        "find .",
        "hexdump text",
        "diff text other",
        "env",
    ] {
        let ended = host.closed(&host::words(call));
        assert_eq!((ended.status, &ended.stderr[..]), (141, ""), "{call}");
    }
}

#[test]
fn every_tool_has_help_and_refuses_what_it_does_not_know() {
    let host = files();
    for tool in text::TOOLS {
        let ended = host.ours(&[tool.name, "--help"], b"");
        assert_eq!((ended.status, &ended.stdout[..]), (0, tool.help.as_bytes()));
        assert!(tool.help.starts_with(&format!("usage: {}", tool.name)));
        assert!(tool.help.lines().all(|line| line.chars().count() <= 84), "{}", tool.name);
        let ended = host.ours(&[tool.name, "-~"], b"");
        assert_eq!(ended.status, if tool.name == "env" { 125 } else { 2 }, "{}", tool.name);
        assert!(
            ended.stderr.contains("-~") && ended.stderr.ends_with(&format!("try {} --help\n", tool.name)),
            "{}",
            ended.stderr
        );
    }
}

/// Lines of few different letters: much is the same.
fn lines() -> impl Strategy<Value = String> {
    (proptest::collection::vec("[a-d]{0,2}", 0..40), any::<bool>())
        .prop_map(|(lines, open)| lines.join("\n") + if open || lines.is_empty() { "" } else { "\n" })
}

/// The length of the longest list of lines that both have.
fn longest_common(one: &[&[u8]], other: &[&[u8]]) -> usize {
    let mut before = vec![0; other.len() + 1];
    for line in one {
        let mut row = vec![0];
        for (at, beside) in other.iter().enumerate() {
            row.push(if line == beside { before[at] + 1 } else { before[at + 1].max(row[at]) });
        }
        before = row;
    }
    before[other.len()]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(200) })]

    #[test]
    fn differences_are_right_and_shortest(one in lines(), other in lines(), patience in prop_oneof![Just(1000), 1..6_usize]) {
        let (first, second) = (text::edits::lines(one.as_bytes()).expect("memory"), text::edits::lines(other.as_bytes()).expect("memory"));
        let changes = text::edits::changes(&first, &second, patience).expect("memory");
        let kept = |lines: &[&[u8]], changed: &[bool]| -> Vec<Vec<u8>> {
            lines.iter().zip(changed).filter(|(_, changed)| !**changed).map(|(line, _)| line.to_vec()).collect()
        };
        let common = kept(&first, &changes.removed);
        prop_assert_eq!(&common, &kept(&second, &changes.added));
        if patience == 1000 {
            prop_assert_eq!(common.len(), longest_common(&first, &second));
        }
    }

    #[test]
    fn patch_understands_what_diff_says(one in lines(), other in lines(), around in 0..4_u32) {
        let host = Host::new();
        host.file("one", one.as_bytes());
        host.file("other", other.as_bytes());
        let ended = host.ours(&["diff", "-U", &around.to_string(), "one", "other"], b"");
        prop_assert_eq!(ended.status, i32::from(one != other));
        let patched = host.theirs(&["patch", "-s", "--posix", "one"], &ended.stdout);
        prop_assert_eq!(patched.status, 0, "{} {}", String::from_utf8_lossy(&ended.stdout), patched.stderr);
        prop_assert_eq!(host.read("one"), other.as_bytes());
    }

    #[test]
    fn any_expression_gets_an_answer(expression in "[-a-c*.^$\\[\\](){}|+?0-2,:\\\\]{0,12}", text in "[a-c]{0,12}") {
        let host = Host::new();
        for option in ["-G", "-E", "-F"] {
            let ended = host.ours(&["grep", option, "-o", "-e", &expression, "-"], text.as_bytes());
            prop_assert!(matches!(ended.status, 0..=2));
        }
    }

    #[test]
    fn any_bytes_are_sorted_as_by_the_usual_tool(bytes in proptest::collection::vec(prop_oneof![Just(b'\n'), Just(b' '), b'0'..=b'3', 0..=0x7f_u8, Just(0xff)], 0..80)) {
        let host = Host::new();
        host.file("bytes", &bytes);
        for call in ["sort bytes", "sort -n bytes", "sort -u bytes", "sort -k 2 bytes", "uniq -c bytes", "hexdump -C bytes", "tail -n 2 bytes", "head -n 2 bytes"] {
            host.same(&host::words(call), b"");
        }
    }
}
