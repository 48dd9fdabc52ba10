//! The table of operations against its checked-in text and the tables of the book. `GOLDEN=write cargo test -p abi` writes both
//! again.
#![allow(missing_docs)]

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::{env, fs};

use abi::flows::{FLOWS, OTHERS, UNASKED};
use abi::op::{self, Class, Judged, Operand, OperandKind, Operation, ResultKind};
use abi::{MESSAGE_WORDS, rights};

const RIGHTS: [(u8, &str); 5] = [
    (rights::COPY, "COPY"),
    (rights::READ, "READ"),
    (rights::WRITE, "WRITE"),
    (rights::USE, "USE"),
    (rights::CONTROL, "CONTROL"),
];

fn rights_text(rights: u8) -> String {
    let names: Vec<&str> = RIGHTS.iter().filter(|(right, _)| rights & right != 0).map(|(_, name)| *name).collect();
    names.join(" and ")
}

fn causes(refusal: &op::Refusal) -> String {
    let cause = |cause: &op::Cause| match cause.limit {
        Some(limit) => format!("{} {}", cause.text, readable(limit)),
        None => cause.text.to_string(),
    };
    refusal.causes.iter().map(cause).collect::<Vec<_>>().join("; ")
}

/// A number as people read it: 1,024, 2^62 - 1.
fn readable(number: u64) -> String {
    if number > u32::MAX.into() && (number + 1).is_power_of_two() {
        return format!("2^{} - 1", number.count_ones());
    }
    let digits = number.to_string();
    let groups: Vec<&str> = digits.as_bytes().rchunks(3).rev().map(|group| str::from_utf8(group).unwrap()).collect();
    groups.join(",")
}

// ---- the golden text ----

fn golden_row(text: &mut String, number: usize, row: &Operation) {
    let result = match row.result {
        ResultKind::Nothing => String::new(),
        ResultKind::Index => " -> index that was filled".to_string(),
        ResultKind::Number => format!(" -> {}", row.meaning),
    };
    writeln!(text, "{number} {}{result}", row.name).unwrap();
    for (word, operand) in row.operands.iter().enumerate() {
        let Operand { name, kind, about, .. } = operand;
        let about = if about.is_empty() { String::new() } else { format!(" ({about})") };
        let needs = if operand.rights == 0 { String::new() } else { format!(", {}", rights_text(operand.rights)) };
        match kind {
            OperandKind::Way => writeln!(text, "    word {word}: {number}, {}", row.constant).unwrap(),
            kind => writeln!(text, "    word {word}: {name}: {kind:?}{needs}{about}").unwrap(),
        }
    }
    for refusal in row.refusals {
        writeln!(text, "    {:?}: {}", refusal.error, causes(refusal)).unwrap();
    }
}

fn golden() -> String {
    let mut text = String::from("kinds of operands, and what each can end an operation with\n\n");
    let mut kinds = BTreeMap::new();
    for operand in all_rows().flat_map(|row| row.operands) {
        kinds.insert(format!("{:?}", operand.kind), operand.kind.errors());
    }
    for (kind, errors) in kinds.iter().filter(|(_, errors)| !errors.is_empty()) {
        writeln!(text, "{kind}: {errors:?}").unwrap();
    }
    text += "\noperations\n";
    for (number, row) in op::TABLE.iter().enumerate() {
        text += "\n";
        golden_row(&mut text, number, row);
        let step = if row.step.is_empty() { String::new() } else { format!(", in steps of {}", row.step) };
        writeln!(text, "    entered: {:?}{step}", row.class).unwrap();
    }
    for (group, rows) in op::WAYS {
        writeln!(text, "\nways of {group}").unwrap();
        for (number, row) in rows.iter().enumerate() {
            text += "\n";
            golden_row(&mut text, number, row);
        }
    }
    text
}

