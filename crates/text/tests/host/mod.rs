//! This computer as the system of a tool, and the tools that it has.

use std::cell::RefCell;
use std::fs;
use std::io::{Read, Seek, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};

use text::call::{Before, Take, Unstarted};
use text::{Flow, Kind, Lost, Named, Sink, System};

/// How a call ended.
#[derive(Debug, PartialEq, Eq)]
pub struct Ended {
    pub status: i32,
    pub stdout: Vec<u8>,
    pub stderr: String,
}

/// A directory of its own, in which tools run.
pub struct Host {
    directory: PathBuf,
    variables: Vec<(&'static str, &'static str)>,
}

/// The words of a call; '' is an empty one.
pub fn words(call: &str) -> Vec<&str> {
    call.split(' ').map(|word| if word == "''" { "" } else { word }).collect()
}

impl Host {
    pub fn new() -> Self {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let directory = std::env::temp_dir().join(format!("cairn-text-{}-{number}", std::process::id()));
        fs::create_dir_all(&directory).expect("a directory for the test");
        Self { directory, variables: vec![("A", "a value"), ("LC_ALL", "C"), ("PATH", "/usr/bin:/bin")] }
    }

    pub fn with(mut self, name: &'static str, value: &'static str) -> Self {
        self.variables.retain(|(known, _)| *known != name);
        self.variables.push((name, value));
        self
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    pub fn file(&self, name: &str, bytes: &[u8]) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().expect("it is in the directory")).expect("a directory of the test");
        fs::write(path, bytes).expect("a file of the test");
    }

    pub fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name)).expect("a file of the test")
    }

    /// Our tool.
    pub fn ours(&self, words: &[&str], input: &[u8]) -> Ended {
        self.run(words, input, usize::MAX)
    }

    /// Our tool, when nobody reads what it writes.
    pub fn closed(&self, words: &[&str]) -> Ended {
        self.run(words, b"", 0)
    }

    fn run(&self, words: &[&str], input: &[u8], room: usize) -> Ended {
        let tool = text::TOOLS.iter().find(|tool| tool.name == words[0]).expect("there is a tool of the name");
        let run = Run { host: self, input, room, output: RefCell::default(), errors: RefCell::default() };
        let status = text::run(tool, &words[1..], &run).into();
        Ended { status, stdout: run.output.into_inner(), stderr: run.errors.into_inner() }
    }

    /// The tool of this computer.
    pub fn theirs(&self, words: &[&str], input: &[u8]) -> Ended {
        let mut command = Command::new(words[0]);
        command.args(&words[1..]).current_dir(&self.directory).env_clear().envs(self.variables.iter().copied());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap_or_else(|error| {
            panic!("{} is needed on this computer to compare with it, and cannot be started: {error}", words[0])
        });
        // One that ends without reading all does no harm.
        let _ = child.stdin.take().expect("it is a pipe").write_all(input);
        let output = child.wait_with_output().expect("it ends");
        Ended {
            status: output.status.code().unwrap_or(-1),
            stdout: output.stdout,
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// Both print the same and end with the same status; both complain, or none.
    pub fn same(&self, words: &[&str], input: &[u8]) {
        self.compare(words, input, <[u8]>::to_vec);
    }

    /// The same, but for the order of the lines.
    pub fn same_lines(&self, words: &[&str], input: &[u8]) {
        self.compare(words, input, |text| {
            let mut lines: Vec<&[u8]> = text.split_inclusive(|byte| *byte == b'\n').collect();
            lines.sort_unstable();
            lines.concat()
        });
    }

    /// The same, but for the times of files.
    pub fn same_hunks(&self, words: &[&str], input: &[u8]) {
        self.compare(words, input, |text| {
            let text = String::from_utf8_lossy(text);
            let lines = text.split_inclusive('\n').map(|line| match line.split_once('\t') {
                Some((name, _)) if line.starts_with("---") || line.starts_with("+++") => format!("{name}\n"),
                _ => line.to_owned(),
            });
            lines.collect::<String>().into_bytes()
        });
    }

    fn compare(&self, words: &[&str], input: &[u8], form: impl Fn(&[u8]) -> Vec<u8>) {
        let [ours, theirs] = [self.ours(words, input), self.theirs(words, input)];
        let text = |ended: &Ended| String::from_utf8_lossy(&form(&ended.stdout)).into_owned();
        assert_eq!(text(&ours), text(&theirs), "{words:?} prints something else: {} {}", ours.stderr, theirs.stderr);
        // Called wrongly, all of ours end with 2.
        let is_usage = ours.stderr.contains("--help");
        assert!(ours.status == theirs.status || is_usage && theirs.status != 0, "{words:?} {ours:?} {theirs:?}");
        assert_eq!(ours.stderr.is_empty(), theirs.stderr.is_empty(), "{words:?} {ours:?} {theirs:?}");
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.directory);
    }
}

