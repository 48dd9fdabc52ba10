//! Stories of a few records: whole, in part, and wrong.

use super::labels::Labels;
use super::perfetto;
use super::picture;
use super::story::{Call, Ended, Happening, Span, Step, Story, Who};
use super::summary;
use super::window::Window;
use crate::test::traced::balanced;
use trace::{BYTES, Kind, Record, VERSION, text};

/// Records, ten ticks apart.
struct Tape(Vec<Record>);

impl Tape {
    /// Domains 1 to 4, thread 7 at home in 1, thread 8 in 3.
    fn new() -> Self {
        let mut tape = Self(Vec::new());
        tape.add(Kind::Begin, 0, 0, [VERSION, 0]);
        for (number, name) in [(1, "client"), (2, "server"), (3, "driver"), (4, "sched")] {
            tape.add(Kind::Domain, 0, number, text(name.as_bytes()));
        }
        tape.add(Kind::Thread, 7, 1, [0, 0]).add(Kind::Thread, 8, 3, [0, 0])
    }

    fn add(&mut self, kind: Kind, thread: u16, domain: u32, operands: [u64; 2]) -> Self {
        self.on(0, kind, thread, domain, operands)
    }

    fn on(&mut self, cpu: u8, kind: Kind, thread: u16, domain: u32, operands: [u64; 2]) -> Self {
        let time = 1000 + 10 * self.0.len() as u64;
        self.0.push(Record { kind, cpu, thread, domain, time, operands });
        Self(self.0.clone())
    }

    fn bytes(&self) -> Vec<u8> {
        self.0.iter().flat_map(Record::encode).collect()
    }

    fn read(&self, window: &Window) -> anyhow::Result<Story> {
        Story::read(&self.bytes(), window)
    }

    /// The whole story, which makes a balanced file.
    fn story(&self) -> Story {
        self.part(&Window::Bytes(0, usize::MAX))
    }

    fn part(&self, window: &Window) -> Story {
        let story = self.read(window).unwrap_or_else(|error| panic!("{error:#}"));
        balanced(&perfetto::write(&story, &Labels::default())).unwrap();
        story
    }

    /// Why it is no story.
    fn error(&self) -> String {
        format!("{:#}", self.read(&Window::Bytes(0, usize::MAX)).expect_err("an error"))
    }
}

/// The client calls the server, which calls the driver; then the client waits until an interrupt.
fn request() -> Tape {
    let mut tape = Tape::new();
    tape.add(Kind::Run, 7, 1, [0, 0]);
    tape.add(Kind::Call, 7, 1, [2 | 5 << 32, 0x10_0024 << 16 | 3]);
    tape.add(Kind::Call, 7, 2, [3, 0x10_0048 << 16 | 1]);
    tape.add(Kind::PageFault, 7, 3, [0x1234, 6]);
    tape.add(Kind::Return, 7, 3, [2, 0]);
    tape.add(Kind::Return, 7, 2, [1, 0]);
    tape.add(Kind::Stop, 7, 1, [0, 0]);
    tape.add(Kind::Schedule, 0, 4, [0, 0]);
    tape.add(Kind::Idle, 0, 0, [0, 0]);
    tape.add(Kind::Interrupt, 0, 0, [43, 0]);
    tape.add(Kind::Wake, 7, 1, [0, 0]);
    tape.add(Kind::Schedule, 0, 4, [0, 0]);
    tape.add(Kind::Run, 7, 1, [0, 0]);
    tape.add(Kind::End, 0, 0, [0, 0])
}

#[test]
fn calls_are_nested() {
    let story = request().story();
    let [outer, inner] = &story.calls[..] else { panic!("{:?}", story.calls) };
    assert_eq!((outer.from, outer.to, inner.from, inner.to), (1, 2, 2, 3));
    assert!(outer.begin < inner.begin && inner.end < outer.end);
    assert_eq!((outer.service, outer.method, outer.badge), (0x10_0024, 3, 5));
    assert_eq!((outer.ended, inner.ended), (Ended::Returned, Ended::Returned));
    // Ten ticks between records; three of them lie in the outer call, the inner one's two included.
    assert_eq!((outer.ran, inner.ran), (40, 20));
    let crossings: Vec<&Step> = story
        .steps
        .iter()
        .map(|(_, step)| step)
        .filter(|step| matches!(step, Step::Enter(_) | Step::Leave(_)))
        .collect();
    assert_eq!(crossings, [&Step::Enter(0), &Step::Enter(1), &Step::Leave(1), &Step::Leave(0)]);
}

