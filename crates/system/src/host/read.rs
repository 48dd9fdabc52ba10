//! From text to a [`Description`]: each value has the right type and range, each key is known.

use super::keys::{Keys, Reader, Value};
use super::{At, ComponentText, Description, Level, Problem, ProgramText, Surroundings};
use crate::{INTERRUPT_LINES, MAX_SLICE, Restart, Special};
use abi::boot::LABELS_OFF;
use abi::level;
use std::format;
use std::string::{String, ToString};
use std::vec;
use std::vec::Vec;
use toml::de::{DeTable, DeValue};

/// The line of what could not be read: its problem has another one already.
const UNREAD: usize = usize::MAX;
/// Frames reserved for nucleus and boot archive when the description does not say.
const DEFAULT_RESERVE: u64 = 1024;
/// Restarts per minute when the description does not say.
const DEFAULT_RESTARTS: u8 = 10;
/// Milliseconds of the longest slice of a component that names none.
const DEFAULT_SLICE: u16 = 10;

impl Description {
    /// Reads the text of a description.
    pub fn read(text: &str) -> Result<Self, Vec<Problem>> {
        match attempt(text) {
            (Some(description), problems) if problems.is_empty() => Ok(description),
            (_, problems) => Err(problems),
        }
    }

    /// All problems of a text: those of reading it, and those of what could be read, with these surroundings.
    pub fn problems(text: &str, surroundings: &dyn Surroundings) -> Vec<Problem> {
        let (description, mut problems) = attempt(text);
        if let Some(Err(more)) = description.as_ref().map(|description| description.check(surroundings)) {
            // A line with a problem of reading gets no second one.
            let lines: Vec<usize> = problems.iter().map(|problem| problem.line).chain([UNREAD]).collect();
            problems.extend(more.into_iter().filter(|problem| !lines.contains(&problem.line)));
            problems.sort();
        }
        problems
    }
}

/// Errors of syntax that are shown: one makes others.
const MOST_ERRORS: usize = 3;

/// How the parser says that a key stands twice in a table.
const TWICE: &str = "duplicate key";

/// Reads as much of a text as possible. Problems in the rest are collected.
fn attempt(text: &str) -> (Option<Description>, Vec<Problem>) {
    let mut reader = Reader { text, problems: Vec::new() };
    let (table, errors) = DeTable::parse_recoverable(text);
    if !errors.is_empty() {
        // The content of a line that cannot be read is anybody's guess, and so is what would be wrong with it.
        let key = |error: &toml::de::Error| match (error.message(), error.span().and_then(|span| text.get(span))) {
            (TWICE, Some(key)) => format!(" `{key}`"),
            _ => String::new(),
        };
        let problem = |error: &toml::de::Error| Problem {
            line: error.span().map_or(0, |span| reader.line(span.start)),
            cause: format!("not TOML: {}{}", error.message().lines().collect::<Vec<_>>().join(", "), key(error)),
            remedy: match error.message() {
                TWICE => "leave one of them".into(),
                _ => "a bracket or a quotation mark is missing here or above, or see https://toml.io for the syntax"
                    .into(),
            },
        };
        let (twice, mut problems): (Vec<_>, Vec<_>) = errors.iter().partition(|error| error.message() == TWICE);
        // After a table whose name cannot be read, the keys of the next seem to be there twice.
        if problems.is_empty() {
            problems = twice;
        }
        let mut problems: Vec<Problem> = problems.into_iter().map(problem).collect();
        problems.sort();
        let more = problems.len().saturating_sub(MOST_ERRORS);
        problems.truncate(MOST_ERRORS);
        if let Some(last) = problems.last_mut().filter(|_| more > 0) {
            last.remedy += &format!("; {more} more, which may follow from these");
        }
        return (None, problems);
    }
    let description = description(&mut reader, table.get_ref());
    reader.problems.sort();
    (Some(description), reader.problems)
}

fn description(reader: &mut Reader<'_>, table: &DeTable<'_>) -> Description {
    let mut keys = Keys::new(table, "a description", 0);
    let memory = keys.require(reader, "memory", "add [memory] with size = \"64M\"");
    let components = keys.require(reader, "component", "add [[component]] tables, sigma0 first");
    let programs = keys.take("program");
    let compartments = keys.take("compartment");
    let files = keys.take("files");
    let boot = keys.take("boot");
    keys.finish(reader);

    let memory = memory.and_then(|value| memory_of(reader, value));
    let components = list(reader, components, "component", component);
    let programs = list(reader, programs, "program", program);
    let compartments = list(reader, compartments, "compartment", compartment);
    let files = files.map(|value| files_of(reader, value)).unwrap_or_default();
    let Boot { shell, run, exec, command_line } = boot.map(|value| boot_of(reader, value)).unwrap_or_default();
    let (memory_frames, reserved_frames) = memory.unwrap_or((At { value: u64::MAX, line: UNREAD }, DEFAULT_RESERVE));
    Description {
        memory_frames,
        reserved_frames,
        compartments,
        components,
        programs,
        files,
        shell,
        run,
        exec,
        command_line,
    }
}

