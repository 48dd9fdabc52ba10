//! `touch`: files that are there, changed now.

use crate::call::{Before, Call, Exit};

/// The text of `--help`.
pub const HELP: &str = "\
usage: touch [-c] FILE...

Makes files that are missing, empty; of the others it sets the time of the last
change to now.

  -c  makes none
";

/// The tool.
pub fn run(call: &Call<'_>) -> Result<u8, Exit> {
    let (options, files) = call.options("c")?;
    if files.is_empty() {
        return Err(call.wrong("FILE is missing"));
    }
    let mut status = 0;
    for file in files {
        let outcome = match call.system.look(file) {
            Ok(Some(_)) => call.system.mark(file),
            Ok(None) if !options.is_empty() => Ok(()),
            Ok(None) => call.system.create(file, Before::Kept).map(drop),
            Err(cause) => Err(cause),
        };
        if let Err(cause) = outcome {
            status = call.fail(file, cause).0;
        }
    }
    Ok(status)
}
