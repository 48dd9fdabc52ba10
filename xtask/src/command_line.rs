//! The command line of `./x`.

use crate::forward::Forward;
use crate::isa::{Boards, Isa};
use clap::{Args, Parser, Subcommand, ValueEnum};
use std::path::PathBuf;

/// Cairn: an operating system for running code you do not trust next to data you must not leak.
#[derive(Parser)]
#[command(
    name = "./x",
    bin_name = "./x",
    version,
    disable_help_subcommand = true,
    after_help = "Examples:\n  \
        ./x run                        boot and talk to the shell (Ctrl-] X leaves)\n  \
        ./x run --exec 'ls /; threads' run commands, print what they print, exit with their status\n  \
        ./x run --cpus 4               the same on four CPUs\n  \
        ./x --help, ./x run --help     more about all and each"
)]
pub struct CommandLine {
    /// The command.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Subcommand)]
pub enum Command {
    /// Build Cairn, boot it in the emulator, and connect this terminal to its console
    Run(RunOptions),
    /// Run the tests: format, lints, rules, host tests, boot tests; all, or those named
    Test(TestOptions),
    /// Measure the build that ships, and compare with budgets and peers
    Bench(BenchOptions),
    /// Make something new from a template
    #[command(subcommand)]
    New(New),
    /// Boot Cairn, halt before its first instruction, and wait for gdb
    Debug(DebugOptions),
    /// Make the book and the documentation of the crates, for a browser, and say where they are
    #[command(after_help = "Example:\n  ./x docs && xdg-open target/docs/pages/index.html\n\n\
        The book is made by mdBook, which is built and put into target/tools if it is not there: a few minutes, once.\n\
        Whether links lead somewhere is part of `./x test`: the group `links`.")]
    Docs,
    /// Draw a system description as a picture (SVG)
    Graph(GraphOptions),
    /// Show what fills a machine's memory: accounts, reserve, and the boot archive file by file
    Memory(MemoryOptions),
    /// Show which function and source line an address in a log belongs to
    Symbols(SymbolsOptions),
    /// Count the lines of code that all ISAs share, and those that each has for itself
    Lines(LinesOptions),
    /// List the code of a portal, with what each part is for
    Portal(PortalOptions),
    /// Judge traces of information-flow labels, and write some
    #[command(subcommand)]
    Labels(LabelsCommand),
    /// Record calls between domains, and when each thread runs, for https://ui.perfetto.dev
    Trace(TraceOptions),
    /// Show in which functions the instructions of a command or a request are executed
    Profile(ProfileOptions),
    /// Make the README's pictures from a running system, with Chromium
    #[command(hide = true)]
    Pictures,
}

/// `./x trace`
#[derive(Args, Clone)]
#[command(after_help = "Examples:\n  \
    ./x trace ls /                   the program, from the prompt to the end of the machine\n  \
    ./x trace 'cat /etc/motd | wc'   several programs\n  \
    ./x trace --boot                 from reset to the prompt\n  \
    ./x trace --arch aarch64 ls /    the same on AArch64\n  \
    ./x trace --forward 2007:7 'echod & sleep 20'  a server, and clients of this computer\n  \
    ./x trace --web /index.html                        \
    one request: driver, network, web server, files\n\n\
    Prints how often who called whom, and writes a file that https://ui.perfetto.dev opens.\n\
    The clock counts instructions: a nanosecond there is an instruction here.\n\
    The chapter docs/book/trace.md shows how to read it.\n\
    The exit status is that of the commands; 124 if the time limit was reached.")]
pub struct TraceOptions {
    /// A command for the shell; options come before it
    #[arg(value_name = "COMMAND", trailing_var_arg = true, required_unless_present_any = ["web", "boot"])]
    pub commands: Vec<String>,
    /// Ask for this page once, when the machine is idle, and trace that
    #[arg(long, value_name = "PATH", conflicts_with = "commands")]
    pub web: Option<String>,
    /// Trace from the nucleus's first steps on, not only the work itself
    #[arg(long)]
    pub boot: bool,
    /// Also draw it as a picture: domains as lanes, calls as boxes; for short runs
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
    /// Where the trace goes
    #[arg(long, value_name = "FILE", default_value = "trace.json")]
    pub output: PathBuf,
    /// A port of this computer leads to one of the machine: 2000:7, or 2000:7/udp. Several: once for each
    #[arg(long, value_name = "HOST:MACHINE")]
    pub forward: Vec<Forward>,
    /// The system description
    #[arg(long, value_name = "FILE", default_value = "systems/default.toml")]
    pub system: PathBuf,
    /// Memory of the machine: K, M or G [default: that of the description, more if CPUs need it]
    #[arg(long, value_name = "SIZE")]
    pub memory: Option<String>,
    /// Instruction set of the machine
    #[arg(long, value_name = "ISA", default_value = "x86_64")]
    pub arch: Isa,
    /// CPUs of the machine
    #[arg(long, value_name = "NUMBER", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub cpus: u32,
    /// End the emulator after so many seconds, with status 124
    #[arg(long, value_name = "SECONDS", default_value_t = 300.0)]
    pub timeout: f64,
}

/// `./x profile`
#[derive(Args, Clone)]
#[command(after_help = "Examples:\n  \
    ./x profile 'wget http://localhost/'       the command, from the Enter key to the next prompt\n  \
    ./x profile --web /                        one request: driver, network, web server, files\n  \
    ./x profile --forward 2007:7 --send 'hello\\n' 'echod &'  one request of another server\n  \
    ./x profile --forward 2007:7 'echod & sleep 20'  a server, and clients of this computer\n  \
    ./x profile --arch aarch64 --output arm.svg --web /status.html\n\n\
    Prints the instructions of each program, with those of the nucleus on its behalf, then of the\n\
    functions with most, and draws a flame graph. The machine has one CPU.\n\
    The chapter docs/book/trace.md shows how to read it.\n\
    The exit status is that of the command; 124 if the time limit was reached.")]
pub struct ProfileOptions {
    /// A command for the shell; options come before it
    #[arg(value_name = "COMMAND", trailing_var_arg = true, required_unless_present_any = ["web", "send"])]
    pub commands: Vec<String>,
    /// Ask for this page, when the machine is idle, and profile that
    #[arg(long, value_name = "PATH", conflicts_with = "commands")]
    pub web: Option<String>,
    /// Send this to the port of --forward, after the command, and profile one answer: \n, \r, \t, \\ and \x0a are bytes
    #[arg(long, value_name = "TEXT", conflicts_with = "web", requires = "forward")]
    pub send: Option<String>,
    /// Where the flame graph goes
    #[arg(long, value_name = "FILE", default_value = "profile.svg")]
    pub output: PathBuf,
    /// Leave out of the picture what is narrower: percent of its width
    #[arg(long, value_name = "PERCENT", default_value_t = 0.1)]
    pub narrowest: f64,
    /// A port of this computer leads to one of the machine: 2000:7, or 2000:7/udp. Several: once for each
    #[arg(long, value_name = "HOST:MACHINE")]
    pub forward: Vec<Forward>,
    /// The system description
    #[arg(long, value_name = "FILE", default_value = "systems/default.toml")]
    pub system: PathBuf,
    /// Memory of the machine: K, M or G [default: that of the description]
    #[arg(long, value_name = "SIZE")]
    pub memory: Option<String>,
    /// Instruction set of the machine
    #[arg(long, value_name = "ISA", default_value = "x86_64")]
    pub arch: Isa,
    /// End the emulator after so many seconds, with status 124
    #[arg(long, value_name = "SECONDS", default_value_t = 300.0)]
    pub timeout: f64,
}

/// `./x graph`
#[derive(Args, Clone)]
#[command(after_help = "Examples:\n  \
    ./x graph                                          draws systems/default.toml into default.svg\n  \
    ./x graph --system systems/minimal.toml --output minimal.svg\n  \
    ./x graph --arch aarch64 --output arm.svg          what is given to whom where there is a device tree")]
pub struct GraphOptions {
    /// Instruction set of the machine: it says which devices components get
    #[arg(long, value_name = "ISA", default_value = "x86_64")]
    pub arch: Isa,
    /// The system description
    #[arg(long, value_name = "FILE", default_value = "systems/default.toml")]
    pub system: PathBuf,
    /// Where the picture goes
    #[arg(long, value_name = "FILE", default_value = "default.svg")]
    pub output: PathBuf,
}

/// `./x memory`
#[derive(Args, Clone)]
#[command(after_help = "Examples:\n  \
    ./x memory                          the default system\n  \
    ./x memory --arch aarch64 --cpus 2  on AArch64, with two CPUs\n\n\
    The boot archive is in memory once: programs run where they lie in it.\n\
    `frames` in the shell shows what the nucleus really has.")]
pub struct MemoryOptions {
    /// Instruction set of the machine
    #[arg(long, value_name = "ISA", default_value = "x86_64")]
    pub arch: Isa,
    /// The system description
    #[arg(long, value_name = "FILE", default_value = "systems/default.toml")]
    pub system: PathBuf,
    /// Memory of the machine
    #[arg(long, value_name = "SIZE")]
    pub memory: Option<String>,
    /// CPUs of the machine
    #[arg(long, value_name = "NUMBER", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub cpus: u32,
}

/// `./x lines`
#[derive(Args, Clone)]
#[command(after_help = "Examples:\n  \
    ./x lines           each crate\n  \
    ./x lines nucleus   each file of the nucleus\n\n\
    A line counts if something other than a comment stands on it, and if it is none of a test.")]
pub struct LinesOptions {
    /// The files of this crate only: its folder, such as apps/negtest
    #[arg(value_name = "CRATE")]
    pub name: Option<String>,
}

/// `./x labels`
#[derive(Subcommand, Clone)]
#[command(after_help = "Examples:\n  \
    ./x labels trace 7 10000 > trace.jsonl   ten thousand steps at random, and what came of them\n  \
    ./x labels replay trace.jsonl            does the engine say the same?\n  \
    ./x labels replay trace.jsonl --machine  and the domains of a machine?\n  \
    ./x labels bench                         what do its operations cost? Draws labels.svg\n\n\
    A line is an object of JSON; the chapter docs/book/labels.md says of which form.")]
pub enum LabelsCommand {
    /// Compare what a trace says with what the engine says; exit with 1 if that differs
    Replay(ReplayOptions),
    /// Write steps at random, and what comes of them
    Trace(ScriptOptions),
    /// Measure operations of labels of 10 to 100,000 handles on this computer, and draw it
    Bench(EngineOptions),
}

/// `./x labels bench`
#[derive(Args, Clone)]
pub struct EngineOptions {
    /// Where the picture goes
    #[arg(long, value_name = "FILE", default_value = "labels.svg")]
    pub output: PathBuf,
}

/// `./x labels replay`
#[derive(Args, Clone)]
pub struct ReplayOptions {
    /// The trace; - is standard input
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Then make its steps in a machine, with domains, ports and messages, and compare these
    #[arg(long)]
    pub machine: bool,
    /// Instruction set of the machine
    #[arg(long, value_name = "ISA", default_value = "x86_64", requires = "machine")]
    pub arch: Isa,
    /// End the machine after so many seconds, with status 124
    #[arg(long, value_name = "SECONDS", default_value_t = 600.0, requires = "machine")]
    pub timeout: f64,
}

/// `./x labels trace`
#[derive(Args, Clone)]
pub struct ScriptOptions {
    /// The same steps for the same seed
    #[arg(value_name = "SEED")]
    pub seed: u64,
    /// How many
    #[arg(value_name = "STEPS")]
    pub steps: usize,
}

/// `./x portal`
#[derive(Args, Clone)]
#[command(after_help = "Examples:\n  \
    ./x portal 'npciii>i'                  what the generator writes for this specification\n  \
    ./x portal 'npciii>i' --arch aarch64   the same on AArch64\n  \
    ./x portal --shape 1                   boots Cairn, and lists the bytes of shape 1 there\n  \
    ./x run --exec 'portals --code 1' | ./x portal --code -\n\n\
    In Cairn, `portals --shapes` lists the shapes that there are.\n\
    The chapter docs/book/portals.md says what the letters mean.")]
pub struct PortalOptions {
    /// The specification of the portal
    #[arg(value_name = "SPECIFICATION", required_unless_present_any = ["shape", "code"])]
    pub specification: Option<String>,
    /// Boot the system, and list the code of this shape there
    #[arg(long, value_name = "NUMBER", conflicts_with = "specification")]
    pub shape: Option<u64>,
    /// List what `portals --code` printed into this file (- = standard input)
    #[arg(long, value_name = "FILE", conflicts_with_all = ["specification", "shape"])]
    pub code: Option<PathBuf>,
    /// The system description
    #[arg(long, value_name = "FILE", default_value = "systems/default.toml")]
    pub system: PathBuf,
    /// Instruction set of the machine
    #[arg(long, value_name = "ISA", default_value = "x86_64")]
    pub arch: Isa,
}

/// `./x test`
#[derive(Args, Clone)]
#[command(after_help = "Examples:\n  \
    ./x test                         everything, as continuous integration does\n  \
    ./x test format lints            two groups\n  \
    ./x test shell-prompt            one boot test, tests/boot/shell-prompt.toml, with each number of CPUs\n  \
    ./x test shell-prompt@2          the same with two CPUs only\n  \
    ./x test aarch64:shell-prompt@2  and only on AArch64\n  \
    ./x test boot --arch aarch64     all boot tests on AArch64\n  \
    ./x test boot --cpus 8           all boot tests with eight CPUs, but those that are about one\n  \
    ./x test protocols              the host tests of a crate\n  \
    ./x test cpio::read::tests::bad_magic\n  \
    ./x test --mutants               each mutant of tests/mutants.toml must turn its test red\n\n\
    The last line is `N passed, N failed`.")]
pub struct TestOptions {
    /// Only this instruction set, for what is compiled for machines or runs on them [default: each]
    #[arg(long, value_name = "ISA")]
    pub arch: Option<Isa>,
    /// Boards for boot tests on AArch64, which has two: GICv3 with all that processors offer, and GICv2 with an old one
    #[arg(long, value_name = "WHICH", default_value = "usual")]
    pub boards: Boards,
    /// Tests, groups or crates; none = everything
    pub names: Vec<String>,
    /// Also the long forms
    #[arg(long)]
    pub soak: bool,
    /// Boot tests: only with so many CPUs, 1 to 64 [default: as each says, mostly 1 and 2]
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..=64))]
    pub cpus: Option<u32>,
    /// Have Miri run the tests of what the nucleus is made of; needs a nightly compiler, and says so
    #[arg(long)]
    pub miri: bool,
    /// Try the mutants (all, or those that are named, or whose tests are)
    #[arg(long)]
    pub mutants: bool,
    /// With `--mutants`: only compile each, which takes minutes where running all takes hours
    #[arg(long, requires = "mutants")]
    pub compile: bool,
    /// With `--mutants`: instead of those of the list, some that are made from the sources
    #[arg(long, requires = "mutants", conflicts_with_all = ["compile", "names"])]
    pub generated: bool,
    #[command(flatten)]
    pub which: Generated,
    /// List groups, boot tests, mutants and, when they are built, host tests
    #[arg(long)]
    pub list: bool,
}

