//! Starts a program with another environment, in our place: it has our streams, and does not outlive us.

use alloc::string::{String, ToString};

use idl::Failure;
use runtime::protocols::process::ProcessError;
use text::call::Unstarted;
use tool::command::{self, Command};
use tool::{eprintln, inspect};

/// Runs it to its end; gives its status.
pub fn run(words: &[&str], environment: &[String]) -> Result<u8, Unstarted> {
    let status = Command::new(words).environment(environment.iter().map(String::as_str)).run();
    let status = status.map_err(|cause| match cause {
        command::Unstarted::Process(Failure::Refused(ProcessError::NotFound)) => Unstarted::NotFound(cause.to_string()),
        cause => Unstarted::Failed(cause.to_string()),
    })?;
    if status > u8::MAX.into() {
        eprintln!("env: {}: {}", words.first().unwrap_or(&""), inspect::status(status));
    }
    Ok(command::exit_status(status))
}
