//! `./x docs`: the book as pages for a browser, and what the crates offer.
//!
//! mdBook makes the pages, from a copy with the table of contents that it wants, which comes from the book's list of
//! chapters. Whether links lead somewhere is checked by `./x test links`, without mdBook.

pub mod links;
mod pages;
pub mod terms;

use crate::install;
use crate::project::{Project, read, read_text, write};
use anyhow::{Context, Result, bail, ensure};
use pages::Page;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The configuration of mdBook.
const CONFIGURATION: &str = "[book]\ntitle = \"Cairn\"\nlanguage = \"en\"\nsrc = \"source\"\n\n\
    [output.html]\ndefault-theme = \"light\"\npreferred-dark-theme = \"navy\"\n";
/// The first page: mdBook puts a copy of the first chapter there, whose links lead nowhere.
const FIRST: &str = "<!doctype html>\n<meta charset=\"utf-8\">\n<title>Cairn</title>\n\
    <meta http-equiv=\"refresh\" content=\"0; url=book/index.html\">\n<a href=\"book/index.html\">The Cairn book</a>\n";

/// Makes both and says where they are.
pub fn docs(project: &Project) -> Result<u8> {
    links::check(&project.root).context("links of the documents (`./x test links`)")?;
    let book = book(project)?;
    let interface = interfaces(project)?;
    println!("the book:   {}", book.display());
    println!("the crates: {}", interface.display());
    Ok(0)
}

/// Makes the book; says where its first page is.
fn book(project: &Project) -> Result<PathBuf> {
    let program = install::mdbook(&project.target.join("tools"))?;
    let folder = project.target.join("docs");
    let source = folder.join("source");
    if source.exists() {
        fs::remove_dir_all(&source).with_context(|| format!("cannot remove {}", source.display()))?;
    }
    let mut files = BTreeSet::new();
    links::collect(&project.root, Path::new("docs"), &mut files)?;
    for file in &files {
        let to = source.join(file.strip_prefix("docs").unwrap_or(file));
        fs::create_dir_all(to.parent().context("a file without a folder")?)?;
        let content = read(&project.root.join(file))?;
        // mdBook makes `index.html` of such a page, but leaves links to it as they are.
        let content = if is_page(file) {
            String::from_utf8_lossy(&content).replace("README.md)", "index.md)").into_bytes()
        } else {
            content
        };
        write(&to, &content)?;
    }
    write(&source.join("SUMMARY.md"), contents(project, &files)?.as_bytes())?;
    write(&folder.join("book.toml"), CONFIGURATION.as_bytes())?;
    let pages = folder.join("pages");
    let mut command = Command::new(&program);
    command.arg("build").arg("--dest-dir").arg(&pages).arg(&folder).stdin(Stdio::null());
    let output = command.output().with_context(|| format!("cannot start {}", program.display()))?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "mdBook failed:\n{said}");
    write(&pages.join("index.html"), FIRST.as_bytes())?;
    Ok(pages.join("index.html"))
}

/// The table of contents, as mdBook wants it: the chapters of the book's list, and what stands beside the book.
fn contents(project: &Project, files: &BTreeSet<PathBuf>) -> Result<String> {
    let mut text = "# Summary\n\n[The Cairn book](book/README.md)\n\n".to_string();
    let mut listed = BTreeSet::from([PathBuf::from("docs/book/README.md")]);
    let list = Page::read(&read_text(&project.root.join("docs/book/README.md"))?);
    for (_, link) in &list.links {
        let file = links::plain(&Path::new("docs/book").join(link));
        add(project, &mut text, &mut listed, &file, "")?;
        if file.ends_with("README.md") {
            let beside = files.iter().filter(|other| other.parent() == file.parent() && is_page(other));
            beside.into_iter().try_for_each(|other| add(project, &mut text, &mut listed, other, "  "))?;
        }
    }
    let others = files.iter().filter(|file| is_page(file));
    others.into_iter().try_for_each(|file| add(project, &mut text, &mut listed, file, ""))?;
    Ok(text)
}

/// Adds a row for a page that has none yet.
fn add(project: &Project, text: &mut String, listed: &mut BTreeSet<PathBuf>, file: &Path, indent: &str) -> Result<()> {
    if listed.insert(file.to_path_buf()) {
        let page = read_text(&project.root.join(file))?;
        let title = page.lines().find_map(|line| line.strip_prefix("# "));
        let title = title.with_context(|| format!("{} has no title: a line `# …`", file.display()))?;
        let path = file.strip_prefix("docs").unwrap_or(file);
        text.push_str(&format!("{indent}- [{title}]({})\n", path.display()));
    }
    Ok(())
}

fn is_page(file: &Path) -> bool {
    file.extension().is_some_and(|extension| extension == "md")
}

/// Name of the test that what the crates say of themselves has no mistakes.
pub const CRATES: &str = "rustdoc";

/// The command that makes the pages of all crates, as they are for this computer.
pub fn documentation(project: &Project) -> Command {
    let mut command = Command::new("cargo");
    command.args(["doc", "--workspace", "--no-deps", "--keep-going", "--target-dir"]).arg(pages(project));
    // A module's text may name what only its own crate sees; that of an option is also printed by `--help`.
    command.env("RUSTDOCFLAGS", "-D warnings -A rustdoc::private-intra-doc-links -A rustdoc::bare-urls");
    command.current_dir(&project.root).stdin(Stdio::null());
    command
}

fn pages(project: &Project) -> PathBuf {
    project.target.join("docs/crates")
}

/// Makes the pages of all crates; says where the first one is.
fn interfaces(project: &Project) -> Result<PathBuf> {
    let mut command = documentation(project);
    if !command.status().context("cannot start cargo")?.success() {
        bail!("the documentation of the crates has mistakes; rustdoc has said which");
    }
    Ok(pages(project).join("doc/nucleus/index.html"))
}
