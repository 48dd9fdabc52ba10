//! `./x new component|interface|program NAME`: adds a skeleton that builds at once to the tree.

use crate::command_line::{NewInterface, NewOptions};
use crate::image::System;
use crate::project::{Project, read_text, write};
use crate::workspace::Workspace;
use anyhow::{Context, Result, bail};
use std::fs;

/// The manifest of a crate, with what it depends on.
const MANIFEST: &str = r#"[package]
name = "NAME"
description = "What it is for, in one sentence."
version.workspace = true
edition.workspace = true
license.workspace = true

[dependencies]
DEPENDENCIES
[lints]
workspace = true
"#;
const OF_COMPONENT: [&str; 3] = ["idl", "protocols", "runtime"];
const OF_PROGRAM: [&str; 2] = ["runtime", "tool"];

/// The description that commands take if nobody names another.
const USUAL_SYSTEM: &str = "systems/default.toml";

/// The component.
const COMPONENT: &str = r#"//! What it is for, in one sentence.
//!
//! It serves the interface `Stream` under the name `NAME`: a reader gets a greeting; text that is
//! written goes to the kernel log. `./x new interface` makes an interface of its own.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use idl::{Reply, Request};
use protocols::stream::{StreamError, StreamServer};
use runtime::server::{self, Serve};

runtime::entry!(main);

/// Bytes of the heap for calls that are under way when the account is exhausted: others are refused with `NoMemory` then.
const KEPT: usize = 8 * 1024;

struct Service;

impl Serve for Service {
    fn serve(request: &mut Request<'_>) -> Reply {
        Service.dispatch(request)
    }
}

impl StreamServer for Service {
    fn read(&self, _badge: u64, into: &mut [u8]) -> Result<usize, StreamError> {
        let greeting = b"NAME is here\n";
        let count = greeting.len().min(into.len());
        into[..count].copy_from_slice(&greeting[..count]);
        Ok(count)
    }

    fn write(&self, _badge: u64, bytes: &[u8]) -> Result<usize, StreamError> {
        runtime::log!("{}", core::str::from_utf8(bytes).unwrap_or("(not text)").trim_end());
        Ok(bytes.len())
    }
}

fn main() -> u8 {
    if !server::keep_memory(KEPT) {
        runtime::log!("the account has no room to serve");
        return 1;
    }
    match server::publish::<Service>("NAME", 2) {
        Ok(_) => server::park(),
        Err(error) => {
            runtime::log!("cannot publish NAME: {error}");
            1
        }
    }
}
"#;

/// Its place in a system description.
const DESCRIPTION: &str = r#"
[[component]]
name = "NAME"
account = "256K"
priority = 28
restart = "always"
"#;

/// A program.
const PROGRAM: &str = r#"//! `NAME [WORD...]`: what it is for, in one sentence.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use tool::{Arguments, println};

runtime::entry!(main);

const HELP: &str = "\
usage: NAME [WORD...]

What it is for, in one sentence.
";

fn main() -> u8 {
    let arguments = Arguments::new("NAME", HELP);
    for word in arguments.words() {
        println!("NAME: {word}");
    }
    0
}
"#;

/// An interface.
const INTERFACE: &str = r#"//! What it is for, in one sentence.

use idl::{codes, interface};

codes! {
    /// Why not.
    pub enum TYPEError {
        1 NotFound "there is nothing of this number"
    }
}

/// Its purpose, in one sentence.
#[interface]
pub trait TYPE {
    /// The result for a number.
    #[repeatable]
    fn get(&self, number: u64) -> Result<u64, TYPEError>;
}
"#;

/// The list of all interfaces, and how the tables in it begin and end.
const INTERFACES: &str = "crates/protocols/src/lib.rs";
const LAYOUTS: &str = "pub const LAYOUTS: ";
const METHODS: &str = "pub const METHODS: ";
const ERRORS: &str = "pub const ERRORS: ";
const END: &str = "];";

/// Makes a component and adds it to the description.
pub fn component(project: &Project, options: &NewOptions) -> Result<u8> {
    let name = options.name.as_str();
    let entry = |description: &str| Ok(format!("{}\n{}", description.trim_end(), filled(DESCRIPTION, name)));
    new_crate(project, options, ("components", &OF_COMPONENT, COMPONENT), entry)?;
    println!("components/{name}/src/main.rs  is the component: a few lines that serve, to be changed");
    println!("{:30}  gives it an account, a priority and a restart policy", options.system.display());
    let run = run_command(options);
    println!("{run:30}  boots it; `dmesg` shows what it logs, `domains` that it lives");
    Ok(0)
}

