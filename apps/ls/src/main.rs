//! `ls [-l] [-a] [PATH…]`: what is in a directory.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

extern crate alloc;

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use runtime::interfaces::file::Kind;
use tool::files::{self, Named};
use tool::{Arguments, println};

runtime::entry!(main);

const HELP: &str = "\
usage: ls [-l] [-a] [PATH...]

Lists directories and files, sorted by name. A directory's name ends with /.

  -l  kind (d, x = program, -), size in bytes or entries, seconds since boot of
      the last change, name
  -a  also names that begin with a dot
";

fn main() -> u8 {
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
    let rows: Vec<(char, String, String, String)> = names
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
            (kind, entry.size.to_string(), changed.to_string(), shown(&entry))
        })
        .collect();
    let size = rows.iter().map(|row| row.1.len()).max().unwrap_or(0);
    let changed = rows.iter().map(|row| row.2.len()).max().unwrap_or(0);
    for row in rows {
        println!("{}  {:>size$}  {:>changed$}s  {}", row.0, row.1, row.2, row.3);
    }
}
