//! Paths: absolute, parts separated by `/`.

use alloc::string::String;

/// Directories that a path may go down.
pub const MAX_DEPTH: usize = 64;

/// The absolute path that `path` means in the directory `current`: `.`, `..` and repeated `/` are
/// resolved by their text (there are no symbolic links that would make a difference).
pub fn normalize(current: &str, path: &str) -> String {
    let start = if path.starts_with('/') { "" } else { current };
    let mut normal = String::with_capacity(start.len() + path.len() + 2);
    for part in start.split('/').chain(path.split('/')) {
        match part {
            "" | "." => {}
            ".." => normal.truncate(normal.rfind('/').unwrap_or(0)),
            part => {
                normal.push('/');
                normal.push_str(part);
            }
        }
    }
    if normal.is_empty() {
        normal.push('/');
    }
    normal
}
