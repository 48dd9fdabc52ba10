//! The boot archive: the files that a system description names, built and packed.

use crate::build::{self, Checks, Program, Programs};
use crate::elf;
use crate::forward::{Forward, Protocol, WEB};
use crate::isa::Isa;
use crate::project::{Project, Scratch, read, read_text, write};
use crate::services;
use abi::boot::{ROOTTASK_PATH, SERVICES_PATH, SIGMA0_PATH, SYMBOLS_PATH, SYSTEM_PATH};
use anyhow::{Context, Result, bail};
use cpio::Writer;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use system::Special;
use system::host::{At, ComponentText, Description, Plan, Problem, ProgramText, Surroundings};

/// The commands that the shell runs at the start of the system.
const RUN_PATH: &str = "etc/run";
/// The commands that the shell runs instead of a conversation.
const EXEC_PATH: &str = "etc/exec";

/// A system description and where it stands.
pub struct System {
    path: PathBuf,
    /// Its text.
    pub description: Description,
}

/// The files that the emulator needs to boot.
pub struct Image {
    /// The nucleus's file as the emulator takes it: on x86-64 the ELF file, symbols included, elsewhere what is loaded of it;
    /// or another kernel.
    pub nucleus: PathBuf,
    /// The nucleus's ELF file, symbols included; or the other kernel.
    pub elf: PathBuf,
    /// The ISA that it runs on.
    pub isa: Isa,
    /// The boot archive.
    pub archive: PathBuf,
    /// The nucleus's command line.
    pub command_line: String,
    /// With a network interface: the ports of this host that lead to the machine.
    pub forwards: Option<Vec<Forward>>,
    /// With a device that gives randomness.
    pub entropy: bool,
    /// The ELF files, symbols included, of what runs as domains, with the names of these.
    pub programs: Vec<(String, PathBuf)>,
    /// Holds the archive.
    _scratch: Scratch,
}

/// How large a machine is.
#[derive(Clone, Copy)]
pub struct Size {
    /// Frames of memory.
    pub frames: u64,
    /// CPUs.
    pub cpus: u32,
}

impl Size {
    /// From a memory size such as `64M`.
    pub fn of(memory: &str, cpus: u32) -> Result<Self> {
        let frames = system::host::size_in_frames(memory);
        let frames =
            frames.with_context(|| format!("memory is a size such as {USUAL_MEMORY}, and \"{memory}\" is none"))?;
        Ok(Self { frames, cpus })
    }
}

/// Programs that only tests run: they are not part of what ships.
pub const OF_TESTS: [&str; 1] = ["chaos"];

/// Memory of a machine without a description, and of most with one.
pub const USUAL_MEMORY: &str = "64M";

/// Memory, as QEMU takes it, for a machine with so many CPUs: the wanted size, or the description's size, or, if CPUs after the
/// first need more, a multiple of 16 MiB.
pub fn memory_for(system: &System, wanted: Option<&str>, cpus: u32) -> String {
    const FRAMES_OF_STEP: u64 = 16 * 256;
    let description = &system.description;
    let (size, needed) = (description.memory_frames.value, description.frames_needed(cpus));
    let is_for_cpus = description.frames_needed(1) <= size && size < needed;
    let frames = if is_for_cpus { needed.next_multiple_of(FRAMES_OF_STEP) } else { size };
    match wanted {
        Some(wanted) => wanted.into(),
        None if frames.is_multiple_of(256) => format!("{}M", frames / 256),
        None => format!("{}K", frames * 4),
    }
}

impl Image {
    /// Another kernel with its first file system.
    pub fn foreign(project: &Project, kernel: &Path, archive: &[u8], command_line: &str) -> Result<Self> {
        let scratch = project.scratch()?;
        let file = scratch.file("archive");
        write(&file, archive)?;
        let forwards = Some(Vec::new());
        Ok(Self {
            nucleus: kernel.into(),
            elf: kernel.into(),
            isa: project.isa,
            archive: file,
            command_line: command_line.into(),
            forwards,
            entropy: false,
            programs: Vec::new(),
            _scratch: scratch,
        })
    }

    /// The port that leads to the machine's web server.
    pub fn web(&self) -> Option<Forward> {
        self.forwards.iter().flatten().find(|forward| forward.guest == WEB).copied()
    }
}

impl System {
    /// Reads a description; nothing is compared with the tree yet.
    pub fn read(project: &Project, path: &Path) -> Result<Self> {
        Self::read_with(project, path, "")
    }

    fn read_with(project: &Project, path: &Path, more: &str) -> Result<Self> {
        let text = read_text(&project.root.join(path))? + more;
        let description = Description::read(&text).map_err(|_| {
            // All at once: each part that can be read is compared with the tree, too.
            let tree = Tree { project, folder: folder(project, path), machine: None };
            report(path, &Description::problems(&text, &tree))
        })?;
        Ok(Self { path: path.into(), description })
    }