/// Which mutants are generated.
#[derive(Args, Clone)]
pub struct Generated {
    /// With `--generated`: decides which ones and in which order [default: by the commit]
    #[arg(long, requires = "generated", value_name = "NUMBER")]
    pub seed: Option<u64>,
    /// With `--generated`: so many
    #[arg(long, requires = "generated", value_name = "NUMBER", default_value_t = 10)]
    pub count: usize,
    /// With `--generated`: only of this source file, or of those in this folder
    #[arg(long, requires = "generated", value_name = "PATH")]
    pub file: Option<PathBuf>,
}

/// `./x new`
#[derive(Subcommand)]
pub enum New {
    /// A component: a crate in components/ that serves, and its place in a system description
    #[command(after_help = "Example:\n  ./x new component clock && ./x run --exec domains")]
    Component(NewOptions),
    /// An interface: a trait in crates/protocols, from which client, server and layout are derived
    #[command(after_help = "Example:\n  ./x new interface kv && GOLDEN=write cargo test -p protocols")]
    Interface(NewInterface),
    /// A program: a crate in apps/, and its place in a system description
    #[command(after_help = "Example:\n  ./x new program greet && ./x run --exec 'greet hello'")]
    Program(NewOptions),
}

/// `./x new interface`
#[derive(Args, Clone)]
pub struct NewInterface {
    /// Its name: 1 to 16 small letters, digits and `-`
    pub name: String,
}

