//! Debian's kernel and nginx as one machine: the unpacked files are packed again, as the kernel's first file system.
//!
//! In it are `peer-init` as `/init`, nginx with the libraries that it and they name, busybox, and the modules of the
//! kernel that a virtio network interface needs, with those that they name.

use super::debian::Unpacked;
use crate::bench::network;
use crate::build;
use crate::elf;
use crate::image::Image;
use crate::project::{Project, read};
use anyhow::{Context, Result, bail};
use cpio::Writer;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Modules for the network interface.
const MODULES: [&str; 2] = ["virtio_pci", "virtio_net"];
/// Words for the kernel. When its first program ends, it panics and resets the machine, which ends the emulator.
const COMMAND_LINE: &str = "console=ttyS0 quiet panic=-1";
/// Where Debian's loader seeks libraries.
const LIBRARIES: [&str; 2] = ["lib/x86_64-linux-gnu", "usr/lib/x86_64-linux-gnu"];
const LOADER: &str = "lib64/ld-linux-x86-64.so.2";
/// Folders that must be there.
const FOLDERS: [&str; 5] = ["dev", "proc", "run", "var/lib/nginx", "var/log/nginx"];
/// The user that nginx looks for.
const USERS: &str = "root:x:0:0:root:/:/bin/busybox\n";
const GROUPS: &str = "root:x:0:\n";
/// One worker for one CPU, no log of requests and no limit to those on a connection: as Cairn's server. Of all settings that
/// were tried these make a small file cheapest: Debian's own (`sendfile` and `tcp_nopush`, no cache of open files) take
/// two fifths more.
const NGINX: &str = "user root;
worker_processes 1;
daemon off;
pid /run/nginx.pid;
error_log stderr;
events {
    worker_connections 768;
}
http {
    sendfile off;
    open_file_cache max=16;
    access_log off;
    default_type application/octet-stream;
    keepalive_requests 1000000000;
    server {
        listen 80;
        root /www;
    }
}
";

/// Packs it.
pub fn image(project: &Project, unpacked: &Unpacked) -> Result<Image> {
    let root = &unpacked.root;
    let kernel = only(&root.join("boot"), "vmlinuz-")?;
    let mut tree = Tree { writer: Writer::packed(), folders: BTreeSet::new() };
    for folder in FOLDERS {
        tree.folder(folder)?;
    }
    tree.executable("init", &read(&build::peer_init(project)?)?)?;
    tree.executable("bin/busybox", &read(&first(root, &["bin/busybox", "usr/bin/busybox"])?)?)?;
    let nginx = read(&root.join("usr/sbin/nginx"))?;
    tree.executable("usr/sbin/nginx", &nginx)?;
    tree.executable(LOADER, &read(&first(root, &[LOADER, "usr/lib64/ld-linux-x86-64.so.2"])?)?)?;
    for (name, content) in libraries(root, &nginx)? {
        tree.executable(&format!("{}/{name}", LIBRARIES[0]), &content)?;
    }
    tree.file("etc/nginx/nginx.conf", NGINX.as_bytes())?;
    tree.file("etc/passwd", USERS.as_bytes())?;
    tree.file("etc/group", GROUPS.as_bytes())?;
    tree.file(&format!("www/{}", network::PAGE), &network::page())?;
    tree.file(&format!("www/{}", network::LONG_PAGE), &network::long_page())?;
    let mut list = String::new();
    for (name, content) in modules(&kernel_modules(root)?)? {
        let path = format!("lib/modules/{name}.ko");
        tree.file(&path, &content)?;
        list += &format!("/{path}\n");
    }
    tree.file("modules", list.as_bytes())?;
    Image::foreign(project, &kernel, &tree.writer.finish()?, COMMAND_LINE)
}

/// The archive, in which the folders of a file come before it.
struct Tree {
    writer: Writer,
    folders: BTreeSet<String>,
}

impl Tree {
    fn folder(&mut self, path: &str) -> Result<()> {
        if let Some((above, _)) = path.rsplit_once('/') {
            self.folder(above)?;
        }
        if self.folders.insert(path.into()) {
            self.writer.folder(path)?;
        }
        Ok(())
    }

    fn above(&mut self, path: &str) -> Result<()> {
        path.rsplit_once('/').map_or(Ok(()), |(above, _)| self.folder(above))
    }

    fn file(&mut self, path: &str, content: &[u8]) -> Result<()> {
        self.above(path)?;
        Ok(self.writer.file(path, content)?)
    }

    fn executable(&mut self, path: &str, content: &[u8]) -> Result<()> {
        self.above(path)?;
        Ok(self.writer.executable(path, content)?)
    }
}

/// The one file of a folder whose name begins so.
fn only(folder: &Path, start: &str) -> Result<PathBuf> {
    let listing = fs::read_dir(folder).with_context(|| format!("cannot list {}", folder.display()))?;
    let paths = listing.map(|entry| Ok(entry?.path())).collect::<std::io::Result<Vec<_>>>()?;
    let begins = |path: &&PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(start));
    match paths.iter().filter(begins).collect::<Vec<_>>()[..] {
        [path] => Ok(path.clone()),
        ref paths => bail!("{} files called {start}… in {}, and not one", paths.len(), folder.display()),
    }
}

/// The first of these that exists.
fn first(root: &Path, places: &[&str]) -> Result<PathBuf> {
    let found = places.iter().map(|place| root.join(place)).find(|path| path.is_file());
    found.with_context(|| format!("Debian's packages hold none of {}", places.join(", ")))
}