    /// As [`Self::read`], with `more` after the description; systems with programs get those that only tests run, too.
    pub fn read_for_tests(project: &Project, path: &Path, more: &str) -> Result<Self> {
        let mut system = Self::read_with(project, path, more)?;
        let programs = &mut system.description.programs;
        if let Some(line) = programs.last().map(|last| last.name.line) {
            let at = |name: &str| At { value: name.into(), line };
            let program =
                |name| ProgramText { name: at(name), binary: at(name), account: 0, inspect: false, levels: Vec::new() };
            programs.extend(OF_TESTS.map(program));
        }
        Ok(system)
    }

    /// Checks it against the tree and a machine; `None` = the one that it names itself.
    pub fn plan(&self, project: &Project, machine: Option<Size>) -> Result<Plan<'_>> {
        let folder = self.folder(project);
        let tree = Tree { project, folder, machine };
        self.description.check(&tree).map_err(|problems| report(&self.path, &problems))
    }

    /// Has one more file of the host packed.
    pub fn add_file(&mut self, path: &str, source: &Path) {
        let at = |text: String| At { value: text, line: 0 };
        self.description.files.push((at(path.into()), at(source.display().to_string())));
    }

    /// The programs that must be built for it.
    pub fn programs(&self) -> BTreeSet<Program> {
        let programs = self.description.programs.iter().map(|program| (program.binary.value.clone(), Vec::new()));
        self.description.components.iter().map(program_of).chain(programs).collect()
    }

    /// The names under which its programs run as domains, and what they are.
    pub fn domains(&self) -> Vec<(String, Program)> {
        let description = &self.description;
        let components =
            description.components.iter().map(|component| (component.name.value.clone(), program_of(component)));
        let programs = description
            .programs
            .iter()
            .map(|program| (program.name.value.clone(), (program.binary.value.clone(), Vec::new())));
        components.chain(programs).collect()
    }

    /// The program that runs as the domain of this name. The error lists the known names, and `others`.
    pub fn program_called(&self, name: &str, others: &[&str]) -> Result<Program> {
        let domains = self.domains();
        let found = domains.iter().find(|(known, _)| known == name);
        found.map(|(_, program)| program.clone()).with_context(|| {
            let mut names: Vec<&str> =
                domains.iter().map(|(name, _)| name.as_str()).chain(others.iter().copied()).collect();
            names.sort_unstable();
            format!("{} has no `{name}`; there are {}", self.path.display(), names.join(", "))
        })
    }

    /// Where its description is, from the root of the tree.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn folder(&self, project: &Project) -> PathBuf {
        folder(project, &self.path)
    }
}

/// The folder of a description, which its files are beside.
fn folder(project: &Project, path: &Path) -> PathBuf {
    project.root.join(path).parent().map_or_else(|| project.root.clone(), Path::to_path_buf)
}

fn program_of(component: &ComponentText) -> Program {
    (component.binary.value.clone(), component.features.clone())
}

fn report(path: &Path, problems: &[Problem]) -> anyhow::Error {
    let file = path.display().to_string();
    let texts: Vec<String> = problems.iter().map(|problem| problem.text(&file)).collect();
    anyhow::anyhow!("the system description cannot be used\n{}", texts.join("\n"))
}

struct Tree<'a> {
    project: &'a Project,
    folder: PathBuf,
    machine: Option<Size>,
}

impl Surroundings for Tree<'_> {
    fn has_component(&self, name: &str) -> bool {
        self.project.bare_program("components", name).is_some() || self.project.driver(name).is_some()
    }
    fn has_program(&self, name: &str) -> bool {
        self.project.bare_program("apps", name).is_some()
    }
    fn has_file(&self, path: &str) -> bool {
        self.folder.join(path).exists()
    }
    fn memory_frames(&self) -> Option<u64> {
        self.machine.map(|machine| machine.frames)
    }
    fn cpus(&self) -> u32 {
        self.machine.map_or(1, |machine| machine.cpus)
    }
}

/// Builds everything that `system` needs and packs it. `exec` = commands for the shell.
pub fn make(project: &Project, system: &System, checks: Checks, machine: Size, exec: Option<&str>) -> Result<Image> {
    let plan = system.plan(project, Some(machine))?;
    let nucleus = build::nucleus(project, checks)?;
    let programs = build::programs(project, &system.programs())?;
    pack(project, system, &plan, nucleus, &programs, exec)
}

