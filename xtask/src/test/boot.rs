//! Runs boot tests and judges what they print: see [`super::file`].

use super::cases::{self, Case};
use super::file::{StepText, TestFile};
use super::refusals::{self, Refusals};
use super::report::{Report, tail};
use super::time_server::{self, TimeServer};
use super::traced;
use super::{ask, device_trees, figures, load, wire};
use crate::build::{self, Checks, Program, Programs};
use crate::elf;
use crate::emulator::{self, Console, End, Fetch, Machine, Step};
use crate::image::{self, Size, System};
use crate::install;
use crate::isa::{Boards, Isa};
use crate::project::{Project, read};
use crate::trace::{self, Run};
use anyhow::{Context, Result, anyhow, bail};
use regex::Regex;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

/// The text that no run may print: the nucleus is never to panic.
const NEVER: &str = "nucleus panic";
/// The text of a run if this computer did not get what it should.
const UNSERVED: &str = "host: failed";

/// Everything that the tests need, built.
struct Built {
    nuclei: BTreeMap<Checks, PathBuf>,
    programs: Programs,
    /// Errors of operations that came in the runs.
    refusals: Mutex<Refusals>,
}

/// Builds for the project's ISA what the tests on it need.
fn build(project: &Project, tests: &[&TestFile]) -> Result<Built> {
    let paths: BTreeSet<(&PathBuf, &str)> = tests.iter().map(|test| (&test.system, test.more.as_str())).collect();
    let systems = paths.into_iter().map(|(path, more)| System::read_for_tests(project, path, more));
    let systems = systems.collect::<Result<Vec<_>>>()?;
    for system in &systems {
        system.plan(project, None)?;
    }
    let programs: BTreeSet<Program> = systems.iter().flat_map(System::programs).collect();
    let checks: BTreeSet<Checks> = tests.iter().map(|test| test.checks()).collect();
    let nuclei = checks.into_iter().map(|checks| Ok((checks, build::nucleus(project, checks)?)));
    let nuclei: BTreeMap<Checks, PathBuf> = nuclei.collect::<Result<_>>()?;
    if let Some(traced) = nuclei.get(&Checks::Traced) {
        traced::ships_nothing(&build::nucleus(project, Checks::Off)?, traced)?;
    }
    Ok(Built { nuclei, programs: build::programs(project, &programs)?, refusals: Mutex::default() })
}

/// Builds once, then runs the cases, as many at a time as this computer has CPUs. Gives the errors with which operations ended on each ISA.
pub fn run(project: &Project, cases: &[Case<'_>], boards: Boards, report: &mut Report) -> BTreeMap<Isa, Refusals> {
    let mut builds = BTreeMap::new();
    for isa in Isa::ALL {
        let tests: Vec<&TestFile> =
            cases.iter().filter(|case| case.test.isa == isa).map(|case| &case.test.file).collect();
        if tests.is_empty() {
            continue;
        }
        let start = Instant::now();
        let built = install::emulator(isa).and_then(|()| build(&project.on(isa), &tests));
        let built = built.map(|built| builds.insert(isa, built)).map(|_| ());
        report.add(&cases::on(isa, "boot: build"), start.elapsed(), built);
    }
    let report = Mutex::new(report);
    let run = |case: &Case<'_>| {
        // Builds that failed have been reported.
        let Some(built) = builds.get(&case.test.isa) else { return };
        let start = Instant::now();
        let result = run_one(&project.on(case.test.isa), built, case, boards);
        if let Ok(mut report) = report.lock() {
            let (result, found) = match result {
                Ok(found) => (Ok(()), found),
                Err(error) => (Err(error), Vec::new()),
            };
            report.add(&case.name(), start.elapsed(), result);
            found.iter().for_each(|line| println!("      {line}"));
        }
    };
    // CPUs that run at the same time need all of this computer: beside others they wait for each other's turns.
    let (alone, together): (Vec<_>, Vec<_>) = cases.iter().partition(|case| case.at_once());
    alone.into_iter().for_each(run);
    each_in_turn(together.into_iter(), |case| {
        run(case);
        true
    });
    let refusals = |built: Built| built.refusals.into_inner().unwrap_or_default();
    builds.into_iter().map(|(isa, built)| (isa, refusals(built))).collect()
}