/// The tables of a `[[key]]` list that could be read.
fn list<T>(
    reader: &mut Reader<'_>,
    value: Option<&Value<'_>>,
    key: &str,
    read: impl Fn(&mut Reader<'_>, &Value<'_>) -> Option<T>,
) -> Vec<T> {
    let Some(value) = value else { return Vec::new() };
    let Some(array) = reader.array(value, key, &format!("[[{key}]] tables")) else { return Vec::new() };
    array.iter().filter_map(|item| read(reader, item)).collect()
}

fn memory_of(reader: &mut Reader<'_>, value: &Value<'_>) -> Option<(At<u64>, u64)> {
    let mut keys = Keys::of(reader, value, "[memory]")?;
    let size = keys.require(reader, "size", "write size = \"64M\"");
    let size = size.and_then(|value| reader.frames(value, "size"));
    let reserve = keys.take("reserve").map(|value| reader.frames(value, "reserve"));
    keys.finish(reader);
    Some((size?, reserve.map_or(Some(DEFAULT_RESERVE), |frames| frames.map(|frames| frames.value))?))
}

fn files_of(reader: &mut Reader<'_>, value: &Value<'_>) -> Vec<(At<String>, At<String>)> {
    let DeValue::Table(table) = value.get_ref() else {
        reader.wrong_type(value, "files", "a table: \"path in the archive\" = \"path on the host\"");
        return Vec::new();
    };
    let mut files = Vec::new();
    for (key, value) in table {
        let path = At { value: key.get_ref().to_string(), line: reader.line(key.span().start) };
        if let Some(source) = reader.text(value, &path.value, "the path of a file or folder beside this description") {
            files.push((path, source));
        }
    }
    files
}

#[derive(Default)]
struct Boot {
    shell: Option<At<String>>,
    run: Vec<At<String>>,
    exec: Option<String>,
    command_line: String,
}

fn boot_of(reader: &mut Reader<'_>, value: &Value<'_>) -> Boot {
    let Some(mut keys) = Keys::of(reader, value, "[boot]") else { return Boot::default() };
    let mut text = |keys: &mut Keys<'_, '_>, key, wanted: &str| {
        let value = keys.take(key)?;
        reader.text(value, key, wanted)
    };
    let shell = text(&mut keys, "shell", "the name of a component");
    let exec = text(&mut keys, "exec", "commands for the shell").map(|text| text.value);
    let command_line = text(&mut keys, "command_line", "words for the nucleus").map(|text| text.value);
    let labels = text(&mut keys, "labels", "\"on\" or \"off\"");
    let run = texts(reader, keys.take("run"), "run");
    keys.finish(reader);
    let mut command_line = command_line.unwrap_or_default();
    match labels.as_ref().map(|labels| (labels.value.as_str(), labels.line)) {
        None | Some(("on", _)) => {}
        Some(("off", _)) => command_line = format!("{command_line} {LABELS_OFF}").trim_start().to_string(),
        Some((other, line)) => reader.problem(line, format!("`labels` is \"{other}\""), "write \"on\" or \"off\""),
    }
    Boot { shell, run, exec, command_line }
}

