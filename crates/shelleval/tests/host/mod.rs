//! This computer as a world: its programs, files and pipes.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

use shelleval::state::{Shell, State};
use shelleval::world::{NotStarted, Opening, Stat, Streams, Work, World};

/// Threads at the same time.
const MAX_THREADS: usize = 16;

#[derive(Clone)]
pub struct Host {
    pub stop: Arc<AtomicBool>,
    pub threads: Arc<AtomicUsize>,
    /// Memory: so many more questions are answered with yes.
    pub room: Arc<AtomicUsize>,
    began: Instant,
}

impl Host {
    pub fn new() -> Self {
        Self {
            stop: Arc::default(),
            threads: Arc::default(),
            room: Arc::new(AtomicUsize::new(usize::MAX)),
            began: Instant::now(),
        }
    }
}

pub fn null() -> Arc<File> {
    Arc::new(OpenOptions::new().read(true).write(true).open("/dev/null").unwrap())
}

impl World for Host {
    type Stream = Arc<File>;
    type Child = std::process::Child;
    type Thread = thread::JoinHandle<u64>;

    fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
    fn room(&self) -> bool {
        let left = self.room.load(Ordering::Relaxed);
        self.room.store(left.saturating_sub(1), Ordering::Relaxed);
        left > 0
    }
    fn clock(&self) -> u64 {
        self.began.elapsed().as_nanos() as u64
    }
    fn open(&self, _: &State, path: &str, opening: Opening, _: &[String]) -> Result<Arc<File>, String> {
        let mut options = OpenOptions::new();
        match opening {
            Opening::Read => options.read(true),
            Opening::Write => options.write(true).create(true).truncate(true),
            Opening::Append => options.append(true).create(true),
        };
        options.open(path).map(Arc::new).map_err(|error| error.to_string())
    }
    fn shared(&self, stream: Arc<File>) -> Result<Arc<File>, String> {
        Ok(stream)
    }
    fn null(&self) -> Arc<File> {
        null()
    }
    fn pipe(&self) -> Result<(Arc<File>, Arc<File>), String> {
        let (reads, writes) = std::io::pipe().map_err(|error| error.to_string())?;
        let file = |fd: std::os::fd::OwnedFd| Arc::new(File::from(fd));
        Ok((file(reads.into()), file(writes.into())))
    }
    fn read(&self, stream: &Arc<File>, into: &mut [u8]) -> Result<usize, String> {
        (&**stream).read(into).map_err(|error| error.to_string())
    }
    fn write(&self, stream: &Arc<File>, bytes: &[u8]) -> Result<(), String> {
        (&**stream).write_all(bytes).map_err(|error| error.to_string())
    }
    fn stat(&self, path: &str) -> Option<Stat> {
        let data = fs::metadata(path).ok()?;
        Some(Stat { is_directory: data.is_dir(), is_file: data.is_file(), size: data.len() })
    }
    fn names(&self, path: &str) -> Vec<String> {
        let entries = fs::read_dir(path).into_iter().flatten().flatten();
        entries.filter_map(|entry| entry.file_name().into_string().ok()).collect()
    }
    fn script(&self, path: &str) -> Result<String, String> {
        fs::read_to_string(path).map_err(|error| error.to_string())
    }
    fn absolute(&self, directory: &str, path: &str) -> String {
        let mut parts: Vec<&str> = Vec::new();
        let all = if path.starts_with('/') { path.to_string() } else { format!("{directory}/{path}") };
        for part in all.split('/') {
            match part {
                "" | "." => {}
                ".." => drop(parts.pop()),
                part => parts.push(part),
            }
        }
        format!("/{}", parts.join("/"))
    }
    fn spawn(&self, state: &State, words: &[String], streams: &Streams<Self>) -> Result<Self::Child, NotStarted> {
        let name = &words[0];
        let path = if name.contains('/') {
            self.absolute(&state.directory, name)
        } else {
            let directories = state.variable("PATH").unwrap_or_default().split(':').map(|d| format!("{d}/{name}"));
            directories.into_iter().find(|path| fs::metadata(path).is_ok()).ok_or(NotStarted::NotFound(name.clone()))?
        };
        if !fs::metadata(&path).map_err(|_| NotStarted::NotFound(name.clone()))?.is_file() {
            return Err(NotStarted::Other(format!("{name}: not a file")));
        }
        let mut magic = [0; 4];
        let _ = File::open(&path).and_then(|mut file| file.read(&mut magic));
        if magic != *b"\x7fELF" {
            return Err(NotStarted::NotAProgram(path));
        }
        let variables: HashMap<String, String> = state
            .environment()
            .iter()
            .filter_map(|text| text.split_once('=').map(|(name, value)| (name.into(), value.into())))
            .collect();
        let stream = |at: usize| Stdio::from(streams[at].try_clone().unwrap());
        Command::new(&path)
            .args(&words[1..])
            .env_clear()
            .envs(variables)
            .current_dir(&state.directory)
            .stdin(stream(0))
            .stdout(stream(1))
            .stderr(stream(2))
            .spawn()
            .map_err(|error| NotStarted::Other(error.to_string()))
    }
    fn wait(&self, children: Vec<Self::Child>) -> Vec<u64> {
        let status = |mut child: Self::Child| {
            let status = child.wait().unwrap();
            status.code().map_or_else(|| 128 + status.signal().unwrap_or(9) as u64, |code| code as u64)
        };
        children.into_iter().map(status).collect()
    }
    fn start(&self, work: Work) -> Result<Self::Thread, String> {
        if self.threads.fetch_add(1, Ordering::Relaxed) >= MAX_THREADS {
            self.threads.fetch_sub(1, Ordering::Relaxed);
            return Err("too many threads".into());
        }
        let threads = self.threads.clone();
        let run = move || {
            let status = work();
            threads.fetch_sub(1, Ordering::Relaxed);
            status
        };
        // As small as those of Cairn, but for what a debug build adds.
        thread::Builder::new().stack_size(256 * 1024).spawn(run).map_err(|error| error.to_string())
    }
    fn join(&self, thread: Self::Thread) -> u64 {
        thread.join().unwrap()
    }
    fn background(&self, _: &Shell, _: &str, work: Box<dyn FnOnce(Self) -> u64 + Send>) -> Result<(), String> {
        let world = self.clone();
        drop(thread::spawn(move || work(world)));
        Ok(())
    }
    fn has_command(&self, name: &str) -> bool {
        name == "own"
    }
    fn command(&self, state: &mut State, words: &[String], streams: &Streams<Self>) -> u64 {
        let text = format!("{} {}\n", state.directory, words.join(","));
        let _ = self.write(&streams[1], text.as_bytes());
        7
    }
}
