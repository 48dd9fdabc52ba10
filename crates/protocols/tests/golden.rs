//! The layouts against their checked-in texts. `GOLDEN=write cargo test -p protocols` writes them again, unless a method that
//! there is would change, which its clients would not survive: then only `GOLDEN=replace`.
#![allow(missing_docs)]

use std::{env, fs, path::Path};

use std::collections::BTreeMap;

use idl::Protocol;
use protocols::{ERRORS, LAYOUTS, METHODS, console, pipes, stream};

fn compare(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("golden").join(format!("{name}.txt"));
    let expected = fs::read_to_string(&path).unwrap_or_default();
    let expected = match env::var("GOLDEN").as_deref() {
        Ok("replace") => text,
        Ok("write") if grows(&expected, text) => text,
        _ => &expected,
    };
    if env::var_os("GOLDEN").is_some() {
        fs::write(&path, expected).expect("golden text written");
    }
    assert!(
        expected == text,
        "the contract changed: {} is not\n{text}\n`GOLDEN=write cargo test -p protocols` writes it again if only methods or errors at \
         the end came; any other change breaks who was built before: `GOLDEN=replace cargo test -p protocols`",
        path.display()
    );
}

/// Whether nothing but lines at the end came to a text, which clients that know the first ones do not notice.
fn grows(before: &str, text: &str) -> bool {
    before.is_empty() || text.starts_with(before) && text[before.len()..].starts_with('\n')
}

#[test]
fn only_methods_at_the_end_may_come() {
    let released = "interface A\n\n1 one() -> () or E\n    call   word 0: 1\n";
    let more = format!("{released}\n2 two() -> () or E\n    call   word 0: 2\n");
    assert!(grows(released, &more) && grows("", released));
    assert!(!grows(&more, released), "a method is gone");
    assert!(!grows(released, &released.replace("one()", "one(a: u64)")), "a method is another");
    assert!(!grows(released, &format!("{released}           word 1: a\n")), "the last one, too");
}

#[test]
fn layouts() {
    for (name, text) in LAYOUTS {
        compare(name, text);
    }
}

#[test]
fn errors() {
    for (name, texts) in ERRORS {
        let mut text = name.to_string();
        for (code, variant, why) in *texts {
            assert!((1..0xffff_0000).contains(code), "{name} {code}: the codes above are the protocol's");
            text += &format!("\n    {code} {variant}: {why}");
        }
        compare(&format!("errors/{name}"), &text);
    }
    let of_protocol = Protocol::TEXTS.iter().map(|(code, variant, why)| format!("\n    {code:#x} {variant}: {why}"));
    compare("errors/Protocol", &("Protocol".to_string() + &of_protocol.collect::<String>()));
}

#[test]
fn each_golden_text_is_of_an_interface() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("golden");
    let layouts: Vec<&str> = LAYOUTS.iter().map(|(name, _)| *name).collect();
    let errors: Vec<&str> = ERRORS.iter().map(|(name, _)| *name).chain(["Protocol"]).collect();
    for (folder, known) in [(folder.join("errors"), errors), (folder, layouts)] {
        for file in fs::read_dir(folder).expect("a folder") {
            let path = file.expect("a file").path();
            let name = path.file_stem().map(|name| name.display().to_string()).unwrap_or_default();
            assert!(
                path.is_dir() || known.contains(&&*name),
                "{} is of nothing that is there: an interface that was released stays in the list, or its text goes with it",
                path.display()
            );
        }
    }
}

#[test]
fn the_console_begins_as_a_stream() {
    let [stream, console] = [stream::STREAM_LAYOUT, console::CONSOLE_LAYOUT]
        .map(|layout| layout.split_once("\n\n").expect("a head").1.replace("StreamError", "ConsoleError"));
    assert!(console.starts_with(&stream), "{console}");
    assert!(pipes::PIPE_END_METHODS.starts_with(stream::STREAM_METHODS), "{:?}", pipes::PIPE_END_METHODS);
}

#[test]
fn no_two_methods_have_a_number() {
    let mut numbers = BTreeMap::new();
    for (number, name) in METHODS.iter().flat_map(|(_, methods)| *methods) {
        let other = numbers.insert(number, name);
        assert!(
            other.is_none_or(|other| other == name),
            "{name} and {other:?} have the number {number:#x}: another name of the interface has another tag"
        );
    }
    assert!(METHODS.iter().map(|(name, _)| *name).eq(LAYOUTS.iter().map(|(name, _)| *name)));
}

/// The chapter about interfaces has the portal of each, and names none that there is not.
#[test]
fn the_book_has_the_portal_of_each_interface() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/book/interfaces.md");
    let book = fs::read_to_string(path).expect("the chapter");
    let rows = |head: &str| -> Vec<Vec<&str>> {
        let (_, table) = book.split_once(head).expect("the table");
        let rows = table.lines().skip(2).take_while(|line| line.starts_with('|'));
        rows.map(|row| row.split('|').map(str::trim).collect()).collect()
    };
    let rows_of_portals: &[Vec<&str>] = &rows("| interfaces | portal | entries");
    let portal_of = |interface: &str| {
        let others = rows_of_portals.iter().find(|row| row[1] == "all others");
        rows_of_portals
            .iter()
            .find(|row| row[1].contains(&format!("`{interface}`")))
            .or(others)
            .map(|row| row[2].trim_matches('`'))
    };
    let there: Vec<_> = LAYOUTS.iter().map(|(_, text)| word_after(text, "interface ")).collect();
    for ((_, text), interface) in LAYOUTS.iter().zip(&there) {
        assert_eq!(portal_of(interface), Some(word_after(text, "portal ")), "{interface}");
    }
    let rows_of_interfaces = rows("| interface | served by |");
    let mut listed: Vec<String> =
        rows_of_interfaces.iter().flat_map(|row| row[1].split('`').skip(1).step_by(2)).map(String::from).collect();
    listed.retain(|interface| !there.contains(&interface.as_str()));
    assert!(listed.is_empty(), "{listed:?} are no interfaces");
}

/// The rest of the line that begins so.
fn word_after<'a>(text: &'a str, start: &str) -> &'a str {
    text.lines().find_map(|line| line.strip_prefix(start)).expect("such a line")
}
