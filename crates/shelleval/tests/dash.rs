//! Each form of the language against `dash`: the same text, run in folders with the same files, prints the same and ends with
//! the same status.

mod host;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use host::{Host, null};
use shelleval::{Machine, State};

/// Folders of a run.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("shelleval-{}-{number}", std::process::id()));
        let write = |name: &str, text: &str| fs::write(path.join(name), text).unwrap();
        fs::create_dir_all(path.join("folder/inner")).unwrap();
        write("a.txt", "one\ntwo\nthree\n");
        write("b.txt", "last line has no end");
        write("c d.txt", "with blank\n");
        write(".hidden", "");
        write("folder/x1", "x1\n");
        write("folder/x2", "x2\n");
        write("folder/inner/deep", "deep\n");
        write("words.sh", "#!/bin/sh\necho words: $# \"$1\" \"$0\"\nexit 5\n");
        write("library.sh", "value=sourced\ngreet() { echo \"hello $1\"; }\nreturn 3\necho never\n");
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

const PATH: &str = "/usr/bin:/bin";

fn of_dash(text: &str, folder: &Path) -> (String, u64) {
    let output = Command::new("dash")
        .args(["-c", text, "shell", "first", "second word"])
        .current_dir(folder)
        .env_clear()
        .envs([("PATH", PATH), ("HOME", "/home"), ("LC_ALL", "C")])
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .expect("dash is needed for this test: apt-get install dash");
    (String::from_utf8(output.stdout).unwrap(), output.status.code().unwrap() as u64)
}

/// Output, error output, status.
fn of_cairn(text: &str, folder: &Path) -> (String, String, u64) {
    let (output, errors) = (folder.join("../").join(format!("{}.out", name(folder))), folder.with_extension("err"));
    let file = |path: &Path| Arc::new(fs::File::create(path).unwrap());
    let mut state = State::new("shell", &[("PATH", PATH), ("HOME", "/home"), ("LC_ALL", "C")]);
    state.directory = folder.to_str().unwrap().into();
    state.arguments = ["first".to_string(), "second word".to_string()].into();
    let mut machine = Machine::new(Host::new(), state, [null(), file(&output), file(&errors)]);
    machine.text(text);
    let read = |path: &Path| fs::read_to_string(path).unwrap();
    let result = (read(&output), read(&errors), machine.state.leave.unwrap_or(machine.state.status));
    let _ = (fs::remove_file(output), fs::remove_file(errors));
    result
}

fn name(folder: &Path) -> &str {
    folder.file_name().unwrap().to_str().unwrap()
}

/// Runs it with both; says what differs. Paths of the folders are taken out of what is printed.
fn differs(text: &str) -> Option<String> {
    let (one, other) = (Folder::new(), Folder::new());
    let dash = of_dash(text, &one.0);
    let (output, errors, status) = of_cairn(text, &other.0);
    let dash = (dash.0.replace(name(&one.0), "FOLDER"), dash.1);
    let cairn = (output.replace(name(&other.0), "FOLDER"), status);
    (cairn != dash).then(|| format!("{text}\n  ours: {cairn:?}\n  dash: {dash:?}\n  errors: {errors}"))
}

