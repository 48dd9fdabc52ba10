//! Programs that are started with streams of their own.

use alloc::format;
use alloc::string::String;

use tool::command::{Command, Unstarted};
use tool::{files, print, println};

use crate::case::{Case, expect, text};

/// All of them.
pub const ALL: &[Case] = &[
    Case::tried("command-files", "starts programs that write files, which are made, emptied or kept", to_files),
    Case::tried(
        "command-none",
        "starts a program that is to read a file that is not there, and one that is not there",
        none,
    ),
    Case::tried("command-output", "reads what programs write, and their statuses", output),
    Case::tried("command-shared", "writes before and after a program with the same output", shared),
];

const FILE: &str = "/tmp/command";

/// The content of the file.
fn content() -> Result<String, String> {
    files::whole(FILE).map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}

fn to_files() -> Result<String, String> {
    for (word, stream, right) in
        [("one", "file", "one\n"), ("two", "append", "one\ntwo\n"), ("3", "file", "3\n"), ("4", "append", "3\n4\n")]
    {
        let output = format!("{stream}:{FILE}");
        let status = Command::new(&["echo", word]).streams(["null", &output, "null"]).run().map_err(text)?;
        expect(word, (status, content()?.as_str()), (0, right))?;
    }
    Ok(String::from("made, kept and emptied"))
}

fn none() -> Result<String, String> {
    let cause = |outcome: Result<u64, Unstarted>| outcome.map_err(text).err().unwrap_or_default();
    let input = cause(Command::new(&["cat"]).input("file:/none").run());
    expect("an input", input.as_str(), "a stream cannot be given to it: file:/none: no such file or directory")?;
    let program = cause(Command::new(&["none"]).run());
    expect("a program", program.as_str(), "no such program")?;
    let zero = cause(Command::new(&["echo", "a\0b"]).run());
    expect("a zero byte", zero.as_str(), "an argument or a variable has a zero byte")?;
    Ok(String::from("all refused"))
}

fn shared() -> Result<String, String> {
    print!("before, ");
    let status = Command::new(&["echo", "between"]).run().map_err(text)?;
    expect("echo", status, 0)?;
    println!("after");
    Ok(String::from("in this order"))
}

fn output() -> Result<String, String> {
    let (read, status) = Command::new(&["cat", "/etc/motd", "/none"]).output().map_err(text)?;
    let (whole, _) = Command::new(&["cat", "/etc/motd"]).output().map_err(text)?;
    expect("some of two files", (&read, status), (&whole, 1))?;
    // More than a pipe holds.
    let (read, status) = Command::new(&["seq", "30000"]).output().map_err(text)?;
    expect("a long text", (read.len(), status), (168_894, 0))?;
    Ok(String::from("all that was written"))
}
