//! Paths: absolute, parts separated by `/`.

use alloc::string::String;
use alloc::vec::Vec;

/// Directories that a path may go down.
pub const MAX_DEPTH: usize = 64;

/// The absolute path that `path` means in the directory `current`: `.`, `..` and repeated `/` are
/// resolved by their text (there are no symbolic links that would make a difference).
pub fn normalize(current: &str, path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    let start = if path.starts_with('/') { "" } else { current };
    for part in start.split('/').chain(path.split('/')) {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    let mut normal = String::with_capacity(path.len() + 1);
    for part in &parts {
        normal.push('/');
        normal.push_str(part);
    }
    if normal.is_empty() {
        normal.push('/');
    }
    normal
}
