//! From records to a story, one after the other.
//!
//! Each record is compared with what those before it say: a crossing that begins or ends where the thread does not
//! stand is an error that names both.

use super::chains::{Chains, Key, Standing};
use super::story::{Call, Domain, Ended, Happening, Span, Step, Story, Thread, Wake, Who};
use anyhow::{Context, Result, bail};
use std::collections::BTreeMap;
use trace::{Kind, Record};

/// The state of a CPU.
#[derive(Clone, Copy, Debug)]
struct Doing {
    who: Who,
    /// Place of its last span, if the window is open.
    span: Option<usize>,
}

/// Follows the records.
pub struct Recorder {
    /// As far as it is known.
    pub story: Story,
    chains: Chains,
    /// By CPU: its activity.
    now: BTreeMap<u8, Doing>,
    /// The CPU of the present record.
    cpu: u8,
    time: u64,
    open: bool,
    /// The machine stopped.
    pub over: bool,
    /// By thread: the wake that was not followed by a span yet.
    woken: BTreeMap<usize, usize>,
    /// By thread: ticks that it ran in the window.
    ran: BTreeMap<usize, u64>,
    /// By CPU: the step with the line that its next log record goes on with.
    lines: BTreeMap<u8, Option<usize>>,
    /// By CPU: pages that the call shows which comes next.
    shown: BTreeMap<u8, u8>,
}

impl Recorder {
    /// Nothing has happened on these CPUs.
    pub fn new(cpus: Vec<u8>) -> Self {
        Self {
            now: cpus.iter().map(|cpu| (*cpu, Doing { who: Who::Idle, span: None })).collect(),
            story: Story { cpus, ..Story::default() },
            chains: Chains::default(),
            cpu: 0,
            time: 0,
            open: false,
            over: false,
            woken: BTreeMap::new(),
            ran: BTreeMap::new(),
            lines: BTreeMap::new(),
            shown: BTreeMap::new(),
        }
    }

    /// Takes one record.
    pub fn report(&mut self, record: &Record) -> Result<()> {
        self.time = record.time;
        self.cpu = record.cpu;
        let (domain, [first, second]) = (record.domain, record.operands);
        let key = Key::of(record);
        let line = self.lines.remove(&record.cpu);
        match record.kind {
            Kind::Begin | Kind::Stop => {}
            Kind::Domain => {
                let name = text(record);
                self.story.domains.insert(domain, Domain { number: domain, name });
                self.happens(Happening::Domain(domain));
            }
            Kind::DomainDied => self.happens(Happening::Died(domain, first)),
            Kind::Thread => {
                let thread = self.story.threads.len();
                self.story.threads.push(Thread { number: record.thread, home: domain, cpu: 0 });
                self.chains.new_thread(key, thread)?;
            }
            Kind::ThreadGone => self.chains.remove(key)?,
            Kind::Window => {
                self.shown.insert(record.cpu, (first & abi::window::PAGES) as u8);
            }
            Kind::Call | Kind::Upcall => self.call(record)?,
            Kind::Refused => self.happens(Happening::Refused(self.known(first)?, second)),
            Kind::Return => {
                let callee = self.chains.leave(key, domain, self.known(first)?)?;
                let thread = self.chains.thread(key)?;
                self.leave(callee, Ended::Returned);
                self.goes_on(Who::Thread(thread, first as u32), false);
            }
            Kind::Cut => {
                for standing in self.chains.cut(key, domain, first)? {
                    self.leave(standing, Ended::Cut);
                }
            }
            Kind::Adopt => self.chains.adopt(key, domain, first != 0)?,
            Kind::Run => {
                let thread = self.chains.thread(key)?;
                self.chains.runs(key, domain, self.story.threads[thread].home)?;
                self.goes_on(Who::Thread(thread, domain), true);
            }
            Kind::Schedule => {
                let thread = self.seat(domain)?;
                self.goes_on(Who::Thread(thread, domain), true);
            }
            Kind::Idle => {
                if self.doing().is_none_or(|doing| doing.who != Who::Idle) {
                    self.goes_on(Who::Idle, true);
                }
            }
            Kind::Wake => self.wake(record)?,
            Kind::PageFault => self.happens(Happening::PageFault(first, second)),
            Kind::Exception => self.happens(Happening::Exception(first)),
            Kind::Interrupt => self.happens(Happening::Interrupt(first)),
            Kind::Log => {
                self.happens(Happening::Log(text(record)));
                let step = self.story.steps.len().checked_sub(1).filter(|_| self.open);
                self.lines.insert(record.cpu, step);
            }
            Kind::LogMore => {
                let Some(step) = line else { bail!("it goes on with a line that did not begin") };
                let step = step.and_then(|step| self.story.steps.get_mut(step));
                if let Some((_, Step::Happens(_, Happening::Log(line)))) = step {
                    line.push_str(&text(record));
                }
                self.lines.extend(line.map(|step| (record.cpu, step)));
            }
            Kind::End => self.over = true,
        }
        Ok(())
    }

    /// A domain that was made.
    fn known(&self, number: u64) -> Result<u32> {
        let known = u32::try_from(number).ok().filter(|number| self.story.domains.contains_key(number));
        known.with_context(|| format!("there is no domain {number}"))
    }

    /// The state of this CPU.
    fn doing(&self) -> Option<&Doing> {
        self.now.get(&self.cpu)
    }

    /// The seat of this CPU's scheduler, in this domain, as a thread.
    fn seat(&mut self, domain: u32) -> Result<usize> {
        let seat = Thread { number: 0, home: domain, cpu: self.cpu };
        let found = self.story.threads.iter().position(|thread| *thread == seat);
        let thread = found.unwrap_or(self.story.threads.len());
        if found.is_none() {
            self.story.threads.push(seat);
        }
        self.chains.new_thread(Key::Seat(self.cpu), thread)?;
        Ok(thread)
    }