/// Takes the cases in this order, as many at a time as this computer has CPUs, until there are none or `act` says no.
fn each_in_turn<'c, 't: 'c>(
    cases: impl Iterator<Item = &'c Case<'t>> + Send,
    act: impl Fn(&'c Case<'t>) -> bool + Sync,
) {
    let (waiting, is_over) = (Mutex::new(cases), AtomicBool::new(false));
    let work = || {
        while !is_over.load(Ordering::Relaxed)
            && let Some(case) = waiting.lock().ok().and_then(|mut waiting| waiting.next())
        {
            if !act(case) {
                is_over.store(true, Ordering::Relaxed);
            }
        }
    };
    let workers = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| (0..workers).for_each(|_| drop(scope.spawn(work))));
}

/// Does this one case pass? An error if it cannot be built.
pub fn passes(project: &Project, case: &Case<'_>) -> Result<bool> {
    let project = &project.on(case.test.isa);
    let built = build(project, &[&case.test.file])?;
    Ok(run_one(project, &built, case, Boards::default()).is_ok())
}

/// The nuclei and programs of some cases of one ISA, built once to run the cases later.
pub struct Prepared {
    project: Project,
    built: Built,
}

impl Prepared {
    /// Builds for these cases, which are all of the project's ISA.
    pub fn of(project: &Project, cases: &[Case<'_>]) -> Result<Self> {
        let tests: Vec<&TestFile> = cases.iter().map(|case| &case.test.file).collect();
        Ok(Self { project: project.clone(), built: build(project, &tests)? })
    }

    /// Hash of everything that the machine loads: the same for the same programs.
    pub fn fingerprint(&self) -> Result<u64> {
        let files = self.built.nuclei.values().map(PathBuf::as_path).chain(self.built.programs.files());
        let loaded = files.map(|file| Ok(build::hash(&elf::strip(&read(file)?)?).to_le_bytes()));
        Ok(build::hash(&loaded.collect::<Result<Vec<_>>>()?.concat()))
    }

    /// Runs the cases in this order until one is red; gives that one.
    pub fn first_red<'c, 't>(&self, cases: &'c [Case<'t>]) -> Option<&'c Case<'t>> {
        let red = OnceLock::new();
        each_in_turn(cases.iter(), |case| {
            let passes = run_one(&self.project, &self.built, case, Boards::default()).is_ok();
            if !passes {
                red.get_or_init(|| case);
            }
            passes
        });
        red.into_inner()
    }
}

/// Has a file read on each CPU: the receiver of windows pays for page tables from the first window on, on each CPU. A later comparison
/// does not depend on where it runs.
fn first_windows(cpus: u32) -> String {
    if cpus == 1 { String::new() } else { (0..cpus).map(|cpu| format!("pin {cpu} cat /etc/motd; ")).collect() }
}

