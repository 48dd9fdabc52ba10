//! One run of the emulator: its arguments, its input and output, its time limit, what its end means.

use crate::http;
use crate::image::Image;
use crate::isa::Isa;
use anyhow::{Context, Result, bail};
use regex::bytes::Regex;
use std::fmt;
use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Exit status of `./x` when the time limit was reached, as `timeout(1)` has it.
pub const TIMED_OUT: u8 = 124;
/// How often the emulator and its output are looked at.
const POLL: Duration = Duration::from_millis(5);
/// How long what this computer does may take in a run without a limit.
const LONGEST_WORK: Duration = Duration::from_secs(3600);

/// The machine to emulate.
#[derive(Clone, Debug)]
pub struct Machine {
    /// As QEMU takes it: `64M`.
    pub memory: String,
    /// CPUs, 1 to 64.
    pub cpus: u32,
    /// Another board than the usual one, as QEMU takes it: `virt,gic-version=2`.
    pub board: Option<String>,
    /// Another processor than the usual one.
    pub cpu: Option<String>,
    /// One tick per instruction, the same in every run.
    pub icount: bool,
    /// Several CPUs take turns, even if this computer has as many.
    pub turns: bool,
    /// Wait for gdb on this port before the first instruction.
    pub gdb_port: Option<u16>,
    /// A plugin that counts instructions, and its arguments. The clock is one tick per instruction, too, but without
    /// `icount` goes on with the host's while the machine waits: for what a client on the host sends.
    pub counter: Option<String>,
    /// A file for what a nucleus that traces writes.
    pub trace: Option<PathBuf>,
    /// A file for what a nucleus that checks itself writes.
    pub refusals: Option<PathBuf>,
    /// Further words for the nucleus.
    pub append: String,
    /// No device that gives randomness, though the system has a driver for it.
    pub without_entropy: bool,
    /// No network device, though the system has a driver for it.
    pub without_network: bool,
    /// Further arguments of the emulator; they prevail over ours.
    pub emulator: Vec<String>,
    /// The files loaded in place of kernel, archive and command line, as the emulator takes it.
    pub loaded: Option<Vec<String>>,
    /// The network's other end is this process: the sockets of the machine and of us, for frames.
    pub wire: Option<[PathBuf; 2]>,
}

impl Machine {
    /// One CPU, this memory, the clock of the host.
    pub fn new(memory: &str) -> Self {
        Self {
            memory: memory.into(),
            cpus: 1,
            board: None,
            cpu: None,
            icount: false,
            turns: false,
            gdb_port: None,
            counter: None,
            trace: None,
            refusals: None,
            append: String::new(),
            without_entropy: false,
            without_network: false,
            emulator: Vec::new(),
            loaded: None,
            wire: None,
        }
    }

    /// Is its clock one of instructions, of ours?
    fn counts(&self) -> bool {
        self.icount || self.counter.is_some()
    }
}

/// Something to do once the output shows something.
#[derive(Clone, Debug)]
pub struct Step {
    /// Matches what was printed since the step before.
    pub after: Regex,
    /// The input that is typed then.
    pub send: Vec<u8>,
    /// The request to the web server before.
    pub fetch: Option<Fetch>,
    /// The work on this computer before.
    pub work: Option<Work>,
}

/// Something that this computer does with the machine; the text becomes part of the output.
#[derive(Clone)]
pub struct Work(pub Arc<dyn Fn(&Watch) -> String + Send + Sync>);

impl fmt::Debug for Work {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Work")
    }
}

/// A work's view of the machine.
pub struct Watch {
    output: Collected,
    from: usize,
    /// When it must have ended.
    pub until: Instant,
}

impl Watch {
    /// The console's output since the step was reached.
    pub fn printed(&self) -> String {
        String::from_utf8_lossy(&self.output.lock()[self.from..]).into_owned()
    }
}

/// A request from this computer, retried until it is answered. The answer becomes a line of the output:
/// `host: fetched PATH: BODY`.
#[derive(Clone, Debug)]
pub struct Fetch {
    /// Port of this computer that leads to the web server.
    pub port: u16,
    /// From `/` on.
    pub path: String,
}

/// How the console is connected.
pub enum Console<'a> {
    /// To this terminal, raw.
    Terminal,
    /// Input from our standard input, output to our standard output.
    Streams,
    /// Typed by steps; the output is collected, and printed as it comes if `echo`.
    Steps {
        /// The input to type.
        steps: &'a [Step],
        /// Print as it comes.
        echo: bool,
    },
}