/// A run of one of our tools.
struct Run<'h> {
    host: &'h Host,
    input: &'h [u8],
    /// Bytes of output that are taken.
    room: usize,
    output: RefCell<Vec<u8>>,
    errors: RefCell<String>,
}

/// Lines of a block, about: odd enough that ends of blocks are anywhere.
const BLOCK: usize = 37;

fn text(error: impl ToString) -> String {
    error.to_string()
}

impl System for Run<'_> {
    fn each_block(&self, path: &str, take: Take<'_>) -> Result<(), String> {
        let bytes = match path {
            "-" => self.input.to_vec(),
            path => fs::read(self.host.path(path)).map_err(text)?,
        };
        // A zero is seen with all that is read at once, as the usual tools do.
        let size = if bytes.contains(&0) { bytes.len() } else { BLOCK };
        let _ = bytes.chunks(size).find(|block| take(block) == Flow::Enough);
        Ok(())
    }

    fn read_at(&self, path: &str, offset: u64, into: &mut [u8]) -> Result<usize, String> {
        let mut file = fs::File::open(self.host.path(path)).map_err(text)?;
        file.seek(std::io::SeekFrom::Start(offset)).map_err(text)?;
        file.read(into).map_err(text)
    }

    fn write(&self, bytes: &[u8]) -> Result<(), Lost> {
        let mut output = self.output.borrow_mut();
        if output.len() + bytes.len() > self.room {
            return Err(Lost::Closed);
        }
        output.extend_from_slice(bytes);
        Ok(())
    }

    fn flush(&self) -> Result<(), Lost> {
        Ok(())
    }

    fn complain(&self, line: &str) {
        *self.errors.borrow_mut() += &format!("{line}\n");
    }

    fn look(&self, path: &str) -> Result<Option<Kind>, String> {
        let Ok(found) = fs::metadata(self.host.path(path)) else { return Ok(None) };
        Ok(Some(match () {
            () if found.is_dir() => Kind::Directory,
            () if found.permissions().mode() & 0o111 != 0 => Kind::Program,
            () => Kind::File,
        }))
    }

    fn size(&self, path: &str) -> Option<u64> {
        fs::metadata(self.host.path(path)).ok().filter(|found| found.is_file()).map(|found| found.len())
    }

    fn directory(&self, path: &str) -> Result<Vec<Named>, String> {
        let entries = fs::read_dir(self.host.path(path)).map_err(text)?;
        let mut names: Vec<Named> = entries
            .map(|entry| {
                let entry = entry.expect("a name");
                let kind = if entry.path().is_dir() { Kind::Directory } else { Kind::File };
                Named { name: entry.file_name().to_string_lossy().into_owned(), kind }
            })
            .collect();
        names.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(names)
    }

    fn create(&self, path: &str, before: Before) -> Result<Box<dyn Sink + '_>, String> {
        let mut options = fs::OpenOptions::new();
        options.create(true);
        match before {
            Before::Gone => options.write(true).truncate(true),
            Before::Kept => options.append(true),
        };
        options.open(self.host.path(path)).map(|file| Box::new(File(file)) as Box<dyn Sink>).map_err(text)
    }

    fn mark(&self, _path: &str) -> Result<(), String> {
        Ok(())
    }

    fn environment(&self) -> Vec<String> {
        self.host.variables.iter().map(|(name, value)| format!("{name}={value}")).collect()
    }

    fn start(&self, words: &[&str], environment: &[String]) -> Result<u8, Unstarted> {
        let mut command = Command::new(words[0]);
        command.args(&words[1..]).env_clear().envs(environment.iter().filter_map(|variable| variable.split_once('=')));
        let output = command.output().map_err(|error| Unstarted::NotFound(error.to_string()))?;
        self.output.borrow_mut().extend(output.stdout);
        Ok(output.status.code().unwrap_or(1) as u8)
    }

    fn pause(&self) -> Flow {
        Flow::Enough
    }
}

struct File(fs::File);

impl Sink for File {
    fn write(&mut self, bytes: &[u8]) -> Result<(), String> {
        self.0.write_all(bytes).map_err(text)
    }
}