/// Gives what this computer found while it used the machine.
fn run_one(project: &Project, built: &Built, case: &Case<'_>, boards: Boards) -> Result<Vec<String>> {
    let (test, cpus) = (&case.test.file, case.cpus);
    let mut system = System::read_for_tests(project, &test.system, &test.more)
        .with_context(|| format!("`system` of this test, a path as \"systems/default.toml\", is {:?}", test.system))?;
    let prepared = test.wire.as_ref().map(|_| wire::prepare(project, &mut system)).transpose()?;
    let memory = image::memory_for(&system, test.memory.as_deref(), cpus);
    let plan = system.plan(project, Some(Size::of(&memory, cpus)?))?;
    let nucleus = built.nuclei.get(&test.checks()).context("the nucleus was not built")?;
    let limit = Duration::try_from_secs_f64(test.timeout * f64::from(cpus)).context("bad `timeout`")?;
    if let Some(expected) = &test.trace {
        let (memory, work) = (&memory, expected.work(test.exec.as_deref())?);
        let run = Run { system: &system, memory, cpus, work, from_boot: false, echo: false, forward: &[], limit };
        let traced = trace::record(project, &run, nucleus.clone(), &built.programs)?;
        expected.compare(&traced, test.status, cpus)?;
        if let Some(program) = &expected.loads {
            let file = image::program(&built.programs, &(program.clone(), Vec::new()))?;
            traced::loaded(&traced, &file)?;
        }
        return Ok(Vec::new());
    }
    let time_server = if test.time_server { Some(TimeServer::open()?) } else { None };
    let exec = match (&test.exec, &time_server) {
        (Some(exec), Some(server)) => Some(exec.replace(time_server::PLACEHOLDER, &server.port()?.to_string())),
        (exec, _) => exec.clone(),
    };
    let exec = exec.map(|exec| if test.same.is_empty() { exec } else { format!("{}{exec}", first_windows(cpus)) });
    let mut image = image::pack(project, &system, &plan, nucleus.clone(), &built.programs, exec.as_deref())?;
    let (board, cpu) = project.isa.tested_board(cpus, boards);
    let mut machine = Machine {
        cpus,
        board: test.board.clone().or(board.map(String::from)),
        cpu: test.cpu.clone().or(cpu.map(String::from)),
        icount: test.icount && !case.at_once(),
        turns: !test.at_once,
        append: test.append.clone(),
        without_entropy: test.without_entropy,
        without_network: test.without_network,
        emulator: test.emulator.clone(),
        ..Machine::new(&memory)
    };
    let scratch = project.scratch()?;
    let refusals = (test.checks() == Checks::On).then(|| scratch.file("refusals"));
    machine.refusals = refusals.clone();
    if !test.fdt.is_empty() {
        machine.loaded = Some(device_trees::loaded(&image, &machine, &test.fdt, &scratch)?);
    }
    let step = |step: &StepText| -> Result<Step> {
        let after = regex::bytes::Regex::new(&step.after).context("bad `after`")?;
        let fetch = match &step.fetch {
            Some(path) => {
                let web = image.web().context("`fetch`, but the system has no network")?;
                Some(Fetch { port: web.host, path: path.clone() })
            }
            None => None,
        };
        let work = match (&step.host, &step.ask) {
            (Some(scenario), None) => {
                let web = image.web().context("`host`, but the system has no network")?;
                Some(load::work(project, web.host, scenario)?)
            }
            (None, Some(ask)) => Some(ask::work(&mut image, ask)?),
            (None, None) => None,
            _ => bail!("a step has `host` or `ask`"),
        };
        Ok(Step { after, send: step.send.clone().into_bytes(), fetch, work })
    };
    let steps = test.steps.iter().map(step).collect::<Result<Vec<_>>>()?;
    // Gives the last words of a nucleus that ended early.
    let note = || -> Result<String> {
        let (pairs, text) = refusals.as_deref().map(refusals::read).transpose()?.unwrap_or_default();
        built.refusals.lock().map_err(|_| anyhow!("a run ended badly"))?.extend(pairs);
        Ok(text)
    };
    if let (Some(name), Some(prepared)) = (&test.wire, &prepared) {
        let (result, output) = wire::run(name, prepared, &image, machine, limit);
        note()?;
        // The other end ends the machine.
        let end = if result.is_ok() { End::Status(test.status) } else { End::TimedOut };
        result.and_then(|()| judge(test, &end, &output)).map_err(|error| with_tail(test, &error, &output))?;
        return Ok(Vec::new());
    }
    let console = Console::Steps { steps: &steps, echo: false };
    let over = AtomicBool::new(false);
    let booted = thread::scope(|scope| {
        if let Some(server) = &time_server {
            scope.spawn(|| server.serve(&over));
        }
        let booted = emulator::boot(&image, &machine, console, Some(limit));
        over.store(true, Ordering::Relaxed);
        booted
    });
    let (end, output) = booted?;
    let output = note()? + &String::from_utf8_lossy(&output);
    judge(test, &end, &output).map_err(|error| with_tail(test, &error, &output))?;
    let found = output.lines().filter(|line| line.starts_with("host: ") && !line.starts_with(figures::FETCHED));
    Ok(found.map(String::from).collect())
}

