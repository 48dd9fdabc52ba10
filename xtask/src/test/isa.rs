//! The portable crates compile for an ISA that there is not: its folder, kept in `tests/isa`, takes the place of the real
//! ones in a copy of the tree. So they use nothing of an ISA but the layer, and that is written down in one place.

use super::checks::quietly;
use super::copy;
use super::report::Report;
use crate::project::{Project, read, write};
use anyhow::{Context, Result};
use std::fs;
use std::path::Path;
use std::process::Command;

/// Name of the group and of its one test.
pub const NAME: &str = "isa";
/// Where the stubs are: a folder for each of [`LAYERS`].
pub const STUBS: &str = "tests/isa";
/// Folders of stubs, and in whose place they are compiled.
pub const LAYERS: [(&str, &str); 3] =
    [("nucleus", "nucleus/src/arch"), ("saved", "nucleus/src/objects/arch"), ("runtime", "runtime/src/arch")];
/// The crates that are compiled against them.
const CRATES: [&str; 2] = ["nucleus", "runtime"];

/// Takes the place of what chooses between the ISAs.
const CHOICE: &str = "//! The ISA of stubs.\n\nmod stubs;\npub use stubs::*;\n";

/// Compiles them.
pub fn check(project: &Project, report: &mut Report) {
    report.run(NAME, || {
        let copy = copy::tree(project)?;
        for (stubs, layer) in LAYERS {
            replace(&project.root.join(STUBS).join(stubs), &copy.root.join(layer))?;
        }
        let mut command = Command::new("cargo");
        command.args(["check", "--quiet", "--target", project.isa.nucleus_target()]);
        command.args(CRATES.iter().flat_map(|name| ["--package", name]));
        // Dependencies that stubs do not call are not used.
        command.arg("--target-dir").arg(copy.target.join("isa")).env("CARGO_ENCODED_RUSTFLAGS", "-Awarnings");
        quietly(&copy, command).context("portable code uses what the layer does not have: see tests/isa")
    });
}

/// Puts the stubs where the ISAs of a crate are.
fn replace(stubs: &Path, layer: &Path) -> Result<()> {
    fs::remove_dir_all(layer).with_context(|| format!("cannot remove {}", layer.display()))?;
    let folder = layer.join("stubs");
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    write(&layer.join("mod.rs"), CHOICE.as_bytes())?;
    for entry in fs::read_dir(stubs).with_context(|| format!("cannot list {}", stubs.display()))? {
        let path = entry?.path();
        if let Some(name) = path.file_name() {
            write(&folder.join(name), &read(&path)?)?;
        }
    }
    Ok(())
}
