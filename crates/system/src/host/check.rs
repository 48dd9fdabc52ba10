//! Does the description fit together, and with the tree and machine it is meant for?

use super::keys::nearest;
use super::{At, ComponentText, Description, Level, Problem};
use crate::{
    ADMIN_COMPARTMENT, MAX_COMPARTMENTS, MAX_COMPONENTS, MAX_LEVELS, MAX_NAME_BYTES, MAX_SERVICES, Restart,
    SYSTEM_COMPARTMENT, Special, frames_of_all,
};
use abi::level;
use std::collections::BTreeMap;
use std::format;
use std::string::{String, ToString};
use std::vec::Vec;

/// The surroundings that a description is compared with.
pub trait Surroundings {
    /// Is there a component crate of this name?
    fn has_component(&self, name: &str) -> bool;
    /// Is there a program crate of this name?
    fn has_program(&self, name: &str) -> bool;
    /// Is there a file or folder at this path, relative to the description?
    fn has_file(&self, path: &str) -> bool;
    /// Frames of the machine, if they are not those of the description.
    fn memory_frames(&self) -> Option<u64>;
    /// CPUs of the machine.
    fn cpus(&self) -> u32;
}

/// A description that was checked, and the order in which its components start.
#[derive(Debug)]
pub struct Plan<'d> {
    /// The description.
    pub description: &'d Description,
    /// Places in `description.components`, first to start first.
    pub order: Vec<usize>,
}

/// The components without which nothing runs, in the order in which they must start, with what each must hold.
const REQUIRED: [(&str, Special); 3] =
    [("sigma0", Special::Memory), ("roottask", Special::Standby), ("sched", Special::Scheduler)];
/// Frames that each CPU after the first costs the nucleus, at most: its stack, its block, its tables, and what they are
/// mapped with.
const FRAMES_OF_A_CPU: u64 = 6;
/// The component that every later one can reach.
const NAMES: &str = "names";

/// Portals of a component: their number has a byte in what is compiled.
const MAX_PORTALS: usize = 250;

impl Description {
    /// Frames that a machine with so many CPUs must have: the reserve and all accounts.
    pub fn frames_needed(&self, cpus: u32) -> u64 {
        let account = |component: &ComponentText| {
            frames_of_all(component.account.value, component.special.value, cpus)
                + u64::from(component.vault.unwrap_or(0))
        };
        let accounts: u64 = self.components.iter().map(account).sum();
        self.reserved_frames + FRAMES_OF_A_CPU * u64::from(cpus.saturating_sub(1)) + accounts
    }

    /// Checks everything and finds the start order.
    pub fn check(&self, surroundings: &dyn Surroundings) -> Result<Plan<'_>, Vec<Problem>> {
        let mut checker = Checker { description: self, surroundings, problems: Vec::new() };
        checker.names();
        checker.required();
        checker.binaries();
        checker.priorities_and_restarts();
        checker.services();
        checker.portals();
        checker.compartments();
        checker.flows();
        checker.devices();
        checker.specials();
        checker.accounts();
        checker.files_and_shell();
        let order = checker.start_order();
        let mut problems = checker.problems;
        if problems.is_empty() {
            return Ok(Plan { description: self, order });
        }
        problems.sort();
        Err(problems)
    }
}

/// The form of names.
const NAME_REMEDY: &str = "names have 1 to 16 letters, digits, `-`, `_` or `.`, and do not begin with a dot";

fn is_name(name: &str) -> bool {
    let fits = (1..=MAX_NAME_BYTES).contains(&name.len());
    let plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte));
    fits && plain && !name.starts_with('.')
}

impl ComponentText {
    /// Its first level in the send label for a compartment, if that is not the default.
    fn level(&self, compartment: &str) -> Option<u64> {
        let named = || self.levels.iter().find(|level| level.compartment.value == compartment).map(|level| level.level);
        if self.trusted { Some(level::STAR) } else { named() }
    }
}

struct Checker<'a> {
    description: &'a Description,
    surroundings: &'a dyn Surroundings,
    problems: Vec<Problem>,
}

impl<'a> Checker<'a> {
    fn problem(&mut self, line: usize, cause: impl Into<String>, remedy: impl Into<String>) {
        self.problems.push(Problem { line, cause: cause.into(), remedy: remedy.into() });
    }