/// The cause comes first: a report may be cut off after it.
fn with_tail(test: &TestFile, error: &anyhow::Error, output: &str) -> anyhow::Error {
    let waiting = waiting(test, output).map_or(String::new(), |step| format!("; {step}"));
    anyhow!("{error:#}{waiting}; the last lines were\n{}", tail(output, 40))
}

/// The end of a line about a part of a test that passed.
const PASSED: &str = ": ok";

/// A test that expects some parts to pass expects each that does: else a part could go and nobody would notice.
fn knows_passed(expect: &[String], lines: &[&str]) -> Result<()> {
    if !expect.iter().any(|text| text.trim_end_matches(['$', '/']).ends_with(PASSED)) {
        return Ok(());
    }
    let patterns: Vec<Pattern> = expect.iter().map(|text| Pattern::new(text)).collect::<Result<_>>()?;
    let is_known = |line: &str| patterns.iter().any(|pattern| pattern.matches(line));
    let missing: Vec<&str> = lines.iter().copied().filter(|line| line.ends_with(PASSED) && !is_known(line)).collect();
    if !missing.is_empty() {
        bail!("these parts passed, and `expect` lacks them:\n  {}", missing.join("\n  "));
    }
    Ok(())
}

fn judge(test: &TestFile, end: &End, output: &str) -> Result<()> {
    let lines: Vec<&str> = output.lines().collect();
    if let Some(line) = lines.iter().find(|line| line.contains(NEVER)) {
        bail!("the nucleus panicked: {line}");
    }
    if let Some(line) = lines.iter().find(|line| line.starts_with(UNSERVED)) {
        bail!("{line}");
    }
    for refused in &test.refuse {
        let pattern = Pattern::new(refused)?;
        if let Some(line) = lines.iter().find(|line| pattern.matches(line)) {
            bail!("this must not be printed: {line}");
        }
    }
    let mut done = 0;
    for expected in &test.expect {
        let pattern = Pattern::new(expected)?;
        if let Some(at) = lines[done..].iter().position(|line| pattern.matches(line)) {
            done += at + 1;
            continue;
        }
        let elsewhere = lines.iter().any(|line| pattern.matches(line));
        let hint = if elsewhere { " (it is printed, but out of order)" } else { "" };
        bail!("this line did not come: {expected}{hint}; the line before it came here:\n{}", around(&lines, done));
    }
    knows_passed(&test.expect, &lines)?;
    for rule in &test.rising {
        rises(rule, &lines)?;
    }
    // All that differ, because one says why another does.
    let differing: Vec<String> =
        test.same.iter().filter_map(|rule| stays(rule, &lines).err()).map(|e| e.to_string()).collect();
    if !differing.is_empty() {
        bail!("{}", differing.join("; "));
    }
    for rule in &test.distinct {
        differs(rule, &lines)?;
    }
    if test.figures {
        figures::compare(&lines)?;
    }
    match end {
        End::Status(status) if *status == test.status => Ok(()),
        End::Status(status) => bail!("the machine stopped with status {status} instead of {}", test.status),
        End::Reset => bail!("the machine reset itself"),
        End::TimedOut => bail!("it was not done when its time was over"),
    }
}

/// The first step that was not reached, for people.
fn waiting(test: &TestFile, output: &str) -> Option<String> {
    let mut from = 0;
    for (number, step) in test.steps.iter().enumerate() {
        let pattern = Regex::new(&step.after).ok()?;
        match pattern.find(output.get(from..)?) {
            Some(found) => from += found.end(),
            None => return Some(format!("step {} still waited for /{}/", number + 1, step.after)),
        }
    }
    None
}

