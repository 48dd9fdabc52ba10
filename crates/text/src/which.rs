//! `which`: where a program is.

use alloc::format;
use alloc::string::String;

use crate::call::{Call, Exit, Kind};

/// The text of `--help`.
pub const HELP: &str = "\
usage: which [-a] PROGRAM...

Shows which file runs as a program of that name: the first one in a directory of
PATH. The status is 1 if there is none for one of the names.

  -a  all of them
";

/// Where programs are if nothing says it.
pub const DEFAULT_PATH: &str = "/bin";

/// The tool.
pub fn run(call: &Call<'_>) -> Result<u8, Exit> {
    let (options, names) = call.options("a")?;
    if names.is_empty() {
        return Err(call.wrong("PROGRAM is missing"));
    }
    let path = variable(call, "PATH").unwrap_or_else(|| DEFAULT_PATH.into());
    let is_program = |file: &str| matches!(call.system.look(file), Ok(Some(Kind::Program)));
    let mut status = 0;
    for name in names {
        let mut found = 0;
        let directories = path.split(':').filter(|directory| !directory.is_empty() && !name.contains('/'));
        let beside = name.contains('/').then(|| String::from(name));
        for file in beside.into_iter().chain(directories.map(|directory| format!("{directory}/{name}"))) {
            if is_program(&file) && (found == 0 || !options.is_empty()) {
                call.print(&format!("{file}\n"))?;
                found += 1;
            }
        }
        if found == 0 {
            status = 1;
        }
    }
    Ok(status)
}

/// A variable of the environment.
fn variable(call: &Call<'_>, name: &str) -> Option<String> {
    let all = call.system.environment();
    all.iter().find_map(|variable| variable.strip_prefix(name)?.strip_prefix('=')).map(String::from)
}
