//! The web server that is used.

use crate::project::Project;
use anyhow::{Context, Result};
use std::collections::BTreeMap;
use std::fs;

/// Where the web server is, and what its files hold.
pub struct Site {
    /// The port of this computer that leads to it.
    pub port: u16,
    /// Paths, each with its bytes.
    pub files: BTreeMap<String, Vec<u8>>,
}

impl Site {
    /// The files that the system description shows under `/www`.
    pub fn read(project: &Project, port: u16) -> Result<Self> {
        let folder = project.root.join("systems/files/www");
        let mut files = BTreeMap::new();
        for entry in fs::read_dir(&folder).with_context(|| format!("cannot list {}", folder.display()))? {
            let entry = entry?;
            let name = entry.file_name().into_string().ok().context("the name of a file of the site")?;
            files.insert(format!("/{name}"), fs::read(entry.path())?);
        }
        let index = files.get("/index.html").context("the site has no index.html")?.clone();
        files.insert("/".into(), index);
        Ok(Self { port, files })
    }

    /// The page at `/`.
    pub fn index(&self) -> &[u8] {
        self.files.get("/").map_or(&[], Vec::as_slice)
    }
}
