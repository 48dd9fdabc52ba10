//! Lines of the kernel log about a victim.

use alloc::format;
use alloc::string::String;

use runtime::abi::info;
use tool::inspect;

/// Lines of the kernel log about the victim, read as the log grows: it keeps less than all of it.
pub struct Log {
    died: String,
    restarted: String,
    position: u64,
    rest: String,
    /// Deaths that it reports.
    pub deaths: u64,
    /// And restarts.
    pub restarts: u64,
}

impl Log {
    /// From the start.
    pub fn new(victim: &str) -> Result<Self, String> {
        let (died, restarted) = (format!(" {victim} died"), format!("roottask: restarting {victim}"));
        Ok(Self { died, restarted, position: 0, rest: String::new(), deaths: 0, restarts: 0 })
    }

    /// Ignores all lines so far.
    pub fn skip(&mut self) -> Result<(), String> {
        self.read()?;
        self.deaths = 0;
        self.restarts = 0;
        Ok(())
    }

    /// Reads what came since.
    pub fn read(&mut self) -> Result<(), String> {
        let rest = &mut self.rest;
        let position = inspect::log(info::LOG, self.position, |bytes| rest.push_str(&String::from_utf8_lossy(bytes)));
        self.position = position.map_err(|error| format!("kernel log: {error}"))?;
        while let Some(end) = self.rest.find('\n') {
            let line: String = self.rest.drain(..=end).collect();
            self.deaths += u64::from(line.contains(&self.died));
            self.restarts += u64::from(line.trim_end().ends_with(&self.restarted));
        }
        Ok(())
    }
}