/// Makes a program and adds it to the description.
pub fn program(project: &Project, options: &NewOptions) -> Result<u8> {
    let name = options.name.as_str();
    new_crate(project, options, ("apps", &OF_PROGRAM, PROGRAM), |description| Ok(with_program(description, name)))?;
    println!("apps/{name}/src/main.rs  is the program: it prints its arguments, to be changed");
    println!("{:24}  lists it: it will be /bin/{name}", options.system.display());
    println!("{} --exec '{name} hello'  boots the system and runs it", run_command(options));
    println!("The chapter docs/book/own-program.md goes on from here.");
    Ok(0)
}

/// The command that boots the system that it was added to.
fn run_command(options: &NewOptions) -> String {
    match options.system.to_str() {
        None | Some(USUAL_SYSTEM) => "./x run".into(),
        Some(other) => format!("./x run --system {other}"),
    }
}

/// Makes a crate in a folder, of a template with dependencies, and changes the description.
fn new_crate(
    project: &Project,
    options: &NewOptions,
    (parent, dependencies, main): (&str, &[&str], &str),
    change: impl FnOnce(&str) -> Result<String>,
) -> Result<()> {
    let name = options.name.as_str();
    check_name(name)?;
    let folder = project.root.join(parent).join(name);
    if folder.exists() {
        bail!("{} exists already", folder.display());
    }
    if let Some(other) = Workspace::read(project)?.packages.iter().find(|package| package.name == name) {
        bail!(
            "a crate called `{name}` exists already, in {}: components, programs and drivers share their names, so choose another one",
            other.folder().display()
        );
    }
    let path = project.root.join(&options.system);
    let description = read_text(&path)?;
    // A description with mistakes would hide those that the new crate brings.
    System::read(project, &options.system)?;
    fs::create_dir_all(folder.join("src")).with_context(|| format!("cannot make {}", folder.display()))?;
    write(&folder.join("Cargo.toml"), manifest(name, dependencies).as_bytes())?;
    write(&folder.join("src/main.rs"), filled(main, name).as_bytes())?;
    write(&path, change(&description)?.as_bytes())?;
    System::read(project, &options.system).map(drop)
}

/// Makes an interface, and adds it to the list of all.
pub fn interface(project: &Project, options: &NewInterface) -> Result<u8> {
    let name = options.name.as_str();
    check_name(name)?;
    let module = name.replace('-', "_");
    let file = format!("crates/protocols/src/{module}.rs");
    if project.root.join(&file).exists() {
        bail!("{file} exists already");
    }
    let list = project.root.join(INTERFACES);
    let text = with_interface(&read_text(&list)?, &module)?;
    write(&project.root.join(&file), INTERFACE.replace("TYPE", &type_name(&module)).as_bytes())?;
    write(&list, text.as_bytes())?;
    println!("{file}  is the interface: a trait and its errors, to be changed");
    println!("{INTERFACES}  lists its module, its layout and its errors");
    println!("GOLDEN=write cargo test -p protocols  writes its layout to crates/protocols/golden, for review");
    println!("Everything that uses interfaces is rebuilt once: some minutes for each instruction set.");
    println!("The chapter docs/book/own-interface.md goes on from here.");
    Ok(0)
}

fn manifest(name: &str, dependencies: &[&str]) -> String {
    let lines: String = dependencies.iter().map(|of| format!("{of}.workspace = true\n")).collect();
    filled(MANIFEST, name).replace("DEPENDENCIES\n", &(lines + "\n"))
}

/// A description with one program more: in its list, if it has one, in the order of names. Many programs with so much run at once.
fn with_program(description: &str, name: &str) -> String {
    let row = format!("    {{ name = \"{name}\", account = \"1M\" }},");
    let mut lines: Vec<&str> = description.lines().collect();
    let Some(head) = lines.iter().position(|line| *line == "program = [") else {
        return format!("{}\n\n[[program]]\nname = \"{name}\"\naccount = \"1M\"\n", description.trim_end());
    };
    let behind = |line: &&str| *line == "]" || line.split('"').nth(1).is_some_and(|other| other > name);
    let place = lines[head + 1..].iter().position(behind).map_or(head + 1, |place| head + 1 + place);
    lines.insert(place, &row);
    lines.join("\n") + "\n"
}

