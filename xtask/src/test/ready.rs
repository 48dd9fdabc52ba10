//! No ready list exists in the nucleus: only `sched` knows which threads could run.
//!
//! A list of ready threads needs threads that something holds: a link from thread to thread, an array, a
//! queue. So every field and every static of the nucleus whose type holds threads or queues is listed
//! here with what it holds. A new one turns this test red, and its author says why it is no list of
//! ready threads. That what runs is the choice of `sched` alone is shown by the boot tests `order` and
//! `reversed`.

use crate::project::read_text;
use anyhow::Result;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// Type and field that may hold a thread or a queue, and what it holds.
const HOLDERS: [(&str, &str, &str); 19] = [
    ("Activation", "thread", "whose chain it is in"),
    ("Cpu", "thread", "the running one"),
    ("Activation", "behind", "callers or waiters behind it that wait with the same priority: blocked"),
    (
        "Domain",
        "called",
        "callers that were woken to call again and have not run since; sched has them, none is chosen from here",
    ),
    ("Cpu", "again", "domains, by the number of their orphan threads, whose callers it woke: no thread"),
    ("Domain", "orphan_thread", "the one that carries its orphans"),
    ("Domain", "orphans", "activations whose callers are gone, waiting for the thread that carries them"),
    ("Domain", "threads", "those that started in it, in no order that matters: for its end"),
    ("Domain", "waiters", "callers that wait for a free activation: blocked"),
    ("Threads", "numbers", "those that no thread has"),
    ("Cpu", "unposted", "numbers that found the scheduler's ring full: it gets them before it dispatches"),
    ("Port", "lenders", "labels of domains, which its messages refer to: no thread"),
    ("Port", "members", "ports whose messages are taken there: no thread"),
    ("Cpu", "seat", "the scheduler's seat"),
    ("Seat", "thread", "the pseudo-thread of a scheduler"),
    ("Seats", "boot_successor", "roottask's first thread, before there is a scheduler"),
    ("Seats", "standby", "the seat of the scheduler that stands by"),
    ("Semaphore", "waiters", "who waits for V: blocked"),
    ("Thread", "home_next", "the list `Domain::threads`"),
];

/// Fields (or statics, with an empty name of the type) whose type names one of these words.
fn holders(source: &str, words: &[&str]) -> BTreeSet<(String, String)> {
    let mut found = BTreeSet::new();
    let mut within = String::new();
    for line in source.lines() {
        let code = line.split("//").next().unwrap_or_default().trim();
        let code = code.trim_start_matches("pub(crate) ").trim_start_matches("pub ");
        if let Some(rest) = code.strip_prefix("struct ").or_else(|| code.strip_prefix("union ")) {
            within = rest.chars().take_while(|c| c.is_alphanumeric()).collect();
            if code.contains('(') {
                // A tuple: its fields stand on the same line.
                if has_word(rest.trim_start_matches(within.as_str()), words) {
                    found.insert((within.clone(), "0".into()));
                }
                within.clear();
            }
        } else if line.starts_with('}') {
            within.clear();
        } else if let Some(rest) = code.strip_prefix("static ") {
            let rest = rest.trim_start_matches("mut ");
            let (name, kind) = rest.split_once(':').unwrap_or((rest, ""));
            if has_word(kind.split('=').next().unwrap_or_default(), words) {
                found.insert((String::new(), name.into()));
            }
        } else if !within.is_empty()
            && let Some((field, kind)) = code.split_once(": ")
            && has_word(kind, words)
        {
            found.insert((within.clone(), field.into()));
        }
    }
    found
}

fn has_word(text: &str, words: &[&str]) -> bool {
    text.split(|c: char| !c.is_alphanumeric() && c != '_').any(|part| words.contains(&part))
}

fn sources(folder: &Path) -> Result<Vec<String>> {
    let mut all = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            all.extend(sources(&path)?);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            all.push(read_text(&path)?);
        }
    }
    Ok(all)
}

#[test]
fn no_ready_list_in_the_nucleus() -> Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../nucleus/src");
    // `Seat` holds the pseudo-thread of a scheduler; an array of this length may hold threads by number.
    let words = ["Thread", "Queue", "Ranked", "Seat", "MAX_THREADS"];
    let found: BTreeSet<_> = sources(&root)?.iter().flat_map(|source| holders(source, &words)).collect();
    let known: BTreeSet<_> = HOLDERS.iter().map(|(within, field, _)| (within.to_string(), field.to_string())).collect();
    let new: Vec<_> = found.difference(&known).collect();
    assert!(new.is_empty(), "these hold threads and are not explained: {new:?}");
    let gone: Vec<_> = known.difference(&found).collect();
    assert!(gone.is_empty(), "these are explained and are no more: {gone:?}");
    Ok(())
}

#[test]
fn holders_are_found() {
    let source = "pub struct A {\n    /// Thread\n    pub next: Link<Thread>,\n    number: u64,\n}\n\
                  struct B(Queue, u8);\nstatic READY: Nucleus<[Link<Thread>; 64]> = Nucleus::new();\n\
                  fn f(thread: Ref<Thread>) {\n    let x: Link<Thread> = None;\n}\n";
    let found = holders(source, &["Thread", "Queue", "Ranked"]);
    let expected = [("", "READY"), ("A", "next"), ("B", "0")];
    assert_eq!(found, expected.map(|(within, field)| (within.to_string(), field.to_string())).into());
}