#[test]
fn a_call_shows_its_window() {
    let mut tape = Tape::new();
    tape.add(Kind::Run, 7, 1, [0, 0]);
    tape.add(Kind::Window, 7, 1, [0x1234_5000 | abi::window::WRITABLE | 3, 0]);
    tape.add(Kind::Call, 7, 1, [2, 0x10_0024 << 16 | 3]);
    tape.add(Kind::Call, 7, 2, [3, 0x10_0048 << 16 | 1]);
    let story = tape.add(Kind::End, 0, 0, [0, 0]).story();
    let pages: Vec<u8> = story.calls.iter().map(|call| call.pages).collect();
    assert_eq!(pages, [3, 0]);
    let label = |call: &Call| Labels::default().method(&story, call);
    assert_eq!(label(&story.calls[0]), "service at 0x100024 with a window of 3 pages");
    assert_eq!(label(&story.calls[1]), "service at 0x100048");
}

#[test]
fn the_cpu_is_somewhere_all_the_time() {
    let story = request().story();
    let names: Vec<&str> = story
        .spans
        .iter()
        .map(|span| match span.who {
            Who::Thread(_, domain) => story.name(domain),
            Who::Idle => "idle",
        })
        .collect();
    assert_eq!(names, ["idle", "client", "server", "driver", "server", "client", "sched", "idle", "sched", "client"]);
    assert!(story.spans.windows(2).all(|pair| pair[0].end == pair[1].begin));
    assert_eq!(story.spans.iter().filter(|span| span.switch).count(), 5);
}

