//! The limits of scripts: they must not go on when they are stopped, recurse without end, or take all memory; and messages.

mod host;

use std::fs;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use host::{Host, null};
use proptest::prelude::*;
use shelleval::{Machine, State};

fn machine(world: &Host, errors: &fs::File) -> Machine<Host> {
    let mut state = State::new("shell", &[("PATH", "/usr/bin:/bin")]);
    state.directory = std::env::temp_dir().to_str().unwrap().into();
    Machine::new(world.clone(), state, [null(), null(), Arc::new(errors.try_clone().unwrap())])
}

/// Runs a text; gives its error output, and its status.
fn said(text: &str) -> (String, u64) {
    let path = std::env::temp_dir().join(format!("shelleval-{:?}-{}", thread::current().id(), std::process::id()));
    let mut machine = machine(&Host::new(), &fs::File::create(&path).unwrap());
    machine.text(text);
    let text = fs::read_to_string(&path).unwrap();
    let _ = fs::remove_file(&path);
    (text, machine.state.leave.unwrap_or(machine.state.status))
}

#[test]
fn mistakes_are_reported_with_line_and_column() {
    let text = |text: &str| said(text).0;
    assert_eq!(said("if true\nthen\n  echo a )"), ("shell: line 3, column 10: `fi` is missing\n".into(), 2));
    assert_eq!(text("eval 'a;;'"), "shell: eval: line 1, column 2: `;;` has no place here\n");
    assert_eq!(text("sh -c 'fi'"), "shell: sh: line 1, column 1: `fi` has no place here\n");
    assert_eq!(text("test a -nt b"), "shell: test: -nt: this shell knows =, !=, -eq, -ne, -lt, -le, -gt and -ge\n");
    assert_eq!(text("[ -x a ]"), "shell: [: -x: this shell knows -e, -f, -d, -s, -n and -z\n");
    assert_eq!(text("[ a -a b -o c ]"), "shell: [: more than this shell knows (join conditions with && and ||)\n");
    assert_eq!(text("set -x"), "shell: set: -x: this shell knows -e, -u and `-- WORD…`\n");
    assert_eq!(text("echo $((a = 1))"), "shell: arithmetic: this shell does not know assignments in `$((…))`\n");
    assert_eq!(text("echo $((a++))"), "shell: arithmetic: a number is missing at the end\n");
    assert_eq!(text("local x"), "shell: local: only in a function\n");
    assert_eq!(text("sh -x f"), "shell: sh: -x: this shell knows -c\n");
    assert_eq!(text("no-such-command"), "shell: no-such-command: no such command or program (help lists them)\n");
    assert_eq!(text("echo ${x?is needed}; echo never"), "shell: x: is needed\n");
}

#[test]
fn recursion_has_a_limit_and_an_error() {
    let calls = "shell: calls and compound commands in more than 600 levels\n";
    assert_eq!(said("f() { f; }; f; echo never >&2"), (calls.into(), 2));
    assert_eq!(said("f() { if true; then f; fi; }; f"), (calls.into(), 2));
    assert_eq!(said("x='eval \"$x\"'; eval \"$x\""), (calls.into(), 2));
    assert_eq!(said("f() { (f); }; (f); echo alive >&2").0, format!("{calls}alive\n"));
    assert_eq!(said("f() { for i in 1; do while :; do f; done; done; }; f"), (calls.into(), 2));
    let subshells = "shell: pipelines, `$(…)` and scripts in more than 8 levels\n";
    assert_eq!(said("f() { x=$(f); }; f"), (subshells.into(), 2));
    assert_eq!(said("f() { f | f; }; f").1, 1);
    let path = std::env::temp_dir().join(format!("shelleval-recursion-{}", std::process::id()));
    fs::write(&path, "sh $0; exit 3").unwrap();
    assert_eq!(
        said(&format!("sh {}; echo $? >&2", path.display())).0,
        format!("{}: {}3\n", path.display(), &subshells[7..])
    );
    fs::write(&path, format!(". {}", path.display())).unwrap();
    assert_eq!(said(&format!(". {}", path.display())), (calls.into(), 2));
    fs::remove_file(path).unwrap();
}

