//! The book's table of methods against the interfaces: `docs/book/services.md` has each method in one row, which says what a
//! client can do to its server. `promises` looks whether the tests of each row passed.

use super::promises::cells;
use crate::project::read_text;
use anyhow::{Context, Result};
use std::collections::BTreeMap;
use std::path::Path;

/// Columns of the table: methods, who, who pays, entries, what is held, what frees it, tests.
const COLUMNS: usize = 7;
/// Of these, the entries that are handed over; a dash if there are none.
const ENTRIES: usize = 3;

/// The methods in the text of a layout, as `Interface.method`, each with whether it hands an entry over.
fn methods(layout: &str) -> Vec<(String, bool)> {
    let interface = layout.lines().next().and_then(|line| line.strip_prefix("interface ")).unwrap_or_default();
    let signatures =
        layout.lines().filter_map(|line| line.split_once(' ')).filter(|(number, _)| number.starts_with("0x"));
    signatures
        .filter_map(|(_, signature)| signature.split_once('('))
        .map(|(name, rest)| {
            let parameters = rest.split_once(") ->").map_or(rest, |(parameters, _)| parameters);
            (format!("{interface}.{name}"), parameters.contains(": Delegate"))
        })
        .collect()
}

/// The mistakes in the table.
fn mistakes(table: &str, methods: &BTreeMap<String, bool>) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut rows = BTreeMap::new();
    for (line, row) in cells(table) {
        if row.len() != COLUMNS || row.iter().any(|cell| cell.is_empty()) {
            wrong.push(format!("line {line}: {} columns instead of {COLUMNS}, or an empty one", row.len()));
            continue;
        }
        for method in row[0].split(',').map(|method| method.trim().trim_matches('`')) {
            match methods.get(method) {
                None => wrong.push(format!("line {line}: there is no method {method}")),
                Some(hands) if *hands == (row[ENTRIES] == "–") => {
                    wrong.push(format!("line {line}: {method} and the entries that are handed to it"));
                }
                Some(_) => {}
            }
            if rows.insert(method, line).is_some() {
                wrong.push(format!("line {line}: {method} has another row"));
            }
        }
    }
    wrong.extend(
        methods.keys().filter(|method| !rows.contains_key(method.as_str())).map(|it| format!("{it} has no row")),
    );
    wrong
}

#[test]
fn each_method_has_its_row() -> Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut all = BTreeMap::new();
    for file in crate::services::files(&root.join("crates/protocols/golden"), "txt")? {
        all.extend(methods(&read_text(&file)?));
    }
    assert!(all.len() > 90, "{} methods are too few", all.len());
    let table = read_text(&root.join(super::promises::SERVICES)).context("the table of methods")?;
    let wrong = mistakes(&table, &all);
    assert!(wrong.is_empty(), "{}:\n{}", super::promises::SERVICES, wrong.join("\n"));
    Ok(())
}

#[test]
fn missing_rows_of_methods_are_reported() {
    let layout = "interface Net\n\n0x0041 open(account: Delegate) -> Delegated or NetError\n    call   word 0\n\n0x0042 look() -> u64 or NetError\n";
    let all: BTreeMap<_, _> = methods(layout).into_iter().collect();
    assert_eq!(all, BTreeMap::from([("Net.open".to_string(), true), ("Net.look".to_string(), false)]));
    let head = "| method | who | pays | entries | holds | freed | tests |\n|---|---|---|---|---|---|---|\n";
    let check = |rows: &str| mistakes(&format!("{head}{rows}"), &all);
    let open = "| `Net.open` | all | it | an account | a | b | `t` |\n";
    let look = "| `Net.look` | all | nobody | – | – | – | `t` |\n";
    assert!(check(&format!("{open}{look}")).is_empty());
    assert_eq!(check(open), ["Net.look has no row"]);
    assert_eq!(check(&format!("{open}{look}{look}")), ["line 5: Net.look has another row"]);
    assert_eq!(
        check(&format!("{open}{}", look.replace("look", "loot"))),
        ["line 4: there is no method Net.loot", "Net.look has no row"]
    );
    assert_eq!(check(&format!("{open}{}", look.replace("– | – | –", "an entry | – | –"))).len(), 1);
    assert_eq!(check(&format!("{}{look}", open.replace("an account", "–"))).len(), 1);
    assert_eq!(check(&format!("{open}{}", look.replace("`t`", ""))).len(), 2);
}
