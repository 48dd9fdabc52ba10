//! `cargo check` in the folder of a crate compiles for the machine or for the host, as the crate needs it.

use crate::isa::Isa;
use crate::project::{Project, read_text};
use crate::workspace::Workspace;
use anyhow::{Result, ensure};
use serde::Deserialize;
use std::path::Path;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Config {
    build: Build,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Build {
    target: String,
}

/// The target that cargo finds, looking from this folder up to the root.
fn target_of(root: &Path, place: &Path) -> Result<Option<String>> {
    let config =
        place.ancestors().map(|folder| root.join(folder).join(".cargo/config.toml")).find(|file| file.is_file());
    let Some(config) = config else { return Ok(None) };
    Ok(Some(toml::from_str::<Config>(&read_text(&config)?)?.build.target))
}

#[test]
fn each_crate_is_checked_for_its_target() -> Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_path_buf();
    let project = Project::in_folder(root);
    let workspace = Workspace::read(&project)?;
    for package in &workspace.packages {
        let place = workspace.place(package);
        let found = target_of(&project.root, place)?;
        // The tests of the runtime run on the host.
        let wanted = match place {
            _ if place.starts_with("runtime") || workspace.is_host(package) => None,
            _ if place == Path::new("nucleus") => Some(Isa::default().nucleus_target()),
            _ => Some(Isa::default().target()),
        };
        ensure!(
            found.as_deref() == wanted,
            "`cargo check` in {} compiles for {found:?}, not for {wanted:?}: see .cargo/config.toml there or above",
            place.display()
        );
    }
    Ok(())
}
