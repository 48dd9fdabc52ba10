//! `./x test`: everything, or what is named.
//!
//! | group | what |
//! |---|---|
//! | `format`, `lints` | rustfmt and clippy: all crates for this computer, as an editor checks them, and bare crates for each ISA |
//! | `unsafe`, `dependencies` | the rules of `tests/unsafe.toml` and `tests/dependencies.toml`; each SAFETY comment has its own reason |
//! | `layers` | imports inside a crate have one direction |
//! | `systems` | `systems/*.toml` are without mistakes, and each program is offered by one |
//! | `links` | links and pictures of the documents lead somewhere, and every chapter is listed |
//! | `rustdoc` | what the crates say of themselves has no mistakes |
//! | `isa` | the portable crates compile against an ISA of stubs, `tests/isa` |
//! | `host` | unit, integration and documentation tests of what runs on this computer |
//! | `miri` | with `--miri`, or when named: what the nucleus is made of, without what Rust leaves undefined |
//! | `portal` | the code of a running system is listed on the host |
//! | `counter` | the emulator's plugin counts every instruction once |
//! | `profile` | a profile reports for every instruction once, and of as many as `./x bench` |
//! | `boot` | `tests/boot/*.toml`, each in its own emulator, on each ISA, with one CPU and with several |
//! | `tutorial`, `transcript` | what the book's first component and the README show comes true |
//! | `debugger` | the session with gdb that the book shows comes true |
//! | `nmi` | an NMI at the first instruction of the nucleus finds its way, on x86-64 |
//! | `overflow` | the nucleus survives no recursion without end, and says so |
//! | `x87` | the nucleus of x86-64 leaves nothing of an x87 instruction of others |
//! | `travel` | a tree of files goes from one ISA to the other and back |
//! | `traces` | traces of labels come true in a machine |
//! | `deaths` | `./x run` says where programs were when they died |
//! | `browser` | the pages in Chromium, light and dark, on a desk and on a phone; with `--soak`, or when named |
//! | `mutants` | `tests/mutants.toml`: one-line mistakes, each of which must turn its test red |
//! | `refusals` | each error of each operation comes in some boot test, but for listed ones |
//! | `promises` | `docs/promises.md`: each test named there exists and has passed |

mod ask;
mod book;
mod boot;
pub mod browser;
mod cases;
mod checks;
#[cfg(test)]
mod constants;
mod copy;
mod counter;
mod deaths;
mod debugger;
mod device_trees;
#[cfg(test)]
mod editors;
mod figures;
mod file;
#[cfg(test)]
mod groups;
mod host;
mod isa;
#[cfg(test)]
mod items;
mod layers;
#[cfg(test)]
mod limits;
mod load;
mod loops;
mod miri;
mod mutants;
mod names;
mod overflow;
#[cfg(test)]
mod parity;
#[cfg(test)]
mod paths;
#[cfg(test)]
mod portable;
mod portal;
mod profile;
mod promises;
mod random;
#[cfg(test)]
mod ready;
mod refusals;
mod report;
#[cfg(test)]
mod services;
#[cfg(test)]
mod shares;
mod systems;
mod time_server;
pub mod traced;
mod traces;
mod travel;
mod wire;
mod x87;

use crate::command_line::TestOptions;
use crate::docs;
use crate::install;
use crate::isa::Isa;
use crate::nearest::meant;
use crate::project::Project;
use crate::workspace::Workspace;
use anyhow::{Error, Result, anyhow};
use cases::{Case, Wanted};
pub use isa::STUBS;
use report::Report;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io::Write as _;

/// Names of the groups, in the order in which they run.
const GROUPS: &[&str] = &[
    "format",
    "unsafe",
    "dependencies",
    layers::NAME,
    "systems",
    docs::links::NAME,
    "lints",
    docs::CRATES,
    isa::NAME,
    "host",
    miri::NAME,
    "counter",
    portal::NAME,
    profile::NAME,
    "boot",
    "transcript",
    "tutorial",
    debugger::NAME,
    overflow::NAME,
    overflow::NMI,
    x87::NAME,
    travel::NAME,
    traces::NAME,
    deaths::NAME,
    "browser",
    "mutants",
    refusals::NAME,
    "promises",
];

