//! What services and methods are called: a record has the address at which a callee is entered and a number.
//!
//! The address leads to a symbol of the callee's program, `service_entry::<Type>`; the source of the program says
//! which interface `Type` serves (`impl Serve for Type`, `impl InterfaceServer for …`), and the interface's golden text
//! which method has the number. Where one of them is missing there is less to read, and nothing goes wrong.

use super::story::{Call, Story};
use crate::build::Programs;
use crate::elf;
use crate::image::System;
use crate::project::{Project, read, read_text};
use anyhow::Result;
use regex::Regex;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// Names of the functions of the runtime at which calls arrive.
const ENTRIES: [&str; 4] = ["service_entry::<", "word_entry::<", "all_words_entry::<", "short_entry::<"];

/// What a service serves: an interface, or two of which the second has badges other than 0.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Served {
    first: String,
    badged: Option<String>,
}

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
        let mut labels = Self { methods: methods(&project.root.join("crates/interfaces/golden"))?, ..Self::default() };
        for (domain, program) in system.domains() {
            let served = served(project, &program.0)?;
            for (address, name) in services(&elf::symbols(&read(programs.file(&program)?)?)?) {
                let served = served.get(&name).cloned().unwrap_or(Served { first: name, badged: None });
                labels.services.insert((domain.clone(), address), served);
            }
        }
        Ok(labels)
    }

    /// `Connection.read`; as much of it as is known.
    pub fn method(&self, story: &Story, call: &Call) -> String {
        if call.upcall {
            return "fault".into();
        }
        match self.services.get(&(story.name(call.to).to_string(), call.service)) {
            Some(served) => {
                let interface = served.badged.as_ref().filter(|_| call.badge != 0).unwrap_or(&served.first);
                match self.methods.get(&(interface.clone(), call.method)) {
                    Some(method) => format!("{interface}.{method}"),
                    None => interface.clone(),
                }
            }
            None => format!("service at {:#x}", call.service),
        }
    }

    /// With the callee before it.
    pub fn call(&self, story: &Story, call: &Call) -> String {
        format!("{} {}", story.name(call.to), self.method(story, call))
    }
}

/// Addresses and types of services, from lines `hexadecimal address, space, symbol`.
fn services(symbols: &str) -> BTreeMap<u64, String> {
    let service = |line: &str| {
        let (address, symbol) = line.split_once(' ')?;
        let entry = ENTRIES.iter().find_map(|entry| symbol.split_once(entry))?.1;
        // The innermost type: some are wrapped.
        let name = entry.trim_end_matches('>').rsplit(['<', ':']).next()?;
        Some((u64::from_str_radix(address, 16).ok()?, name.to_string()))
    };
    symbols.lines().filter_map(service).collect()
}

/// What each type of a program serves.
fn served(project: &Project, program: &str) -> Result<BTreeMap<String, Served>> {
    let folder = ["components", "apps"].iter().find_map(|group| project.bare_program(group, program));
    match folder.or_else(|| project.driver(program)) {
        Some(folder) => {
            let texts = files(&folder.join("src"), "rs")?;
            served_in(&texts.iter().map(|path| read_text(path)).collect::<Result<Vec<_>>>()?.join("\n"))
        }
        None => Ok(BTreeMap::new()),
    }
}

fn served_in(source: &str) -> Result<BTreeMap<String, Served>> {
    let interfaces: BTreeMap<String, String> = Regex::new(r"impl (\w+)Server for (\w+)")?
        .captures_iter(source)
        .map(|found| (found[2].to_string(), found[1].to_string()))
        .collect();
    // To the end of the block: a line that is a brace alone.
    let services = Regex::new(r"(?s)impl Serve(?:Word)? for (\w+) \{(.*?)\n\}")?;
    let dispatches = Regex::new(r"(\w+)(?: \{.*\})?\.dispatch\(")?;
    // Without a block of its own, as one made by a macro, it serves what it implements.
    let plain = |interface: &String| Served { first: interface.clone(), badged: None };
    let mut served: BTreeMap<String, Served> =
        interfaces.iter().map(|(name, interface)| (name.clone(), plain(interface))).collect();
    for service in services.captures_iter(source) {
        let to = dispatches.captures_iter(&service[2]).filter_map(|found| {
            let name = if &found[1] == "Self" { &service[1] } else { &found[1] };
            interfaces.get(name).cloned()
        });
        let to: Vec<String> = to.collect();
        let by_badge = service[2].contains("if request.badge == 0 {");
        let serves = match &to[..] {
            [only] => plain(only),
            [first, badged] if by_badge => Served { first: first.clone(), badged: Some(badged.clone()) },
            _ => continue,
        };
        served.insert(service[1].to_string(), serves);
    }
    Ok(served)
}

