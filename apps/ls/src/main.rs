//! `ls [-l] [-a] [PATH…]`: lists a directory; `label [PATH…]`: compartments.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

extern crate alloc;

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use runtime::abi::level;
use runtime::program;
use runtime::protocols::file::Kind;
use runtime::stream::FILE_SYSTEM;
use tool::compartments::{NONE, Names};
use tool::files::{self, Named};
use tool::{Arguments, println};

runtime::entry!(main);

const HELP: &str = "\
usage: ls [-l] [-a] [PATH...]

Lists directories and files, sorted by name. A directory's name ends with /.

  -l  kind (d, x = program, -), size in bytes or entries, seconds since boot of
      the last change, compartment (if there are any), name
  -a  also names that begin with a dot
";

const LABEL: &str = "label";
const HELP_OF_LABEL: &str = "\
usage: label [PATH...]

Says which compartment files and directories belong to. Without a path: in which
compartments it runs itself (run --taint COMPARTMENT label).
";

/// The compartments of files, or our own.
fn label() -> u8 {
    let mut arguments = Arguments::new(LABEL, HELP_OF_LABEL);
    let Some(_) = arguments.options("") else { return tool::USAGE };
    let known = Names::new();
    let mut status = 0;
    for path in arguments.words().to_vec() {
        match FILE_SYSTEM.compartment(&files::absolute(path)) {
            Ok(handle) => println!("{:>10}  {path}", known.of_file(handle)),
            Err(error) => status = arguments.fail(path, error),
        }
    }
    if arguments.words().is_empty() {
        let own: Vec<_> = program::startup().map(|reported| reported.compartments().collect()).unwrap_or_default();
        if own.is_empty() {
            println!("in no compartment");
        }
        for (name, entry) in own {
            match entry & 7 {
                level::STAR => println!("owns {name}"),
                level::THREE => println!("tainted by {name}"),
                _ => println!("level {} in {name}", (entry & 7) - 1),
            }
        }
    }
    status
}

fn main() -> u8 {
    if program::name() == LABEL {
        return label();
    }
    let mut arguments = Arguments::new("ls", HELP);
    let Some(options) = arguments.options("la") else { return tool::USAGE };
    let (long, all) = (options.contains('l'), options.contains('a'));
    let words = if arguments.words().is_empty() { &["."][..] } else { arguments.words() };
    let several = words.len() > 1;
    let mut status = 0;
    for (index, word) in words.iter().enumerate() {
        let path = files::absolute(word);
        let listed = files::stat(&path).and_then(|stat| match stat.kind {
            Kind::File => {
                Ok((String::from("/"), alloc::vec![Named { name: path.clone(), is_directory: false, size: stat.size }]))
            }
            Kind::Directory => files::directory(&path).map(|names| (path.clone(), names)),
        });
        match listed {
            Ok((directory, names)) => {
                if several && (directory != "/" || path == "/") {
                    if index > 0 {
                        println!();
                    }
                    println!("{word}:");
                }
                let names = names.into_iter().filter(|entry| all || !entry.name.starts_with('.'));
                if long { print_long(&directory, names) } else { print_short(names) }
            }
            Err(error) => status = arguments.fail(word, error),
        }
    }
    status
}

fn shown(entry: &Named) -> String {
    alloc::format!("{}{}", entry.name, if entry.is_directory { "/" } else { "" })
}

fn print_short(names: impl Iterator<Item = Named>) {
    for entry in names {
        println!("{}", shown(&entry));
    }
}

fn print_long(directory: &str, names: impl Iterator<Item = Named>) {
    let compartments = Names::new();
    let rows: Vec<(char, String, String, String, String)> = names
        .map(|entry| {
            let path =
                if entry.name.starts_with('/') { entry.name.clone() } else { files::join(directory, &entry.name) };
            let stat = files::stat(&path);
            let kind = match &stat {
                _ if entry.is_directory => 'd',
                Ok(stat) if stat.executable => 'x',
                _ => '-',
            };
            let changed = stat.map_or(0, |stat| stat.modified) / 1_000_000_000;
            let compartment = FILE_SYSTEM
                .compartment(&path)
                .map_or_else(|_| NONE.to_string(), |it| compartments.of_file(it).to_string());
            (kind, entry.size.to_string(), changed.to_string(), compartment, shown(&entry))
        })
        .collect();
    let size = rows.iter().map(|row| row.1.len()).max().unwrap_or(0);
    let changed = rows.iter().map(|row| row.2.len()).max().unwrap_or(0);
    let compartment = rows.iter().map(|row| row.3.len()).max().unwrap_or(0);
    let are_any = rows.iter().any(|row| row.3 != NONE);
    for (kind, bytes, seconds, owner, name) in rows {
        let owner = if are_any { alloc::format!("{owner:<compartment$}  ") } else { String::new() };
        println!("{kind}  {bytes:>size$}  {seconds:>changed$}s  {owner}{name}");
    }
}
