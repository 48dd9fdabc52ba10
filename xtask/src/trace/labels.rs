//! The names of services and methods: a record has the address at which a callee is entered and a number.
//!
//! The address leads to an interface (`services`), and the interface's golden text says which method has the number. Where one of them
//! is missing there is less to read, and nothing goes wrong.

use super::story::{Call, Story};
use crate::build::Programs;
use crate::image::System;
use crate::project::{Project, read_text};
use crate::services::{self, Served};
use anyhow::Result;
use std::collections::BTreeMap;
use std::path::Path;

/// See the module.
#[derive(Debug, Default)]
pub struct Labels {
    /// By name of the domain and address.
    services: BTreeMap<(String, u64), Served>,
    /// By interface and number.
    methods: BTreeMap<(String, u16), String>,
}

impl Labels {
    /// Those of a system's components and programs.
    pub fn of(project: &Project, system: &System, programs: &Programs) -> Result<Self> {
        let services = services::all(project, &system.domains(), programs)?;
        Ok(Self { methods: methods(&project.root.join("crates/protocols/golden"))?, services })
    }

    /// `Connection.read`, as much of it as is known, and whether it shows a window.
    pub fn method(&self, story: &Story, call: &Call) -> String {
        if call.upcall {
            return "fault".into();
        }
        let method = match self.services.get(&(story.name(call.to).to_string(), call.service)) {
            Some(served) => {
                let interface = served.interface(call.badge.into());
                match self.methods.get(&(interface.to_string(), call.method)) {
                    Some(method) => format!("{interface}.{method}"),
                    None => interface.to_string(),
                }
            }
            None => format!("service at {:#x}", call.service),
        };
        match call.pages {
            0 => method,
            1 => format!("{method} with a window of a page"),
            pages => format!("{method} with a window of {pages} pages"),
        }
    }

    /// With the callee before it.
    pub fn call(&self, story: &Story, call: &Call) -> String {
        format!("{} {}", story.name(call.to), self.method(story, call))
    }
}

/// Names of methods, from the golden texts: a line `interface X`, then for each method one as `0x2c82 write(`.
fn methods(folder: &Path) -> Result<BTreeMap<(String, u16), String>> {
    let mut methods = BTreeMap::new();
    for path in services::files(folder, "txt")? {
        methods.extend(methods_of(&read_text(&path)?));
    }
    Ok(methods)
}

fn methods_of(text: &str) -> BTreeMap<(String, u16), String> {
    let Some(interface) = text.lines().find_map(|line| line.strip_prefix("interface ")) else { return BTreeMap::new() };
    let method = |line: &str| {
        let (number, name) = line.split_once('(')?.0.split_once(' ')?;
        let number = u16::from_str_radix(number.strip_prefix("0x")?, 16).ok()?;
        Some(((interface.to_string(), number), name.to_string()))
    };
    text.lines().filter_map(method).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn methods_are_read_from_golden_texts() {
        let text = "interface Listener\n\n0x0041 accept() -> Delegated or NetError\n    call   word 0, bits 0-15: 0x0041\n\n\
            0x0042 close(now: bool) -> ()\n";
        let expected = [(0x41, "accept"), (0x42, "close")];
        let expected = expected.map(|(number, name)| (("Listener".to_string(), number), name.to_string()));
        assert_eq!(methods_of(text), expected.into());
        assert!(methods_of("errors\n0x0001 no(\n").is_empty());
    }

    #[test]
    fn the_tree_has_names_for_a_request() -> Result<()> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let methods = methods(&root.join("crates/protocols/golden"))?;
        for (interface, method) in [("Connection", "read"), ("Listener", "accept"), ("Nic", "send"), ("File", "read")] {
            let found = methods.iter().any(|((of, _), name)| of == interface && name == method);
            assert!(found, "{interface}.{method}");
        }
        Ok(())
    }
}