fn all_rows() -> impl Iterator<Item = &'static Operation> {
    static TABLE: [Operation; op::COUNT] = op::TABLE;
    TABLE.iter().chain(op::WAYS.iter().flat_map(|(_, rows)| *rows))
}

/// The first line in which two texts differ.
fn difference(was: &str, is: &str) -> Option<String> {
    let lines = was.lines().map(Some).chain(std::iter::repeat(None));
    let pairs = lines.zip(is.lines().map(Some).chain([None]));
    let (number, (was, is)) = pairs.enumerate().find(|(_, (was, is))| was != is)?;
    let line = |line: Option<&str>| line.unwrap_or("(the end)").trim().to_string();
    Some(format!("line {}: `{}` is now `{}`", number + 1, line(was), line(is)))
}

/// Compares a checked-in text with what it should be, or writes it.
fn compare(path: &Path, text: &str) {
    if env::var_os("GOLDEN").is_some_and(|value| value == "write") {
        fs::write(path, text).expect("the text is written");
    }
    let expected = fs::read_to_string(path).unwrap_or_default();
    if let Some(difference) = difference(&expected, text) {
        panic!(
            "the contract changed: {}, {difference}\n`GOLDEN=write cargo test -p abi` writes it again",
            path.display()
        );
    }
    assert_eq!(expected, text);
}

#[test]
fn the_text() {
    compare(&root().join("golden/operations.txt"), &golden());
}

#[test]
fn a_difference_is_reported_by_its_line() {
    assert_eq!(difference("a\nb\n", "a\nb\n"), None);
    assert_eq!(difference("a\n  b\nc\n", "a\n  d\nc\n").unwrap(), "line 2: `b` is now `d`");
    assert_eq!(difference("a\n", "a\nb\n").unwrap(), "line 2: `(the end)` is now `b`");
    assert_eq!(difference("a\nb\n", "a\n").unwrap(), "line 2: `b` is now `(the end)`");
}

// ---- the tables of the book ----

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// A line of the book after which a table stands: `<!-- operations: clock yield -->`, `<!-- ways: DOMAIN_SET -->`, `<!-- errors: all -->`.
fn mark<'a>(line: &'a str, what: &str) -> Option<&'a str> {
    line.strip_prefix("<!-- ")?.strip_suffix(" -->")?.strip_prefix(what)?.strip_prefix(": ")
}

/// Without the first operand, which all ways of an operation have, if the row is one of these.
fn operands_text(row: &Operation) -> String {
    let way = row.operands.iter().position(|operand| operand.kind == OperandKind::Way);
    let shown = |operand: &&Operand| operand.kind != OperandKind::Way && operand.about != "not used";
    let operands = row.operands.iter().skip(way.map_or(0, |place| place.min(1))).filter(shown);
    let text = |operand: &Operand| {
        let about = if operand.about.is_empty() { String::new() } else { format!(" ({})", operand.about) };
        format!("{}{about}", operand.name.replace('_', " "))
    };
    let mut text = operands.map(text).collect::<Vec<_>>().join(", ");
    let result = match row.result {
        ResultKind::Nothing if row.meaning.is_empty() => String::new(),
        ResultKind::Nothing => format!("; {}", row.meaning),
        ResultKind::Index => " → index".to_string(),
        ResultKind::Number => format!(" → {}", row.meaning),
    };
    text += &result;
    text.trim_start_matches("; ").trim().to_string()
}

fn rights_needed(row: &Operation) -> String {
    let needed = row.operands.iter().filter(|operand| operand.rights != 0);
    let needed: Vec<_> = needed.map(|operand| (operand.name.replace('_', " "), rights_text(operand.rights))).collect();
    match &needed[..] {
        [] => "–".to_string(),
        [(_, rights)] if row.operands.iter().filter(|operand| operand.kind.is_entry()).count() == 1 => rights.clone(),
        several => several.iter().map(|(name, rights)| format!("{name}: {rights}")).collect::<Vec<_>>().join("; "),
    }
}

