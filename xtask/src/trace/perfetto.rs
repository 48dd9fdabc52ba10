//! A story in the JSON that Perfetto and `chrome://tracing` open ("Trace Event Format", Google, 2016).
//!
//! Each domain is a process, each thread a track in every domain it comes to. On the track at home a call is a
//! slice from call to return, and the calls made meanwhile lie in it; in the callee it is a slice, too. `runs` are
//! the times in which the thread has the CPU. Arrows lead from what made a thread ready to where it goes on.
//! The process `CPUs` has a track for each CPU that shows which domain runs there. Processes have the numbers of their domains; the numbers
//! of tracks mean nothing.

use super::labels::Labels;
use super::story::{Call, Ended, Happening, Step, Story, Who};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Process of the CPUs, which is no domain: readers take process 0, and a thread with its process's number, for
/// something special.
const CPUS: u32 = 1_000_000_000;
/// First number of a track.
const FIRST_TRACK: usize = 1_000_001;

/// A track: process and thread.
type Track = (u32, usize);

/// The JSON text of a story.
pub fn write(story: &Story, labels: &Labels) -> String {
    let mut writer = Writer {
        story,
        labels,
        tracks: BTreeMap::new(),
        last: BTreeMap::new(),
        now: BTreeMap::new(),
        events: Vec::new(),
    };
    for cpu in &story.cpus {
        writer.cpu_track(*cpu);
    }
    for (time, step) in &story.steps {
        writer.step(*time, step);
    }
    writer.arrows();
    writer.finish()
}

struct Writer<'a> {
    story: &'a Story,
    labels: &'a Labels,
    /// Tracks by domain and name; threads of the file are numbered.
    tracks: BTreeMap<(u32, String), usize>,
    /// By span: the track where it is drawn.
    last: BTreeMap<usize, Track>,
    /// By CPU: its last span.
    now: BTreeMap<u8, usize>,
    events: Vec<Value>,
}