/// Runs the tests; the exit status is 0 if all passed.
pub fn test(project: &Project, options: &TestOptions) -> Result<u8> {
    let workspace = Workspace::read(project)?;
    let boot_tests = file::read_all(project)?;
    if options.list {
        list(project, &workspace, &boot_tests)?;
        return Ok(0);
    }
    let named = |name: &str| options.names.iter().any(|other| other == name);
    let mutants = if options.mutants { mutants::list(project)? } else { Vec::new() };
    let wanted = Wanted { isa: options.arch, cpus: options.cpus };
    let called = |name: &str| Case::called(&boot_tests, name, wanted);
    let isas: Vec<Isa> = Isa::ALL.into_iter().filter(|isa| options.arch.is_none_or(|only| only == *isa)).collect();
    let is_host = |name: &str| host::is_of_crate(&workspace, name);
    let is_other = |name: &str| {
        let is_mutant = mutants.iter().any(|mutant| mutant.name == name);
        GROUPS.contains(&name) || is_mutant || !called(name).is_empty()
    };
    let unknown = options.names.iter().find(|name| !is_other(name) && !is_host(name));
    if let Some(unknown) = unknown {
        return Err(no_such_test(unknown, &workspace, &boot_tests, &mutants));
    }
    let all = options.names.is_empty() && !options.mutants && !options.miri;
    let all_cases = all && options.cpus.is_none() && options.arch.is_none();
    let wants = |group: &str| all || named(group);
    let mut report = Report::new();
    if wants("format") {
        checks::format(project, &mut report);
    }
    if wants("unsafe") {
        checks::unsafe_code(project, &workspace, &mut report);
    }
    if wants("dependencies") {
        checks::dependencies(project, &workspace, &mut report);
    }
    if wants(layers::NAME) {
        layers::check(project, &workspace, &mut report);
    }
    if wants("systems") {
        systems::check(project, &workspace, &mut report);
    }
    if wants(docs::CRATES) {
        let mut documentation = docs::documentation(project);
        // Else the report shows the names of crates instead of the error.
        documentation.arg("--quiet");
        report.run(docs::CRATES, || checks::quietly(project, documentation));
    }
    if wants(docs::links::NAME) {
        report.run(docs::links::NAME, || docs::links::check(&project.root));
        report.run("links: names", || docs::terms::check(&project.root));
    }
    if wants("lints") {
        checks::lints(project, &workspace, &isas, &mut report);
    }
    if wants(isa::NAME) {
        isa::check(project, &mut report);
    }
    let host_names: Vec<&str> =
        options.names.iter().map(String::as_str).filter(|name| !is_other(name) && is_host(name)).collect();
    if wants("host") || !host_names.is_empty() {
        let only = if wants("host") { &[][..] } else { &host_names };
        host::run(project, &workspace, options.soak, only, &mut report);
    }
    if options.miri || named(miri::NAME) {
        miri::check(project, &workspace, &mut report);
    }
    if wants("counter") {
        counter::check(project, &mut report);
    }
    if wants(portal::NAME) {
        portal::check(project, &isas, &mut report);
    }
    if wants(profile::NAME) {
        profile::check(project, &isas, &mut report);
    }
    let usual = Case::all(&boot_tests, wanted).into_iter();
    let usual = usual.filter(|case| wants("boot") && (options.soak || !case.test.file.soak));
    let mut chosen: Vec<_> = usual.chain(options.names.iter().flat_map(|name| called(name))).collect();
    let mut names = BTreeSet::new();
    chosen.retain(|case| names.insert(case.name()));
    let mut came = BTreeMap::new();
    if !chosen.is_empty() {
        came = boot::run(project, &chosen, options.boards, &mut report);
    }
    if wants("transcript") {
        for isa in &isas {
            install::emulator(*isa)?;
            book::transcript(&project.on(*isa), &mut report);
        }
    }
    if wants("tutorial") {
        install::emulator(project.isa)?;
        book::tutorial(project, &mut report);
    }
    if wants(debugger::NAME) {
        isas.iter().for_each(|isa| debugger::check(&project.on(*isa), &mut report));
    }
    if wants(overflow::NMI) && isas.contains(&Isa::X86_64) {
        overflow::check_nmi(&project.on(Isa::X86_64), &mut report);
    }
    if wants(x87::NAME) && isas.contains(&Isa::X86_64) {
        x87::check(&project.on(Isa::X86_64), &mut report);
    }
    if wants(overflow::NAME) {
        isas.iter().for_each(|isa| overflow::check(&project.on(*isa), &mut report));
    }
    if wants(travel::NAME) {
        travel::check(project, &mut report);
    }
    if wants(traces::NAME) {
        isas.iter().for_each(|isa| traces::check(&project.on(*isa), &mut report));
    }
    if wants(deaths::NAME) {
        isas.iter().for_each(|isa| deaths::check(&project.on(*isa), &mut report));
    }
    if named(browser::NAME) || all && options.soak {
        browser::check(project, &mut report);
    }
    let sample = std::env::var("CI").is_ok_and(|value| value == "true");
    if options.generated {
        isas.iter().try_for_each(|isa| install::emulator(*isa))?;
        let isa = options.arch.unwrap_or_default();
        mutants::generated::run(project, &workspace, &options.which, isa, &mut report)?;
    } else if options.compile {
        mutants::compile(project, &workspace, &options.names, &mut report)?;
    } else if options.mutants || named("mutants") || all && (options.soak || sample) {
        isas.iter().try_for_each(|isa| install::emulator(*isa))?;
        let every = options.mutants || named("mutants") || options.soak;
        mutants::run(project, every, &options.names, &mut report)?;
    }
    if named(refusals::NAME) || all && options.cpus.is_none() {
        refusals::check(project, &isas, &came, &mut report);
    }
    if wants("promises") {
        promises::check(project, &boot_tests, options.soak, all_cases, &mut report);
    }
    Ok(report.finish())
}