#[test]
fn memory_has_a_limit_and_an_error() {
    let words = "shell: the words of a command may have 32768 bytes\n";
    assert_eq!(said("a=x; while :; do a=$a$a; done"), (words.into(), 2));
    assert_eq!(said("set -- a; while :; do set -- \"$@\" \"$@\"; done"), (words.into(), 2));
    assert_eq!(said("x=$(while :; do pwd; done)"), said("x=$(yes)"));
    assert_eq!(said("x=$(yes)"), ("shell: `$(…)` printed more than 32768 bytes\n".into(), 2));
    assert_eq!(
        said("x=$(seq 1 4000); f() { local \"x$1=$x\" || exit; f $(($1 + 1)); }; f 1").0,
        "shell: local: x3: all variables together may have 65536 bytes\n"
    );
    assert_eq!(said("f() { f \"$@\" a; }; f $(seq 1 400)").0, "shell: calls and loops hold more than 98304 bytes\n");
    assert_eq!(said("i=0; while :; do i=$((i+1)); eval a$i=1; done").1, 2);
    assert_eq!(
        said("seq 1 100000 | { read x; sleep 0.1; tr -d '\\n' | { read x; }; }"),
        ("shell: read: a line may have 32768 bytes\n".into(), 2)
    );
}

/// When no memory is left, what runs is taken away, and the shell goes on.
#[test]
fn no_memory_is_an_error() {
    for room in 0..60 {
        let world = Host::new();
        let mut machine = machine(&world, &null());
        world.room.store(room, Ordering::Relaxed);
        machine.text("x=1; f() { for i in 1 2 3; do (echo $i | cat; x=$(echo 2)) > /dev/null; done; }; f; f; while :; do :; done");
        assert_eq!(machine.state.status, 2);
        world.room.store(usize::MAX, Ordering::Relaxed);
        machine.text("x=alive$x");
        assert!(matches!(machine.state.variable("x"), Some("alive1" | "alive")));
    }
}

#[test]
fn endless_scripts_are_stopped() {
    let texts = [
        "while :; do :; done",
        "until false; do true; done",
        "f() { while true; do x=$((x+1)); done; }; f",
        "for i in 1; do while :; do (:); done; done",
        "while :; do x=$(echo a); done",
        "while :; do echo a | cat > /dev/null; done",
        "while :; do :; done | cat",
        "x=$(while :; do :; done)",
        "(while :; do :; done)",
        "eval 'while :; do :; done'",
        "while :; do sh -c ':'; done",
    ];
    for text in texts {
        let world = Host::new();
        let mut machine = machine(&world, &null());
        let stop = world.stop.clone();
        let stopper = thread::spawn(move || {
            thread::sleep(Duration::from_millis(30));
            stop.store(true, Ordering::Relaxed);
        });
        machine.text(text);
        stopper.join().unwrap();
        assert_eq!(machine.state.status, 130, "{text}");
        world.stop.store(false, Ordering::Relaxed);
        machine.text("x=alive");
        assert_eq!(machine.state.variable("x"), Some("alive"), "{text}");
        assert_eq!(world.threads.load(Ordering::Relaxed), 0, "{text}");
    }
}

/// Commands of the world are not looked for among files, and run where the shell does, or in a pipeline on a copy.
#[test]
fn commands_of_the_world() {
    assert_eq!(said("own a 'b c' >&2"), (format!("{} own,a,b c\n", std::env::temp_dir().display()), 7));
    assert_eq!(said("own 2>&1 >/dev/null | cat >&2; echo $? >&2").0, "0\n");
    assert_eq!(said("own a | cat >&2").0, format!("{} own,a\n", std::env::temp_dir().display()));
}

#[test]
fn time_shows_how_long_it_took() {
    let (text, status) = said("time sleep 0.02");
    let seconds: f64 = text.strip_prefix("real ").and_then(|text| text.strip_suffix(" s\n")).unwrap().parse().unwrap();
    assert!((0.02..5.0).contains(&seconds) && status == 0, "{text}");
    assert_eq!(said("time false; time ! true | cat").1, 1);
}