fn all_same(texts: &[&str]) {
    let differences: Vec<String> = texts.iter().filter_map(|text| differs(text)).collect();
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

#[test]
fn words_and_quotes() {
    all_same(&[
        "echo a  b\tc",
        "echo 'a  b' \"c  d\" e\\ f a'b'\"c\"d",
        "echo a#b #c d",
        "echo a\\\nb",
        "x='*'; echo \"$x\" '$x' \\$x \"\\$x\"",
        "echo '' \"\" | wc -c",
        "echo $none '' \"$none\" | wc -c",
        "echo 5$ $ a$",
        "printf '%s\\n' \"a\\b\" \"\\\"\" \"\\\\\"",
        "echo {a,b} a=b",
        "\"echo\" quoted; e''cho joined; \\echo escaped",
    ]);
}

#[test]
fn lists_and_status() {
    all_same(&[
        "true && echo yes || echo no; false && echo yes || echo no",
        "false; echo $?; true; echo $?; sh -c 'exit 7'; echo $?",
        "! true; echo $?; ! false; echo $?; ! true || echo negated",
        "exit 3; echo never",
        "exit",
        "false; exit",
        "echo one;echo two\necho three\n\n\n# comment\necho four",
        "true &&\necho next line ||\necho never",
        "false",
        "false || true",
        "exit 300",
        "{ echo a; echo b; }; { exit 4; }; echo never",
        "( exit 4 ); echo $?; ( echo in; x=1 ); echo \"[$x]\"",
        "nothing-of-this-name; echo $?",
        "./folder; echo $?",
        "nothing-of-this-name || echo refused",
    ]);
}

#[test]
fn pipelines() {
    all_same(&[
        "echo a b | wc -w",
        "cat a.txt | grep t | wc -l",
        "cat a.txt |\nsort |\nhead -n 1",
        "false | true; echo $?; true | false; echo $?",
        "echo x | while read line; do echo \"<$line>\"; done",
        "cat a.txt | while read line; do echo \"<$line>\"; done | sort",
        "echo x | read v; echo \"[$v]\"",
        "x=1; echo | x=2; echo $x",
        "! echo a | grep -q b; echo $?",
        "echo a | { cat; echo b; } | cat",
        "(echo a; echo b) | wc -l",
        "cd folder | true; pwd",
        "echo a | for i in 1 2; do cat; echo $i; done",
        "seq 1 100000 | head -n 1; echo $?",
        "while :; do echo y; done | { read a; echo got $a; }; while :; do pwd; done | { read a; echo got; }",
        "seq 1 20000 | while read n; do echo $n; break; done",
        "f() { cat; echo f; }; echo a | f | sort",
        "exit 3 | true; echo alive $?; true | exit 3; echo alive $?",
    ]);
}

#[test]
fn redirections() {
    all_same(&[
        "echo a > f; cat f; echo b >> f; cat < f; wc -l < f",
        "echo a >f 2>&1; cat f",
        "ls nothing 2> f; wc -l < f",
        "ls nothing > f 2>&1; wc -l < f",
        "ls nothing 2>&1 > f | wc -l; wc -l < f",
        "ls nothing a.txt 2>&1 | wc -l",
        "echo to error >&2; echo to error 1>&2; echo done",
        "{ echo a; echo b >&2; echo c; } > f 2>&1; cat f",
        "{ echo a; echo b; } > f; { echo c; echo d; } >> f; cat f",
        "for i in 1 2 3; do echo $i; done > f; wc -l f",
        "while read line; do echo \"$line.\"; done < a.txt",
        "if true; then cat; fi < a.txt",
        "{ read a; read b; echo \"$b $a\"; cat; } < a.txt",
        "> f; test -e f && wc -c < f",
        "echo a > f > g; wc -c < f; cat g",
        "cat < nothing; echo $?",
        "cat < nothing || echo no",
        "echo x > nowhere/f; echo $?",
        "f=name; echo a > $f; cat name; echo b > \"c d\"; cat 'c d'",
        "echo 2 > f; cat f; echo a2>f; cat f",
        "echo a >| f; cat f",
        "f() { echo out; echo err >&2; }; f 2> e > o; cat o e",
        "(echo a; echo b) > f; cat f",
        "echo a 0< a.txt",
    ]);
}

#[test]
fn parameters() {
    all_same(&[
        "x=1; echo $x ${x}y $xy x$x",
        "echo $# \"$1\" \"$2\" $2 \"$3\" $0",
        "for i in \"$@\"; do echo \"[$i]\"; done; for i in $@; do echo \"[$i]\"; done",
        "for i in \"$*\"; do echo \"[$i]\"; done; for i in $*; do echo \"[$i]\"; done",
        "for i; do echo \"[$i]\"; done; for i do echo $i; done",
        "set -- a 'b c' ''; echo $#; for i in \"$@\"; do echo \"[$i]\"; done; for i in $@; do echo \"[$i]\"; done",
        "set --; echo $#; for i in \"$@\"; do echo never; done; echo \"x$@y\"",
        "set -- a b; echo \"x$@y\" \"$*\"; for i in \"x$@y\"; do echo $i; done",
        "set a b c; shift; echo $1 $#; shift 2; echo $#",
        "set -- 1 2 3 4 5 6 7 8 9 10 11; echo $10 ${10} ${11}",
        "while [ $# -gt 0 ]; do echo $1; shift; done",
        "echo ${x-default} ${x:-other} \"${x-a  b}\" ${x-a  b}; x=; echo [${x-no}] [${x:-yes}]",
        "echo ${x=set} $x; echo ${y:=a b} $y; x=; : ${x:=again}; echo $x",
        "echo [${x+set}] [${x:+set}]; x=1; echo [${x+set}] [${x:+set}]; x=; echo [${x+set}] [${x:+set}]",
        "for i in ${1+\"$@\"}; do echo [$i]; done",
        "x=hello; echo ${#x} ${#none} ${#}",
        "x=a.b.c; echo ${x%.*} ${x%%.*} ${x#*.} ${x##*.} ${x%x} ${x#'a'}",
        "x='*y'; echo ${x#'*'} ${x#\\*}; p=/usr/lib/libc.so; echo ${p##*/} ${p%/*}",
        "x=a; echo ${x:-${y:-b}} ${z:-${y:-b}}",
        "(echo ${x?}; echo never); echo $?; (echo ${x:?message}); echo $?",
        "(set -u; echo $none; echo never); echo $?; (set -u; echo ${none-is there})",
        "x=1 sh -c 'echo $x'; echo [$x]; x=2; x=3 sh -c 'echo $x'; echo $x",
        "x=1; sh -c 'echo [$x]'; export x; sh -c 'echo [$x]'; export y=2; sh -c 'echo $y'; unset x; echo [$x]",
        "x=1 y=2; echo $x$y; x=$y y=$x; echo $x$y",
        "x=1; f() { echo $x; }; x=2 f; : ",
        "echo ~ ~/x \"~\" '~' a~ x=~; x=~/y; echo $x; y=~; echo $y",
        "HOME=/other; echo ~/a; cd folder; cd ..; cd folder/inner; ls; cd ../..; ls folder",
        "cd nothing; echo $?",
    ]);
}

#[test]
fn splitting() {
    all_same(&[
        "x='a  b c'; for i in $x; do echo [$i]; done; for i in \"$x\"; do echo [$i]; done",
        "x=' a b '; for i in 1$x'2'; do echo [$i]; done",
        "x='a '; y=' b'; for i in $x$y; do echo [$i]; done; for i in $x\"$y\"; do echo \"[$i]\"; done",
        "IFS=:; x='a:b::c:'; for i in $x; do echo [$i]; done",
        "IFS=:; x=':a'; for i in $x; do echo [$i]; done; x=':'; for i in $x; do echo [$i]; done",
        "IFS=': '; x='a : b  c::d'; for i in $x; do echo [$i]; done",
        "IFS=; x='a b'; for i in $x; do echo [$i]; done",
        "IFS=,; set -- a b c; echo \"$*\"; x=\"$*\"; echo \"$x\"",
        "IFS=; set -- a b c; echo \"$*\"",
        "x='a b'; y=$x; echo \"$y\"; y=$x$x; echo \"$y\"",
        "x='a b'; case $x in 'a b') echo whole;; esac",
        "for f in $(ls *.txt); do echo \"[$f]\"; done",
        "x=$(printf 'a\\nb\\n\\n'); echo \"[$x]\"; for i in $x; do echo [$i]; done",
        "x='a;b|c&d'; echo $x",
        "set -- $(echo 1 2 3); echo $# $2",
        "unset IFS; x='a b'; for i in $x; do echo [$i]; done",
        "x='a\\b'; printf '%s\\n' $x; for i in $x; do printf '%s\\n' [$i]; done",
        "read a b < a.txt; echo \"[$a] [$b]\"",
        "echo 'one two  three ' | { read a b; echo \"[$a] [$b]\"; }",
        "echo 'a:b:c' | { IFS=: read a b; echo \"[$a] [$b]\"; }",
        "echo ' x\\y ' | { read -r a; echo \"[$a]\"; }; echo 'a\\ b c' | { read a b; echo \"[$a] [$b]\"; }",
        "read a < b.txt; echo $? \"$a\"; read a < /dev/null; echo $?",
    ]);
}

#[test]
fn names_of_files() {
    all_same(&[
        "echo *.txt; echo *; echo .h*; echo f*/x? */inner/*; echo */",
        "echo *.none '*.txt' \"*.txt\" \\*.txt; echo [ab].txt [!a].txt [a-c].txt [[:alpha:]].txt",
        "for f in *.txt; do echo \"[$f]\"; done; for f in folder/*; do echo $f; done",
        "x='*.txt'; echo $x; echo \"$x\"; y=*.txt; echo \"$y\"",
        "echo $PWD/*.txt | wc -w; echo /etc/passw[d] /etc/pass*d",
        "echo a.tx? ?.txt; echo [; echo a[; echo []",
        "echo ./*.txt folder//x*; cd folder; echo *; echo ../*.txt",
        "set -- *.txt; echo $#; wc -l *.txt | tail -n 1",
        "echo > 'star*'; echo star*; x=star; echo $x* \"$x\"*",
        "for f in *.none; do echo $f; done",
    ]);
}

#[test]
fn substitutions() {
    all_same(&[
        "echo $(echo a) \"$(echo 'b  c')\" $(echo 'b  c')",
        "x=$(cat a.txt); echo \"$x\"; echo $x",
        "x=$(false); echo $?; x=$(sh -c 'exit 5'); echo $?; echo $(false) $?",
        "echo $(echo $(echo deep)) \"$(echo \"$(echo \"quoted $(echo inner)\")\")\"",
        "x=1; y=$(x=2; echo $x); echo $x $y; y=$(cd folder; pwd); pwd | grep -c folder",
        "echo $(exit 3); echo \"[$(exit 3)]\"; echo $(echo a; exit 2; echo b)",
        "echo $(ls folder | wc -l); echo $(for i in 1 2; do echo $i; done)",
        "echo \"$(printf 'a\\n\\n\\n')\" end; echo \"[$(true)]\"",
        "f() { echo \"f $1\"; return 2; }; x=$(f a); echo $? \"$x\"",
        "echo $(# comment )\necho a); echo \"$(case a in (a) echo in case;; esac)\"",
        "$(echo echo) run; $(true); echo $?; $(false); echo $?",
        "seq 1 5000 > f; x=$(cat f); echo ${#x}",
    ]);
}

#[test]
fn arithmetic() {
    all_same(&[
        "echo $((1 + 2 * 3)) $(((1 + 2) * 3)) $((7 / 2)) $((7 % 3)) $((-7 / 2)) $((- 3)) $((2-3))",
        "x=5; echo $((x + 1)) $(($x * 2)) $((none)) \"$((x))\"; x=$((x+1)); echo $x",
        "echo $((1 < 2)) $((2 <= 1)) $((1 == 1)) $((1 != 1)) $((1 && 0)) $((1 || 0)) $((!5)) $((~5))",
        "echo $((5 & 3)) $((5 | 3)) $((5 ^ 3)) $((1 << 4)) $((256 >> 2)) $((1 ? 2 : 3)) $((0 ? 2 : 3))",
        "echo $((0x1f)) $((010)) $((1 - 1 - 1)) $((100 / 10 / 2)) $((1 || 1 / 0)) $((0 && 1 / 0))",
        "i=0; while [ $i -lt 5 ]; do i=$((i + 1)); echo $i; done; echo $((9223372036854775807 + 1))",
        "echo $((  )) 2>/dev/null || true; echo $(($(echo 3) + 1)) $((${#x} + 1)) $((1>0))",
        "(echo $((1 / 0)); echo never); echo $?; (echo $((1 +)); echo never); echo $?",
    ]);
}

#[test]
fn conditions() {
    all_same(&[
        "if true; then echo yes; fi; if false; then echo no; fi; echo $?",
        "if false; then echo 1; elif true; then echo 2; else echo 3; fi",
        "if false; then echo 1; elif false; then echo 2; else echo 3; fi",
        "if false\nthen echo 1\nelse\necho 2\nfi",
        "if [ -f a.txt ]; then echo file; fi; [ -f folder ] || echo no; [ -d folder ] && echo directory",
        "[ -e nothing ]; echo $?; [ -e a.txt ]; echo $?; [ -z '' ]; echo $?; [ -n '' ]; echo $?; [ -s .hidden ]; echo $?",
        "[ a = a ]; echo $?; [ a = b ]; echo $?; [ a != b ]; echo $?; test a = a && echo test",
        "[ 1 -eq 1 ] && [ 1 -ne 2 ] && [ 1 -lt 2 ] && [ 2 -le 2 ] && [ 3 -gt 2 ] && [ 3 -ge 3 ] && echo all",
        "[ 2 -eq 1 ] || [ 1 -ne 1 ] || [ 2 -lt 2 ] || [ 3 -le 2 ] || [ 2 -gt 2 ] || [ 2 -ge 3 ] || echo none",
        "[ ! -f nothing ]; echo $?; [ ! a = b ]; echo $?; [ ! '' ]; echo $?; [ ]; echo $?; [ x ]; echo $?; [ ! ]; echo $?",
        "[ -n ]; echo $?; [ = ]; echo $?; [ '!' = '!' ]; echo $?; [ -5 -lt 3 ]; echo $?",
        "[ a -eq 1 ] 2> /dev/null; echo $?; [ a 2> /dev/null; echo $?",
        "if true; then if false; then echo a; else echo b; fi; fi",
        "case abc in a*) echo star;; *) echo other;; esac; case x in a|x) echo one of;; esac",
        "case a.b in *.c) echo no;; '*') echo no;; [ab].?) echo yes;; esac; case x in y) ;; esac; echo $?",
        "case $1 in\n  first)\n    echo is first\n    ;;\n  *) echo else\nesac",
        "x='a*'; case 'a*' in \"$x\") echo quoted;; esac; case ab in $x) echo pattern;; esac; case ab in \"$x\") echo no;; esac",
        "case '' in '') echo empty;; esac; case a in [!b]) echo not b;; esac; case ] in []]) echo bracket;; esac",
        "case a in esac; echo $?; case a in a) false;; esac; echo $?",
    ]);
}

#[test]
fn loops() {
    all_same(&[
        "for i in a 'b c' $(echo d e); do echo [$i]; done; echo $i",
        "for i in; do echo never; done; echo $?",
        "for i in 1 2 3\ndo\n  echo $i\ndone",
        "for i in 1 2 3; do if [ $i = 2 ]; then continue; fi; echo $i; done",
        "for i in 1 2 3; do if [ $i = 2 ]; then break; fi; echo $i; done; echo after $?",
        "for i in 1 2; do for j in a b; do [ $j = b ] && continue 2; echo $i$j; done; echo never; done",
        "for i in 1 2; do for j in a b; do [ $i$j = 1b ] && break 2; echo $i$j; done; done; echo end",
        "while false; do echo never; done; echo $?; until true; do echo never; done; echo $?",
        "i=0; until [ $i = 3 ]; do i=$((i+1)); echo $i; done",
        "while true; do echo once; break; done; while :; do break; done; echo $?",
        "i=0; while i=$((i+1)); [ $i -lt 3 ]; do echo $i; false; done; echo $?",
        "for i in 1 2 3; do (exit $i); done; echo $?",
        "while read a b; do echo \"$b$a\"; done < a.txt | sort",
        "i=0; while [ $i -lt 3 ]; do i=$((i+1)); continue; echo never; done; echo $i",
        "break; echo alive; continue; echo alive",
        "f() { for i in 1 2; do return 4; done; }; f; echo $?",
        "for i in 1 2; do { break; }; done; echo $i; for i in 1 2; do ( break ); done; echo $i",
        "for x in a b; do while :; do break; done; echo $x; done",
        "i=0; while [ $i -lt 2000 ]; do i=$((i+1)); done; echo $i",
    ]);
}

#[test]
fn functions_and_scripts() {
    all_same(&[
        "f() { echo \"$# $1\"; }; f a b; f; f 'c d'; echo $# $1",
        "f() { return 3; }; f; echo $?; f() { false; }; f; echo $?; f() { return; }; false; f; echo $?",
        "f()\n{\n  echo lines\n}\nf; f() (x=1; exit 2); f; echo $? [$x]",
        "f() { x=changed; local y=inner; echo $y; }; y=outer; f; echo $x $y",
        "f() { if [ $1 -gt 0 ]; then echo $1; f $(($1 - 1)); fi; }; f 5",
        "f() { shift; echo $1; }; f a b; echo $1; f() { set -- x y; }; f; echo $1",
        "sh words.sh a b; echo $?; sh ./words.sh; x=$(sh words.sh q); echo $? $x",
        ". ./library.sh; echo $? $value; greet you",
        "f() { . ./library.sh; echo $?; }; f; greet me",
        "eval 'echo a; x=2'; echo $x; eval echo '$x'; eval; echo $?; y='echo \"$x  $x\"'; eval \"$y\"",
        "f() { exit 6; }; f; echo never",
        "unset -f f; f() { echo f; }; f; unset -f f; f 2> /dev/null; echo $?",
        "sh -c 'echo $0 $1 $#' name arg; sh -c 'exit 9'; echo $?",
        "set -e; true; false || true; if false; then :; fi; ! true; false && true; echo here; false; echo never",
        "set -e; f() { false; echo reached; }; f || echo no; (false) || echo sub; (exit 4); echo never",
        "set -e; while false; do :; done; x=$(false) || echo caught; { false; true; } && echo never; echo never",
        "set -e; set +e; false; echo alive",
        "echo() { command_is_hidden=1; printf 'mine %s\\n' \"$1\"; }; echo a",
        "true; : ; : ignored $(echo side > f); cat f; false; echo $?",
        "pwd | tail -c 7 | wc -c; cd folder && cd .. && cd folder && ls",
    ]);
}