impl Writer<'_> {
    fn track(&mut self, process: u32, name: &str) -> Track {
        let next = FIRST_TRACK + self.tracks.len();
        (process, *self.tracks.entry((process, name.into())).or_insert(next))
    }

    /// The track of what runs on a CPU.
    fn cpu_track(&mut self, cpu: u8) -> Track {
        self.track(CPUS, &format!("CPU {cpu}"))
    }

    /// The track of a thread in a domain.
    fn thread_track(&mut self, thread: usize, domain: u32) -> Track {
        let thread = self.story.threads[thread];
        let name = match (thread.number, thread.home == domain) {
            (0, _) if self.story.cpu_count() == 1 => "scheduler".to_string(),
            (0, _) => format!("scheduler of CPU {}", thread.cpu),
            (number, true) => format!("thread {number}"),
            (number, false) => format!("thread {number} of {}", self.story.name(thread.home)),
        };
        self.track(domain, &name)
    }

    /// Microseconds since the window began: an instruction is a nanosecond.
    fn microseconds(&self, time: u64) -> Value {
        let ticks = time.saturating_sub(self.story.begin);
        let text = format!("{}.{:03}", ticks / 1000, ticks % 1000);
        serde_json::from_str(&text).unwrap_or_default()
    }

    fn event(&mut self, phase: &str, time: u64, (process, thread): Track, more: Value) {
        let mut event = json!({ "ph": phase, "ts": self.microseconds(time), "pid": process, "tid": thread });
        if let (Some(event), Value::Object(more)) = (event.as_object_mut(), more) {
            event.extend(more);
        }
        self.events.push(event);
    }

    fn step(&mut self, time: u64, step: &Step) {
        match step {
            Step::Enter(place) => {
                let call = &self.story.calls[*place];
                let arguments = self.arguments(call);
                let called = self.labels.call(self.story, call);
                for track in self.caller_tracks(call) {
                    self.event("B", time, track, json!({ "name": called, "cat": "call", "args": arguments }));
                }
                if let Some(track) = self.callee_track(call) {
                    let name = format!("{} for {}", self.labels.method(self.story, call), self.story.name(call.from));
                    self.event("B", time, track, json!({ "name": name, "cat": "call", "args": arguments }));
                }
            }
            Step::Leave(place) => {
                let call = &self.story.calls[*place];
                let how = match call.ended {
                    Ended::Returned => json!({}),
                    Ended::Cut => json!({ "args": { "ended": "cut off" } }),
                    Ended::Later => json!({ "args": { "ended": "after this trace" } }),
                };
                if let Some(track) = self.callee_track(call) {
                    self.event("E", time, track, how.clone());
                }
                for track in self.caller_tracks(call).into_iter().rev() {
                    self.event("E", time, track, how.clone());
                }
            }
            Step::Start(place) => {
                let span = self.story.spans[*place];
                let cpu = self.cpu_track(span.cpu);
                self.now.insert(span.cpu, *place);
                let name = match span.who {
                    Who::Idle => "idle".to_string(),
                    Who::Thread(thread, domain) => {
                        let track = self.thread_track(thread, domain);
                        self.last.insert(*place, track);
                        let on = json!({ "CPU": span.cpu });
                        self.event("B", time, track, json!({ "name": "runs", "cat": "cpu", "args": on }));
                        self.story.name(domain).to_string()
                    }
                };
                self.event("B", time, cpu, json!({ "name": name, "cat": "cpu" }));
            }
            Step::Stop(place) => {
                let cpu = self.cpu_track(self.story.spans[*place].cpu);
                self.event("E", time, cpu, json!({}));
                if let Some(track) = self.last.get(place) {
                    self.event("E", time, *track, json!({}));
                }
            }
            Step::Happens(cpu, what) => self.happens(time, *cpu, what),
        }
    }

    /// The track at home, and that of the domain from which the call goes if that is another.
    fn caller_tracks(&mut self, call: &Call) -> Vec<Track> {
        let home = self.story.threads[call.thread].home;
        let mut tracks = vec![self.thread_track(call.thread, home)];
        if call.from != home {
            tracks.push(self.thread_track(call.thread, call.from));
        }
        tracks
    }

    /// The track in the callee, if that is not the track at home.
    fn callee_track(&mut self, call: &Call) -> Option<Track> {
        let home = self.story.threads[call.thread].home;
        (call.to != home).then(|| self.thread_track(call.thread, call.to))
    }

    fn arguments(&self, call: &Call) -> Value {
        let service = format!("{:#x}", call.service);
        let mut arguments = json!({ "from": self.story.name(call.from), "to": self.story.name(call.to),
            "service": service, "badge": call.badge, (self.story.unit()): call.ran });
        if call.before {
            arguments["began"] = "before this trace".into();
        }
        arguments
    }

    fn happens(&mut self, time: u64, on: u8, what: &Happening) {
        let story = self.story;
        let name = |domain: &u32| story.name(*domain).to_string();
        let (text, arguments) = match what {
            Happening::PageFault(address, code) => {
                ("page fault".to_string(), json!({ "address": format!("{address:#x}"), "code": format!("{code:#x}") }))
            }
            Happening::Exception(vector) => (format!("exception {vector}"), json!({})),
            Happening::Interrupt(vector) => (interrupt(*vector), json!({})),
            Happening::Refused(to, error) => (format!("refused by {}: {}", name(to), error_text(*error)), json!({})),
            Happening::Log(line) => (format!("log: {line}"), json!({})),
            Happening::Domain(domain) => (format!("domain {domain} made: {}", name(domain)), json!({})),
            Happening::Died(domain, status) => (format!("{} died, status {status:#x}", name(domain)), json!({})),
        };
        let cpu = self.cpu_track(on);
        let running = self.now.get(&on).and_then(|place| self.last.get(place).copied());
        let track = match what {
            Happening::Interrupt(_) | Happening::Domain(_) | Happening::Died(..) => cpu,
            _ => running.unwrap_or(cpu),
        };
        self.event("i", time, track, json!({ "name": text, "s": "t", "args": arguments }));
    }

    /// From where a thread is made ready to where it goes on; from its CPU's track if by an interrupt.
    fn arrows(&mut self) {
        for (number, wake) in self.story.wakes.iter().enumerate() {
            let Some((place, to)) = wake.to.and_then(|place| Some((place, *self.last.get(&place)?))) else { continue };
            let cpu = self.cpu_track(self.story.spans[wake.from].cpu);
            let from = if wake.interrupt { cpu } else { self.last.get(&wake.from).copied().unwrap_or(cpu) };
            let begin = self.story.spans[place].begin;
            self.event("s", wake.time, from, json!({ "name": "wakes", "cat": "wake", "id": number }));
            self.event("f", begin, to, json!({ "name": "wakes", "cat": "wake", "id": number, "bp": "e" }));
        }
    }

    /// With the names of processes and tracks, an event a line.
    fn finish(self) -> String {
        let mut events = Vec::new();
        let mut name = |what: &str, process: u32, thread: usize, arguments: Value| {
            events.push(json!({ "ph": "M", "name": what, "pid": process, "tid": thread, "args": arguments }));
        };
        let mut last = None;
        for ((process, track), thread) in &self.tracks {
            if last.replace(*process) != Some(*process) {
                let text = if *process == CPUS { "CPUs" } else { self.story.name(*process) };
                name("process_name", *process, *thread, json!({ "name": text }));
                let place = if *process == CPUS { 0 } else { *process };
                name("process_sort_index", *process, *thread, json!({ "sort_index": place }));
            }
            name("thread_name", *process, *thread, json!({ "name": track }));
        }
        let mut text = String::from("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n");
        for (number, event) in events.iter().chain(&self.events).enumerate() {
            let _ = write!(text, "{}{event}", if number == 0 { "" } else { ",\n" });
        }
        text.push_str("\n]}\n");
        text
    }
}

/// The source of an interrupt's vector.
pub fn interrupt(vector: u64) -> String {
    match vector {
        32..=55 => format!("interrupt of line {}", vector - 32),
        0xe0 => "timer".into(),
        _ => format!("interrupt {vector:#x}"),
    }
}

/// The name of a call's error.
fn error_text(status: u64) -> String {
    match abi::Error::from_status(status) {
        Err(error) => error.text().into(),
        Ok(()) => "nothing".into(),
    }
}