/// The keys that leave the emulator.
pub const LEAVE: &str = "Ctrl-], then X";

/// How a run ended.
#[derive(Debug, PartialEq, Eq)]
pub enum End {
    /// The machine stopped itself with this status.
    Status(u8),
    /// A person left the emulator, or the machine reset itself.
    Reset,
    /// The time limit was reached.
    TimedOut,
}

/// The time limit was reached.
#[derive(Debug)]
pub struct TimedOut(pub f64);

impl fmt::Display for TimedOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the time limit of {} seconds was reached; the emulator was ended", self.0)
    }
}

impl std::error::Error for TimedOut {}

/// Arguments of the emulator for this image and machine, without those of the console.
pub fn arguments(image: &Image, machine: &Machine) -> Vec<String> {
    let mut words = image.isa.board(machine.board.as_deref(), machine.cpu.as_deref());
    let mut pair = |option: &str, value: String| words.extend([option.to_string(), value]);
    pair("-accel", accelerator(machine).into());
    pair("-m", machine.memory.clone());
    pair("-smp", machine.cpus.to_string());
    let append = [image.isa.command_line(), &image.command_line, &machine.append].map(str::trim).join(" ");
    if machine.loaded.is_none() {
        pair("-kernel", image.nucleus.display().to_string());
        pair("-initrd", image.archive.display().to_string());
        pair("-append", append.trim().to_string());
    }
    if let Some(forwards) = image.forwards.as_ref().filter(|_| !machine.without_network) {
        let forwards: String = forwards.iter().map(|forward| format!(",{forward}")).collect();
        let other_end = machine.wire.as_ref().map_or_else(|| format!("user,id=net0{forwards}"), datagrams);
        pair("-netdev", other_end);
        pair("-device", "virtio-net-pci,disable-legacy=on,netdev=net0".into());
    }
    if let Some(file) = machine.trace.as_ref().or(machine.refusals.as_ref()) {
        image.isa.debug_console(file).into_iter().for_each(|(option, value)| pair(option, value));
    }
    if image.entropy && !machine.without_entropy {
        pair("-device", "virtio-rng-pci,disable-legacy=on".into());
    }
    if machine.counts() {
        // A machine that waits for the host must not skip the time until something is due.
        let talks = machine.counter.is_some() && !machine.icount || machine.trace.is_some() && image.forwards.is_some();
        let wait = if talks { "on" } else { "off" };
        pair("-icount", format!("shift=0,sleep={wait}"));
        pair("-seed", "1".into());
        pair("-rtc", "base=2026-01-01,clock=vm".into());
    }
    if let Some(plugin) = &machine.counter {
        pair("-plugin", plugin.clone());
    }
    if let Some(port) = machine.gdb_port {
        pair("-gdb", format!("tcp:127.0.0.1:{port}"));
        words.push("-S".into());
    }
    words.extend(machine.loaded.iter().flatten().cloned());
    words.extend_from_slice(&machine.emulator);
    words
}

/// How CPUs are emulated. With a clock of instructions they take turns in one thread of the host, and otherwise, too, if
/// there are more than the host has: a CPU that waits for a lock would else spin while the thread of the holder waits for a
/// CPU of the host. Where each can have a thread of its own it has, if the host's memory keeps writes in order as x86-64
/// does.
fn accelerator(machine: &Machine) -> &'static str {
    let counts = machine.counts() || machine.emulator.iter().any(|word| word == "-icount");
    match machine.cpus as usize {
        1 => "tcg",
        2.. if counts => "tcg",
        cpus if cpus <= host_cpus() && !machine.turns && cfg!(target_arch = "x86_64") => "tcg,thread=multi",
        _ => "tcg,thread=single",
    }
}

/// CPUs of this computer that we may use.
pub fn host_cpus() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

/// A wire whose frames are datagrams between two sockets of this host: the machine's and the other end's.
fn datagrams([machine, other]: &[PathBuf; 2]) -> String {
    let (machine, other) = (machine.display(), other.display());
    format!("dgram,id=net0,local.type=unix,local.path={machine},remote.type=unix,remote.path={other}")
}