/// The list of interfaces with one more.
fn with_interface(list: &str, module: &str) -> Result<String> {
    let kind = type_name(module);
    let upper = module.to_uppercase();
    let mut lines: Vec<String> = list.lines().map(String::from).collect();
    insert(&mut lines, "pub mod ", "", format!("pub mod {module};"))?;
    insert(&mut lines, LAYOUTS, END, format!("    (\"{module}\", {module}::{upper}_LAYOUT),"))?;
    insert(&mut lines, METHODS, END, format!("    (\"{module}\", {module}::{upper}_METHODS),"))?;
    insert(&mut lines, ERRORS, END, format!("    (\"{kind}Error\", {module}::{kind}Error::TEXTS),"))?;
    Ok(lines.join("\n") + "\n")
}

/// Inserts a line where the order of lines wants it, between the first one that begins with `begin` and the first one
/// after it that is `end`.
fn insert(lines: &mut Vec<String>, begin: &str, end: &str, new: String) -> Result<()> {
    let first = lines
        .iter()
        .position(|line| line.starts_with(begin))
        .with_context(|| format!("{INTERFACES}: no line begins with `{begin}`"))?;
    // A list of rows has a head.
    let first = first + usize::from(!end.is_empty());
    let place = lines[first..]
        .iter()
        .position(|line| line == end || *line > new)
        .with_context(|| format!("{INTERFACES}: no end of `{begin}`"))?;
    lines.insert(first + place, new);
    Ok(())
}

/// `file_system` as `FileSystem`.
fn type_name(module: &str) -> String {
    let capital = |word: &str| {
        let (first, rest) = word.split_at(word.len().min(1));
        first.to_uppercase() + rest
    };
    module.split('_').map(capital).collect()
}

fn filled(template: &str, name: &str) -> String {
    template.replace("NAME", name)
}

fn check_name(name: &str) -> Result<()> {
    let plain = name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-');
    let begins = name.starts_with(|first: char| first.is_ascii_lowercase());
    if !plain || !begins || name.len() > system::MAX_NAME_BYTES {
        bail!("`{name}` is no name: 1 to 16 small letters, digits and `-`, a letter first");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        for good in ["a", "clock", "disk-0"] {
            assert!(check_name(good).is_ok(), "{good}");
        }
        for bad in ["", "0a", "-a", "Clock", "a/b", "../a", "a_b", "abcdefghijklmnopq"] {
            assert!(check_name(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn templates_are_toml() {
        assert!(toml::from_str::<toml::Table>(&manifest("clock", &OF_COMPONENT)).is_ok());
        assert!(toml::from_str::<toml::Table>(&filled(DESCRIPTION, "clock")).is_ok());
        assert!(![COMPONENT, PROGRAM].map(|main| filled(main, "clock")).concat().contains("NAME"));
    }

    #[test]
    fn programs_are_listed_in_order() {
        let list = |names: &[&str]| {
            let rows: String =
                names.iter().map(|name| format!("    {{ name = \"{name}\", account = \"1M\" }},\n")).collect();
            format!("program = [\n{rows}]\n[boot]\n")
        };
        for new in ["a", "c", "e"] {
            let mut all = vec!["b", "d", new];
            all.sort_unstable();
            assert_eq!(with_program(&list(&["b", "d"]), new), list(&all));
        }
        assert_eq!(with_program("[boot]\n", "a"), "[boot]\n\n[[program]]\nname = \"a\"\naccount = \"1M\"\n");
    }

    #[test]
    fn interfaces_are_listed_in_order() {
        let list = "pub mod bus;\npub mod nic;\n\npub const LAYOUTS: &[] = &[\n    (\"bus\", 0),\n    (\"nic\", 0),\n];\n\n\
            pub const METHODS: &[] = &[\n    (\"nic\", 1),\n];\n\n\
            pub const ERRORS: &[] = &[\n    (\"BusError\", 0),\n];\n";
        let found = with_interface(list, "key_value").unwrap();
        let new: Vec<&str> = found.lines().filter(|line| !list.contains(line)).collect();
        assert_eq!(
            new,
            [
                "pub mod key_value;",
                "    (\"key_value\", key_value::KEY_VALUE_LAYOUT),",
                "    (\"key_value\", key_value::KEY_VALUE_METHODS),",
                "    (\"KeyValueError\", key_value::KeyValueError::TEXTS),"
            ]
        );
        assert!(found.starts_with("pub mod bus;\npub mod key_value;\npub mod nic;\n"));
        assert!(found.ends_with("TEXTS),\n];\n"));
        assert!(with_interface("pub mod bus;\n\n", "a").is_err());
    }
}