fn errors_text(row: &Operation) -> String {
    let refusal = |refusal: &op::Refusal| format!("`{:?}` ({})", refusal.error, causes(refusal));
    let mut errors: Vec<String> = row.refusals.iter().map(refusal).collect();
    if !op::ways(row.constant).is_empty() {
        errors.push("those below".to_string());
    }
    if errors.is_empty() { "–".to_string() } else { errors.join(", ") }
}

fn table_of_operations(names: &str) -> Result<String, String> {
    let mut text = String::from("| index | operation | operands → value | right | errors |\n|---|---|---|---|---|\n");
    for name in names.split(' ') {
        let index =
            op::NAMES.iter().position(|other| *other == name).ok_or(format!("there is no operation `{name}`"))?;
        let row = &op::TABLE[index];
        let (operands, rights) = (operands_text(row), rights_needed(row));
        writeln!(text, "| {index} | `{name}` | {operands} | {rights} | {} |", errors_text(row)).unwrap();
    }
    Ok(text)
}

fn table_of_ways(group: &str) -> Result<String, String> {
    let rows = op::ways(group);
    if rows.is_empty() {
        return Err(format!("there are no ways of `{group}`"));
    }
    let mut text = String::from(
        "| number | way | what it does | operands → value | right | errors |\n|---|---|---|---|---|---|\n",
    );
    for (number, row) in rows.iter().enumerate() {
        let (operands, rights) = (operands_text(row), rights_needed(row));
        // Links of the documentation lead nowhere here.
        let about = row.about.trim().replace("[`", "`").replace("`]", "`").replace("crate::", "");
        writeln!(text, "| {number} | `{}` | {about} | {operands} | {rights} | {} |", row.constant, errors_text(row))
            .unwrap();
    }
    Ok(text)
}

/// The name in the mark `<!-- errors: all -->`.
const ERRORS: &str = "all";

fn table_of_errors() -> String {
    let rows = abi::Error::ALL.iter().map(|error| format!("| {} | `{error:?}` | {error} |\n", *error as u64));
    ["| code | error | meaning |\n|---|---|---|\n".to_string()].into_iter().chain(rows).collect()
}

/// A chapter with its tables as they should be, and what stands in these.
fn chapter(text: &str, shown: &mut Vec<String>) -> Result<String, String> {
    let mut lines = text.lines().peekable();
    let mut new = String::new();
    while let Some(line) = lines.next() {
        writeln!(new, "{line}").unwrap();
        let (names, table) = match (mark(line, "operations"), mark(line, "ways"), mark(line, "errors")) {
            (Some(names), ..) => (names, table_of_operations(names)?),
            (_, Some(group), _) => (group, table_of_ways(group)?),
            (.., Some(ERRORS)) => (ERRORS, table_of_errors()),
            _ => continue,
        };
        shown.extend(names.split(' ').map(str::to_string));
        while lines.next_if(|line| line.starts_with('|')).is_some() {}
        new += &table;
    }
    Ok(new)
}

/// The chapters with their tables as they should be. Every operation and every group of ways has to be in one.
fn chapters(texts: &[String]) -> Result<Vec<String>, String> {
    let mut shown = Vec::new();
    let new = texts.iter().map(|text| chapter(text, &mut shown)).collect::<Result<_, _>>()?;
    for name in op::NAMES.into_iter().chain(op::WAYS.iter().map(|(group, _)| *group)).chain([ERRORS]) {
        match shown.iter().filter(|other| *other == name).count() {
            1 => {}
            times => return Err(format!("`{name}` stands in {times} tables of the book")),
        }
    }
    Ok(new)
}

#[test]
fn the_tables_of_the_book() {
    let paths = ["system-call.md", "operations.md"].map(|name| root().join("../../docs/book").join(name));
    let texts = paths.each_ref().map(|path| fs::read_to_string(path).expect("the chapter is there"));
    let new = chapters(&texts).expect("the tables are those of the contract");
    paths.iter().zip(new).for_each(|(path, text)| compare(path, &text));
}

