//! The state of a shell between commands.

use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;

use shellparse::Function;

use crate::{MAX_STATE, OVERHEAD};

/// A variable.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Variable {
    /// Its value.
    pub value: String,
    /// Do programs get it?
    pub exported: bool,
}

/// Which shell this is: a subshell is another one than that which it is a copy of.
#[derive(Clone, Debug)]
pub struct Shell(Arc<()>);

impl Shell {
    /// One that is no other.
    pub fn new() -> Self {
        Self(Arc::new(()))
    }

    /// Whether both are the same.
    pub fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Default for Shell {
    fn default() -> Self {
        Self::new()
    }
}

/// All of it. A copy shares the variables until one of both changes them.
#[derive(Clone, Debug)]
pub struct State {
    variables: Arc<BTreeMap<String, Variable>>,
    /// Bytes of the variables.
    bytes: usize,
    /// Functions by name.
    pub functions: Arc<BTreeMap<String, Arc<Function>>>,
    /// `$0`
    pub name: String,
    /// `$1`, …
    pub arguments: Arc<[String]>,
    /// The current directory, absolute.
    pub directory: String,
    /// Status of the last command.
    pub status: u64,
    /// `set -e`: a command that fails ends the script.
    pub stops_at_failure: bool,
    /// `set -u`: a parameter that is not set is an error.
    pub refuses_unset: bool,
    /// `exit` was called with this status.
    pub leave: Option<u64>,
    /// Subshells in each other.
    pub depth: usize,
    /// The owner of its jobs.
    pub shell: Shell,
}

impl State {
    /// A new one in `/`, with these variables, which programs get.
    pub fn new(name: &str, variables: &[(&str, &str)]) -> Self {
        let mut state = Self {
            variables: Arc::default(),
            bytes: 0,
            functions: Arc::default(),
            name: name.to_string(),
            arguments: Arc::from([]),
            directory: "/".to_string(),
            status: 0,
            stops_at_failure: false,
            refuses_unset: false,
            leave: None,
            depth: 0,
            shell: Shell::new(),
        };
        for (name, value) in variables {
            let _ = state.set(name, value, true);
        }
        state
    }

    /// The state at the start of a script: what programs get, its name and arguments.
    pub fn for_script(&self, name: &str, arguments: &[String]) -> Self {
        let mut state = Self::new(name, &[]);
        for (name, variable) in self.variables.iter().filter(|(_, variable)| variable.exported) {
            let _ = state.set(name, &variable.value, true);
        }
        state.arguments = arguments.into();
        state.directory = self.directory.clone();
        state.depth = self.depth;
        state
    }

    /// The value of a variable.
    pub fn variable(&self, name: &str) -> Option<&str> {
        match name {
            "PWD" => Some(&self.directory),
            name => self.variables.get(name).map(|variable| variable.value.as_str()),
        }
    }

    /// All of it, to be put back.
    pub fn get(&self, name: &str) -> Option<Variable> {
        self.variables.get(name).cloned()
    }

    /// All variables, by name.
    pub fn variables(&self) -> impl Iterator<Item = (&String, &Variable)> {
        self.variables.iter()
    }

    /// Sets a variable; an exported one stays so.
    pub fn set(&mut self, name: &str, value: &str, exported: bool) -> Result<(), String> {
        let exported = exported || self.variables.get(name).is_some_and(|variable| variable.exported);
        self.put(name, Some(Variable { value: value.to_string(), exported }))
    }

    /// Makes a variable what it was, or takes it away.
    pub fn put(&mut self, name: &str, variable: Option<Variable>) -> Result<(), String> {
        let weight = |variable: &Variable| name.len() + variable.value.len() + 2 * OVERHEAD;
        let before = self.variables.get(name).map_or(0, weight);
        let after = variable.as_ref().map_or(0, weight);
        if after > before && self.bytes - before + after > MAX_STATE {
            return Err(alloc::format!("{name}: all variables together may have {MAX_STATE} bytes"));
        }
        self.bytes = self.bytes - before + after;
        let variables = Arc::make_mut(&mut self.variables);
        match variable {
            Some(variable) => variables.insert(name.to_string(), variable),
            None => variables.remove(name),
        };
        Ok(())
    }

    /// The environment for programs: `NAME=value`.
    pub fn environment(&self) -> Vec<String> {
        let exported = self.variables.iter().filter(|(name, variable)| variable.exported && *name != "PWD");
        let mut strings: Vec<String> =
            exported.map(|(name, variable)| alloc::format!("{name}={}", variable.value)).collect();
        strings.push(alloc::format!("PWD={}", self.directory));
        strings
    }
}