/// `./x new component`, `./x new program`
#[derive(Args, Clone)]
pub struct NewOptions {
    /// Its name: 1 to 16 small letters, digits and `-`
    pub name: String,
    /// The description it is added to
    #[arg(long, value_name = "FILE", default_value = "systems/default.toml")]
    pub system: PathBuf,
}

/// `./x bench`
#[derive(Args, Clone)]
#[command(after_help = "Examples:\n  \
    ./x bench\n  \
    ./x bench --arch aarch64 --filter page-fault\n  \
    ./x bench --json bench.json      (rows: name, value, unit, budget, arch, counts)\n  \
    ./x bench --functions --filter open-close   (where the instructions of this row are executed)\n  \
    ./x bench --peer linux           (rows of the network only; fetches Debian's packages, installs nothing)\n  \
    ./x bench --report               (also writes docs/book/paper-tables.md and its plots)\n\n\
    Counted are guest instructions in the emulator: the same in every run. They are not cycles; the\n\
    counts below a value are of what costs more on hardware. The status is 1 if a budget is broken.")]
pub struct BenchOptions {
    /// Instruction set of the machine [default: each]
    #[arg(long, value_name = "ISA")]
    pub arch: Option<Isa>,
    /// Also write the rows to this file
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Also write the tables of the paper on Pebble, and the same of Cairn, into the book, with plots
    #[arg(long, conflicts_with_all = ["arch", "filter", "peer"])]
    pub report: bool,
    /// Only rows whose name contains this
    #[arg(long, value_name = "TEXT")]
    pub filter: Option<String>,
    /// Show in which functions the instructions of the row are executed, that --filter names
    #[arg(long, requires = "filter", conflicts_with_all = ["json", "peer"])]
    pub functions: bool,
    /// Print the seconds from a change (in a program, a component, an interface) to the end of a boot
    #[arg(long, conflicts_with_all = ["json", "report", "filter", "functions", "peer"])]
    pub rebuild: bool,
    /// System description
    #[arg(long, value_name = "FILE", default_value = "systems/default.toml")]
    pub system: PathBuf,
    /// Measure the network of another system as well, with packages that are fetched for it
    #[arg(long, value_name = "SYSTEM")]
    pub peer: Option<Peer>,
}

/// The systems that Cairn can be compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Peer {
    /// Debian's kernel and nginx, fetched by apt
    Linux,
}