#[test]
fn wakes_lead_to_where_the_thread_goes_on() {
    let story = request().story();
    let [wake] = &story.wakes[..] else { panic!("{:?}", story.wakes) };
    assert!(wake.interrupt);
    assert_eq!(wake.to, Some(story.spans.len() - 1));
    let json = perfetto::write(&story, &Labels::default());
    assert_eq!(json.matches(r#""ph":"s""#).count(), 1);
    assert_eq!(json.matches(r#""ph":"f""#).count(), 1);
    assert!(json.contains("interrupt of line 11") && json.contains("page fault"));
}

#[test]
fn a_part_knows_which_calls_are_open() {
    // From within the inner call to within the outer one.
    let tape = request();
    let at = |kind: Kind| tape.0.iter().position(|record| record.kind == kind).unwrap() * BYTES;
    let story = tape.part(&Window::Bytes(at(Kind::PageFault), at(Kind::Return) + BYTES));
    let [outer, inner] = &story.calls[..] else { panic!("{:?}", story.calls) };
    assert!(outer.before && inner.before);
    assert_eq!((outer.ended, inner.ended), (Ended::Later, Ended::Returned));
    assert_eq!((story.begin, story.end), (outer.begin, outer.end));
    assert_eq!(story.spans[0].who, Who::Thread(0, 3));
}

#[test]
fn commands_begin_when_the_shell_says_so() {
    let mut tape = request();
    tape.0.pop();
    for (domain, words) in [(2, "ready after 10 ti"), (1, "ready to rumble!"), (1, "ready after 1234")] {
        tape.add(Kind::Log, 7, domain, text(words.as_bytes()));
        tape.add(Kind::LogMore, 7, domain, text(b" ticks"));
    }
    let shell = Window::Commands("client".into());
    let early = tape.read(&shell).expect_err("no end").to_string();
    assert!(early.contains("before the machine stops"), "{early}");
    tape.add(Kind::End, 0, 0, [0, 0]);
    let story = tape.part(&shell);
    let logs: Vec<_> =
        story.steps.iter().filter(|(_, step)| matches!(step, Step::Happens(_, Happening::Log(_)))).collect();
    let line = Step::Happens(0, Happening::Log("ready after 1234 ticks".into()));
    assert_eq!(logs, [&(story.begin, line)]);
    let nobody = tape.read(&Window::Commands("nobody".into())).expect_err("no shell").to_string();
    assert!(nobody.contains("nobody never said"), "{nobody}");
}

#[test]
fn a_chain_that_is_cut_continues_on_another_thread() {
    let mut tape = Tape::new();
    tape.add(Kind::Thread, 9, 2, [0, 0]);
    tape.add(Kind::Run, 7, 1, [0, 0]);
    tape.add(Kind::Call, 7, 1, [2, 0]);
    tape.add(Kind::Call, 7, 2, [3, 0]);
    // The client's deadline: thread 9 carries what it called, and the chain returns on it.
    tape.add(Kind::Cut, 7, 1, [1, 0]);
    tape.add(Kind::Adopt, 9, 3, [1, 0]);
    tape.add(Kind::Adopt, 9, 2, [0, 0]);
    tape.add(Kind::Run, 9, 3, [0, 0]);
    tape.add(Kind::Return, 9, 3, [2, 0]);
    tape.add(Kind::Cut, 9, 0, [0, 0]);
    tape.add(Kind::Run, 7, 1, [0, 0]);
    let story = tape.story();
    assert!(story.calls.iter().all(|call| call.ended == Ended::Cut));
    assert_eq!(story.calls.len(), 2);
}

#[test]
fn each_contradiction_has_its_error() {
    let running = || {
        let mut tape = Tape::new();
        tape.add(Kind::Run, 7, 1, [0, 0])
    };
    for (kind, thread, domain, operands, cause) in [
        (Kind::Run, 99, 1, [0, 0], "there is no thread 99"),
        (Kind::Run, 8, 1, [0, 0], "thread 8 is in domain 1, but has no chain"),
        (Kind::Call, 7, 2, [3, 0], "thread 7 is in domain 2, but went to domain 1 last"),
        (Kind::Call, 7, 1, [77, 0], "there is no domain 77"),
        (Kind::Return, 7, 1, [2, 0], "thread 7 goes back to domain 2, and nobody called"),
        (Kind::Refused, 7, 1, [u64::MAX, 0], "there is no domain 18446744073709551615"),
        (Kind::Cut, 7, 1, [5, 0], "5 activations of thread 7 are left, which has 1"),
        (Kind::Adopt, 7, 1, [1, 0], "thread 7 takes over a chain and has one"),
        (Kind::LogMore, 7, 1, [0, 0], "goes on with a line that did not begin"),
    ] {
        let error = running().add(kind, thread, domain, operands).error();
        assert!(error.starts_with(&format!("record 8 of the trace ({kind:?}): ")), "{error}");
        assert!(error.contains(cause), "{error}");
    }
    let mut wrong = running().add(Kind::Call, 7, 1, [2, 0]);
    assert!(wrong.add(Kind::Return, 7, 2, [3, 0]).error().contains("goes back to domain 3, but domain 1 called"));
    let mut gone = running().add(Kind::Call, 7, 1, [2, 0]);
    assert!(gone.add(Kind::ThreadGone, 7, 0, [0, 0]).error().contains("goes in the middle of a call"));
}

/// The client runs on CPU 0 and wakes thread 8, which goes on on CPU 1 and calls the server; both have schedulers.
fn two_cpus() -> Tape {
    let mut tape = Tape::new();
    tape.add(Kind::Domain, 0, 5, text(b"sched1"));
    tape.on(1, Kind::Schedule, 0, 5, [0, 0]);
    tape.on(1, Kind::Upcall, 0, 5, [2, 0]);
    tape.add(Kind::Schedule, 0, 4, [0, 0]);
    tape.on(1, Kind::Return, 0, 2, [5, 0]);
    tape.add(Kind::Run, 7, 1, [0, 0]);
    tape.on(1, Kind::Idle, 0, 0, [0, 0]);
    tape.add(Kind::Wake, 8, 3, [7, 0]);
    tape.on(1, Kind::Interrupt, 0, 0, [0xf0, 0]);
    tape.on(1, Kind::Schedule, 0, 5, [0, 0]);
    tape.on(1, Kind::Run, 8, 3, [0, 0]);
    tape.on(1, Kind::Call, 8, 3, [2, 0x10_0024 << 16]);
    tape.add(Kind::Call, 7, 1, [2, 0x10_0024 << 16]);
    tape.on(1, Kind::Log, 8, 2, text(b"on CPU 1, and it"));
    tape.add(Kind::Log, 7, 2, text(b"on CPU 0, and it"));
    tape.on(1, Kind::LogMore, 8, 2, text(b" goes on"));
    tape.add(Kind::LogMore, 7, 2, text(b" ends"));
    tape.on(1, Kind::Return, 8, 2, [3, 0]);
    tape.add(Kind::Return, 7, 2, [1, 0]);
    // Thread 7 moves to CPU 1 before CPU 0 says what it does instead.
    tape.add(Kind::Stop, 7, 1, [0, 0]);
    tape.on(1, Kind::Stop, 8, 3, [0, 0]);
    tape.on(1, Kind::Run, 7, 1, [0, 0]);
    tape.add(Kind::Schedule, 0, 4, [0, 0]);
    tape.add(Kind::Idle, 0, 0, [0, 0]);
    tape.add(Kind::End, 0, 0, [0, 0])
}

fn on_cpu(story: &Story, cpu: u8) -> Vec<&str> {
    let own = story.spans.iter().filter(|span| span.cpu == cpu);
    own.map(|span| if let Who::Thread(_, domain) = span.who { story.name(domain) } else { "idle" }).collect()
}

#[test]
fn each_cpu_has_its_spans() {
    let story = two_cpus().story();
    assert_eq!(story.cpus, [0, 1]);
    assert_eq!(on_cpu(&story, 0), ["idle", "sched", "client", "server", "client", "sched", "idle"]);
    let later = ["idle", "sched1", "driver", "server", "driver", "client"];
    assert_eq!(on_cpu(&story, 1), [&["idle", "sched1", "server", "sched1"], &later[..]].concat());
    let [_, first, second] = &story.calls[..] else { panic!("{:?}", story.calls) };
    assert!(first.begin < second.begin && second.begin < first.end && first.end < second.end, "at the same time");
    assert_eq!((first.ended, second.ended), (Ended::Returned, Ended::Returned));
    // Each ran all the time that it lasted, on its CPU.
    assert_eq!((first.ran, second.ran), (first.end - first.begin, second.end - second.begin));
    // A thread that runs on CPU 1 from then on does not run on CPU 0 at the same time.
    let moved: Vec<&Span> = story.spans.iter().filter(|span| matches!(span.who, Who::Thread(0, _))).collect();
    assert!(moved.windows(2).all(|pair| pair[0].end <= pair[1].begin), "{moved:?}");
}

#[test]
fn a_wake_across_cpus_is_an_arrow() {
    let story = two_cpus().story();
    let [wake] = &story.wakes[..] else { panic!("{:?}", story.wakes) };
    let to = story.spans[wake.to.unwrap()];
    assert_eq!((story.spans[wake.from].cpu, to.cpu, wake.interrupt), (0, 1, false));
    let json = perfetto::write(&story, &Labels::default());
    for part in [
        "\"CPUs\"",
        "\"CPU 0\"",
        "\"CPU 1\"",
        "scheduler of CPU 1",
        "on CPU 1, and it goes on",
        "on CPU 0, and it ends",
    ] {
        assert!(json.contains(part), "{part}");
    }
}

#[test]
fn slight_disorder_between_cpus_shows_the_same() {
    let tape = two_cpus();
    let mut other = tape.0.clone();
    let mut swapped = 0;
    for place in 1..other.len() {
        if other[place - 1].cpu != other[place].cpu && place % 3 > 0 {
            other.swap(place - 1, place);
            swapped += 1;
        }
    }
    assert!(swapped > 5, "{swapped}");
    assert_eq!(Tape(other).story(), tape.story());
}

#[test]
fn summary_and_picture_have_each_cpu() {
    let story = two_cpus().story();
    let text = summary::text(&story, &Labels::default());
    let row = |head: &str| {
        let line = text.lines().find(|line| line.trim().starts_with(head)).unwrap_or_default();
        line.split_whitespace().map(String::from).collect::<Vec<_>>()
    };
    // Instructions, share, idle, switches, interrupts.
    let ticks = |cpu: u8, busy: bool| {
        let own = story.spans.iter().filter(|span| span.cpu == cpu && (span.who != Who::Idle) == busy);
        own.map(|span| span.end - span.begin).sum::<u64>().to_string()
    };
    for (cpu, switches, interrupts) in [(0, "3", "0"), (1, "4", "1")] {
        let cells = row(&format!("{cpu} "));
        let [number, busy, _, percent, idle, rest @ ..] = &cells[..] else { panic!("{text}") };
        assert_eq!((number, busy, percent.as_str()), (&cpu.to_string(), &ticks(cpu, true), "%"), "{text}");
        assert_eq!((idle, rest), (&ticks(cpu, false), &[switches.to_string(), interrupts.into()][..]), "{text}");
    }
    let picture = picture::draw("two", &story, &Labels::default()).unwrap();
    assert!(picture.contains(">CPU 0<") && picture.contains(">CPU 1<"), "{picture}");
    // The clock counts more than the instructions of one of them.
    assert!(!picture.contains("instructions") && !text.contains("nstructions"), "{text}");
    let busy = story.spans.iter().filter(|span| span.who != Who::Idle).count();
    assert_eq!(picture.matches("class=\"bar\"").count(), 2 * busy, "in the lane and in the strip");
    within(&picture);
    // With one CPU nothing is said of it.
    let one = request().story();
    assert!(!summary::text(&one, &Labels::default()).contains("SWITCHES"));
    assert!(!picture::draw("one", &one, &Labels::default()).unwrap().contains("CPU"));
}

#[test]
fn damage_is_reported_with_its_place() {
    let mut bytes = request().bytes();
    bytes.truncate(bytes.len() - 1);
    let error = Story::read(&bytes, &Window::Everything).expect_err("cut off").to_string();
    assert_eq!(error, "record 20 of the trace (byte 640): it is cut off after 31 of 32 bytes");
    assert!(Story::read(&[], &Window::Everything).expect_err("empty").to_string().contains("built to trace"));
}

#[test]
fn damage_never_panics() {
    let whole = [two_cpus(), request()].map(|tape| tape.bytes());
    // A generator of Marsaglia (xorshift).
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let mut next = |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % below as u64) as usize
    };
    let mut stories = 0;
    for _ in 0..3000 {
        let mut bytes = whole[next(2)].clone();
        for _ in 0..=next(3) {
            let at = next(bytes.len());
            bytes[at] = next(256) as u8;
        }
        let window = Window::Bytes(next(bytes.len()), bytes.len());
        if let Ok(story) = Story::read(&bytes, &window) {
            stories += 1;
            balanced(&perfetto::write(&story, &Labels::default())).unwrap();
            summary::text(&story, &Labels::default());
        }
    }
    assert!((100..2900).contains(&stories), "{stories} of 3000 are stories");
}

#[test]
fn the_summary_counts() {
    let text = summary::text(&request().story(), &Labels::default());
    let first = text.lines().next().unwrap();
    assert!(first.contains("2 calls and their returns, 4 switches, 1 interrupts, 1 page faults"), "{first}");
    let row = |name: &str| text.lines().find(|line| line.trim().starts_with(name)).unwrap_or_default().to_string();
    assert!(row("driver").contains("20"), "{text}");
    assert!(row("client  server").contains("40"), "{text}");
}

#[test]
fn the_picture_has_lanes_calls_and_interrupts() {
    let mut tape = request();
    tape.0[2].operands = text(b"ser<v>er");
    let story = tape.story();
    let picture = picture::draw("a & b", &story, &Labels::default()).unwrap();
    for part in ["a &amp; b", ">client<", ">ser&lt;v&gt;er<", ">driver<", ">sched<", "interrupt of line 11", ">idle<"] {
        assert!(picture.contains(part), "{part} is not in\n{picture}");
    }
    assert_eq!(picture.matches("class=\"call\"").count(), 2);
    assert_eq!(picture.matches("class=\"bar\"").count(), 8, "all spans but the idle ones");
    for tag in ["svg", "text", "style", "title"] {
        assert_eq!(picture.matches(&format!("<{tag}")).count(), picture.matches(&format!("</{tag}>")).count(), "{tag}");
    }
    within(&picture);
}

/// Nothing lies outside of the picture.
fn within(picture: &str) {
    for place in picture.split(" x=\"").skip(1) {
        let mut words = place.split('"');
        let x: f64 = words.next().unwrap_or_default().parse().unwrap();
        let width: f64 = place.split_once(" width=\"").map_or(0.0, |(before, after)| {
            if before.contains('>') { 0.0 } else { after.split('"').next().unwrap_or_default().parse().unwrap() }
        });
        assert!(x >= 0.0 && x + width <= 1240.0, "{x} + {width}");
    }
}

#[test]
fn long_and_empty_traces_get_no_picture() {
    let mut tape = Tape::new();
    let empty = tape.story();
    assert!(picture::draw("", &empty, &Labels::default()).unwrap_err().to_string().contains("nothing ran"));
    for _ in 0..1000 {
        tape.add(Kind::Run, 7, 1, [0, 0]);
        tape.add(Kind::Idle, 0, 0, [0, 0]);
    }
    within(&picture::draw("", &tape.story(), &Labels::default()).unwrap());
    for _ in 0..1001 {
        tape.add(Kind::Run, 7, 1, [0, 0]);
        tape.add(Kind::Idle, 0, 0, [0, 0]);
    }
    let error = picture::draw("", &tape.story(), &Labels::default()).unwrap_err().to_string();
    assert!(error.contains("--svg is for runs of at most 3000"), "{error}");
}
