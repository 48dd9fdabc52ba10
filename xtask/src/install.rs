//! The emulator and the browser, where they are missing.

use anyhow::{Context, Result, bail};
use std::io::ErrorKind;
use std::process::{Command, Stdio};

/// The emulator's command.
pub const QEMU: &str = "qemu-system-x86_64";

/// Makes sure that the emulator is there: installs it on Debian and its kin, else says what to install.
pub fn emulator() -> Result<()> {
    if starts(QEMU, "--version") {
        return Ok(());
    }
    if !starts("apt-get", "--version") {
        bail!(
            "Cairn runs in the emulator QEMU, and `{QEMU}` is not installed. Its package is called\n  \
             qemu-system-x86       on Debian, Ubuntu and Fedora (there also qemu-system-x86-core)\n  \
             qemu-system-x86       on Arch Linux\n  \
             qemu-x86              on openSUSE\n  \
             qemu                  in Homebrew and Nix\n\
             Install it and type the same command again."
        );
    }
    let mut prefix: Vec<&str> = Vec::new();
    if !is_root() {
        prefix.push("sudo");
    }
    eprintln!("Cairn runs in the emulator QEMU, which is not installed here: installing the package qemu-system-x86");
    eprintln!("with `{}`.", [&prefix[..], &["apt-get install qemu-system-x86"]].concat().join(" "));
    apt(&prefix, &["update", "-qq"])?;
    apt(&prefix, &["install", "-y", "-qq", "--no-install-recommends", "qemu-system-x86"])?;
    if !starts(QEMU, "--version") {
        bail!("the package qemu-system-x86 was installed, but `{QEMU}` does not start");
    }
    Ok(())
}

/// Makes sure that the browser is there, with which pages are tried.
pub fn browser(command: &str) -> Result<()> {
    if starts(command, "--version") {
        return Ok(());
    }
    if !starts("apt-get", "--version") {
        bail!("the pages are tried in Chromium, and `{command}` is not installed: install it and try again");
    }
    let prefix: &[&str] = if is_root() { &[] } else { &["sudo"] };
    eprintln!("The pages are tried in Chromium, which is not installed here: installing the package chromium");
    eprintln!("with `{}`.", [prefix, &["apt-get install chromium"]].concat().join(" "));
    apt(prefix, &["update", "-qq"])?;
    apt(prefix, &["install", "-y", "-qq", "--no-install-recommends", "chromium"])?;
    if !starts(command, "--version") {
        bail!("the package chromium was installed, but `{command}` does not start");
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
