//! Which interface is entered where.
//!
//! An address leads to a symbol of the program, `service_entry::<Type>`; the source of the program says which interface `Type`
//! serves (`impl Serve for Type`, `impl InterfaceServer for …`). Where that is not found the type stands for the interface.

use crate::build::{Program, Programs};
use crate::elf;
use crate::project::{Project, read, read_text};
use anyhow::Result;
use regex::Regex;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

/// Names of the functions of the runtime at which calls arrive.
const ENTRIES: [&str; 4] = ["service_entry::<", "word_entry::<", "all_words_entry::<", "short_entry::<"];

/// The interfaces of a service: one, or two of which the second has badges other than 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Served {
    first: String,
    badged: Option<String>,
}

impl Served {
    /// The interface of calls with this badge.
    pub fn interface(&self, badge: u64) -> &str {
        self.badged.as_ref().filter(|_| badge != 0).unwrap_or(&self.first)
    }
}

/// Services by name of the domain and address.
pub type Services = BTreeMap<(String, u64), Served>;

/// Those of components and programs: the names under which they run as domains, and what they are.
pub fn all(project: &Project, domains: &[(String, Program)], programs: &Programs) -> Result<Services> {
    let mut all = Services::new();
    for (domain, program) in domains {
        let served = served(project, &program.0)?;
        let is_entry = |mangled: &str| ENTRIES.iter().any(|entry| mangled.contains(entry.trim_end_matches("::<")));
        for (address, name) in services(&elf::symbols_with(&read(programs.file(program)?)?, is_entry)?) {
            let served = served.get(&name).cloned().unwrap_or(Served { first: name, badged: None });
            all.insert((domain.clone(), address), served);
        }
    }
    Ok(all)
}

/// As the boot archive has them, for `portals`: lines of domain, hexadecimal address, interface, and the interface of calls with
/// badges, if that is another one.
pub fn text(services: &Services) -> String {
    let line = |((domain, address), served): (&(String, u64), &Served)| {
        let badged = served.badged.as_ref().map_or(String::new(), |badged| format!(" {badged}"));
        format!("{domain} {address:x} {}{badged}\n", served.first)
    };
    services.iter().map(line).collect()
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

/// The lines of a source that implement an interface, the blocks that implement a service (each ends with a brace alone on its line), and
/// the places in such a block that pass a call on.
static PATTERNS: LazyLock<[Regex; 3]> = LazyLock::new(|| {
    [r"impl (\w+)Server for (\w+)", r"(?s)impl Serve(?:Word)? for (\w+) \{(.*?)\n\}", r"(\w+)(?: \{.*\})?\.dispatch\("]
        .map(|pattern| Regex::new(pattern).expect("these patterns are constant, and a test uses each"))
});

/// The interfaces that each type of a program serves.
fn served(project: &Project, program: &str) -> Result<BTreeMap<String, Served>> {
    let folder = ["components", "apps"].iter().find_map(|group| project.bare_program(group, program));
    match folder.or_else(|| project.driver(program)) {
        Some(folder) => {
            let texts = files(&folder.join("src"), "rs")?;
            let texts = texts.iter().map(|path| read_text(path)).collect::<Result<Vec<_>>>()?;
            // Most have no service, and regular expressions are slow.
            let serves = texts.into_iter().filter(|text| text.contains("impl Serve") || text.contains("Server for "));
            Ok(served_in(&serves.collect::<Vec<_>>().join("\n")))
        }
        None => Ok(BTreeMap::new()),
    }
}

fn served_in(source: &str) -> BTreeMap<String, Served> {
    let [servers, services, dispatches] = &*PATTERNS;
    let interfaces: BTreeMap<String, String> =
        servers.captures_iter(source).map(|found| (found[2].to_string(), found[1].to_string())).collect();
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
    served
}

/// The files of a folder with this extension, sorted.
pub fn files(folder: &Path, extension: &str) -> Result<Vec<PathBuf>> {
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
        let served = served_in(source);
        assert_eq!((served.get("Plain"), served.get("Both")), (Some(&plain), Some(&both)));
        assert_eq!(served.get("Leaf").map(|served| served.first.as_str()), Some("Leaf"));
        assert_eq!(served.get("Odd"), None);
        Ok(())
    }

    #[test]
    fn the_tree_has_interfaces() -> Result<()> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let project = Project::in_folder(root);
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

    #[test]
    fn a_line_for_each_service() {
        let served = |first: &str, badged: Option<&str>| Served { first: first.into(), badged: badged.map(Into::into) };
        let all = [
            (("b".to_string(), 0x100024), served("Tree", Some("Leaf"))),
            (("a".to_string(), 0x100048), served("Cake", None)),
        ];
        assert_eq!(text(&all.into()), "a 100048 Cake\nb 100024 Tree Leaf\n");
    }
}