fn component(reader: &mut Reader<'_>, value: &Value<'_>) -> Option<ComponentText> {
    let mut keys = Keys::of(reader, value, "[[component]]")?;
    let line = keys.line;
    let name = name(reader, &mut keys);
    let binary = keys.take("binary");
    let binary = binary.map(|value| reader.text(value, "binary", "the name of a crate in components/"));
    let account = keys.require(reader, "account", "write account = \"512K\"");
    let account = account.and_then(|value| reader.frames(value, "account"));
    let most = abi::PRIORITIES as u64 - 1;
    let mut byte = |keys: &mut Keys<'_, '_>, key, default: u8, most: u64| {
        let Some(value) = keys.take(key) else { return Some(At { value: default, line }) };
        reader.number(value, key, 0, most).map(|number| At { value: number.value as u8, line: number.line })
    };
    let priority = byte(&mut keys, "priority", 16, most);
    let default = priority.as_ref().map_or(0, |priority| priority.value);
    let share = byte(&mut keys, "share", 0, 100);
    let [rest, vault_rest] = ["rest", "vault_rest"].map(|key| byte(&mut keys, key, 0, 100));
    let max_priority = byte(&mut keys, "max_priority", default, most);
    let restarts = byte(&mut keys, "restarts_per_minute", DEFAULT_RESTARTS, 250);
    let mut number = |keys: &mut Keys<'_, '_>, key, default: u16, least: u64, most: u64| {
        let Some(value) = keys.take(key) else { return Some(default) };
        reader.number(value, key, least, most).map(|number| number.value as u16)
    };
    let max_slice = number(&mut keys, "max_slice", DEFAULT_SLICE, 1, MAX_SLICE.into());
    let threads = number(&mut keys, "threads", 0, 1, abi::MAX_THREADS as u64 - 1);
    let mut flag = |keys: &mut Keys<'_, '_>, key, default| match keys.take(key) {
        Some(value) => reader.boolean(value, key),
        None => Some(default),
    };
    let (fpu, trusted) = (flag(&mut keys, "fpu", false), flag(&mut keys, "trusted", false));
    let (waits, archive) = (flag(&mut keys, "waits", true), flag(&mut keys, "archive", false));
    let special = match keys.take("special") {
        Some(value) => reader.choice(value, "special", &Special::ALL.map(|special| (special.text(), special))),
        None => Some(At { value: Special::None, line }),
    };
    let restart = keys.require(reader, "restart", "write restart = \"always\", \"never\" or \"reboot\"");
    let restart = restart
        .and_then(|value| reader.choice(value, "restart", &Restart::ALL.map(|restart| (restart.text(), restart))));
    let (interrupt, io_ports, compatible) =
        keys.take("devices").map(|value| devices(reader, value)).unwrap_or_default();
    let cpus = keys.take("cpus").map(|value| cpus(reader, value));
    let vault = keys.take("vault").map(|value| reader.frames(value, "vault"));
    let portals = texts(reader, keys.take("portals"), "portals").into_iter().map(portal).collect();
    let features = texts(reader, keys.take("features"), "features").into_iter().map(|text| text.value).collect();
    let arguments = texts(reader, keys.take("args"), "args").into_iter().map(|text| text.value).collect();
    let services = keys.take("services").map(|value| texts(reader, Some(value), "services"));
    let private = texts(reader, keys.take("private"), "private");
    let levels = levels(reader, &mut keys);
    keys.finish(reader);
    let name = name?;
    /// In place of what is there and cannot be read.
    fn unread<T>(value: T) -> At<T> {
        At { value, line: UNREAD }
    }
    Some(ComponentText {
        services: services.unwrap_or_else(|| vec![name.clone()]),
        private,
        waits: waits.unwrap_or(true),
        binary: binary.flatten().unwrap_or_else(|| name.clone()),
        name,
        features,
        account: account.map_or_else(|| unread(1), |frames| At { value: frames.value as u32, line: frames.line }),
        rest: rest.unwrap_or_else(|| unread(0)),
        vault_rest: vault_rest.unwrap_or_else(|| unread(0)),
        max_priority: max_priority.unwrap_or_else(|| unread(default)),
        priority: priority.unwrap_or_else(|| unread(default)),
        max_slice: max_slice.unwrap_or(DEFAULT_SLICE),
        share: share.unwrap_or_else(|| unread(0)),
        threads: threads.unwrap_or(0),
        fpu: fpu.unwrap_or(false),
        trusted: trusted.unwrap_or(false),
        archive: archive.unwrap_or(false),
        special: special.unwrap_or_else(|| unread(Special::None)),
        restart: restart.unwrap_or_else(|| unread(Restart::Always)),
        restarts_per_minute: restarts.map_or(DEFAULT_RESTARTS, |number| number.value),
        interrupt,
        io_ports,
        compatible,
        portals,
        cpus: cpus.flatten(),
        vault: vault.flatten().map(|frames| frames.value as u32),
        arguments,
        levels,
    })
}

type Devices = (Option<At<u8>>, Option<At<(u16, u16)>>, Option<At<String>>);

fn devices(reader: &mut Reader<'_>, value: &Value<'_>) -> Devices {
    let Some(mut keys) = Keys::of(reader, value, "`devices`") else { return Devices::default() };
    let interrupt = keys.take("irq");
    let interrupt = interrupt.and_then(|value| reader.number(value, "irq", 0, u64::from(INTERRUPT_LINES) - 1));
    let interrupt = interrupt.map(|line| At { value: line.value as u8, line: line.line });
    let ports = keys.take("ports").and_then(|value| ports(reader, value));
    let compatible = keys
        .take("compatible")
        .and_then(|value| reader.text(value, "compatible", "what the device is compatible with"));
    keys.finish(reader);
    (interrupt, ports, compatible)
}

