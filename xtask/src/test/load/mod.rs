//! The other end of the network: this computer's requests to the machine's web server while a boot test runs.
//!
//! A scenario is a line of a boot test: its name, and numbers. Its findings become lines that begin with `host: `;
//! what should not be, the line `host: failed: …`, which no boot test passes with.

mod client;
mod crowd;
mod generator;
mod hostile;
mod kills;
mod site;
mod slow;

use crate::emulator::{Watch, Work};
use crate::project::Project;
use anyhow::{Context, Result, bail, ensure};
use site::Site;
use std::process::Command;
use std::sync::Arc;
use std::time::Instant;

/// Files that this computer and 2,000 connections of a test need open.
const OPEN_FILES: u32 = 8192;

/// The file at a path of the web server.
pub fn page(port: u16, path: &str, until: Instant) -> Result<Vec<u8>> {
    let mut client = client::Client::connect(port)?;
    client.send(client::request("GET", path, "").as_bytes())?;
    let answer = client.answer(until, false)?;
    ensure!(answer.status == 200, "{path}: status {}", answer.status);
    Ok(answer.body)
}

/// The work that a boot test asks for.
pub fn work(project: &Project, port: u16, scenario: &str) -> Result<Work> {
    let site = Site::read(project, port)?;
    let words: Vec<&str> = scenario.split_whitespace().collect();
    let number = |place: usize| -> Result<usize> {
        let word = words.get(place).with_context(|| format!("`host`: {scenario}: a number is missing"))?;
        word.replace('_', "").parse().with_context(|| format!("`host`: {scenario}: {word} is no number"))
    };
    type Scenario = Box<dyn Fn(&Site, &Watch) -> Result<Vec<String>> + Send + Sync>;
    let run: Scenario = match words.first().copied() {
        Some("load") => {
            let requests = number(1)?;
            Box::new(move |site, watch| generator::load(site, watch, requests))
        }
        Some("kills") => {
            let (requests, count) = (number(1)?, number(2)?);
            Box::new(move |site, watch| kills::kills(site, watch, requests, count))
        }
        Some("crowd") => {
            allow_open_files()?;
            let connections = number(1)?;
            Box::new(move |site, watch| crowd::crowd(site, watch, connections))
        }
        Some("floods") => {
            let connections = number(1)?;
            Box::new(move |site, watch| crowd::floods(site, watch, connections))
        }
        Some("hostile") => Box::new(|site, _| hostile::hostile(site)),
        Some("slow") => Box::new(slow::slow),
        _ => bail!("`host`: there is no scenario {scenario}"),
    };
    Ok(Work(Arc::new(move |watch| match run(&site, watch) {
        Ok(lines) => lines.iter().map(|line| format!("\nhost: {line}\n")).collect(),
        Err(error) => format!("\nhost: failed: {error:#}\n"),
    })))
}

/// Lets us and the emulators that we start open more files.
fn allow_open_files() -> Result<()> {
    let (pid, files) = (std::process::id().to_string(), format!("--nofile={OPEN_FILES}:"));
    let done = Command::new("prlimit").args(["--pid", &pid, &files]).status().context("cannot run prlimit")?;
    if !done.success() {
        bail!("{OPEN_FILES} open files are needed: raise the limit (`ulimit -n`)");
    }
    Ok(())
}