/// Boots and waits for the end. Returns how it ended and what the console printed, without carriage
/// returns before line ends (nothing for [`Console::Terminal`]).
pub fn boot(image: &Image, machine: &Machine, console: Console<'_>, limit: Option<Duration>) -> Result<(End, Vec<u8>)> {
    let isa = image.isa;
    let mut command = command(isa);
    command.args(arguments(image, machine)).stderr(Stdio::piped());
    let (steps, echo) = match console {
        Console::Terminal => {
            // The usual key, Ctrl-A, goes to the start of a line in the shell.
            command.args(["-serial", "mon:stdio", "-echr", "0x1d"]);
            return terminal(isa, command, limit).map(|end| (end, Vec::new()));
        }
        Console::Streams => {
            command.stdin(Stdio::inherit());
            (&[][..], true)
        }
        Console::Steps { steps, echo } => {
            command.stdin(if steps.is_empty() { Stdio::null() } else { Stdio::piped() });
            (steps, echo)
        }
    };
    command.args(["-serial", "stdio", "-monitor", "none"]).stdout(Stdio::piped());
    let mut running = Running::start(command)?;
    let input = running.child.stdin.take();
    let output = Collected::default();
    let stdout = running.child.stdout.take().context("the emulator has no output")?;
    let printer = thread::spawn({
        let output = output.clone();
        move || output.collect(stdout, echo)
    });
    let exit = running.wait(limit, Typist { steps, input, output: output.clone(), seen: 0 });
    let complaints = running.complaints();
    let _ = printer.join();
    let end = exit?.map_or(Ok(End::TimedOut), |status| end_of(isa, status, &complaints))?;
    let mut output = std::mem::take(&mut *output.lock());
    if machine.loaded.is_some() {
        // Where nothing reports a serial line last words go to the emulator, which writes them there.
        output.extend_from_slice(complaints.as_bytes());
    }
    Ok((end, output))
}

/// Starts a machine with these arguments, has `work` done meanwhile, then ends it; gives what `work` gave.
/// `work` is notified when its time is over or the machine has ended by itself. The error of a `work` that
/// fails shows what the console printed last.
pub fn boot_for<T: Send>(
    isa: Isa,
    arguments: &[String],
    limit: Duration,
    work: impl FnOnce(&AtomicBool) -> Result<T> + Send,
) -> Result<T> {
    let mut command = command(isa);
    command.args(arguments).args(["-serial", "stdio", "-monitor", "none"]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut running = Running::start(command)?;
    let stdout = running.child.stdout.take().context("the emulator has no output")?;
    let (output, over) = (Collected::default(), AtomicBool::new(false));
    let result = thread::scope(|scope| {
        let printer = scope.spawn(|| output.collect(stdout, false));
        let work = scope.spawn(|| work(&over));
        let start = Instant::now();
        while !work.is_finished() && start.elapsed() < limit && matches!(running.child.try_wait(), Ok(None)) {
            thread::sleep(POLL);
        }
        let in_time = start.elapsed() < limit;
        over.store(true, Ordering::Relaxed);
        running.end();
        let _ = printer.join();
        let result = work.join().unwrap_or_else(|_| bail!("the concurrent work panicked"));
        if in_time { result } else { result.or(Err(TimedOut(limit.as_secs_f64()).into())) }
    });
    result.with_context(|| {
        let output = String::from_utf8_lossy(&output.lock()).into_owned();
        let last: Vec<&str> = output.lines().rev().take(20).collect();
        let last: Vec<&str> = last.into_iter().rev().collect();
        format!("the machine's last lines were\n{}\n{}", last.join("\n"), running.complaints().trim_end())
    })
}

/// The emulator's command. Where `setpriv` is at hand the emulator ends with us, however we end.
pub(crate) fn command(isa: Isa) -> Command {
    let emulator = isa.emulator();
    let tied = ["--pdeathsig", "KILL"];
    let works = Command::new("setpriv").args(tied).arg("true").stderr(Stdio::null()).status();
    if works.is_ok_and(|status| status.success()) {
        let mut command = Command::new("setpriv");
        command.args(tied).arg(emulator);
        return command;
    }
    Command::new(emulator)
}

/// The terminal belongs to the guest; a time limit must leave it as it was.
fn terminal(isa: Isa, command: Command, limit: Option<Duration>) -> Result<End> {
    let settings = Command::new("stty").arg("-g").stdin(Stdio::inherit()).output();
    let mut running = Running::start(command)?;
    let exit = running.wait(limit, Typist { steps: &[], input: None, output: Collected::default(), seen: 0 });
    let complaints = running.complaints();
    if let Ok(settings) = settings
        && let Ok(settings) = String::from_utf8(settings.stdout)
        && !settings.trim().is_empty()
    {
        // The emulator restores the terminal itself unless it was ended by the limit.
        let _ = Command::new("stty").arg(settings.trim()).status();
    }
    exit?.map_or(Ok(End::TimedOut), |status| end_of(isa, status, &complaints))
}

/// The emulator while it runs; it ends with this value.
pub(crate) struct Running {
    pub(crate) child: Child,
    complaints: Option<thread::JoinHandle<String>>,
}

impl Running {
    pub(crate) fn start(mut command: Command) -> Result<Self> {
        let mut child = command.spawn().context("cannot start the emulator")?;
        let complaints = child.stderr.take().map(|mut stderr| {
            thread::spawn(move || {
                let mut bytes = Vec::new();
                // Bytes read before an error are all there is.
                let _ = stderr.read_to_end(&mut bytes);
                String::from_utf8_lossy(&bytes).into_owned()
            })
        });
        Ok(Self { child, complaints })
    }

    /// Waits for the end, typing what is to be typed; `None` = the limit was reached and the emulator ended.
    fn wait(&mut self, limit: Option<Duration>, mut typist: Typist<'_>) -> Result<Option<ExitStatus>> {
        let start = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().context("cannot wait for the emulator")? {
                return Ok(Some(status));
            }
            typist.type_next(limit.map(|limit| start + limit));
            if limit.is_some_and(|limit| start.elapsed() >= limit) {
                self.child.kill().context("cannot end the emulator")?;
                self.child.wait().context("cannot wait for the emulator")?;
                return Ok(None);
            }
            thread::sleep(POLL);
        }
    }

    /// The complaints of the emulator itself.
    pub(crate) fn complaints(&mut self) -> String {
        self.complaints.take().and_then(|thread| thread.join().ok()).unwrap_or_default()
    }

    /// Ends it, if it has not ended by itself.
    pub(crate) fn end(&mut self) {
        // Both do nothing if it has.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.end();
    }
}

