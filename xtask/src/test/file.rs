//! Boot tests: one short file each in `tests/boot/`.
//!
//! ```toml
//! about = "ls shows the folders of the boot archive"
//! exec = "ls /"
//! expect = ["bin", "/^boot/"]     # in this order; a text is a whole line, /…/ is sought in the lines
//! refuse = ["/panic/"]            # nowhere; a panic of the nucleus is refused always
//! rising = ["/line (\d+) ok/ 50"] # these numbers come in order from 1 on, to 50 at least; one may come again
//! same = ["/^free +(\\d+)/"]      # what the group finds is the same wherever it is found, twice at least
//! distinct = ["/^([0-9a-f]+)$/"]  # what the group finds is never the same twice, and is found twice at least
//! status = 0
//! ```
//! It runs on each ISA, once for each number of CPUs: see [`super::cases`] for the keys `cpus` and `one_cpu`. A test of one
//! ISA only says which and why, `isa = { aarch64 = "its registers" }`. A table `[aarch64]` replaces keys there.
//!
//! Further keys with their defaults: `board` and `cpu` (as the emulator takes them; else those of [`super::cases`]), `system = "systems/default.toml"`, `more = ""` (what stands after that description), `memory = "64M"` (or as much as the system needs for so many CPUs),
//! `timeout = 60` (seconds, for each CPU), `at_once = false` (several CPUs run at the same time, so without `icount`), `checked = true`, `measured = false` (with the nucleus that keeps its longest non-preemptible section), `icount = true`, `soak = false`, `append = ""`, `without_entropy = false`,
//! `without_network = false` (no such device in the machine), `emulator = []` (its further arguments, which prevail over the usual),
//! `time_server = false` (one runs on the host, at the port that stands for `TIME_PORT` in `exec`), `wire = "name"`
//! (the other end of the network is a scenario of [`super::wire`], which types and ends the machine; with
//! `icount = false`), and for conversations instead of `exec`: `steps = [{ after = "regex", send = "text" }]`. With
//! `fetch = "/path"` a step first asks the web server, and the answer becomes a line of the output; `figures = true`
//! compares what was fetched ([`super::figures`]). With `host = "scenario"` a step first has this computer do something with
//! the machine ([`super::load`]), which adds lines that begin with `host: `; both with `icount = false`.
//! `fdt = ["remove /memory"]` changes the machine's device tree ([`super::device_trees`]), where there is one.
//! A table `[trace]` makes it a traced run: see [`traced`](super::traced).

use super::ask::Asks;
use super::traced::Expected;
use crate::build::Checks;
use crate::isa::Isa;
use crate::project::{Project, read_text};
use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

/// A boot test on an ISA.
pub struct BootTest {
    /// Name of its file, without extension.
    pub name: String,
    /// The machine's ISA.
    pub isa: Isa,
    /// The content of the file for this ISA.
    pub file: TestFile,
}

/// The content of the file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TestFile {
    /// Its description, in a line.
    pub about: String,
    #[serde(default = "default_system")]
    pub system: PathBuf,
    /// Stands after what the description says: further components.
    #[serde(default)]
    pub more: String,
    pub exec: Option<String>,
    #[serde(default)]
    pub steps: Vec<StepText>,
    #[serde(default)]
    pub expect: Vec<String>,
    #[serde(default)]
    pub refuse: Vec<String>,
    #[serde(default)]
    pub rising: Vec<String>,
    #[serde(default)]
    pub same: Vec<String>,
    #[serde(default)]
    pub distinct: Vec<String>,
    #[serde(default)]
    pub status: u8,
    #[serde(default = "default_timeout")]
    pub timeout: f64,
    /// `None` = as usual, or what the system needs for so many CPUs.
    pub memory: Option<String>,
    /// The test is of this ISA only, for this reason.
    isa: Option<BTreeMap<Isa, String>>,
    /// Another board than the usual one.
    pub board: Option<String>,
    /// Another processor than the usual one.
    pub cpu: Option<String>,
    /// With how many CPUs it runs; `None` = as usual.
    pub cpus: Option<Vec<u32>>,
    /// Why it runs with one CPU only.
    pub one_cpu: Option<String>,
    /// With several CPUs, these run at the same time: no run is like the other, and no other test runs meanwhile, as a CPU that waits
    /// for a lock whose holder has no CPU of this computer waits long. Otherwise they take turns.
    #[serde(default)]
    pub at_once: bool,
    #[serde(default = "yes")]
    pub checked: bool,
    /// With the nucleus that keeps its longest non-preemptible section.
    #[serde(default)]
    pub measured: bool,
    #[serde(default = "yes")]
    pub icount: bool,
    /// Runs only with `--soak`, or when named.
    #[serde(default)]
    pub soak: bool,
    #[serde(default)]
    pub append: String,
    #[serde(default)]
    pub without_entropy: bool,
    /// The machine has no network device.
    #[serde(default)]
    pub without_network: bool,
    /// A time server runs on the host; its port stands for `TIME_PORT` in `exec`.
    #[serde(default)]
    pub time_server: bool,
    #[serde(default)]
    pub emulator: Vec<String>,
    /// The fetched figures agree with what was printed before and after.
    #[serde(default)]
    pub figures: bool,
    /// The run is traced, and this is what the trace must show.
    pub trace: Option<Expected>,
    /// Changes of the device tree: see [`super::device_trees`].
    #[serde(default)]
    pub fdt: Vec<String>,
    /// The behaviour of the other end of the wire, a scenario of [`super::wire`].
    pub wire: Option<String>,
}