/// Which machine and which system.
#[derive(Args, Clone)]
pub struct MachineOptions {
    /// System description: which components run, and with what
    #[arg(long, value_name = "FILE", default_value = "systems/default.toml")]
    pub system: PathBuf,
    /// Memory of the machine: K, M or G [default: that of the description, more if CPUs need it]
    #[arg(long, value_name = "SIZE")]
    pub memory: Option<String>,
    /// Instruction set of the machine
    #[arg(long, value_name = "ISA", default_value = "x86_64")]
    pub arch: Isa,
    /// Another board than the usual one, as QEMU takes it: virt,gic-version=2
    #[arg(long, value_name = "BOARD")]
    pub board: Option<String>,
    /// Another processor than the usual one, as QEMU takes it: max
    #[arg(long, value_name = "PROCESSOR")]
    pub cpu: Option<String>,
    /// CPUs of the machine, 1 to 64. They run at the same time if this computer has as many, and else, or with
    /// --icount, take turns
    #[arg(long, value_name = "NUMBER", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub cpus: u32,
    /// Build the nucleus with its checks (ledgers of owed invalidations, of unpublished code, …)
    #[arg(long)]
    pub checked: bool,
    /// Build the nucleus so that it keeps the longest non-preemptible section (`uptime --all` shows it)
    #[arg(long, conflicts_with = "checked")]
    pub measured: bool,
    /// Also pack the programs that only tests run: chaos
    #[arg(long)]
    pub tests: bool,
    /// A port of this computer leads to one of the machine: 2000:7, or 2000:7/udp. Several: once for each
    #[arg(long, value_name = "HOST:MACHINE")]
    pub forward: Vec<Forward>,
    /// Words for the nucleus's command line, after those of the description
    #[arg(long, value_name = "WORDS", default_value = "")]
    pub append: String,
    /// Boot the nucleus with an archive that holds nothing but its symbols
    #[arg(long, hide = true)]
    pub nucleus_only: bool,
}