    fn find(&self, name: &str) -> Option<&'a ComponentText> {
        self.description.components.iter().find(|component| component.name.value == name)
    }

    fn names(&mut self) {
        let description = self.description;
        if let Some(extra) = description.components.get(MAX_COMPONENTS) {
            let cause = format!("more than {MAX_COMPONENTS} components");
            self.problem(extra.name.line, cause, "split the system, or join components");
        }
        self.unique("component", description.components.iter().map(|component| &component.name));
        self.unique("program", description.programs.iter().map(|program| &program.name));
        self.unique("compartment", description.compartments.iter());
    }

    fn unique(&mut self, what: &str, names: impl Iterator<Item = &'a At<String>>) {
        let mut lines = BTreeMap::new();
        for name in names {
            if !is_name(&name.value) {
                self.problem(name.line, format!("\"{}\" cannot name a {what}", name.value), NAME_REMEDY);
            } else if let Some(first) = lines.insert(name.value.as_str(), name.line) {
                let cause = format!("a second {what} is called `{}`; the first stands in line {first}", name.value);
                self.problem(name.line, cause, "rename or remove one of them");
            }
        }
    }

    fn required(&mut self) {
        for (name, special) in REQUIRED {
            match self.find(name) {
                None => {
                    let remedy = format!("add [[component]] with name = \"{name}\", special = \"{}\"", special.text());
                    self.problem(0, format!("there is no component `{name}`, and nothing runs without it"), remedy);
                }
                Some(component) if component.special.value != special => {
                    let cause = format!("`{name}` is not given special = \"{}\"", special.text());
                    let remedy = format!("write special = \"{}\": `{name}` cannot work without it", special.text());
                    self.problem(component.special.line, cause, remedy);
                }
                Some(_) => {}
            }
        }
    }

    fn binaries(&mut self) {
        let description = self.description;
        for component in &description.components {
            let binary = &component.binary;
            if !self.surroundings.has_component(&binary.value) {
                let cause =
                    format!("component `{}`: there is no crate components/{}", component.name.value, binary.value);
                let remedy = format!("make one with `./x new component {}`, or correct `binary`", binary.value);
                self.problem(binary.line, cause, remedy);
            }
        }
        for program in &description.programs {
            let binary = &program.binary;
            if !self.surroundings.has_program(&binary.value) {
                let cause = format!("program `{}`: there is no crate apps/{}", program.name.value, binary.value);
                self.problem(binary.line, cause, "add the crate, or correct `binary`");
            }
        }
    }

    fn priorities_and_restarts(&mut self) {
        let mut shares = self.description.components.iter().filter(|component| component.share.value != 0);
        if let Some(first) = shares.next()
            && let Some(other) = shares.find(|other| other.share.value != first.share.value)
        {
            let (name, share) = (&other.name.value, other.share.value);
            let cause =
                format!("component `{name}` has share {share}, and `{}` has {}", first.name.value, first.share.value);
            self.problem(other.share.line, cause, "all that have a share have it together: write the same number");
        }
        for component in &self.description.components {
            let (priority, most) = (&component.priority, &component.max_priority);
            if priority.value > most.value {
                let cause = format!(
                    "component `{}` has priority {}, above its max_priority {}",
                    component.name.value, priority.value, most.value
                );
                self.problem(priority.line, cause, "lower `priority` or raise `max_priority`");
            }
            if let Some(maker) = self.find("roottask")
                && component.max_priority.value > maker.max_priority.value
            {
                let (name, most, own) = (&component.name.value, most.value, maker.max_priority.value);
                let cause = format!("`roottask` has max_priority {own}, and starts `{name}`, which has {most}");
                let remedy = format!("write max_priority = {most}, or more, for `roottask`");
                self.problem(maker.max_priority.line, cause, remedy);
            }
            // sigma0 and roottask hold what a restart would need.
            let name = component.name.value.as_str();
            if matches!(name, "sigma0" | "roottask") && component.restart.value != Restart::Reboot {
                let cause = format!("`{name}` has restart = \"{}\"", component.restart.value.text());
                let remedy = format!("write restart = \"reboot\": nobody can start another `{name}`");
                self.problem(component.restart.line, cause, remedy);
            }
            if let Some(cpus) = &component.cpus
                && REQUIRED.iter().any(|(required, _)| *required == name)
            {
                let cause = format!("`{name}` is given CPUs, but it is needed on all of them");
                self.problem(cpus.line, cause, "remove `cpus`");
            }
            if component.arguments.len() > 64 || component.arguments.iter().any(|text| text.len() > 255) {
                let cause = format!("component `{name}` has too many or too long arguments");
                self.problem(component.name.line, cause, "at most 64 arguments of at most 255 bytes");
            }
        }
    }

    /// The names of services: each has one owner.
    fn services(&mut self) {
        let mut owners = BTreeMap::new();
        for component in &self.description.components {
            let name = component.name.value.as_str();
            for (place, service) in component.services.iter().enumerate() {
                let text = service.value.as_str();
                if component.services[..place].iter().any(|other| other.value == text) {
                    let cause = format!("component `{name}` names the service `{text}` twice");
                    self.problem(service.line, cause, "leave one of them");
                    continue;
                }
                // `names` says what is wrong with the name of a component.
                let is_new = text != name;
                if is_new && !is_name(text) {
                    let cause = format!("component `{name}`: \"{text}\" cannot name a service");
                    self.problem(service.line, cause, NAME_REMEDY);
                } else if let Some(other) = owners.insert(text, name) {
                    if is_new || other != name {
                        let cause = format!("the service `{text}` is given to `{other}` and to `{name}`");
                        self.problem(service.line, cause, "a name has one owner: rename or remove one of them");
                    }
                } else if owners.len() == MAX_SERVICES + 1 {
                    let cause = format!("more than {MAX_SERVICES} names of services");
                    let remedy = "write services = [] where a component offers none; its own name counts otherwise";
                    self.problem(service.line, cause, remedy);
                }
            }
            for private in &component.private {
                if component.services.iter().all(|service| service.value != private.value) {
                    let cause = format!("component `{name}`: it has no service called `{}`", private.value);
                    let remedy =
                        "correct the name, or add it to `services`: `private` says which of them `names` does not give";
                    self.problem(private.line, cause, remedy);
                }
            }
        }
    }

    fn portals(&mut self) {
        for component in &self.description.components {
            let name = &component.name.value;
            let mut seen = BTreeMap::new();
            for portal in &component.portals {
                let (target, service) = &portal.value;
                if target == name {
                    let cause = format!("component `{name}` asks for a portal to itself");
                    self.problem(portal.line, cause, "call the function instead");
                } else if self.find(target).is_none() {
                    let cause = format!("component `{name}` asks for a portal to `{target}`, which is no component");
                    let owner = self
                        .description
                        .components
                        .iter()
                        .find(|component| component.services.iter().any(|service| service.value == *target));
                    let remedy = match owner {
                        Some(owner) => {
                            format!("`{target}` is a service of `{0}`: write \"{0}/{target}\"", owner.name.value)
                        }
                        None => format!("add [[component]] `{target}`, or correct the name"),
                    };
                    self.problem(portal.line, cause, remedy);
                } else if self.find(target).is_some_and(|owner| owner.services.iter().all(|own| own.value != *service))
                {
                    let cause = format!("component `{name}`: `{target}` has no service called `{service}`");
                    let remedy = format!("correct the name, or add it to `services` of `{target}`");
                    self.problem(portal.line, cause, remedy);
                }
                if seen.insert(portal.value.clone(), portal.line).is_some() {
                    let cause = format!("component `{name}` asks twice for a portal to `{target}/{service}`");
                    self.problem(portal.line, cause, "one portal can be used by all threads: remove the other");
                }
            }
            if let Some(extra) = component.portals.get(MAX_PORTALS) {
                let count = component.portals.len();
                let cause = format!("component `{name}` asks for {count} portals, at most {MAX_PORTALS} can be");
                self.problem(extra.line, cause, "join services, or reach some of them by `names`");
            }
        }
    }

    /// The compartments that are declared, and those that components and programs have.
    fn compartments(&mut self) {
        let all = &self.description.compartments;
        if let Some(extra) = all.get(MAX_COMPARTMENTS) {
            self.problem(extra.line, format!("more than {MAX_COMPARTMENTS} compartments"), "join compartments");
        }
        for (reserved, what) in
            [(SYSTEM_COMPARTMENT, "the system's own files"), (ADMIN_COMPARTMENT, "what rules the machine")]
        {
            if let Some(own) = all.iter().find(|compartment| compartment.value == reserved) {
                self.problem(own.line, format!("`{reserved}` is the compartment of {what}"), "rename it");
            }
        }
        for component in &self.description.components {
            self.levels(&format!("component `{}`", component.name.value), &component.levels);
            if let Some(level) = component.levels.first().filter(|_| component.trusted) {
                let cause = format!("component `{}` is trusted, and so owns all compartments", component.name.value);
                let remedy = format!("remove `{}`, or `trusted`", level.key);
                self.problem(level.compartment.line, cause, remedy);
            }
            self.placed(component);
        }
        for program in &self.description.programs {
            self.levels(&format!("program `{}`", program.name.value), &program.levels);
        }
        let programs = &self.description.programs;
        if let Some((program, level)) = programs.iter().find_map(|program| Some((program, program.levels.first()?))) {
            let cause = format!("program `{}` has `{}`", program.name.value, level.key);
            match self.description.shell.as_ref().map(|shell| self.find(&shell.value)) {
                None => {
                    let remedy = "add shell = \"…\", the name of a component, to [boot]";
                    self.problem(level.compartment.line, format!("{cause}, but no shell starts it"), remedy);
                }
                Some(Some(shell)) if !shell.trusted => {
                    let cause =
                        format!("{cause}, but the shell `{}` owns nothing that it could give", shell.name.value);
                    let remedy = format!("add trusted = true to `{}`", shell.name.value);
                    self.problem(level.compartment.line, cause, remedy);
                }
                Some(_) => {}
            }
        }
    }

    /// Compartments that do not go together with what else a component has.
    fn placed(&mut self, component: &ComponentText) {
        let name = &component.name.value;
        if let Some(level) = component.levels.first()
            && matches!(name.as_str(), "sigma0" | "roottask")
        {
            let cause = format!("`{name}` has `{}`, and is started before there are compartments", level.key);
            self.problem(level.compartment.line, cause, format!("remove `{}`", level.key));
        }
        let is_bound = |level: &&Level| matches!(level.level, level::THREE | level::ZERO);
        if let Some(level) = component.levels.iter().find(is_bound).filter(|_| component.vault.is_some()) {
            let cause = format!("component `{name}` has `{}` and a vault, whose pages it must not write", level.key);
            self.problem(level.compartment.line, cause, "remove `vault`, or give it `owns` instead");
        }
        let is_tainted = |level: &&Level| matches!(level.level, level::THREE | level::ONE);
        if let Some(level) = component.levels.iter().find(is_tainted)
            && let Some(service) = component.services.get(1)
        {
            let cause =
                format!("component `{name}` has `{}` and several services: the order would tell a secret", level.key);
            self.problem(service.line, cause, "leave one of its services");
        }
    }

    /// The compartments of one component or program.
    fn levels(&mut self, who: &str, levels: &[Level]) {
        let mut known: Vec<&str> = self.description.compartments.iter().map(|known| known.value.as_str()).collect();
        known.push(ADMIN_COMPARTMENT);
        for (place, Level { compartment: At { value: name, line }, key, level }) in levels.iter().enumerate() {
            if !known.contains(&name.as_str()) {
                let remedy = match nearest(name, &known) {
                    Some(meant) => format!("did you mean `{meant}`?"),
                    None => format!("add [[compartment]] with name = \"{name}\", or correct the name"),
                };
                self.problem(*line, format!("{who}: `{key}` names `{name}`, which is no compartment"), remedy);
            }
            if name == ADMIN_COMPARTMENT && matches!(*level, level::ONE | level::THREE) {
                let cause = format!("{who}: `{key}` names `{name}`, in which there is nothing to read");
                self.problem(*line, cause, "give it `privileges` or `owns` instead");
            }
            if let Some(first) = levels[..place].iter().find(|first| first.compartment.value == *name) {
                let cause = format!("{who} has `{name}` in `{}` and in `{key}`", first.key);
                self.problem(*line, cause, "leave one of them");
            }
        }
        if let Some(extra) = levels.get(MAX_LEVELS) {
            let cause = format!("{who} has {} compartments, at most {MAX_LEVELS} can be", levels.len());
            self.problem(extra.compartment.line, cause, "split it, or join compartments");
        }
    }

    /// Portals by which calls are refused, or end a privilege: data flows both ways in a call.
    fn flows(&mut self) {
        for holder in &self.description.components {
            for portal in &holder.portals {
                let Some(target) = self.find(&portal.value.0) else { continue };
                let declared = self.description.compartments.iter().map(|compartment| compartment.value.as_str());
                for name in declared.chain([ADMIN_COMPARTMENT]) {
                    let [from, to] = [holder, target].map(|component| component.level(name));
                    // The callee would be tainted by the caller; the caller is raised if it may be.
                    let is_taint = |level| level == Some(level::THREE);
                    let is_privilege = |level| level == Some(level::ZERO);
                    let keeps_it = |level| matches!(level, Some(level::ZERO | level::STAR));
                    let (who, other, why) = if is_taint(from) && !is_taint(to) && to != Some(level::STAR) {
                        (holder, target, "is tainted by")
                    } else if is_taint(to) && !matches!(from, Some(level::THREE | level::STAR | level::ONE)) {
                        (target, holder, "is tainted by")
                    } else if is_privilege(from) && !keeps_it(to) {
                        (holder, target, "would lose its privilege for")
                    } else if is_privilege(to) && !keeps_it(from) {
                        (target, holder, "would lose its privilege for")
                    } else {
                        continue;
                    };
                    let (who, other) = (&who.name.value, &other.name.value);
                    let cause = format!(
                        "component `{}`: calls to `{}` do not work: `{who}` {why} `{name}`, which `{other}` does not have",
                        holder.name.value, target.name.value
                    );
                    let remedy =
                        format!("give `{other}` the compartment in the same way, or `owns`; or remove the portal");
                    self.problem(portal.line, cause, remedy);
                    // One is enough to refuse them.
                    break;
                }
            }
        }
    }

    fn devices(&mut self) {
        let mut lines: BTreeMap<u8, &str> = BTreeMap::new();
        let mut ranges: Vec<(u32, u32, &str)> = Vec::new();
        for component in &self.description.components {
            let name = component.name.value.as_str();
            if let Some(irq) = &component.interrupt
                && let Some(other) = lines.insert(irq.value, name)
            {
                let cause = format!("interrupt line {} is given to `{other}` and to `{name}`", irq.value);
                self.problem(irq.line, cause, "a line has one owner: remove one");
            }
            if let Some(ports) = &component.io_ports {
                let (first, count) = (u32::from(ports.value.0), u32::from(ports.value.1));
                let end = first + count;
                if let Some((_, _, other)) = ranges.iter().find(|(start, stop, _)| first < *stop && *start < end) {
                    let cause = format!("ports {first:#x} to {:#x} of `{name}` belong to `{other}` too", end - 1);
                    self.problem(ports.line, cause, "a port has one owner: shrink or remove one range");
                }
                ranges.push((first, end, name));
            }
        }
    }

    fn specials(&mut self) {
        let mut owners = BTreeMap::new();
        for component in &self.description.components {
            let (special, name) = (&component.special, component.name.value.as_str());
            // Several may hold the machine: the one that starts programs, the one that gives devices to drivers, the one that reports.
            if matches!(special.value, Special::None | Special::Machine | Special::Inspect) {
                continue;
            }
            let text = special.value.text();
            if let Some(other) = owners.insert(text, name) {
                let cause = format!("special = \"{text}\" is given to `{other}` and to `{name}`");
                self.problem(special.line, cause, "there is one: remove it from one of them");
            }
        }
    }

    fn accounts(&mut self) {
        let description = self.description;
        let total = self.surroundings.memory_frames().unwrap_or(description.memory_frames.value);
        let mut percent = 0;
        for component in &description.components {
            if component.vault_rest.value != 0 && component.vault.is_none() {
                let cause = format!("`{}` has `vault_rest`, but no vault", component.name.value);
                self.problem(component.vault_rest.line, cause, "add vault = \"256K\", or remove `vault_rest`");
            }
            if component.rest.value != 0 && component.special.value == Special::Scheduler {
                let cause = format!("`{}` has `rest`, and an account for each CPU", component.name.value);
                self.problem(component.rest.line, cause, "remove `rest`: it gets what its notes need");
            }
            for rest in [&component.rest, &component.vault_rest].into_iter().filter(|rest| rest.value != 0) {
                percent += u32::from(rest.value);
                if percent > 100 {
                    let cause =
                        format!("`rest` and `vault_rest` of the components up to here sum up to {percent} percent");
                    self.problem(
                        rest.line,
                        cause,
                        "of what the machine has beyond all accounts give 100 percent at most",
                    );
                }
            }
        }
        let cpus = self.surroundings.cpus();
        let sum = description.frames_needed(cpus);
        if sum > total {
            let cause = format!(
                "with {cpus} CPU{} the accounts and the reserve sum up to {sum} frames ({} KiB), but the machine has \
                 {total} ({} KiB)",
                if cpus == 1 { "" } else { "s" },
                sum * 4,
                total * 4
            );
            let remedy = format!(
                "make accounts smaller, or the memory {}M or larger (`size` here, `--memory` when running)",
                sum.div_ceil(256)
            );
            self.problem(description.memory_frames.line, cause, remedy);
        }
    }

    fn files_and_shell(&mut self) {
        let description = self.description;
        for (path, source) in &description.files {
            if path.value.split('/').any(|part| matches!(part, "" | "." | "..")) {
                let cause = format!("\"{}\" cannot be a path in the boot archive", path.value);
                self.problem(path.line, cause, "write a path without leading slash, `.` and `..`, as \"etc/motd\"");
            } else if path.value == "boot" || path.value.starts_with("boot/") {
                let cause = format!("\"{}\" lies in boot/, which the build fills", path.value);
                self.problem(path.line, cause, "choose another folder, as \"etc/motd\"");
            }
            if !self.surroundings.has_file(&source.value) {
                let cause = format!("there is no file \"{}\" beside this description", source.value);
                self.problem(source.line, cause, "add it, or correct the path");
            }
        }
        if let (None, Some(run)) = (&description.shell, description.run.first()) {
            let cause = "`run` has commands, but no shell runs them".to_string();
            self.problem(run.line, cause, "add shell = \"…\", the name of a component".to_string());
        }
        if let Some(shell) = &description.shell
            && self.find(&shell.value).is_none()
        {
            let cause = format!("the shell is to be `{}`, which is no component", shell.value);
            self.problem(shell.line, cause, format!("add [[component]] `{}`, or correct the name", shell.value));
        }
    }

    /// Places of the components that must run before `component` starts.
    fn dependencies(&self, component: &ComponentText) -> Vec<usize> {
        let position = |name: &str| self.description.components.iter().position(|other| other.name.value == name);
        let name = component.name.value.as_str();
        let mut before: Vec<usize> = component.portals.iter().filter_map(|portal| position(&portal.value.0)).collect();
        let required = REQUIRED.iter().map(|(required, _)| *required).take_while(|required| *required != name);
        before.extend(required.filter_map(position));
        if name != NAMES && REQUIRED.iter().all(|(required, _)| *required != name) {
            before.extend(position(NAMES));
        }
        before
    }

    fn start_order(&mut self) -> Vec<usize> {
        let components = &self.description.components;
        let dependencies: Vec<Vec<usize>> = components.iter().map(|component| self.dependencies(component)).collect();
        let mut order: Vec<usize> = Vec::new();
        while order.len() < components.len() {
            let ready = (0..components.len()).find(|&candidate| {
                !order.contains(&candidate) && dependencies[candidate].iter().all(|before| order.contains(before))
            });
            match ready {
                Some(next) => order.push(next),
                None => {
                    self.report_cycle(&dependencies, &order);
                    break;
                }
            }
        }
        order
    }

    /// Some component that cannot start leads round to itself: walk until one is met again.
    fn report_cycle(&mut self, dependencies: &[Vec<usize>], started: &[usize]) {
        let waiting = |candidate: &usize| !started.contains(candidate);
        let Some(mut at) = (0..dependencies.len()).find(waiting) else { return };
        let mut path = Vec::new();
        while !path.contains(&at) {
            path.push(at);
            // A component that waits has an unstarted dependency; a portal to itself is reported already.
            match dependencies[at].iter().copied().find(|before| waiting(before) && *before != at) {
                Some(next) => at = next,
                None => return,
            }
        }
        let first = path.iter().position(|&other| other == at).unwrap_or(0);
        let components = &self.description.components;
        let mut names: Vec<&str> = path[first..].iter().map(|&place| components[place].name.value.as_str()).collect();
        names.push(&components[at].name.value);
        let cause = format!("none of these can start first: {}", names.join(" waits for "));
        let remedy =
            "remove a portal of the circle and open it by name later; all wait for sigma0, roottask, sched and names";
        self.problem(components[at].name.line, cause, remedy.to_string());
    }
}
