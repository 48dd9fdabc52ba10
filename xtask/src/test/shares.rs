//! The book's table of priorities, shares of time and accounts is that of the default system.

use super::parity::root;
use crate::project::read_text;
use anyhow::Result;
use std::collections::BTreeMap;
use toml::Value;

/// Its columns after the name, with what stands there if a component says nothing.
const COLUMNS: [(&str, &str); 7] = [
    ("priority", "16"),
    ("max_priority", ""),
    ("share", "–"),
    ("account", "–"),
    ("vault", "–"),
    ("rest", "–"),
    ("vault_rest", "–"),
];

/// The entries of each component, by name, as the table shows it.
fn components(text: &str) -> Result<BTreeMap<String, Vec<String>>> {
    let system: toml::Table = toml::from_str(text)?;
    let all = system.get("component").and_then(Value::as_array).into_iter().flatten();
    let shown = |component: &Value, key: &str, otherwise: &str| match component.get(key) {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Integer(number)) => number.to_string(),
        _ => otherwise.into(),
    };
    Ok(all
        .map(|component| {
            let own = shown(component, "priority", "16");
            let cells = COLUMNS
                .map(|(key, otherwise)| shown(component, key, if otherwise.is_empty() { &own } else { otherwise }));
            (shown(component, "name", ""), cells.to_vec())
        })
        .collect())
}

/// The rows of the first table of a page.
fn rows(page: &str) -> BTreeMap<String, Vec<String>> {
    let table = page.lines().skip_while(|line| !line.starts_with("|---")).skip(1);
    table
        .take_while(|line| line.starts_with('|'))
        .filter_map(|line| {
            let mut cells = line.trim_matches('|').split('|').map(|cell| cell.trim().trim_matches('`').to_string());
            Some((cells.next()?, cells.collect()))
        })
        .collect()
}

#[test]
fn the_book_has_what_the_system_has() -> Result<()> {
    let system = components(&read_text(&root().join("systems/default.toml"))?)?;
    let book = rows(&read_text(&root().join("docs/book/shares.md"))?);
    assert!(!system.is_empty());
    assert_eq!(book, system, "the table of docs/book/shares.md and systems/default.toml");
    Ok(())
}
