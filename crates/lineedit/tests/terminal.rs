//! The editor against a model of a terminal: after every byte the row on the screen is the prompt and
//! the window of the line, and the terminal's cursor stands where the next character goes.

use lineedit::{Completions, Editor, Outcome, screen};
use proptest::prelude::*;

const COLUMNS: usize = 40;

/// A terminal that understands what the editor sends and refuses everything else.
#[derive(Default)]
struct Terminal {
    row: Vec<(char, usize)>,
    column: usize,
    escape: Option<String>,
    pending: Vec<u8>,
}

impl Terminal {
    fn write(&mut self, bytes: &[u8]) {
        self.pending.extend_from_slice(bytes);
        let text = String::from_utf8(std::mem::take(&mut self.pending)).expect("output is UTF-8");
        for c in text.chars() {
            if let Some(sequence) = &mut self.escape {
                sequence.push(c);
                if c.is_ascii_alphabetic() {
                    let sequence = self.escape.take().unwrap();
                    self.sequence(&sequence);
                }
                continue;
            }
            match c {
                '\r' => self.column = 0,
                '\n' => self.row.clear(),
                '\x07' => {}
                '\x1b' => self.escape = Some(String::new()),
                c => self.put(c),
            }
        }
    }
    fn sequence(&mut self, sequence: &str) {
        match sequence {
            "[K" => self.row.retain(|(_, at)| *at < self.column),
            "[H" => self.column = 0,
            "[2J" => self.row.clear(),
            _ => {
                let count = sequence.strip_prefix('[').and_then(|s| s.strip_suffix('C')).expect("known sequence");
                self.column += count.parse::<usize>().unwrap();
                assert!(self.column < COLUMNS);
            }
        }
    }
    fn put(&mut self, c: char) {
        assert!(!c.is_control(), "control character {c:?} reached the screen");
        let width = screen::character_width(c);
        let column = self.column;
        if width > 0 {
            self.row.retain(|(_, at)| *at < column || *at >= column + width);
        }
        // A combining mark belongs to what stands before it.
        self.row.push((c, if width == 0 { column.saturating_sub(1) } else { column }));
        self.column += width;
        assert!(self.column < COLUMNS, "the terminal would wrap");
    }
    fn text(&self) -> String {
        let mut row = self.row.clone();
        row.sort_by_key(|(_, at)| *at);
        row.into_iter().map(|(c, _)| c).collect()
    }
}

fn completer(before: &str) -> Completions {
    let word = before.rsplit(' ').next().unwrap_or("");
    let all = ["cat ", "cp ", "console", "console-log", "ls "];
    let candidates = all.iter().filter(|c| c.starts_with(word)).map(|c| c.to_string()).collect();
    Completions { replace: word.chars().count(), candidates }
}

fn check(editor: &Editor, terminal: &Terminal) {
    let line: Vec<char> = editor.text().chars().collect();
    let (first, room) = editor.shown();
    assert!(first <= editor.cursor() && editor.cursor() <= line.len());
    assert!(line.len() <= lineedit::MAX_CHARACTERS);
    let shown = &line[first..first + screen::visible(&line[first..], room)];
    let expected: String = editor.prompt().chars().chain(shown.iter().copied()).collect();
    assert_eq!(terminal.text(), expected);
    let column = screen::text_width(editor.prompt()) + screen::width(&line[first..editor.cursor()]);
    assert_eq!(terminal.column, column);
}

fn run(bytes: &[u8]) -> Vec<Outcome> {
    let mut editor = Editor::new(COLUMNS, 5);
    let mut terminal = Terminal::default();
    let mut outcomes = Vec::new();
    let mut output = Vec::new();
    editor.start("cairn:/$ ", &mut output);
    terminal.write(&output);
    for byte in bytes {
        output.clear();
        let outcome = editor.feed(*byte, &mut output, &mut completer);
        if let Some(outcome) = outcome {
            outcomes.push(outcome);
            editor.start("cairn:/$ ", &mut output);
        }
        terminal.write(&output);
        check(&editor, &terminal);
        assert!(editor.history().lines().count() <= 5);
    }
    outcomes
}

fn lines(input: &str) -> Vec<String> {
    let outcomes = run(input.as_bytes()).into_iter();
    outcomes
        .map(|o| match o {
            Outcome::Line(line) => line,
            other => format!("{other:?}"),
        })
        .collect()
}

#[test]
fn editing_keys() {
    assert_eq!(lines("abc\r"), ["abc"]);
    assert_eq!(lines("ac\x1b[Db\r"), ["abc"]);
    assert_eq!(lines("bc\x01a\x05d\r"), ["abcd"]);
    assert_eq!(lines("abcd\x7f\x7f\r"), ["ab"]);
    assert_eq!(lines("abcd\x01\x04\x1b[3~\r"), ["cd"]);
    assert_eq!(lines("one two\x17three\r"), ["one three"]);
    assert_eq!(lines("one two\x15x\r"), ["x"]);
    assert_eq!(lines("one two\x01\x1b[1;5C\x0b\r"), ["one"]);
    assert_eq!(lines("one \x17\x19\x19\r"), ["one one "]);
    assert_eq!(lines("äö\x1b[D\x7fü\r"), ["üö"]);
    assert_eq!(lines("\x1bOHx\x1b[Fy\r"), ["xy"]);
}