/// Names of methods, from the golden texts: a line `interface X`, then for each method one as `2 write(`.
fn methods(folder: &Path) -> Result<BTreeMap<(String, u16), String>> {
    let mut methods = BTreeMap::new();
    for path in files(folder, "txt")? {
        methods.extend(methods_of(&read_text(&path)?));
    }
    Ok(methods)
}

fn methods_of(text: &str) -> BTreeMap<(String, u16), String> {
    let Some(interface) = text.lines().find_map(|line| line.strip_prefix("interface ")) else { return BTreeMap::new() };
    let method = |line: &str| {
        let (number, name) = line.split_once('(')?.0.split_once(' ')?;
        Some(((interface.to_string(), number.parse().ok()?), name.to_string()))
    };
    text.lines().filter_map(method).collect()
}

fn files(folder: &Path, extension: &str) -> Result<Vec<std::path::PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|found| found == extension) {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn services_are_found_among_symbols() {
        let symbols = "100000 _start\n\
            100024 runtime::arch::x86_64::enter::service_entry::<netd::service::Connection>\n\
            100048 runtime::arch::x86_64::enter::word_entry::<sigma0::service::Service>\n\
            10006c runtime::arch::x86_64::enter::service_entry::<runtime::server::Whole<bench::Empty>>\n\
            100090 runtime::server::serve::<netd::service::Connection>\n";
        let expected = [(0x100024, "Connection"), (0x100048, "Service"), (0x10006c, "Empty")];
        assert_eq!(services(symbols), expected.map(|(address, name)| (address, name.to_string())).into());
    }

    #[test]
    fn interfaces_are_found_in_sources() -> Result<()> {
        let source = "impl Serve for Plain {\n    fn serve(request: &mut Request<'_>) -> Reply {\n        \
            Plain.dispatch(request)\n    }\n}\nimpl CakeServer for Plain {\n}\n\
            impl Serve for Both {\n    fn serve(request: &mut Request<'_>) -> Reply {\n        \
            if request.badge == 0 {\n            Root { a: b(c) }.dispatch(request)\n        } else {\n            \
            leaves::Leaf.dispatch(request)\n        }\n    }\n}\nimpl TreeServer for Root {\n}\n\
            impl LeafServer for Leaf {\n}\nimpl Serve for Odd {\n    nothing\n}\n";
        let plain = Served { first: "Cake".into(), badged: None };
        let both = Served { first: "Tree".into(), badged: Some("Leaf".into()) };
        let served = served_in(source)?;
        assert_eq!((served.get("Plain"), served.get("Both")), (Some(&plain), Some(&both)));
        assert_eq!(served.get("Leaf").map(|served| served.first.as_str()), Some("Leaf"));
        assert_eq!(served.get("Odd"), None);
        Ok(())
    }

    #[test]
    fn methods_are_read_from_golden_texts() {
        let text = "interface Listener\n\n1 accept() -> Delegated or NetError\n    call   word 0, bits 0-15: 1\n\n\
            2 close(now: bool) -> ()\n";
        let expected = [(1, "accept"), (2, "close")];
        let expected = expected.map(|(number, name)| (("Listener".to_string(), number), name.to_string()));
        assert_eq!(methods_of(text), expected.into());
        assert!(methods_of("errors\n1 no(\n").is_empty());
    }

    #[test]
    fn the_tree_has_names_for_a_request() -> Result<()> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let methods = methods(&root.join("crates/interfaces/golden"))?;
        for (interface, method) in [("Connection", "read"), ("Listener", "accept"), ("Nic", "send"), ("File", "read")] {
            let found = methods.iter().any(|((of, _), name)| of == interface && name == method);
            assert!(found, "{interface}.{method}");
        }
        let project = Project { target: root.join("target"), root, isa: crate::isa::Isa::default() };
        for (program, interfaces) in
            [("netd", &["Connection", "Listener"][..]), ("virtio-net", &["Nic"]), ("ramfs", &["FileSystem"])]
        {
            let served = served(&project, program)?;
            for interface in interfaces {
                assert!(served.values().any(|served| served.first == *interface), "{program}: {interface}");
            }
        }
        Ok(())
    }
}