/// Packs what was built before.
pub fn pack(
    project: &Project,
    system: &System,
    plan: &Plan<'_>,
    nucleus: PathBuf,
    programs: &Programs,
    exec: Option<&str>,
) -> Result<Image> {
    let description = &system.description;
    if exec.is_some() && description.shell.is_none() {
        bail!("{}: --exec needs a shell, and [boot] names none", system.path.display());
    }
    let problems = too_small(description, |program| elf::writable_pages(&read(programs.file(program)?)?))?;
    if !problems.is_empty() {
        return Err(report(&system.path, &problems));
    }
    let mut writer = Writer::new();
    writer.file(SYMBOLS_PATH, elf::symbols(&read(&nucleus)?)?.as_bytes())?;
    writer.file(SYSTEM_PATH, &plan.encode())?;
    let mut packed = BTreeSet::new();
    for component in &description.components {
        let path = match component.name.value.as_str() {
            "sigma0" => SIGMA0_PATH.to_string(),
            "roottask" => ROOTTASK_PATH.to_string(),
            _ => format!("boot/{}", component.binary.value),
        };
        if packed.insert(path.clone()) {
            writer.file(&path, &program(programs, &program_of(component))?)?;
        }
    }
    // A binary under several names is packed once.
    let mut first: BTreeMap<&str, String> = BTreeMap::new();
    for entry in &description.programs {
        let (path, binary) = (format!("bin/{}", entry.name.value), &entry.binary.value);
        match first.get(binary.as_str()) {
            Some(file) => writer.link(&path, file)?,
            None => {
                writer.file(&path, &program(programs, &(binary.clone(), Vec::new()))?)?;
                first.insert(binary, path);
            }
        }
    }
    if description.programs.iter().any(|program| program.name.value == LISTS_PORTALS) {
        let services = services::all(project, &system.domains(), programs)?;
        writer.file(SERVICES_PATH, services::text(&services).as_bytes())?;
    }
    for (path, source) in &description.files {
        add(&mut writer, &path.value, &system.folder(project).join(&source.value))?;
    }
    if !description.run.is_empty() {
        let lines: String = description.run.iter().map(|line| format!("{}\n", line.value)).collect();
        writer.file(RUN_PATH, lines.as_bytes())?;
    }
    if let Some(commands) = exec.or(description.exec.as_deref()) {
        writer.file(EXEC_PATH, commands.as_bytes())?;
    }
    let image = finish(project, writer, nucleus, description.command_line.clone())?;
    let has = |driver: &str| description.components.iter().any(|component| component.name.value == driver);
    let forwards = if has(NETWORK_DRIVER) { Some(vec![Forward::any(Protocol::Tcp, WEB)?]) } else { None };
    let elf = |(name, program): (String, Program)| Ok((name, programs.file(&program)?.to_path_buf()));
    let programs = system.domains().into_iter().map(elf).collect::<Result<_>>()?;
    Ok(Image { forwards, entropy: has(BUS), programs, ..image })
}

/// Frames that a domain has before its program's first instruction, at least, beside pages that the program may write: its object
/// and tables, its first thread, a message area, the startup page, a page of stack.
const FEWEST_FRAMES: u64 = 10;

/// Pages of a scheduler for which not the description pays, at most.
const MOST_NOTES: u64 =
    ((abi::sched::NOTES - abi::THREADS_OF_A_PAGE) * abi::sched::NOTE_BYTES).div_ceil(abi::PAGE_BYTES) as u64;

/// Accounts in which not even the program has room, whose writable pages `pages` gives. Its use at run time is unknown.
fn too_small(description: &Description, pages: impl Fn(&Program) -> Result<u64>) -> Result<Vec<Problem>> {
    let components = description.components.iter().map(|component| {
        // `roottask` pays for what notes on more threads take than on the fewest.
        let notes = if component.special.value == Special::Scheduler { MOST_NOTES } else { 0 };
        (&component.name.value, component.account.line, component.account.value, program_of(component), notes)
    });
    let own = description.programs.iter().filter(|program| program.account > 0);
    let own = own.map(|program| {
        (&program.name.value, program.name.line, program.account, (program.binary.value.clone(), Vec::new()), 0)
    });
    let mut problems = Vec::new();
    for (name, line, frames, program, notes) in components.chain(own) {
        let fewest = pages(&program)?.saturating_sub(notes) + FEWEST_FRAMES;
        if u64::from(frames) < fewest {
            let [has, takes] = [frames.into(), fewest].map(|frames: u64| frames * 4);
            let cause = format!("the account of `{name}` has {has}K, but its program alone takes {takes}K");
            let remedy =
                format!("give it {takes}K and what it allocates: 256K is usual for a small one, 512K for a server");
            problems.push(Problem { line, cause, remedy });
        }
    }
    Ok(problems)
}