/// The libraries that a program needs, and that these need.
fn libraries(root: &Path, program: &[u8]) -> Result<BTreeMap<String, Vec<u8>>> {
    let mut found = BTreeMap::new();
    let mut waiting = elf::needed(program)?;
    while let Some(name) = waiting.pop() {
        if found.contains_key(&name) || LOADER.ends_with(&name) {
            continue;
        }
        let places = LIBRARIES.map(|folder| format!("{folder}/{name}"));
        let content = read(&first(root, &places.each_ref().map(String::as_str))?)?;
        waiting.extend(elf::needed(&content).with_context(|| format!("library {name}"))?);
        found.insert(name, content);
    }
    Ok(found)
}

/// The kernel's modules: names and files.
fn kernel_modules(root: &Path) -> Result<BTreeMap<String, PathBuf>> {
    let folder = first_folder(root, &["lib/modules", "usr/lib/modules"])?;
    let mut found = BTreeMap::new();
    let mut waiting = vec![folder];
    while let Some(folder) = waiting.pop() {
        for entry in fs::read_dir(&folder).with_context(|| format!("cannot list {}", folder.display()))? {
            let (path, kind) = entry.and_then(|entry| Ok((entry.path(), entry.file_type()?)))?;
            if kind.is_dir() {
                waiting.push(path);
            } else if let Some(name) = path.file_name().and_then(|name| module_name(name.to_str()?)) {
                found.insert(name, path);
            }
        }
    }
    Ok(found)
}

fn first_folder(root: &Path, places: &[&str]) -> Result<PathBuf> {
    let found = places.iter().map(|place| root.join(place)).find(|path| path.is_dir());
    found.with_context(|| format!("Debian's kernel brings none of {}", places.join(", ")))
}

/// `virtio_net` for `virtio-net.ko` and `virtio-net.ko.xz`: the kernel takes `-` for `_`.
fn module_name(file: &str) -> Option<String> {
    let name = file.strip_suffix(".xz").unwrap_or(file).strip_suffix(".ko")?;
    Some(name.replace('-', "_"))
}

/// Those that the network interface needs, each after those that it names.
fn modules(all: &BTreeMap<String, PathBuf>) -> Result<Vec<(String, Vec<u8>)>> {
    let mut loaded = Vec::new();
    for name in MODULES {
        load(all, name, &mut loaded)?;
    }
    Ok(loaded)
}

fn load(all: &BTreeMap<String, PathBuf>, name: &str, loaded: &mut Vec<(String, Vec<u8>)>) -> Result<()> {
    if loaded.iter().any(|(other, _)| other == name) {
        return Ok(());
    }
    let path = all.get(name).with_context(|| format!("Debian's kernel has no module {name}"))?;
    let content = plain(path)?;
    let information = elf::section(&content, ".modinfo").with_context(|| format!("module {name}"))?;
    for other in module_needs(information) {
        load(all, &other, loaded)?;
    }
    loaded.push((name.into(), content));
    Ok(())
}

/// The content of a file that may be compressed, as Debian's are from 13 on.
fn plain(path: &Path) -> Result<Vec<u8>> {
    if path.extension().is_none_or(|extension| extension != "xz") {
        return read(path);
    }
    let output = Command::new("xz").args(["--decompress", "--stdout"]).arg(path).output();
    let output =
        output.context("the kernel's modules are compressed, and `xz` is not there: it is in the package xz-utils")?;
    if !output.status.success() {
        bail!("`xz` cannot read {}: {}", path.display(), String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(output.stdout)
}

/// The modules that a module's information names as needed.
fn module_needs(information: &[u8]) -> Vec<String> {
    let lines = information.split(|&byte| byte == 0).filter_map(|line| line.strip_prefix(b"depends="));
    let names = lines.flat_map(|line| line.split(|&byte| byte == b','));
    names.filter(|name| !name.is_empty()).map(|name| String::from_utf8_lossy(name).replace('-', "_")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_name_each_other() {
        let information = b"license=GPL\0depends=virtio_ring,net-failover,\0retpoline=Y\0depends=\0";
        assert_eq!(module_needs(information), ["virtio_ring", "net_failover"]);
        assert_eq!(module_name("virtio-rng.ko").as_deref(), Some("virtio_rng"));
        assert_eq!(module_name("virtio_net.ko.xz").as_deref(), Some("virtio_net"));
        assert_eq!(module_name("modules.dep"), None);
    }

    #[test]
    fn folders_come_before_their_files() {
        let mut tree = Tree { writer: Writer::packed(), folders: BTreeSet::new() };
        tree.file("a/b/c", b"1").unwrap();
        tree.executable("a/d", b"2").unwrap();
        let bytes = tree.writer.finish().unwrap();
        let names: Vec<_> = cpio::Archive::new(&bytes).entries().map(|entry| entry.unwrap().name.to_string()).collect();
        assert_eq!(names, ["a", "a/b", "a/b/c", "a/d"]);
    }

    #[test]
    fn libraries_of_our_own_program() {
        // This test is a program of this computer; if it is Debian's, its libraries lie where Debian's lie.
        let program = read(&std::env::current_exe().unwrap()).unwrap();
        let missing = libraries(Path::new("/nowhere"), &program).unwrap_err().to_string();
        assert!(missing.contains(".so"), "{missing}");
    }
}