/// Some of the lines before and after a place.
fn around(lines: &[&str], place: usize) -> String {
    let line = |at: usize| format!("  {} {}\n", if at + 1 == place { '>' } else { '|' }, lines[at]);
    (place.saturating_sub(6)..lines.len().min(place + 6)).map(line).collect()
}

/// The numbers that a regular expression finds begin with 1, each is that before it (repeated) or one more,
/// and they come as far as is asked for: `/expression/ last`.
fn rises(rule: &str, lines: &[&str]) -> Result<()> {
    let parts = rule.strip_prefix('/').and_then(|rule| rule.rsplit_once("/ "));
    let (regex, least) = parts.with_context(|| format!("`rising` takes \"/expression/ number\", not {rule}"))?;
    let least: u64 = least.parse().with_context(|| format!("{least} is no number"))?;
    let regex = Regex::new(regex).with_context(|| format!("bad pattern {rule}"))?;
    let mut last = 0;
    for line in lines {
        let Some(found) = regex.captures(line) else { continue };
        let number: u64 = found.get(1).context("`rising` needs a group")?.as_str().parse().context("not a number")?;
        if number != last + 1 && (number != last || last == 0) {
            bail!("after {last} comes {number}: {line}");
        }
        last = number;
    }
    if last < least {
        bail!("it ends with {last}, before {least}: {rule}");
    }
    Ok(())
}

/// The match of a regular expression in the lines that it matches, of which there are two or more.
fn found<'l>(key: &str, rule: &str, lines: &[&'l str]) -> Result<Vec<&'l str>> {
    let regex = rule.strip_prefix('/').and_then(|rule| rule.strip_suffix('/'));
    let regex = regex.with_context(|| format!("`{key}` takes \"/expression/\", not {rule}"))?;
    let regex = Regex::new(regex).with_context(|| format!("bad pattern {rule}"))?;
    let found: Vec<&str> = lines.iter().filter_map(|line| Some(regex.captures(line)?.get(1)?.as_str())).collect();
    if found.len() < 2 {
        bail!("not found twice: {rule}");
    }
    Ok(found)
}

/// Checks that the match of a regular expression is the same in all lines that it matches.
fn stays(rule: &str, lines: &[&str]) -> Result<()> {
    let found = found("same", rule, lines)?;
    match found.iter().find(|other| **other != found[0]) {
        Some(other) => bail!("first it is {}, then {other}: {rule}", found[0]),
        None => Ok(()),
    }
}

/// Checks that the match of a regular expression is never the same twice.
fn differs(rule: &str, lines: &[&str]) -> Result<()> {
    let mut seen = BTreeSet::new();
    match found("distinct", rule, lines)?.into_iter().find(|found| !seen.insert(*found)) {
        Some(again) => bail!("twice it is {again}: {rule}"),
        None => Ok(()),
    }
}

/// A whole line, or a regular expression.
enum Pattern<'a> {
    Line(&'a str),
    Regex(Regex),
}

impl<'a> Pattern<'a> {
    fn new(text: &'a str) -> Result<Self> {
        match text.strip_prefix('/').and_then(|rest| rest.strip_suffix('/')) {
            Some(regex) if !regex.is_empty() => {
                Ok(Self::Regex(Regex::new(regex).with_context(|| format!("bad pattern {text}"))?))
            }
            _ => Ok(Self::Line(text)),
        }
    }

