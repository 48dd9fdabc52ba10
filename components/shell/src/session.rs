//! What a shell remembers between commands.

use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

/// A variable.
#[derive(Clone)]
pub struct Variable {
    /// Its value.
    pub value: String,
    /// Do programs get it?
    pub exported: bool,
}

/// Variables, current directory, status.
#[derive(Clone)]
pub struct Session {
    /// Variables by name.
    pub variables: BTreeMap<String, Variable>,
    /// The current directory, absolute.
    pub directory: String,
    /// Status of the last command.
    pub status: u64,
    /// Is there a person at the console?
    pub interactive: bool,
    /// Does it run in the background?
    pub background: bool,
    /// `exit` was called with this status.
    pub leave: Option<u64>,
    /// Lines typed, oldest first.
    pub history: Vec<String>,
}

impl Session {
    /// A new session in `/`.
    pub fn new(interactive: bool) -> Self {
        let variable = |value: &str| Variable { value: value.to_string(), exported: true };
        let variables = [("PATH", "/bin"), ("HOME", "/home")].map(|(name, value)| (name.to_string(), variable(value)));
        Self {
            variables: variables.into_iter().collect(),
            directory: "/".to_string(),
            status: 0,
            interactive,
            background: false,
            leave: None,
            history: Vec::new(),
        }
    }

    /// The value of a variable.
    pub fn variable(&self, name: &str) -> Option<String> {
        match name {
            "PWD" => Some(self.directory.clone()),
            name => self.variables.get(name).map(|variable| variable.value.clone()),
        }
    }

    /// Sets a variable; what was exported stays so.
    pub fn set(&mut self, name: &str, value: &str, exported: bool) {
        let exported = exported || self.variables.get(name).is_some_and(|variable| variable.exported);
        self.variables.insert(name.to_string(), Variable { value: value.to_string(), exported });
    }

    /// What programs are told: `NAME=value`.
    pub fn environment(&self) -> Vec<String> {
        let exported = self.variables.iter().filter(|(_, variable)| variable.exported);
        let mut strings: Vec<String> =
            exported.map(|(name, variable)| alloc::format!("{name}={}", variable.value)).collect();
        strings.push(alloc::format!("PWD={}", self.directory));
        strings
    }

    /// The absolute path of a path.
    pub fn absolute(&self, path: &str) -> String {
        filetree::normalize(&self.directory, path)
    }
}