/// An archive with nothing but the nucleus's symbols.
pub fn nucleus_only(project: &Project, checks: Checks) -> Result<Image> {
    let nucleus = build::nucleus(project, checks)?;
    let mut writer = Writer::new();
    writer.file(SYMBOLS_PATH, elf::symbols(&read(&nucleus)?)?.as_bytes())?;
    finish(project, writer, nucleus, String::new())
}

/// The program that reads which interface is entered where.
const LISTS_PORTALS: &str = "portals";
/// The component for which the machine has a network interface.
const NETWORK_DRIVER: &str = "virtio-net";
/// The component for which the machine has a device that gives randomness, whether or not that has a driver.
const BUS: &str = "bus";

fn finish(project: &Project, writer: Writer, nucleus: PathBuf, command_line: String) -> Result<Image> {
    let scratch = project.scratch()?;
    let archive = scratch.file("boot.cpio");
    write(&archive, &writer.finish()?)?;
    // The nucleus may be rebuilt while the emulator starts: it gets a copy.
    let elf = scratch.file("nucleus");
    fs::copy(&nucleus, &elf).with_context(|| format!("cannot copy {}", nucleus.display()))?;
    let loaded = match project.isa {
        Isa::X86_64 => elf.clone(),
        // The emulator gives a device tree and an archive only to files that begin with the header of an arm64 image.
        Isa::Aarch64 => {
            let flat = scratch.file("nucleus.image");
            write(&flat, &elf::flat(&read(&elf)?)?)?;
            flat
        }
    };
    Ok(Image {
        nucleus: loaded,
        elf,
        isa: project.isa,
        archive,
        command_line,
        forwards: None,
        entropy: false,
        programs: Vec::new(),
        _scratch: scratch,
    })
}

/// The file of a program, as the archive has it.
pub fn program(programs: &Programs, program: &Program) -> Result<Vec<u8>> {
    elf::strip(&read(programs.file(program)?)?).with_context(|| format!("program {}", program.0))
}

/// Adds a file, or a folder with all that is in it, sorted.
fn add(writer: &mut Writer, path: &str, source: &Path) -> Result<()> {
    if !source.is_dir() {
        return Ok(writer.file(path, &read(source)?)?);
    }
    let listing = fs::read_dir(source).with_context(|| format!("cannot list {}", source.display()))?;
    let mut names = listing.map(|entry| Ok(entry?.file_name())).collect::<std::io::Result<Vec<_>>>()?;
    names.sort();
    for name in names {
        let name = name.to_str().with_context(|| format!("a name in {} is not UTF-8", source.display()))?;
        add(writer, &format!("{path}/{name}"), &source.join(name))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_holds_at_least_its_program() -> Result<()> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let project = Project::in_folder(root);
        let mut system = System::read(&project, Path::new("systems/minimal.toml"))?;
        let sched = system.description.components.iter_mut().find(|component| component.name.value == "sched");
        sched.context("has no scheduler")?.account = At { value: 12, line: 7 };
        let problems = |pages: u64| {
            too_small(&system.description, |program| Ok(if program.0 == "sched" { pages + MOST_NOTES } else { 0 }))
        };
        assert_eq!(problems(2)?, []);
        let cause = "the account of `sched` has 48K, but its program alone takes 52K".to_string();
        let remedy = "give it 52K and what it allocates: 256K is usual for a small one, 512K for a server".to_string();
        assert_eq!(problems(3)?, [Problem { line: 7, cause, remedy }]);
        Ok(())
    }

    /// A system built on the default one has room for a component of a usual size.
    #[test]
    fn the_default_machine_has_room_for_one_more_component() -> Result<()> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let more = "\n[[component]]\nname = \"more\"\nbinary = \"timed\"\naccount = \"2M\"\npriority = 28\nrestart = \"always\"\n";
        for isa in Isa::ALL {
            let project = Project::in_folder(root.clone()).on(isa);
            let system = System::read_with(&project, Path::new("systems/default.toml"), more)?;
            for cpus in [1, 2, 4, 8] {
                system.plan(&project, Some(Size::of(USUAL_MEMORY, cpus)?))?;
            }
        }
        Ok(())
    }

    #[test]
    fn a_program_that_is_not_there_is_reported_with_those_that_are() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let project = Project::in_folder(root);
        let system = System::read(&project, Path::new("systems/default.toml")).unwrap();
        assert_eq!(system.program_called("names", &[]).unwrap(), ("names".into(), Vec::new()));
        assert_eq!(system.program_called("cpus", &[]).unwrap().0, "inspect");
        let error = system.program_called("k/v", &["nucleus"]).unwrap_err().to_string();
        assert!(error.starts_with("systems/default.toml has no `k/v`; there are "), "{error}");
        assert!(error.contains(" archive, ") && error.contains(", ls, ") && error.contains(", nucleus, "), "{error}");
    }
}