// ---- the chapter about flows ----

/// The checks of the operands of an operation, or of one of its ways.
fn asked_about_operands(row: &Operation) -> String {
    let name = |judged: Judged| match judged {
        Judged::Domain => "both ways",
        Judged::Object => "use",
        Judged::Nucleus => "not tainted",
        Judged::Nothing(_) => "nothing",
    };
    let operands =
        row.operands.iter().filter_map(|operand| operand.judged().map(|judged| (operand.name, name(judged))));
    operands.map(|(operand, asked)| format!("{}: {asked}", operand.replace('_', " "))).collect::<Vec<_>>().join("; ")
}

fn table_of_flows() -> String {
    let mut text =
        String::from("| operation | learns something | operands | other checks | test |\n|---|---|---|---|---|\n");
    for ((row, flow), number) in op::TABLE.iter().zip(FLOWS.in_order()).zip(0..) {
        let ways = op::ways(row.constant);
        let mut operands: Vec<String> =
            [row].into_iter().chain(ways).map(asked_about_operands).filter(|text| !text.is_empty()).collect();
        operands.dedup();
        let operands = if operands.is_empty() { "–".to_string() } else { operands.join("<br>") };
        let is_free = row
            .operands
            .iter()
            .all(|operand| !matches!(operand.judged(), Some(judged) if !matches!(judged, Judged::Nothing(_))));
        let test = match number {
            _ if is_free && flow.asked.starts_with("nothing") && ![op::RETURN, op::EXIT].contains(&number) => "–",
            _ => "`flows`",
        };
        writeln!(text, "| `{}` | {} | {operands} | {} | {test} |", row.name, flow.reports, flow.asked).unwrap();
    }
    text
}

fn table_of_others() -> String {
    let mut text = String::from("| flow | learns something | checks | lines of `flows` |\n|---|---|---|---|\n");
    for (what, flow, lines) in OTHERS {
        writeln!(text, "| {what} | {} | {} | {} |", flow.reports, flow.asked, lines.join("; ")).unwrap();
    }
    text
}

fn table_of_unasked() -> String {
    let mut text = String::from("| flow | learns something | why nothing is checked | tests |\n|---|---|---|---|\n");
    for (what, flow, tests) in UNASKED {
        let tests: Vec<String> = tests.iter().map(|test| format!("`{test}`")).collect();
        let tests = if tests.is_empty() { "–".to_string() } else { tests.join(", ") };
        writeln!(text, "| {what} | {} | {} | {tests} |", flow.reports, flow.asked).unwrap();
    }
    text
}

/// Only a row that says that no test reaches it has none.
#[test]
fn each_flow_that_is_not_asked_about_has_a_test() {
    for (what, flow, tests) in UNASKED {
        assert_eq!(tests.is_empty(), flow.asked.ends_with("so no test reaches it"), "{what}");
        for test in *tests {
            let path = root().join(format!("../../tests/boot/{test}.toml"));
            assert!(path.is_file(), "{what}: there is no boot test `{test}`");
        }
    }
}

fn table_of_nothing() -> String {
    let mut text = String::from("| operand | why nothing is asked |\n|---|---|\n");
    let mut rows: Vec<String> = Vec::new();
    for (row, operand) in all_rows().flat_map(|row| row.operands.iter().map(move |operand| (row, operand))) {
        if let Some(Judged::Nothing(why)) = operand.judged() {
            rows.push(format!("| {:?}{} | {why} |", operand.kind, if row.name == "info" { " of `info`" } else { "" }));
        }
    }
    rows.sort();
    rows.dedup();
    rows.iter().for_each(|row| writeln!(text, "{row}").unwrap());
    text
}