/// Why no test runs by this name, and which one may be meant.
fn no_such_test(
    unknown: &str,
    workspace: &Workspace,
    boot_tests: &[file::BootTest],
    mutants: &[mutants::Mutant],
) -> Error {
    let plain = cases::parts(unknown).map_or(unknown, |(name, _)| name);
    if let Some(test) = boot_tests.iter().find(|test| test.name == plain) {
        let why = test.file.one_cpu.as_deref().unwrap_or("its `isa` or its `cpus` are others");
        return anyhow!("the boot test `{unknown}` does not run on this ISA, or not with this number of CPUs: {why}");
    }
    let crates: Vec<String> = host::crates(workspace).collect();
    let crates = crates.iter().map(String::as_str);
    let lists = "`./x test --list` lists all tests";
    if let Some((package, _)) = unknown.split_once("::") {
        return anyhow!("no crate with host tests is called `{package}`{}; {lists}", meant(package, crates));
    }
    let others = boot_tests.iter().map(|test| test.name.as_str());
    let others = others.chain(mutants.iter().map(|mutant| mutant.name.as_str()));
    let known = GROUPS.iter().copied().chain(others).chain(crates);
    anyhow!("no test, group or crate is called `{unknown}`{}; {lists}", meant(plain, known))
}

/// Lists all that can be named; host tests come last, because they must be built first.
fn list(project: &Project, workspace: &Workspace, boot_tests: &[file::BootTest]) -> Result<()> {
    let mut text = format!("groups: {}\nboot tests (tests/boot):\n", GROUPS.join(", "));
    for test in boot_tests {
        let cases: Vec<String> = Case::of(test, Wanted::default()).iter().map(Case::name).collect();
        let soak = if test.file.soak { " (soak)" } else { "" };
        writeln!(text, "  {:32} {}{soak}", cases.join(" "), test.file.about)?;
    }
    text.push_str("mutants (tests/mutants.toml):\n");
    for mutant in mutants::list(project)? {
        writeln!(text, "  {:32} turns {} red", mutant.name, mutant.test)?;
    }
    text.push_str("host tests (a crate, crate::module or a test):\n");
    if !show(&text)? {
        return Ok(());
    }
    eprintln!("Building the host tests, to list them.");
    let tests: String = host::names(project, workspace)?.iter().map(|name| format!("  {name}\n")).collect();
    show(&tests).map(drop)
}

/// Prints; false if nobody reads any more, which is no error.
fn show(text: &str) -> Result<bool> {
    match std::io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(false),
        other => Ok(other.map(|()| true)?),
    }
}