fn ports(reader: &mut Reader<'_>, value: &Value<'_>) -> Option<At<(u16, u16)>> {
    const WANTED: &str = "the first port and how many, as [0x3f8, 8]";
    let line = reader.line(value.span().start);
    let array = reader.array(value, "ports", WANTED)?;
    let [first, count] = array.iter().collect::<Vec<_>>()[..] else {
        reader.problem(line, "`ports` does not have two numbers", format!("write {WANTED}"));
        return None;
    };
    let first = reader.number(first, "ports", 0, 0xffff)?.value;
    let count = reader.number(count, "ports", 1, 0xffff)?.value;
    if first + count > 0x1_0000 {
        let cause = format!("`ports` reaches to port {:#x}", first + count - 1);
        reader.problem(line, cause, "the last port of the machine is 0xffff");
        return None;
    }
    Some(At { value: (first as u16, count as u16), line })
}

/// Numbers of CPUs, as a bit for each.
fn cpus(reader: &mut Reader<'_>, value: &Value<'_>) -> Option<At<u64>> {
    const WANTED: &str = "a list of numbers of CPUs, as [0, 1]";
    let line = reader.line(value.span().start);
    let array = reader.array(value, "cpus", WANTED)?;
    if array.is_empty() {
        reader.problem(line, "`cpus` is empty", format!("write {WANTED}, or leave it out for all"));
        return None;
    }
    let mut cpus = 0;
    for item in array {
        let number = reader.number(item, "cpus", 0, abi::MAX_CPUS as u64 - 1)?;
        if cpus >> number.value & 1 != 0 {
            reader.problem(number.line, format!("`cpus` has CPU {} twice", number.value), "remove one of them");
            return None;
        }
        cpus |= 1 << number.value;
    }
    Some(At { value: cpus, line })
}

fn texts(reader: &mut Reader<'_>, value: Option<&Value<'_>>, key: &str) -> Vec<At<String>> {
    let Some(value) = value else { return Vec::new() };
    let Some(array) = reader.array(value, key, "a list of texts") else { return Vec::new() };
    array.iter().filter_map(|item| reader.text(item, key, "a list of texts")).collect()
}

/// `component/service`, or only `component` for the service of the same name.
fn portal(text: At<String>) -> At<(String, String)> {
    let (component, service) = text.value.split_once('/').unwrap_or((&text.value, &text.value));
    At { value: (component.into(), service.into()), line: text.line }
}

fn program(reader: &mut Reader<'_>, value: &Value<'_>) -> Option<ProgramText> {
    let mut keys = Keys::of(reader, value, "[[program]]")?;
    let name = name(reader, &mut keys);
    let binary = keys.take("binary").map(|value| reader.text(value, "binary", "the name of a crate in apps/"));
    let account = keys.take("account").map(|value| reader.frames(value, "account"));
    let inspect = keys.take("inspect").map_or(Some(false), |value| reader.boolean(value, "inspect"));
    let levels = levels(reader, &mut keys);
    keys.finish(reader);
    let name = name?;
    let account = account.flatten().map_or(0, |frames| frames.value as u32);
    let binary = binary.flatten().unwrap_or_else(|| name.clone());
    Some(ProgramText { binary, name, account, inspect: inspect.unwrap_or(false), levels })
}

/// The `name` of a component, a program or a compartment.
fn name(reader: &mut Reader<'_>, keys: &mut Keys<'_, '_>) -> Option<At<String>> {
    let value = keys.require(reader, "name", "write name = \"…\", 1 to 16 bytes")?;
    reader.text(value, "name", "a text of 1 to 16 bytes")
}

/// The keys that give a compartment, each with the level in the send label.
const LEVELS: [(&str, u64); 4] =
    [("owns", level::STAR), ("privileges", level::ZERO), ("clearance", level::ONE), ("taint", level::THREE)];

fn levels(reader: &mut Reader<'_>, keys: &mut Keys<'_, '_>) -> Vec<Level> {
    let mut all = Vec::new();
    for (key, level) in LEVELS {
        let names = texts(reader, keys.take(key), key);
        all.extend(names.into_iter().map(|compartment| Level { compartment, key, level }));
    }
    all
}

fn compartment(reader: &mut Reader<'_>, value: &Value<'_>) -> Option<At<String>> {
    let mut keys = Keys::of(reader, value, "[[compartment]]")?;
    let name = name(reader, &mut keys);
    keys.finish(reader);
    name
}