#[test]
fn the_chapter_about_flows() {
    let path = root().join("../../docs/book/flows.md");
    let text = fs::read_to_string(&path).expect("the chapter is there");
    let mut lines = text.lines().peekable();
    let mut new = String::new();
    while let Some(line) = lines.next() {
        writeln!(new, "{line}").unwrap();
        let table = match mark(line, "flows") {
            Some("operations") => table_of_flows(),
            Some("others") => table_of_others(),
            Some("unasked") => table_of_unasked(),
            Some("nothing") => table_of_nothing(),
            Some(other) => panic!("there is no table `{other}` of flows"),
            None => continue,
        };
        while lines.next_if(|line| line.starts_with('|')).is_some() {}
        new += &table;
    }
    assert_eq!(new.matches("<!-- flows: ").count(), 4, "each table once");
    compare(&path, &new);
}

/// The lines that a boot test expects: the name of each, and the outcome after it.
fn expected(test: &str) -> Vec<(String, String)> {
    let path = root().join(format!("../../tests/boot/{test}.toml"));
    let text = fs::read_to_string(&path).unwrap_or_else(|_| panic!("there is no boot test `{test}`"));
    let lines = text.lines().filter_map(|line| line.strip_prefix("    \"")?.strip_suffix("\",")?.rsplit_once(": "));
    lines.map(|(name, outcome)| (name.to_string(), outcome.to_string())).collect()
}

/// The test that goes along the table of operations, and its control, which does the same with labels off.
const FLOWS_TESTS: [&str; 2] = ["flows", "flows-off"];

/// In the control nothing but what labels have to do with comes out otherwise, and labels refuse nothing.
#[test]
fn each_flow_has_a_test() {
    let [test, control] = FLOWS_TESTS;
    let text = fs::read_to_string(root().join(format!("../../tests/boot/{control}.toml"))).unwrap_or_default();
    assert!(text.contains("\nappend = \"labels=off\"\n"), "`{control}` has labels");
    let [on, off] = [expected(test), expected(control)];
    assert!(!on.is_empty(), "`{test}` expects nothing");
    let name = |lines: &[(String, String)]| lines.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
    assert_eq!(name(&on), name(&off), "`{test}` and `{control}` do not do the same");
    for ((name, on), (_, off)) in on.iter().zip(&off) {
        // Labels that are given to something new are judged with labels off, too.
        let is_made = name.starts_with("labels of a child") || name.starts_with("an account of");
        assert!(is_made || !off.contains("Flow"), "{name}: labels that are off refuse");
        assert!(on != off || !on.contains("Flow") || is_made, "{name}: what is refused is not done with labels off");
    }
}

/// The lines of a row are there. Something of them is the same with labels off, as labels allow it; something is not.
#[test]
fn each_flow_is_allowed_and_refused_in_its_lines() {
    let [on, off] = FLOWS_TESTS.map(expected);
    let outcome = |lines: &[(String, String)], name: &str| {
        let found = lines.iter().find(|(line, _)| line == name).unwrap_or_else(|| panic!("there is no line `{name}`"));
        found.1.split(", ").map(str::to_string).collect::<Vec<_>>()
    };
    for (what, _, lines) in OTHERS {
        let pairs = lines.iter().flat_map(|line| outcome(&on, line).into_iter().zip(outcome(&off, line)));
        let (same, other): (Vec<_>, Vec<_>) = pairs.partition(|(on, off)| on == off);
        assert!(!same.is_empty(), "{what}: nothing is allowed");
        assert!(!other.is_empty(), "{what}: nothing is refused");
    }
}

