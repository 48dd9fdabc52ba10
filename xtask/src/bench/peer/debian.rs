//! Debian's packages, fetched by apt as any user may: nothing is installed on this computer.
//!
//! apt checks what it fetches against Debian's signatures. Packages stay in the target folder, so that the next run
//! fetches only what is newer.

use crate::install;
use anyhow::{Context, Result, bail, ensure};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The kernel: a package without content that needs the newest one.
const KERNEL: &str = "linux-image-cloud-amd64";
/// The packages that are asked for, and why.
const WANTED: [(&str, &str); 3] = [
    (KERNEL, "the kernel for virtual machines"),
    ("nginx", "the web server"),
    ("busybox-static", "to load modules and to set addresses"),
];
/// The commands, and their package.
const TOOLS: [(&str, &str); 4] = [("apt-cache", "apt"), ("apt-get", "apt"), ("dpkg-deb", "dpkg"), ("dpkg", "dpkg")];

/// A package, as apt's lists describe it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Package {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// Names of packages that it depends on, of alternatives the first.
    depends: Vec<String>,
}

/// The packages, unpacked into one tree.
pub struct Unpacked {
    /// The tree.
    pub root: PathBuf,
    /// Its parts.
    pub packages: Vec<Package>,
}

/// Fetches the packages and unpacks them below `folder`.
pub fn fetch(folder: &Path) -> Result<Unpacked> {
    check_tools()?;
    let packages = closure(&describe)?;
    let archives = folder.join("packages");
    fs::create_dir_all(&archives).with_context(|| format!("cannot make {}", archives.display()))?;
    // Asked from another folder: apt keeps silent about files that it finds in its own.
    let files = files(&apt_download(folder, &packages, &["--print-uris"])?)?;
    ensure!(files.len() == packages.len(), "apt-get names {} files for {} packages", files.len(), packages.len());
    let missing = |file: &&File| fs::metadata(archives.join(&file.name)).map_or(true, |data| data.len() != file.bytes);
    let bytes: u64 = files.iter().filter(missing).map(|file| file.bytes).sum();
    if bytes > 0 {
        eprintln!(
            "Fetching {:.0} MB of Debian's packages by `apt-get download`; nothing is installed. They are:",
            bytes as f64 / 1e6
        );
        for (name, reason) in WANTED {
            eprintln!("  {name}: {reason}");
        }
        eprintln!("  and the libraries that nginx is linked with.");
        apt_download(&archives, &packages, &["-qq"])?;
    }
    let root = folder.join("root");
    if root.exists() {
        fs::remove_dir_all(&root).with_context(|| format!("cannot remove {}", root.display()))?;
    }
    for file in &files {
        let archive = archives.join(&file.name);
        let mut command = Command::new("dpkg-deb");
        output(command.arg("-x").arg(&archive).arg(&root))?;
    }
    Ok(Unpacked { root, packages })
}

fn check_tools() -> Result<()> {
    for (tool, package) in TOOLS {
        ensure!(
            install::starts(tool, "--version"),
            "the comparison with Linux takes Debian's packages, and `{tool}` is not there to fetch them: use a \
             computer (or a container) with Debian; there its package is {package}"
        );
    }
    let architecture = output(Command::new("dpkg").arg("--print-architecture"))?;
    let architecture = architecture.trim();
    ensure!(
        architecture == "amd64",
        "Debian's packages for amd64 are needed, and apt here is set up for {architecture}"
    );
    Ok(())
}