/// `./x run`
#[derive(Args, Clone)]
#[command(after_help = "Examples:\n  \
    ./x run\n  \
    ./x run --exec 'ls /; threads'\n  \
    ./x run --exec 'fuzzer --seed 1 --count 100000' --icount --timeout 120   (the same in every run)\n  \
    ./x run --system systems/minimal.toml --memory 32M\n  \
    ./x run --cpus 4 --exec threads\n  \
    ./x run --forward 2000:7   (then `nc localhost 2000` reaches the program `echod &` at port 7)\n\n\
    Without --exec the terminal belongs to Cairn, Ctrl-C included: Ctrl-] X leaves the emulator.\n\
    The exit status is that of the commands; 124 if the time limit was reached.")]
pub struct RunOptions {
    /// Shell commands to run instead of a conversation; nothing else is printed
    #[arg(long, value_name = "COMMANDS")]
    pub exec: Option<String>,
    /// End the emulator after so many seconds, with status 124 [default: none, with --exec 300]
    #[arg(long, value_name = "SECONDS")]
    pub timeout: Option<f64>,
    /// Which machine and which system.
    #[command(flatten)]
    pub machine: MachineOptions,
    /// One tick of the clock per instruction: every run is the same, and counts are exact
    #[arg(long)]
    pub icount: bool,
    /// Also write what the console prints to this file
    #[arg(long, value_name = "FILE")]
    pub log: Option<PathBuf>,
}