#[test]
fn mistakes_of_the_chapters_are_reported() {
    let groups: Vec<String> = op::WAYS.iter().map(|(group, _)| format!("<!-- ways: {group} -->\n")).collect();
    let first = format!("<!-- operations: {} -->\nwhat\n", op::NAMES.join(" "));
    let errors = format!("<!-- errors: {ERRORS} -->\n");
    let both = [first.clone(), groups.concat() + &errors];
    let written = chapters(&both).unwrap();
    assert_eq!(chapters(&written).unwrap(), written);
    assert!(written[0].contains("\n| 2 | `clock` | → nanoseconds since boot | – | – |\n"));
    assert!(written[0].ends_with("|\nwhat\n"));
    let old = written[0].replace("→ nanoseconds since boot", "→ seconds");
    assert_eq!(chapters(&[old, written[1].clone()]).unwrap(), written);
    let mistake = |old: &str, new: &str| chapters(&both.each_ref().map(|text| text.replace(old, new))).unwrap_err();
    assert_eq!(mistake(" clock", ""), "`clock` stands in 0 tables of the book");
    assert_eq!(mistake(" clock", " clock clock"), "`clock` stands in 2 tables of the book");
    assert_eq!(mistake(" clock", " clocks"), "there is no operation `clocks`");
    assert_eq!(mistake("ways: IO", "ways: PIO"), "there are no ways of `PIO`");
    assert_eq!(mistake(&groups[0], ""), "`DOMAIN_SET` stands in 0 tables of the book");
    assert_eq!(mistake(&errors, ""), "`all` stands in 0 tables of the book");
}

// ---- what holds of every row ----

/// The mistakes in a row.
fn mistakes(row: &Operation) -> Vec<String> {
    let mut mistakes = Vec::new();
    let mut mistake = |what: &str| mistakes.push(format!("{}: {what}", row.name));
    // The last operand travels where the control word does.
    if row.operands.len() > MESSAGE_WORDS + 1 {
        mistake("more operands than words");
    }
    for operand in row.operands {
        if operand.rights != 0 && !operand.kind.is_entry() {
            mistake(&format!("{} is no entry and has no rights", operand.name));
        }
        if operand.rights == 0 && operand.kind.is_entry() {
            mistake(&format!("{} needs no right", operand.name));
        }
    }
    for (place, refusal) in row.refusals.iter().enumerate() {
        if row.refusals[..place].iter().any(|other| other.error == refusal.error) {
            mistake(&format!("{:?} is named twice", refusal.error));
        }
    }
    if (row.result == ResultKind::Index) != row.operands.iter().any(|operand| operand.kind == OperandKind::Fill) {
        mistake("an index is the result where one is filled, and only there");
    }
    if row.result == ResultKind::Number && row.meaning.is_empty() {
        mistake("a number without a meaning comes back");
    }
    if row.class != Class::Full && !row.step.is_empty() {
        mistake("what ends at once is done in steps");
    }
    mistakes
}

#[test]
fn every_row() {
    let found: Vec<String> = all_rows().flat_map(mistakes).collect();
    assert!(found.is_empty(), "{found:#?}");
    for (group, rows) in op::WAYS {
        let operation = op::TABLE.iter().find(|row| row.constant == *group);
        for row in *rows {
            let place = row.operands.iter().position(|operand| operand.kind == OperandKind::Way).unwrap();
            let Some(operation) = operation else { continue };
            assert!(row.operands.len() <= operation.operands.len(), "{}: more operands than {group} has", row.name);
            assert!(
                ["what", "way"].contains(&operation.operands[place].name),
                "{}: {group} chooses otherwise",
                row.name
            );
        }
    }
}