/// The output of a command; an error with what it complains about if it fails.
fn output(command: &mut Command) -> Result<String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output =
        command.env("LC_ALL", "C").stdin(Stdio::null()).output().with_context(|| format!("cannot start {name}"))?;
    if !output.status.success() {
        bail!("`{name}` failed:\n{}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn apt_download(folder: &Path, packages: &[Package], options: &[&str]) -> Result<String> {
    let exact = packages.iter().map(|package| format!("{}={}", package.name, package.version));
    output(Command::new("apt-get").current_dir(folder).arg("download").args(options).args(exact))
}

/// The entry of a package in apt's lists.
fn describe(name: &str) -> Result<Package> {
    let text = output(Command::new("apt-cache").args(["show", "--no-all-versions", name])).with_context(|| {
        format!("apt does not know Debian's package {name}: `apt-get update` (as root) brings its lists up to date")
    })?;
    package(&text).with_context(|| format!("the description of the package {name}"))
}

/// The wanted packages and what they need to run here: of the kernel's only the kernel itself, of the others only libraries.
fn closure(describe: &dyn Fn(&str) -> Result<Package>) -> Result<Vec<Package>> {
    let mut found: BTreeMap<String, Package> = BTreeMap::new();
    let mut waiting: Vec<String> = WANTED.iter().map(|(name, _)| name.to_string()).collect();
    while let Some(name) = waiting.pop() {
        if found.contains_key(&name) {
            continue;
        }
        let package = describe(&name)?;
        let follows = |other: &&String| {
            let library = other.starts_with("lib") || other.starts_with("zlib");
            if name == KERNEL {
                other.starts_with("linux-image-")
            } else {
                library && !name.starts_with("linux-image-")
            }
        };
        waiting.extend(package.depends.iter().filter(follows).cloned());
        found.insert(name, package);
    }
    Ok(found.into_values().collect())
}

/// Reads the first paragraph of a description.
fn package(text: &str) -> Result<Package> {
    let field = |name: &str| {
        let mut lines = text.lines().take_while(|line| !line.is_empty());
        lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(':').map(str::trim))
    };
    let first = |wish: &str| {
        let wish = wish.split('|').next().unwrap_or(wish).trim();
        wish.split([' ', '(', ':']).next().unwrap_or(wish).to_string()
    };
    let depends = field("Depends").into_iter().flat_map(|depends| depends.split(','));
    Ok(Package {
        name: field("Package").context("it has no name")?.into(),
        version: field("Version").context("it has no version")?.into(),
        depends: depends.map(first).filter(|name| !name.is_empty()).collect(),
    })
}

/// A file to be fetched.
#[derive(Debug, PartialEq, Eq)]
struct File {
    name: String,
    bytes: u64,
}

/// Reads lines `'address' name bytes hash`.
fn files(text: &str) -> Result<Vec<File>> {
    let file = |line: &str| {
        let mut words = line.split(' ').skip(1);
        let (name, bytes) = (words.next()?, words.next()?.parse().ok()?);
        // It becomes a path.
        (!name.contains('/') && name.ends_with(".deb")).then(|| File { name: name.into(), bytes })
    };
    let lines = text.lines().filter(|line| line.starts_with('\''));
    let files = lines.map(|line| file(line).with_context(|| format!("apt-get says `{line}`")));
    files.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptions_are_read() {
        let text = "Package: nginx\nVersion: 1.22.1-9\nDepends: libc6 (>= 2.34), libx (>= 1) | liby, perl:any, iproute2\n\
                    Description: Depends: nothing\n\nPackage: other\n";
        let depends = ["libc6", "libx", "perl", "iproute2"].map(String::from).to_vec();
        assert_eq!(package(text).unwrap(), Package { name: "nginx".into(), version: "1.22.1-9".into(), depends });
        assert!(package("Package: nginx\n\nVersion: 1\n").is_err());
    }

    #[test]
    fn only_what_is_needed_is_fetched() {
        let describe = |name: &str| {
            let depends = match name {
                KERNEL => "linux-image-6.1-cloud-amd64",
                "linux-image-6.1-cloud-amd64" => "kmod, initramfs-tools, libfoo",
                "nginx" => "libc6, iproute2, zlib1g",
                "zlib1g" => "libc6",
                "libc6" => "libgcc-s1",
                "libgcc-s1" | "busybox-static" => "",
                other => bail!("{other} is not needed"),
            };
            package(&format!("Package: {name}\nVersion: 1\nDepends: {depends}\n"))
        };
        let names: Vec<String> = closure(&describe).unwrap().into_iter().map(|package| package.name).collect();
        let expected =
            ["busybox-static", "libc6", "libgcc-s1", "linux-image-6.1-cloud-amd64", KERNEL, "nginx", "zlib1g"];
        assert_eq!(names, expected);
    }

    #[test]
    fn files_are_read() {
        let text = "'http://deb.debian.org/x/nginx_1.22_amd64.deb' nginx_1%3a1_amd64.deb 531468 SHA256:0\n";
        assert_eq!(files(text).unwrap(), [File { name: "nginx_1%3a1_amd64.deb".into(), bytes: 531_468 }]);
        for bad in ["'http://x' ../x.deb 1 h", "'http://x' x.deb many h", "'http://x'"] {
            assert!(files(bad).is_err(), "{bad}");
        }
    }
}