impl TestFile {
    /// Reads the file for an ISA, if it is about it.
    pub fn read(text: &str, isa: Isa) -> Result<Option<Self>> {
        let mut keys: toml::Table = toml::from_str(text)?;
        let own = Isa::ALL.map(|isa| (isa, keys.remove(isa.name())));
        for (replaces, table) in &own {
            match table {
                Some(toml::Value::Table(table)) if replaces == &isa => keys.extend(table.clone()),
                Some(toml::Value::Table(_)) | None => {}
                Some(_) => bail!("`{0}` is a table of keys that are others on that ISA: [{0}]", replaces.name()),
            }
        }
        let file: Self = toml::Value::Table(keys).try_into()?;
        file.check_cpus()?;
        let Some(only) = &file.isa else { return Ok(Some(file)) };
        let said = only.values().all(|why| !why.trim().is_empty());
        ensure!(only.len() == 1 && said, "`isa` names one ISA, and says why: isa = {{ {} = \"…\" }}", isa.name());
        let replaced = own.iter().any(|(other, table)| table.is_some() && !only.contains_key(other));
        ensure!(!replaced, "a table replaces keys on an ISA that this test is not about");
        Ok(only.contains_key(&isa).then_some(file))
    }

    /// Whether it runs with the nucleus that checks itself, and without another end of the wire.
    pub fn is_plain(&self) -> bool {
        self.checks() == Checks::On && self.wire.is_none()
    }

    /// Which nucleus it runs.
    pub fn checks(&self) -> Checks {
        match &self.trace {
            Some(_) => Checks::Traced,
            None if self.measured => Checks::Measured,
            None => self.checked.into(),
        }
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StepText {
    pub after: String,
    pub send: String,
    pub fetch: Option<String>,
    pub host: Option<String>,
    pub ask: Option<Asks>,
}

fn default_system() -> PathBuf {
    "systems/default.toml".into()
}
fn default_timeout() -> f64 {
    60.0
}
fn yes() -> bool {
    true
}

/// Reads all boot tests, for each ISA that they are about; sorted by name.
pub fn read_all(project: &Project) -> Result<Vec<BootTest>> {
    let folder = project.root.join("tests/boot");
    let mut tests = Vec::new();
    if !folder.is_dir() {
        return Ok(tests);
    }
    for entry in fs::read_dir(&folder).context("cannot list tests/boot")? {
        let path = entry?.path();
        let (Some(name), Some("toml")) =
            (path.file_stem().and_then(|name| name.to_str()), path.extension().and_then(|name| name.to_str()))
        else {
            continue;
        };
        let text = read_text(&path)?;
        for isa in Isa::ALL {
            let file = TestFile::read(&text, isa).with_context(|| format!("boot test {}", path.display()))?;
            tests.extend(file.map(|file| BootTest { name: name.into(), isa, file }));
        }
    }
    tests.sort_by(|a, b| (&a.name, a.isa).cmp(&(&b.name, b.isa)));
    Ok(tests)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, isa: Isa) -> Result<Option<TestFile>> {
        TestFile::read(&format!("about = \"\"\n{text}"), isa)
    }

    #[test]
    fn keys_are_replaced_on_one_isa() {
        let text = "exec = \"a\"\nstatus = 1\n[aarch64]\nexec = \"b\"\n";
        let file = |isa| read(text, isa).unwrap().unwrap();
        assert_eq!(file(Isa::X86_64).exec.as_deref(), Some("a"));
        assert_eq!(file(Isa::Aarch64).exec.as_deref(), Some("b"));
        assert_eq!(file(Isa::Aarch64).status, 1);
    }

    #[test]
    fn a_test_of_one_isa_runs_on_no_other() {
        let text = "isa = { aarch64 = \"its registers\" }\n[aarch64]\nstatus = 1";
        assert!(read(text, Isa::X86_64).unwrap().is_none());
        assert_eq!(read(text, Isa::Aarch64).unwrap().unwrap().status, 1);
    }

    #[test]
    fn nonsense_is_refused() {
        for (text, cause) in [
            ("isa = \"aarch64\"", "invalid type"),
            ("isa = { aarch64 = \" \" }", "says why"),
            ("isa = { aarch64 = \"a\", x86_64 = \"b\" }", "names one"),
            ("isa = { m68k = \"a\" }", "unknown variant"),
            ("isa = { aarch64 = \"a\" }\n[x86_64]\nstatus = 1", "is not about"),
            ("aarch64 = 1", "is a table"),
            ("[aarch64]\nstate = 1", "unknown field"),
            ("[m68k]\nstatus = 1", "unknown field"),
        ] {
            let error = read(text, Isa::Aarch64).map(|_| ()).unwrap_err().to_string();
            assert!(error.contains(cause), "{text}: {error}");
        }
    }
}