/// Texts of what the language is made of, most of which a shell would run.
fn pieces() -> impl Strategy<Value = String> {
    let pieces = [
        "if :; then",
        "else",
        "fi;",
        "while x=$x.; [ ${#x} -lt 9 ]; do",
        "until true; do",
        "do",
        "done;",
        "for i in a b $x; do",
        "case $x in",
        "a*)",
        ";;",
        "esac;",
        "{",
        "};",
        "( ",
        ");",
        ";",
        "&&",
        "||",
        "|",
        "\n",
        "x=",
        "$x",
        "\"$@\"",
        "$*",
        "$((x+",
        "1))",
        "$(",
        ")",
        "${x:-",
        "${x#",
        "${x%%",
        "}",
        "\"",
        "'",
        "*",
        "[a",
        "f() {",
        "f",
        "set -- a b",
        "shift",
        "return",
        "break",
        "continue 2",
        "exit",
        "eval",
        "unset x",
        "read x",
        "export x",
        "local x",
        "IFS=:",
        "set -e",
        "!",
        "a",
        "2>&1",
        "< /dev/null",
        "cd /",
        "pwd",
        "own",
    ];
    proptest::collection::vec(proptest::sample::select(pieces.to_vec()), 0..25).prop_map(|list| list.join(" "))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    /// Nothing that can be written makes the interpreter panic; no thread and no frame is left.
    #[test]
    fn no_text_panics(text in pieces()) {
        let world = Host::new();
        world.room.store(3000, Ordering::Relaxed);
        let mut machine = machine(&world, &null());
        machine.state.set("PATH", "", false).unwrap();
        machine.text(&text);
        prop_assert_eq!(world.threads.load(Ordering::Relaxed), 0);
        prop_assert!(machine.state.status < 256);
    }

    /// A pattern matches what a slow and simple matcher says.
    #[test]
    fn patterns_match_as_the_simple_matcher_says(pattern in "[ab*?\\[\\]!-]{0,8}", text in "[ab\\[\\]!-]{0,8}") {
        prop_assert_eq!(shelleval::pattern::matches(&pattern, &text), slow(&pattern, &text), "{:?} {:?}", pattern, text);
    }

    #[test]
    fn no_expression_panics(text in "[0-9ax+*/%<>=!&|^~?: ()-]{0,30}") {
        let _ = shelleval::arithmetic::evaluate(&text, &|_| Some("3".into()));
    }
}

/// `*` by trying all; the rest one element at a time, by a pattern without `*`.
fn slow(pattern: &str, text: &str) -> bool {
    let mut rest = pattern.char_indices();
    match rest.next() {
        None => text.is_empty(),
        Some((_, '*')) => {
            let ends = (0..=text.len()).filter(|at| text.is_char_boundary(*at));
            ends.into_iter().any(|at| slow(&pattern[1..], &text[at..]))
        }
        Some((_, first)) => {
            let Some(c) = text.chars().next() else { return false };
            let after = &text[c.len_utf8()..];
            if first == '[' {
                let body = &pattern[1..];
                let negated = body.starts_with('!');
                let start = usize::from(negated);
                // A `]` at the beginning is one of the set.
                if let Some(end) = body.get(start + 1..).and_then(|set| set.find(']')).map(|at| at + start + 1) {
                    let set: Vec<char> = body[start..end].chars().collect();
                    let mut found = false;
                    let mut at = 0;
                    while at < set.len() {
                        if at + 2 < set.len() && set[at + 1] == '-' {
                            found |= (set[at]..=set[at + 2]).contains(&c);
                            at += 3;
                        } else {
                            found |= set[at] == c;
                            at += 1;
                        }
                    }
                    return found != negated && slow(&body[end + 1..], after);
                }
            }
            (first == '?' || first == c) && slow(&pattern[first.len_utf8()..], after)
        }
    }
}