    fn matches(&self, line: &str) -> bool {
        match self {
            Self::Line(text) => line == *text,
            Self::Regex(regex) => regex.is_match(line),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(text: &str, end: End, output: &str) -> Result<()> {
        judge(&toml::from_str(&format!("about = \"\"\n{text}")).unwrap(), &end, output)
    }

    #[test]
    fn values_of_same_stay_equal() {
        let text = r#"same = ["/^free +(\\d+)/"]"#;
        assert!(verdict(text, End::Status(0), "free 7\nand\nfree  7\n").is_ok());
        let error = verdict(text, End::Status(0), "free 7\nfree 7\nfree 8\n").unwrap_err().to_string();
        assert!(error.contains("first it is 7, then 8"), "{error}");
        assert!(verdict(text, End::Status(0), "free 7\n").is_err());
        let text = r#"same = ["/^a (\\d+)/", "/^b (\\d+)/"]"#;
        let error = verdict(text, End::Status(0), "a 7\nb 1\na 8\nb 2\n").unwrap_err().to_string();
        assert!(error.contains("then 8") && error.contains("then 2"), "{error}");
    }

    #[test]
    fn each_part_that_passes_is_expected() {
        let text = "expect = [\"one: ok\"]";
        assert!(verdict(text, End::Status(0), "one: ok\ntwo: FAILED\n").is_ok());
        let error = verdict(text, End::Status(0), "one: ok\ntwo: ok\n").unwrap_err().to_string();
        assert!(error.contains("lacks them:\n  two: ok"), "{error}");
        assert!(verdict("expect = [\"one\"]", End::Status(0), "one\ntwo: ok\n").is_ok());
    }

    #[test]
    fn values_of_distinct_never_repeat() {
        let text = r#"distinct = ["/^n (\\d+)/"]"#;
        assert!(verdict(text, End::Status(0), "n 7\nx 7\nn 8\n").is_ok());
        assert!(verdict(text, End::Status(0), "n 7\n").is_err());
        let error = verdict(text, End::Status(0), "n 7\nn 8\nn 7\n").unwrap_err().to_string();
        assert!(error.contains("twice it is 7"), "{error}");
    }

    #[test]
    fn expected_lines_come_in_order() {
        let text = "expect = [\"one\", \"/^t.o$/\"]";
        assert!(verdict(text, End::Status(0), "zero\none\nand\ntwo\n").is_ok());
        let error = verdict(text, End::Status(0), "two\none\n").unwrap_err().to_string();
        assert!(error.contains("out of order") && error.contains("  | two\n  > one\n"), "{error}");
        assert!(verdict(text, End::Status(0), "one more\ntwo\n").is_err());
        assert!(verdict(text, End::Status(0), "").is_err());
    }

    #[test]
    fn a_step_that_was_not_reached_is_reported() {
        let steps = "steps = [{ after = \"a\", send = \"\" }, { after = \"b.d\", send = \"\" }]";
        let test = toml::from_str(&format!("about = \"\"\n{steps}")).unwrap();
        assert_eq!(waiting(&test, "xax bcd"), None);
        assert_eq!(waiting(&test, "bcd a"), Some("step 2 still waited for /b.d/".to_string()));
    }

    #[test]
    fn refused_lines_fail_wherever_they_are() {
        assert!(verdict("refuse = [\"/bad/\"]", End::Status(0), "good\n").is_ok());
        assert!(verdict("refuse = [\"/bad/\"]", End::Status(0), "too bad\n").is_err());
        assert!(verdict("", End::Status(0), "nucleus panic: at the disco\n").is_err());
        assert!(verdict("", End::Status(0), "host: failed: no page\n").is_err());
    }

    #[test]
    fn rising_numbers_have_no_gap() {
        let text = "rising = ['/n (\\d+)/ 3']";
        assert!(verdict(text, End::Status(0), "n 1\nx\nn 2\nn 2\nn 3\n").is_ok());
        for bad in ["", "n 1\nn 2\n", "n 2\nn 3\n", "n 1\nn 3\n", "n 1\nn 2\nn 1\nn 3\n", "n 0\nn 1\nn 2\nn 3\n"] {
            assert!(verdict(text, End::Status(0), bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn the_end_is_judged() {
        assert!(verdict("status = 3", End::Status(3), "").is_ok());
        assert!(verdict("status = 3", End::Status(0), "").is_err());
        assert!(verdict("", End::Reset, "").is_err());
        assert!(verdict("", End::TimedOut, "").is_err());
    }
}