#[test]
fn mistakes_of_a_row_are_reported() {
    let good = op::TABLE[op::PORTAL_NEW];
    let operand = good.operands[0];
    let word = Operand { kind: OperandKind::Number, rights: 0, ..operand };
    let first = |row: Operation| mistakes(&row).first().cloned().unwrap_or_default();
    assert_eq!(first(good), "");
    let leak = |operands: &[Operand]| -> &'static [Operand] { operands.to_vec().leak() };
    assert_eq!(first(Operation { operands: leak(&[word; 7]), ..good }), "portal_new: more operands than words");
    let operands = leak(&[Operand { rights: 1, ..word }]);
    assert_eq!(first(Operation { operands, ..good }), "portal_new: to is no entry and has no rights");
    let operands = leak(&[Operand { rights: 0, ..operand }]);
    assert_eq!(first(Operation { operands, ..good }), "portal_new: to needs no right");
    let refusals = vec![good.refusals[0]; 2].leak();
    assert_eq!(first(Operation { refusals, ..good }), "portal_new: BadArgument is named twice");
    let reported = "portal_new: an index is the result where one is filled, and only there";
    assert_eq!(first(Operation { result: ResultKind::Nothing, ..good }), reported);
    let reported = "clock: a number without a meaning comes back";
    assert_eq!(first(Operation { meaning: "", ..op::TABLE[op::CLOCK] }), reported);
    let reported = "clock: what ends at once is done in steps";
    assert_eq!(first(Operation { step: "a page", ..op::TABLE[op::CLOCK] }), reported);
}

#[test]
fn errors_of_an_operation_are_its_own_those_of_its_operands_and_those_of_its_ways() {
    use abi::Error::*;
    let errors =
        |mask: u128| abi::Error::ALL.iter().copied().filter(|error| mask >> *error as u32 & 1 != 0).collect::<Vec<_>>();
    assert_eq!(errors(op::ERRORS[op::CLOCK]), []);
    assert_eq!(errors(op::ERRORS[op::LOG]), [BadArgument, Flow]);
    let by_labels = [AccountExhausted, NoFrames, Flow];
    let of_domain = [BadIndex, Empty, Revoked, WrongKind, NoRight, PeerDied];
    let sorted = |mut all: Vec<abi::Error>| {
        all.sort_by_key(|error| *error as u32);
        all
    };
    assert_eq!(sorted(errors(op::ERRORS[op::DOMAIN_KILL])), sorted([&of_domain[..], &by_labels].concat()));
    assert_eq!(errors(op::ERRORS[op::INFO]), [BadIndex, Empty, Revoked, WrongKind, NoRight, AtEnd, NoSuchWay]);
    assert_eq!(
        errors(op::ERRORS[op::ACTIVATION_SET]),
        [BadIndex, BadAddress, AccountExhausted, NoFrames, Again, NotAligned, Reserved, NoSuchWay]
    );
    let of_v = [&[BadIndex, Empty, Revoked, WrongKind, NoRight][..], &by_labels].concat();
    assert_eq!(sorted(errors(op::SEMAPHORE_ERRORS[1])), sorted(of_v));
}

#[test]
fn each_error_has_a_text_and_is_its_code() {
    for error in abi::Error::ALL {
        assert!(!error.text().is_empty() && error.text() == error.text_alone(), "{error:?}: {}", error.text());
        assert_eq!(abi::Error::from_status(*error as u64), Err(*error));
    }
    assert_eq!(abi::Error::from_status(0), Ok(()));
    for unknown in [abi::Error::ALL.len() as u64 + 1, u64::MAX] {
        assert_eq!(abi::Error::from_status(unknown), Err(abi::Error::Unknown));
    }
}

#[test]
fn only_a_call_ends_with_an_error_that_no_row_names() {
    use abi::Error::{Busy, Confined, Full, NoDeadline, NoHandler, TooDeep, TooOften, Unknown, WindowGone};
    let named =
        op::ERRORS.into_iter().chain(op::SEMAPHORE_ERRORS).chain(op::PORT_ERRORS).fold(0, |all, errors| all | errors);
    let others: Vec<_> = abi::Error::ALL.iter().filter(|error| named >> **error as u32 & 1 == 0).collect();
    assert_eq!(
        others,
        [Busy, TooDeep, WindowGone, TooOften, Full, NoDeadline, Confined, Unknown, NoHandler]
            .iter()
            .collect::<Vec<_>>()
    );
}
