//! `./x new component NAME`: a crate that builds and serves, and its place in a system.

use crate::command_line::NewOptions;
use crate::image::System;
use crate::project::{Project, read_text, write};
use crate::workspace::Workspace;
use anyhow::{Context, Result, bail};
use std::fs;

/// The crate's manifest.
const MANIFEST: &str = r#"[package]
name = "NAME"
description = "What it is for, in one sentence."
version.workspace = true
edition.workspace = true
license.workspace = true

[[bin]]
name = "NAME"
path = "src/main.rs"
test = false
bench = false

[dependencies]
interface.workspace = true
interfaces.workspace = true
runtime.workspace = true

[lints]
workspace = true
"#;

/// Its program.
const MAIN: &str = r#"//! What it is for, in one sentence.
//!
//! It serves the interface `Stream` under the name `NAME`: whoever reads gets a greeting, what is
//! written goes to the kernel log. An interface of its own is a trait in `crates/interfaces`.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use interface::{Reply, Request};
use interfaces::stream::{StreamError, StreamServer};
use runtime::server::{self, Serve};

runtime::entry!(main);

struct Service;

impl Serve for Service {
    fn serve(request: &mut Request<'_>) -> Reply {
        Service.dispatch(request)
    }
}

impl StreamServer for Service {
    fn read(&self, _badge: u64, into: &mut [u8]) -> Result<usize, StreamError> {
        let greeting = b"NAME is here\n";
        let count = greeting.len().min(into.len());
        into[..count].copy_from_slice(&greeting[..count]);
        Ok(count)
    }

    fn write(&self, _badge: u64, bytes: &[u8]) -> Result<usize, StreamError> {
        runtime::log!("{}", core::str::from_utf8(bytes).unwrap_or("(not text)").trim_end());
        Ok(bytes.len())
    }
}

fn main() -> u8 {
    match server::publish::<Service>("NAME", 2) {
        Ok(_) => server::park(),
        Err(error) => {
            runtime::log!("cannot serve: {error}");
            1
        }
    }
}
"#;

/// Its place in a system description.
const DESCRIPTION: &str = r#"
[[component]]
name = "NAME"
account = "256K"
priority = 28
restart = "always"
"#;

/// Makes the crate and adds it to the description.
pub fn component(project: &Project, options: &NewOptions) -> Result<u8> {
    let name = options.name.as_str();
    check_name(name)?;
    let folder = project.root.join("components").join(name);
    if folder.exists() {
        bail!("{} exists already", folder.display());
    }
    if let Some(other) = Workspace::read(project)?.packages.iter().find(|package| package.name == name) {
        bail!("a crate called `{name}` exists already, in {}", other.folder().display());
    }
    let path = project.root.join(&options.system);
    let description = read_text(&path)?;
    // A description with mistakes would hide those that the new component brings.
    System::read(project, &options.system)?;
    fs::create_dir_all(folder.join("src")).with_context(|| format!("cannot make {}", folder.display()))?;
    write(&folder.join("Cargo.toml"), filled(MANIFEST, name).as_bytes())?;
    write(&folder.join("src/main.rs"), filled(MAIN, name).as_bytes())?;
    let description = format!("{}\n{}", description.trim_end(), filled(DESCRIPTION, name));
    write(&path, description.as_bytes())?;
    System::read(project, &options.system)?;
    println!("components/{name}/src/main.rs  is the component: a few lines that serve, to be changed");
    println!("{:30}  gives it an account, a priority and a restart policy", options.system.display());
    println!("./x run                         boots it; `dmesg` shows what it logs, `domains` that it lives");
    Ok(0)
}

fn filled(template: &str, name: &str) -> String {
    template.replace("NAME", name)
}

fn check_name(name: &str) -> Result<()> {
    let plain = name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-');
    let begins = name.starts_with(|first: char| first.is_ascii_lowercase());
    if !plain || !begins || name.len() > system::MAX_NAME_BYTES {
        bail!("`{name}` cannot name a component: 1 to 16 small letters, digits and `-`, a letter first");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        for good in ["a", "clock", "disk-0"] {
            assert!(check_name(good).is_ok(), "{good}");
        }
        for bad in ["", "0a", "-a", "Clock", "a/b", "../a", "a_b", "abcdefghijklmnopq"] {
            assert!(check_name(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn templates_are_toml() {
        assert!(toml::from_str::<toml::Table>(&filled(MANIFEST, "clock")).is_ok());
        assert!(toml::from_str::<toml::Table>(&filled(DESCRIPTION, "clock")).is_ok());
        assert!(!filled(MAIN, "clock").contains("NAME"));
    }
}
