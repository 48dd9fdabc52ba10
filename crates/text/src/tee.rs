//! `tee`: to files as well.

use alloc::vec::Vec;

use crate::call::{Before, CLOSED, Call, Exit, Flow};

/// The text of `--help`.
pub const HELP: &str = "\
usage: tee [-a] [FILE...]

Writes standard input to standard output and to all files.

  -a  after what the files hold, instead of in its place
";

/// The tool.
pub fn run(call: &Call<'_>) -> Result<u8, Exit> {
    let (options, files) = call.options("a")?;
    let before = if options.is_empty() { Before::Gone } else { Before::Kept };
    let mut status = 0;
    let mut sinks = Vec::new();
    for file in files {
        match call.system.create(file, before) {
            Ok(sink) => sinks.push((file, sink)),
            Err(cause) => status = call.fail(file, cause).0,
        }
    }
    let mut output = Ok(());
    let read = call.each_block("-", &mut |block| {
        // One that takes no more does not keep the others from getting all of it.
        sinks.retain_mut(|(file, sink)| {
            let written = sink.write(block);
            written.map_err(|cause| status = call.fail(file, cause).0).is_ok()
        });
        if output.is_ok() {
            output = call.write(block).and_then(|()| call.flush());
        }
        Ok(if output.is_err() && sinks.is_empty() { Flow::Enough } else { Flow::More })
    })?;
    match output {
        Err(CLOSED) => Err(CLOSED),
        _ => Ok(status.max(read).max(output.map_or_else(|Exit(status)| status, |()| 0))),
    }
}
