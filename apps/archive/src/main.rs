//! `archive -c|-t|-x [DIRECTORY]`: a tree of files as one file, and back.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

extern crate alloc;

use alloc::string::{String, ToString};

use cpio::{Archive, Entry, Kind as Member, Writer};
use runtime::protocols::file::EXECUTABLE;
use tool::files::{self, File};
use tool::{Arguments, USAGE, println};

runtime::entry!(main);

const HELP: &str = "\
usage: archive -c [DIRECTORY] > FILE
       archive -x [DIRECTORY] < FILE
       archive -t < FILE

Makes one file of all that is in a directory (without one: the current one), or
takes it apart again. It is a cpio archive in its newc form, which other systems
know as well (cpio -H newc); all of it must fit the program's memory.

  -c  write an archive of the directory to standard output
  -x  read an archive, and make its directories and files; those that are there
      already are replaced
  -t  say what is in an archive: d, x (program) or -, size in bytes, name
";

/// A failure: the path or action that failed, and the cause.
type Failed = (String, String);

fn main() -> u8 {
    let mut arguments = Arguments::new("archive", HELP);
    let Some(options) = arguments.options("cxt") else { return USAGE };
    let directory = match arguments.words() {
        [] => files::absolute("."),
        [one] if options != "t" => files::absolute(one),
        _ => return arguments.wrong("too many arguments"),
    };
    let done = match options.as_str() {
        "c" => create(&directory),
        "x" => each_member(|entry| extract(&directory, entry)),
        "t" => each_member(|entry| {
            let kind = if entry.kind == Member::Folder {
                'd'
            } else if entry.executable {
                'x'
            } else {
                '-'
            };
            println!("{kind}  {:>8}  {}", entry.data.len(), entry.name);
            Ok(())
        }),
        _ => return arguments.wrong("one of -c, -x and -t is needed"),
    };
    match done {
        Ok(()) => 0,
        Err((what, cause)) => arguments.fail(&what, cause),
    }
}

/// Names `path` in an error.
fn at<E: ToString>(path: &str) -> impl FnOnce(E) -> Failed {
    move |cause| (path.into(), cause.to_string())
}

fn create(directory: &str) -> Result<(), Failed> {
    let mut writer = Writer::packed();
    add(&mut writer, directory, "")?;
    let bytes = writer.finish().map_err(at(directory))?;
    runtime::stream::write(&bytes).map_err(at("standard output"))
}

/// Adds what is in a directory; `name` is its own in the archive.
fn add(writer: &mut Writer, directory: &str, name: &str) -> Result<(), Failed> {
    for found in files::directory(directory).map_err(at(directory))? {
        let path = files::join(directory, &found.name);
        let inside = if name.is_empty() { found.name } else { files::join(name, &found.name) };
        if found.is_directory {
            writer.folder(&inside).map_err(at(&path))?;
            add(writer, &path, &inside)?;
        } else {
            let stat = files::stat(&path).map_err(at(&path))?;
            let data = files::whole(&path).map_err(at(&path))?;
            let added = if stat.executable { writer.executable(&inside, &data) } else { writer.file(&inside, &data) };
            added.map_err(at(&path))?;
        }
    }
    Ok(())
}

/// Does something with each member of the archive on standard input, all of which is judged before.
fn each_member(mut take: impl FnMut(Entry<'_>) -> Result<(), Failed>) -> Result<(), Failed> {
    const INPUT: &str = "standard input";
    let bytes = files::whole("-").map_err(at(INPUT))?;
    let archive = Archive::new(&bytes);
    archive.check().map_err(at(INPUT))?;
    for entry in archive.entries() {
        take(entry.and_then(|entry| archive.resolve(entry)).map_err(at(INPUT))?)?;
    }
    Ok(())
}

fn extract(directory: &str, entry: Entry<'_>) -> Result<(), Failed> {
    let path = files::join(directory, entry.name);
    if entry.kind == Member::Folder {
        return files::make_directories(&path).map_err(at(&path));
    }
    if let Some((above, _)) = path.rsplit_once('/').filter(|(above, _)| !above.is_empty()) {
        files::make_directories(above).map_err(at(above))?;
    }
    let file = File::create(&path, if entry.executable { EXECUTABLE } else { 0 }).map_err(at(&path))?;
    file.write(0, entry.data).map_err(at(&path))
}