/// Types the steps.
struct Typist<'a> {
    steps: &'a [Step],
    input: Option<ChildStdin>,
    output: Collected,
    seen: usize,
}

impl Typist<'_> {
    fn type_next(&mut self, until: Option<Instant>) {
        let (Some((step, rest)), Some(input)) = (self.steps.split_first(), &mut self.input) else { return };
        let output = self.output.lock();
        let Some(found) = step.after.find(&output[self.seen.min(output.len())..]) else { return };
        let end = self.seen + found.end();
        drop(output);
        if let Some(fetch) = &step.fetch {
            let Ok(body) = http::get(fetch.port, &fetch.path) else { return };
            let line = format!("\nhost: fetched {}: {}\n", fetch.path, body.trim_end());
            self.output.lock().extend_from_slice(line.as_bytes());
        }
        if let Some(Work(work)) = &step.work {
            let until = until.unwrap_or_else(|| Instant::now() + LONGEST_WORK);
            let text = work(&Watch { output: self.output.clone(), from: end, until });
            self.output.lock().extend_from_slice(text.as_bytes());
        }
        self.seen = end;
        self.steps = rest;
        // A guest that is gone reads nothing; the run ends by itself then.
        let _ = input.write_all(&step.send).and_then(|()| input.flush());
    }
}

/// The console's output so far.
#[derive(Clone, Default)]
pub(crate) struct Collected(Arc<Mutex<Vec<u8>>>);

impl Collected {
    pub(crate) fn lock(&self) -> MutexGuard<'_, Vec<u8>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn collect(&self, mut stream: impl Read, echo: bool) {
        let mut buffer = [0; 4096];
        let mut held = false;
        while let Ok(count @ 1..) = stream.read(&mut buffer) {
            let mut text = Vec::with_capacity(count + 1);
            for &byte in &buffer[..count] {
                // A carriage return is kept unless a line end follows it.
                if held && byte != b'\n' {
                    text.push(b'\r');
                }
                held = byte == b'\r';
                if !held {
                    text.push(byte);
                }
            }
            if echo {
                let mut stdout = std::io::stdout().lock();
                // Nobody may be reading our output any more; the run goes on to its end.
                let _ = stdout.write_all(&text).and_then(|()| stdout.flush());
            }
            self.lock().extend_from_slice(&text);
        }
    }
}

