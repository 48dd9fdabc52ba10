//! The emulator, the browser, the shell that ours is compared with, and what makes the book, where they are missing.

use crate::isa::Isa;
use anyhow::{Context, Result, bail};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Makes sure that the emulator is there: installs it on Debian and its kin, else says what to install.
pub fn emulator(isa: Isa) -> Result<()> {
    let (command, package) = (isa.emulator(), isa.package());
    if starts(command, "--version") {
        return Ok(());
    }
    if !starts("apt-get", "--version") {
        bail!(
            "Cairn runs in the emulator QEMU, and `{command}` is not installed. Its package is called\n  \
             {package}       on Debian, Ubuntu and Fedora (there also {package}-core)\n  \
             {package}       on Arch Linux (there also qemu-system-aarch64)\n  \
             {}              on openSUSE\n  \
             qemu                  in Homebrew and Nix\n\
             Install it and type the same command again.",
            package.replace("-system", "")
        );
    }
    let mut prefix: Vec<&str> = Vec::new();
    if !is_root() {
        prefix.push("sudo");
    }
    eprintln!("Cairn runs in the emulator QEMU, which is not installed here: installing the package {package}");
    eprintln!("with `{}`.", [&prefix[..], &[&format!("apt-get install {package}")]].concat().join(" "));
    apt(&prefix, &["update", "-qq"])?;
    apt(&prefix, &["install", "-y", "-qq", "--no-install-recommends", package])?;
    if !starts(command, "--version") {
        bail!("the package {package} was installed, but `{command}` does not start");
    }
    Ok(())
}

/// Makes sure that the browser is there, with which pages are tried.
pub fn browser(command: &str) -> Result<()> {
    tool(command, "chromium", "The pages are tried in Chromium")
}

/// Makes sure that the shell is there with which the language of ours is compared.
pub fn dash() -> Result<()> {
    tool("dash", "dash", "The language of the shell is compared with that of dash")
}

/// Makes sure that the debugger is there.
pub fn debugger(isa: Isa) -> Result<()> {
    let command = isa.debugger();
    tool(command, command, &format!("Programs for {} are debugged with gdb", isa.title()))
}

/// mdBook's version: another one might make other pages.
const MDBOOK: &str = "0.5.4";

/// Makes sure that mdBook is there, which makes the book's pages: cargo builds it, for this tree only. Returns its path.
pub fn mdbook(tools: &Path) -> Result<PathBuf> {
    let program = tools.join("bin/mdbook");
    let version = Command::new(&program).arg("--version").output();
    if version.is_ok_and(|output| String::from_utf8_lossy(&output.stdout).trim().ends_with(MDBOOK)) {
        return Ok(program);
    }
    eprintln!("The book's pages are made by mdBook, which is not installed here: cargo builds version {MDBOOK}");
    eprintln!("and puts it into {}. That takes a few minutes, once.", tools.display());
    let mut command = Command::new("cargo");
    command.args(["install", "mdbook", "--version", MDBOOK, "--locked", "--quiet"]);
    command.args(["--no-default-features", "--features", "search", "--root"]).arg(tools);
    command.arg("--target-dir").arg(tools.join("build")).stdin(Stdio::null());
    if !command.status().context("cannot start cargo")?.success() {
        bail!("mdBook was not built: see above; the network is needed once. Its sources are on crates.io");
    }
    Ok(program)
}

/// Makes sure that a command is there, which is in this package of Debian and is needed for what `why` says.
fn tool(command: &str, package: &str, why: &str) -> Result<()> {
    if starts(command, "--version") {
        return Ok(());
    }
    if !starts("apt-get", "--version") {
        bail!("{why}, and `{command}` is not installed: install it and try again");
    }
    let prefix: &[&str] = if is_root() { &[] } else { &["sudo"] };
    eprintln!("{why}, which is not installed here: installing the package {package}");
    eprintln!("with `{}`.", [prefix, &[&format!("apt-get install {package}")]].concat().join(" "));
    apt(prefix, &["update", "-qq"])?;
    apt(prefix, &["install", "-y", "-qq", "--no-install-recommends", package])?;
    if !starts(command, "--version") {
        bail!("the package {package} was installed, but `{command}` does not start");
    }
    Ok(())
}

fn apt(prefix: &[&str], arguments: &[&str]) -> Result<()> {
    let words = [prefix, &["apt-get"], arguments].concat();
    let mut command = Command::new(words[0]);
    command.args(&words[1..]).env("DEBIAN_FRONTEND", "noninteractive");
    let status = command.status().with_context(|| format!("cannot start `{}`", words[0]))?;
    if !status.success() {
        bail!("`{}` failed: install the package by hand", words.join(" "));
    }
    Ok(())
}

/// Are we the administrator?
pub fn is_root() -> bool {
    let output = Command::new("id").arg("-u").output();
    output.is_ok_and(|output| output.stdout.trim_ascii() == b"0")
}

/// Can this command be started?
pub fn starts(command: &str, argument: &str) -> bool {
    let status = Command::new(command).arg(argument).stdout(Stdio::null()).stderr(Stdio::null()).status();
    !matches!(status, Err(error) if error.kind() == ErrorKind::NotFound)
}
