//! Each file of `tests/systems/` holds one mistake, is named after it, and ends with the error it gets
//! (lines that begin with `#= `). `UPDATE_GOLDEN=1` writes the errors again: read them before committing.
#![forbid(unsafe_code)]

use std::fs;
use std::path::{Path, PathBuf};
use system::host::{Description, Problem, Surroundings};

/// A tree in which some crates and one file exist, and nothing else.
struct Tree;

impl Surroundings for Tree {
    fn has_component(&self, name: &str) -> bool {
        ["sigma0", "roottask", "sched", "names", "console", "ramfs", "proc"].contains(&name)
    }
    fn has_program(&self, name: &str) -> bool {
        ["ls", "cat"].contains(&name)
    }
    fn has_file(&self, path: &str) -> bool {
        path == "files/motd"
    }
    fn memory_frames(&self) -> Option<u64> {
        None
    }
    fn cpus(&self) -> u32 {
        1
    }
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/systems")
}

fn problems(text: &str) -> Vec<Problem> {
    let problems = Description::problems(text, &Tree);
    if let Err(unread) = Description::read(text) {
        assert!(
            unread.iter().all(|problem| problems.contains(problem)),
            "{unread:?} is not all reported: {problems:?}"
        );
    }
    problems
}

#[test]
fn each_mistake_gets_its_error() {
    let update = std::env::var_os("UPDATE_GOLDEN").is_some();
    let mut count = 0;
    let mut wrong = Vec::new();
    for entry in fs::read_dir(folder()).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_string();
        let text = fs::read_to_string(&path).unwrap();
        let start = text.find("\n#= ").map_or(text.len(), |at| at + 1);
        let (written, expected) = text.split_at(start);
        let found = problems(written);
        assert_eq!(found.is_empty(), name == "good.toml", "{name}: {found:?}");
        let lines = found.iter().flat_map(|problem| problem.text(&name).lines().map(String::from).collect::<Vec<_>>());
        let found: String = lines.map(|line| format!("#= {line}\n")).collect();
        count += 1;
        if found != expected {
            if update {
                fs::write(&path, format!("{}\n{found}", written.trim_end_matches('\n').to_string() + "\n")).unwrap();
            }
            wrong.push(format!("{name}\nexpected\n{expected}found\n{found}"));
        }
    }
    assert!(count > 40, "only {count} files found");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn more_memory_or_less_changes_the_verdict() {
    struct Sized(u64, u32);
    impl Surroundings for Sized {
        fn has_component(&self, _: &str) -> bool {
            true
        }
        fn has_program(&self, _: &str) -> bool {
            true
        }
        fn has_file(&self, _: &str) -> bool {
            true
        }
        fn memory_frames(&self) -> Option<u64> {
            Some(self.0)
        }
        fn cpus(&self) -> u32 {
            self.1
        }
    }
    let text = fs::read_to_string(folder().join("good.toml")).unwrap();
    let description = Description::read(&text).unwrap();
    // 1,024 reserved, 64 + 256 + 64 + 64 in accounts, and 32 for each of two schedulers.
    assert!(description.check(&Sized(1536, 1)).is_ok());
    assert!(description.check(&Sized(1535, 1)).is_err());
    // A further CPU has a scheduler, and costs the nucleus 6.
    assert!(description.check(&Sized(1536 + 63 * 38, 64)).is_ok());
    let problems = description.check(&Sized(1535 + 63 * 38, 64)).unwrap_err();
    assert!(problems[0].cause.contains("with 64 CPUs the accounts and the reserve sum up to 3930 frames"));
    assert!(problems[0].remedy.contains("the memory 16M or larger"));
}
