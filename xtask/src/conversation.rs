//! A machine whose shell is talked to while something else is done.

use crate::emulator::{Collected, Running, command};
use crate::isa::Isa;
use anyhow::{Context, Result, bail};
use std::io::Write;
use std::process::{ChildStdin, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// How often it is looked whether the machine has ended.
const POLL: Duration = Duration::from_millis(5);

/// The console of a machine that runs.
pub struct Conversation {
    input: Mutex<ChildStdin>,
    output: Collected,
    over: AtomicBool,
}

impl Conversation {
    /// Types bytes.
    pub fn send(&self, text: &str) -> Result<()> {
        let mut input = self.input.lock().unwrap_or_else(PoisonError::into_inner);
        input.write_all(text.as_bytes()).and_then(|()| input.flush()).context("the machine reads nothing more")
    }

    /// Bytes that were printed so far.
    pub fn printed(&self) -> usize {
        self.output.lock().len()
    }

    /// The output of the machine after so many bytes, without escape sequences' bytes being touched.
    pub fn since(&self, start: usize) -> String {
        let output = self.output.lock();
        of_machine(&String::from_utf8_lossy(output.get(start..).unwrap_or_default()))
    }

    /// The time is over, or the machine has ended.
    pub fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }
}

/// Removes the emulator's own words: with a clock that keeps up with the host's it says that it is late, anywhere
/// in a line of the machine's.
fn of_machine(text: &str) -> String {
    const LATE: &str = "Warning: The guest is now late by ";
    let mut parts = text.split(LATE);
    let mut machine = parts.next().unwrap_or_default().to_string();
    for part in parts {
        machine.push_str(part.split_once('\n').map_or("", |(_, rest)| rest));
    }
    machine
}

/// Starts a machine with these arguments, has `work` done with its console, then ends it. Gives what `work` gave, and
/// all that was printed.
pub fn converse<T: Send>(
    isa: Isa,
    arguments: &[String],
    limit: Duration,
    work: impl FnOnce(&Conversation) -> Result<T> + Send,
) -> (Result<T>, String) {
    let mut command = command(isa);
    command.args(arguments).args(["-serial", "stdio", "-monitor", "none"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut running = match Running::start(command) {
        Ok(running) => running,
        Err(error) => return (Err(error), String::new()),
    };
    let (Some(input), Some(stdout)) = (running.child.stdin.take(), running.child.stdout.take()) else {
        return (Err(anyhow::anyhow!("the emulator has no console")), String::new());
    };
    let conversation =
        Conversation { input: Mutex::new(input), output: Collected::default(), over: AtomicBool::new(false) };
    let result = thread::scope(|scope| {
        let printer = scope.spawn(|| conversation.output.collect(stdout, false));
        let work = scope.spawn(|| work(&conversation));
        let start = Instant::now();
        while !work.is_finished() && start.elapsed() < limit && matches!(running.child.try_wait(), Ok(None)) {
            thread::sleep(POLL);
        }
        conversation.over.store(true, Ordering::Relaxed);
        let early = matches!(running.child.try_wait(), Ok(Some(_)));
        let result = work.join().unwrap_or_else(|_| bail!("the concurrent work panicked"));
        running.end();
        let _ = printer.join();
        if early { result.context(running.complaints()).context("the machine ended early") } else { result }
    });
    let output = String::from_utf8_lossy(&conversation.output.lock()).into_owned();
    (result, output)
}

#[cfg(test)]
mod tests {
    use super::of_machine;

    #[test]
    fn warnings_of_the_emulator_are_no_output_of_the_machine() {
        let late = "Warning: The guest is now late by 0.0 to 1.0 seconds\n";
        assert_eq!(of_machine(&format!("worked f{late}or 54 %\n{late}done{late}")), "worked for 54 %\ndone");
        // The rest of it has not come yet.
        assert_eq!(of_machine(&format!("worked f{}", late.trim_end())), "worked f");
        assert_eq!(of_machine("no warning\n"), "no warning\n");
    }
}