/// The meaning of the emulator's exit: the guest's status `v` makes it end with `2 v + 1`.
fn end_of(isa: Isa, status: ExitStatus, complaints: &str) -> Result<End> {
    let own: Vec<&str> =
        complaints.lines().filter(|line| line.starts_with(isa.emulator()) && !line.contains("warning:")).collect();
    match status.code() {
        // Status 0 of the guest and a refusal of the emulator look alike but for its complaint.
        Some(1) if !own.is_empty() => {
            let is_memory = own.iter().any(|line| line.contains("cannot set up guest memory"));
            let why = if is_memory { "\nThis computer has too little memory for such a machine." } else { "" };
            bail!("the emulator refuses to start:\n{}{why}", own.join("\n"))
        }
        Some(code @ 1..=255) if code % 2 == 1 => Ok(End::Status((code / 2) as u8)),
        Some(0) => Ok(End::Reset),
        Some(code) => bail!("the emulator ended with status {code}\n{complaints}"),
        None => bail!("the emulator was ended by a signal\n{complaints}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt;

    fn end(code: i32, complaints: &str) -> Result<End> {
        end_of(Isa::default(), ExitStatus::from_raw(code << 8), complaints)
    }

    #[test]
    fn exit_codes_are_distinguished() {
        assert_eq!(end(1, "").unwrap(), End::Status(0));
        assert_eq!(end(3, "").unwrap(), End::Status(1));
        assert_eq!(end(255, "").unwrap(), End::Status(127));
        assert_eq!(end(0, "").unwrap(), End::Reset);
        assert!(end(2, "").is_err());
        let refusal = format!("{}: -m 1X: no size", Isa::default().emulator());
        assert!(end(1, &refusal).unwrap_err().to_string().contains("-m 1X"));
        let memory = format!("{}: cannot set up guest memory 'ram': no", Isa::default().emulator());
        assert!(end(1, &memory).unwrap_err().to_string().contains("too little memory"));
        assert_eq!(
            end(1, &format!("{}: warning: TCG doesn't support it", Isa::default().emulator())).unwrap(),
            End::Status(0)
        );
        assert!(end_of(Isa::default(), ExitStatus::from_raw(9), "").unwrap_err().to_string().contains("signal"));
    }

    #[test]
    fn cpus_run_at_once_where_that_helps() {
        let with = |cpus: usize| Machine { cpus: cpus as u32, ..Machine::new("64M") };
        assert_eq!(accelerator(&with(1)), "tcg");
        let usual = if cfg!(target_arch = "x86_64") { "tcg,thread=multi" } else { "tcg,thread=single" };
        let most = host_cpus();
        assert!(most < 2 || accelerator(&with(most)) == usual);
        assert_eq!(accelerator(&with(most + 1)), "tcg,thread=single");
        assert_eq!(accelerator(&Machine { turns: true, ..with(2) }), "tcg,thread=single");
        // The emulator refuses to start with threads and a clock of instructions.
        let several = with(most.max(2));
        assert_eq!(accelerator(&Machine { icount: true, ..several.clone() }), "tcg");
        assert_eq!(
            accelerator(&Machine { emulator: vec!["-icount".into(), "shift=0".into()], ..several.clone() }),
            "tcg"
        );
        assert_eq!(accelerator(&Machine { counter: Some("libcounter.so".into()), ..several }), "tcg");
    }

    #[test]
    fn carriage_returns_before_line_ends_are_dropped() {
        let collected = Collected::default();
        collected.collect(&b"one\r\ntwo\rthree\n\r\n"[..], false);
        assert_eq!(collected.lock().as_slice(), b"one\ntwo\rthree\n\n");
    }

    #[test]
    fn steps_wait_for_what_was_not_seen_before() -> Result<()> {
        // `cat` stands for the guest's end of the line.
        let mut child = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let step = |after: &str, send: &str| Step {
            after: Regex::new(after).unwrap(),
            send: send.into(),
            fetch: None,
            work: None,
        };
        let steps = [step("> ", "a\n"), step("> ", "b\n"), step("absent", "c\n")];
        let output = Collected::default();
        let mut typist = Typist { steps: &steps, input: child.stdin.take(), output: output.clone(), seen: 0 };
        typist.type_next(None);
        output.lock().extend_from_slice(b"> ");
        typist.type_next(None);
        typist.type_next(None);
        output.lock().extend_from_slice(b"a\n> ");
        typist.type_next(None);
        typist.type_next(None);
        drop(typist);
        assert_eq!(child.wait_with_output()?.stdout, b"a\nb\n");
        Ok(())
    }
}