/// `./x symbols`
#[derive(Args, Clone)]
#[command(after_help = "For `domain 25 negtest died, status 0x300: page fault at 0x0, pc 0x10a2c0, ...`:\n  \
    ./x symbols 0x10a2c0 negtest\n\n\
    `dmesg > log` on a machine, and here the backtraces of all that died there:\n  \
    ./x symbols --log log\n\n\
    The address is sought in what `./x run` would build now: a log of an older build may show other places.")]
pub struct SymbolsOptions {
    /// The address, hexadecimal
    #[arg(value_parser = address, required_unless_present = "log")]
    pub pc: Option<u64>,
    /// The component or program of the description that was running, or `nucleus`
    #[arg(required_unless_present = "log")]
    pub name: Option<String>,
    /// Show the backtraces of what died, as the log in this file has it (- = standard input)
    #[arg(long, value_name = "FILE", conflicts_with_all = ["pc", "name"])]
    pub log: Option<PathBuf>,
    /// Instruction set of the machine
    #[arg(long, value_name = "ISA", default_value = "x86_64")]
    pub arch: Isa,
    /// The description that names it
    #[arg(long, value_name = "FILE", default_value = "systems/default.toml")]
    pub system: PathBuf,
    /// Of the nucleus with its checks (`./x run --checked`)
    #[arg(long)]
    pub checked: bool,
}

/// Where the emulator waits for gdb when nobody says.
pub const GDB_PORT: u16 = 1234;

/// `./x debug`
#[derive(Args, Clone)]
#[command(after_help = "Examples:\n  \
    ./x debug --component names                    a component, from its main on\n  \
    ./x debug --component ls --exec 'ls /'         a program that the shell starts\n  \
    ./x debug --component ramfs --arch aarch64     on AArch64\n  \
    ./x debug --system systems/minimal.toml        the nucleus, from its first instruction on\n\n\
    Type the gdb command it prints in a second terminal. Ctrl-] X leaves the emulator.\n\
    The chapter docs/book/debugging.md shows a whole session.")]
pub struct DebugOptions {
    /// A component or program of the description: gdb knows its symbols, and stops in its address space only
    #[arg(long, visible_alias = "program", value_name = "NAME", conflicts_with = "nucleus_only")]
    pub component: Option<String>,
    /// Shell commands to run instead of a conversation
    #[arg(long, value_name = "COMMANDS")]
    pub exec: Option<String>,
    /// Port of this computer on which the emulator waits for gdb
    #[arg(long, default_value_t = GDB_PORT)]
    pub port: u16,
    /// Which machine and which system.
    #[command(flatten)]
    pub machine: MachineOptions,
}

/// A number in hexadecimal, with `0x` or without it, as logs have it.
fn address(text: &str) -> Result<u64, String> {
    let digits = text.strip_prefix("0x").unwrap_or(text);
    u64::from_str_radix(digits, 16).map_err(|_| "not an address: hexadecimal digits, as 0x10a2c0".into())
}

#[cfg(test)]
mod tests {
    use super::address;

    #[test]
    fn addresses() {
        assert_eq!((address("0x10a2c0"), address("10a2c0")), (Ok(0x10_a2c0), Ok(0x10_a2c0)));
        for bad in ["", "0x", "main", "-1", "0x1_0", "10000000000000000"] {
            assert!(address(bad).is_err(), "{bad}");
        }
    }
}
