//! The candidates for Tab: commands for the first word, paths for the others.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use lineedit::Completions;
use protocols::file::Kind;
use protocols::listing::Listing;
use runtime::stream::FILE_SYSTEM;

use shelleval::State;

use crate::names::all_names;

/// Names looked at in one directory.
const MAX_NAMES: usize = 1000;

/// Names in a directory, sorted, each with whether it is a directory itself.
pub fn names(path: &str) -> Vec<(String, bool)> {
    let mut names = Vec::new();
    let mut position = 0;
    let mut buffer = [0; 1024];
    while let Ok((bytes, next)) = FILE_SYSTEM.read_directory(path, position, &mut buffer) {
        names.extend(Listing(&buffer[..bytes]).map(|record| {
            let directory = u64::from(record.tag) == Kind::Directory as u64;
            (String::from_utf8_lossy(record.name).into_owned(), directory)
        }));
        if next == 0 || bytes == 0 || names.len() > MAX_NAMES {
            break;
        }
        position = next;
    }
    names.sort_unstable();
    names
}

/// Candidates for the word before the cursor.
pub fn complete(state: &State, before: &str) -> Completions {
    let separators = |c: char| c.is_whitespace() || matches!(c, ';' | '&' | '|' | '<' | '>' | '(');
    let start = before.rfind(separators).map_or(0, |at| at + 1);
    let word = &before[start..];
    let command = matches!(before[..start].trim_end().chars().last(), None | Some(';' | '&' | '|' | '('));
    let mut candidates = Vec::new();
    let replace;
    if command && !word.contains('/') {
        replace = word.chars().count();
        let builtins = all_names().map(ToString::to_string);
        let path = state.variable("PATH").unwrap_or_default();
        let programs = path.split(':').flat_map(|directory| names(&filetree::normalize(&state.directory, directory)));
        let all = builtins.chain(programs.map(|(name, _)| name));
        candidates.extend(all.filter(|name| name.starts_with(word)).map(|name| alloc::format!("{name} ")));
    } else {
        let (directory, name) = word.rsplit_once('/').map_or(("", word), |(directory, name)| (directory, name));
        replace = name.chars().count();
        let directory = if word.starts_with('/') { alloc::format!("/{directory}") } else { directory.to_string() };
        let hidden = name.starts_with('.');
        for (found, is_directory) in names(&filetree::normalize(&state.directory, &directory)) {
            if found.starts_with(name) && (hidden || !found.starts_with('.')) {
                candidates.push(alloc::format!("{found}{}", if is_directory { "/" } else { " " }));
            }
        }
    }
    candidates.sort_unstable();
    candidates.dedup();
    Completions { replace, candidates }
}