#[test]
fn returns_of_all_kinds() {
    assert_eq!(lines("a\rb\nc\r\nd\n"), ["a", "b", "c", "d"]);
    assert_eq!(lines("a\r\r"), ["a", ""]);
}

#[test]
fn ends_and_cancellations() {
    assert_eq!(lines("abc\x03d\r"), ["Cancelled", "d"]);
    assert_eq!(lines("\x04"), ["End"]);
    assert_eq!(lines("a\x04\x7f\x04"), ["End"]);
}

#[test]
fn history_up_and_down() {
    assert_eq!(lines("one\rtwo\r\x1b[A\x1b[A\r"), ["one", "two", "one"]);
    assert_eq!(lines("one\rtwo\rnew\x1b[A\x1b[A\x1b[B\x1b[B\r"), ["one", "two", "new"]);
    assert_eq!(lines("one\r\x1b[A\x1b[A\x1b[A!\r"), ["one", "one!"]);
    // Six lines, five remembered; repetitions and blanks are not kept.
    assert_eq!(lines("1\r2\r3\r3\r \r4\r5\r6\r\x10\x10\x10\x10\x10\x10\x10\r").last().unwrap(), "2");
}

#[test]
fn search_backwards() {
    let before = "make one\rls two\rmake three\r";
    let last = |keys: &str| lines(&format!("{before}{keys}")).pop().unwrap();
    assert_eq!(last("\x12one\r"), "make one");
    assert_eq!(last("\x12make\r"), "make three");
    assert_eq!(last("\x12make\x12\r"), "make one");
    // Nothing older: it stays.
    assert_eq!(last("\x12make\x12\x12\x12\r"), "make one");
    assert_eq!(last("\x12mak\x12 o\r"), "make one");
    assert_eq!(last("\x12one\x7f\x7f\x7fthr\r"), "make three");
    assert_eq!(last("\x12onex\x7f\r"), "make one");
    // Other keys edit what was found; Ctrl-G brings back what was there; Ctrl-C throws all away.
    assert_eq!(last("\x12two\x01x\r"), "xls two");
    assert_eq!(last("\x12two\x1b[D\x1b[D!\r"), "ls t!wo");
    assert_eq!(last("typed\x12two\x07 more\r"), "typed more");
    assert_eq!(last("typed\x12zzz\r"), "typed");
    assert_eq!(last("\x12two\x03new\r"), "new");
    assert_eq!(last("\x12two\x1b[A\r"), "make three");
    assert_eq!(lines("\x12a\x12\x7f\r"), [""]);
}

#[test]
fn the_last_line_again() {
    assert_eq!(lines("one\r!!\r"), ["one", "one"]);
    assert_eq!(lines("one\recho !! \"!!\"\r!!\r"), ["one", "echo one \"one\"", "echo one \"one\""]);
    assert_eq!(lines("one\r'!!' \\!! \"'!!'\"!\r"), ["one", "'!!' \\!! \"'one'\"!"]);
    assert_eq!(lines("!!\r"), ["!!"]);
    // A line that would become too long stays as it is, to be edited.
    let long = "x".repeat(1500);
    assert_eq!(lines(&format!("{long}\r!!!!\r\x15y\r")), [long, "y".into()]);
}

#[test]
fn completion() {
    assert_eq!(lines("l\t-a\r"), ["ls -a"]);
    assert_eq!(lines("con\t\r"), ["console"]);
    assert_eq!(lines("con\t-\t x\r"), ["console-log x"]);
    assert_eq!(lines("zz\tz\r"), ["zzz"]);
    assert_eq!(lines("c\t\tat\r"), ["cat"]);
}

#[test]
fn broken_sequences_leave_no_traces() {
    assert_eq!(lines("a\x1b[999999999999999Zb\r"), ["ab"]);
    assert_eq!(lines("a\x1b[12\r"), ["a"]);
    assert_eq!(run(b"a\xc3b\xff\xe2\x82c\r"), [Outcome::Line("abc".into())]);
    assert_eq!(run(b"a\xed\xa0\x80\xc0\x80\xf4\x90\x80\x80b\r"), [Outcome::Line("ab".into())]);
}

fn key() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        8 => "[a-z ]".prop_map(String::into_bytes),
        2 => "[äß漢🙂e\u{301}]".prop_map(String::into_bytes),
        4 => prop::sample::select(vec![
            "\x1b[A", "\x1b[B", "\x1b[C", "\x1b[D", "\x1b[H", "\x1b[F", "\x1b[3~", "\x1b[1;5C", "\x1b[1;5D", "\x01",
            "\x05", "\x0b", "\x15", "\x17", "\x19", "\x0c", "\x7f", "\t", "\t\t", "\r", "\n", "\x03", "\x04", "\x12", "\x07", "!!",
        ]).prop_map(|s| s.as_bytes().to_vec()),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 1 } else { 512 }))]

    #[test]
    fn any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        run(&bytes);
    }

    #[test]
    fn any_keys(keys in prop::collection::vec(key(), 0..200)) {
        run(&keys.concat());
    }

    /// How the input is cut makes no difference to what printable text becomes.
    #[test]
    fn text_comes_out_as_typed(text in "[a-zA-Z0-9äöü漢字 ]{0,100}") {
        let mut bytes = text.clone().into_bytes();
        bytes.push(b'\r');
        prop_assert_eq!(run(&bytes), vec![Outcome::Line(text)]);
    }
}