    fn call(&mut self, record: &Record) -> Result<()> {
        let [callee, service] = record.operands;
        let to = self.known(callee & u64::from(u32::MAX))?;
        let thread = self.chains.thread(Key::of(record))?;
        let call = Call {
            thread,
            from: record.domain,
            to,
            service: service >> 16,
            method: service as u16,
            badge: (callee >> 32) as u32,
            pages: self.shown.remove(&self.cpu).unwrap_or(0),
            upcall: record.kind == Kind::Upcall,
            before: false,
            begin: self.time,
            end: self.time,
            ran: 0,
            ended: Ended::Later,
        };
        let place = self.story.calls.len();
        let standing = Standing { call: Some(call.clone()), place, domain: to };
        self.chains.enter(Key::of(record), standing, record.domain)?;
        if self.open {
            self.halt(self.cpu);
            self.story.calls.push(Call { ran: self.ran(thread), ..call });
            self.step(Step::Enter(place));
        }
        self.begin(Who::Thread(thread, to), false);
        Ok(())
    }

    /// A call ends.
    fn leave(&mut self, standing: Standing, ended: Ended) {
        if !self.open || standing.call.is_none() {
            return;
        }
        let who = Who::Thread(self.story.calls[standing.place].thread, standing.domain);
        self.halt_where(|doing| doing.who == who);
        self.end_call(standing.place, ended);
    }

    fn end_call(&mut self, place: usize, ended: Ended) {
        let ran = self.ran(self.story.calls[place].thread);
        let call = &mut self.story.calls[place];
        call.end = self.time;
        call.ended = ended;
        call.ran = ran - call.ran;
        self.step(Step::Leave(place));
    }

    /// Ticks that a thread has run in the window.
    fn ran(&self, thread: usize) -> u64 {
        self.ran.get(&thread).copied().unwrap_or(0)
    }

    fn wake(&mut self, record: &Record) -> Result<()> {
        let thread = self.chains.thread(Key::of(record))?;
        if self.open {
            let interrupt = record.operands[0] == 0;
            let from = self.doing().and_then(|doing| doing.span).unwrap_or(0);
            self.woken.insert(thread, self.story.wakes.len());
            self.story.wakes.push(Wake { time: self.time, from, interrupt, to: None });
        }
        Ok(())
    }

    fn happens(&mut self, what: Happening) {
        if self.open {
            self.step(Step::Happens(self.cpu, what));
        }
    }

    fn step(&mut self, step: Step) {
        self.story.steps.push((self.time, step));
    }

    /// This CPU does something else from now on.
    fn goes_on(&mut self, who: Who, switch: bool) {
        self.halt(self.cpu);
        self.begin(who, switch);
    }

    /// The spans that go on and of which this is so end.
    fn halt_where(&mut self, is_meant: impl Fn(&Doing) -> bool) {
        let meant = self.now.iter().filter(|(_, doing)| is_meant(doing)).map(|(cpu, _)| *cpu).collect::<Vec<_>>();
        meant.into_iter().for_each(|cpu| self.halt(cpu));
    }

    /// The span that goes on there ends, if it has not yet.
    fn halt(&mut self, cpu: u8) {
        let Some(place) = self.now.get(&cpu).and_then(|doing| doing.span) else { return };
        let last = &mut self.story.spans[place];
        if last.end == u64::MAX {
            last.end = self.time;
            if let Who::Thread(thread, _) = last.who {
                *self.ran.entry(thread).or_default() += last.end - last.begin;
            }
            self.step(Step::Stop(place));
        }
    }

    fn begin(&mut self, who: Who, switch: bool) {
        let place = self.story.spans.len();
        let span = self.open.then_some(place);
        if let (Who::Thread(thread, _), true) = (who, self.open) {
            // It stopped elsewhere, though the later records from there come afterwards.
            self.halt_where(|doing| matches!(doing.who, Who::Thread(other, _) if other == thread));
        }
        self.now.insert(self.cpu, Doing { who, span });
        if self.open {
            let span = Span { cpu: self.cpu, who, begin: self.time, end: u64::MAX, switch };
            self.story.spans.push(span);
            self.step(Step::Start(place));
            if let Who::Thread(thread, _) = who
                && let Some(wake) = self.woken.remove(&thread)
            {
                self.story.wakes[wake].to = Some(place);
            }
        }
    }

    /// The window begins.
    pub fn open(&mut self, time: u64) {
        self.open = true;
        self.time = time;
        self.story.begin = time;
        for standing in self.chains.all() {
            if let Some(call) = &standing.call {
                standing.place = self.story.calls.len();
                self.story.calls.push(Call { before: true, begin: time, end: time, ..call.clone() });
                self.story.steps.push((time, Step::Enter(standing.place)));
            }
        }
        for (cpu, doing) in self.now.clone() {
            self.cpu = cpu;
            self.begin(doing.who, false);
        }
    }

    /// The window ends.
    pub fn close(&mut self) {
        self.halt_where(|_| true);
        self.story.end = self.time;
        let open: Vec<usize> =
            self.chains.all().filter(|standing| standing.call.is_some()).map(|standing| standing.place).collect();
        for place in open.into_iter().rev() {
            self.end_call(place, Ended::Later);
        }
        self.open = false;
    }
}

/// A name or a part of a line; unprintable characters become dots.
fn text(record: &Record) -> String {
    let bytes = record.text();
    let length = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    bytes[..length].iter().map(|byte| if (b' '..=b'~').contains(byte) { *byte as char } else { '.' }).collect()
}
