//! From records to a story, one after the other.
//!
//! Each record is compared with what those before it say: a crossing that begins or ends where the thread does not
//! stand is an error that names both.

use super::chains::{Chains, Standing};
use super::story::{Call, Domain, Ended, Happening, Step, Story, Stretch, Thread, Wake, Who};
use anyhow::{Context, Result, bail};
use std::collections::BTreeMap;
use trace::{Kind, Record};

/// Follows the records.
pub struct Teller {
    /// As far as it is known.
    pub story: Story,
    chains: Chains,
    now: Who,
    time: u64,
    open: bool,
    /// The machine stopped.
    pub over: bool,
    /// By thread: the wake that was not followed by a stretch yet.
    woken: BTreeMap<usize, usize>,
    /// By thread: ticks that it ran in the window.
    ran: BTreeMap<usize, u64>,
    /// The next log record goes on with the line of the last.
    line: bool,
}

impl Teller {
    /// Nothing has happened.
    pub fn new() -> Self {
        Self {
            story: Story::default(),
            chains: Chains::default(),
            now: Who::Idle,
            time: 0,
            open: false,
            over: false,
            woken: BTreeMap::new(),
            ran: BTreeMap::new(),
            line: false,
        }
    }

    /// What this record says.
    pub fn tell(&mut self, record: &Record) -> Result<()> {
        self.time = record.time;
        let (domain, [first, second]) = (record.domain, record.operands);
        let more = self.line && record.kind == Kind::LogMore;
        self.line = matches!(record.kind, Kind::Log | Kind::LogMore);
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
                self.story.threads.push(Thread { number: record.thread, home: domain });
                self.chains.new_thread(record.thread, thread)?;
            }
            Kind::ThreadGone => self.chains.remove(record.thread)?,
            Kind::Call | Kind::Upcall => self.call(record)?,
            Kind::Refused => self.happens(Happening::Refused(self.known(first)?, second)),
            Kind::Return => {
                let callee = self.chains.leave(record.thread, domain, self.known(first)?)?;
                let thread = self.chains.thread(record.thread)?;
                self.leave(callee, Ended::Returned);
                self.goes_on(Who::Thread(thread, first as u32), false);
            }
            Kind::Cut => {
                for standing in self.chains.cut(record.thread, domain, first)? {
                    self.leave(standing, Ended::Cut);
                }
            }
            Kind::Adopt => self.chains.adopt(record.thread, domain, first != 0)?,
            Kind::Run => {
                let thread = self.chains.thread(record.thread)?;
                self.chains.runs(record.thread, domain, self.story.threads[thread].home)?;
                self.goes_on(Who::Thread(thread, domain), true);
            }
            Kind::Schedule => {
                let thread = self.seat(domain)?;
                self.goes_on(Who::Thread(thread, domain), true);
            }
            Kind::Idle => {
                if self.now != Who::Idle {
                    self.goes_on(Who::Idle, true);
                }
            }
            Kind::Wake => self.wake(record)?,
            Kind::PageFault => self.happens(Happening::PageFault(first, second)),
            Kind::Exception => self.happens(Happening::Exception(first)),
            Kind::Interrupt => self.happens(Happening::Interrupt(first)),
            Kind::Log => self.happens(Happening::Log(text(record))),
            Kind::LogMore if !more => bail!("it goes on with a line that did not begin"),
            Kind::LogMore => {
                if let Some((_, Step::Happens(Happening::Log(line)))) = self.story.steps.last_mut() {
                    line.push_str(&text(record));
                }
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

    /// The scheduler's seat in this domain, as a thread.
    fn seat(&mut self, domain: u32) -> Result<usize> {
        let found = self.story.threads.iter().position(|thread| *thread == Thread { number: 0, home: domain });
        let thread = found.unwrap_or(self.story.threads.len());
        if found.is_none() {
            self.story.threads.push(Thread { number: 0, home: domain });
        }
        self.chains.new_thread(0, thread)?;
        Ok(thread)
    }

    fn call(&mut self, record: &Record) -> Result<()> {
        let [callee, service] = record.operands;
        let to = self.known(callee & u64::from(u32::MAX))?;
        let thread = self.chains.thread(record.thread)?;
        let call = Call {
            thread,
            from: record.domain,
            to,
            service: service >> 16,
            method: service as u16,
            badge: (callee >> 32) as u32,
            upcall: record.kind == Kind::Upcall,
            before: false,
            begin: self.time,
            end: self.time,
            ran: 0,
            ended: Ended::Later,
        };
        let place = self.story.calls.len();
        self.chains.enter(record.thread, Standing { call: Some(call.clone()), place, domain: to }, record.domain)?;
        if self.open {
            self.halt();
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
        let runs_in_it = self.now == Who::Thread(self.story.calls[standing.place].thread, standing.domain);
        if runs_in_it {
            self.halt();
        }
        self.end_call(standing.place, ended);
    }

    fn end_call(&mut self, place: usize, ended: Ended) {
        let ran = self.ran(self.story.calls[place].thread);
        let call = &mut self.story.calls[place];
        (call.end, call.ended, call.ran) = (self.time, ended, ran - call.ran);
        self.step(Step::Leave(place));
    }

    /// Ticks that a thread has run in the window.
    fn ran(&self, thread: usize) -> u64 {
        self.ran.get(&thread).copied().unwrap_or(0)
    }

    fn wake(&mut self, record: &Record) -> Result<()> {
        let thread = self.chains.thread(record.thread)?;
        if self.open {
            let interrupt = record.operands[0] == 0;
            let from = self.story.stretches.len().saturating_sub(1);
            self.woken.insert(thread, self.story.wakes.len());
            self.story.wakes.push(Wake { time: self.time, from, interrupt, to: None });
        }
        Ok(())
    }

    fn happens(&mut self, what: Happening) {
        if self.open {
            self.step(Step::Happens(what));
        }
    }

    fn step(&mut self, step: Step) {
        self.story.steps.push((self.time, step));
    }

    /// The CPU does something else from now on.
    fn goes_on(&mut self, who: Who, switch: bool) {
        self.halt();
        self.begin(who, switch);
    }

    /// The stretch that goes on ends, if it has not yet.
    fn halt(&mut self) {
        let Some(place) = self.story.stretches.len().checked_sub(1).filter(|_| self.open) else { return };
        let last = &mut self.story.stretches[place];
        if last.end == u64::MAX {
            last.end = self.time;
            if let Who::Thread(thread, _) = last.who {
                *self.ran.entry(thread).or_default() += last.end - last.begin;
            }
            self.step(Step::Stop(place));
        }
    }

    fn begin(&mut self, who: Who, switch: bool) {
        self.now = who;
        if self.open {
            let place = self.story.stretches.len();
            self.story.stretches.push(Stretch { who, begin: self.time, end: u64::MAX, switch });
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
        (self.open, self.time, self.story.begin) = (true, time, time);
        for standing in self.chains.all() {
            if let Some(call) = &standing.call {
                standing.place = self.story.calls.len();
                self.story.calls.push(Call { before: true, begin: time, end: time, ..call.clone() });
                self.story.steps.push((time, Step::Enter(standing.place)));
            }
        }
        self.begin(self.now, false);
    }

    /// The window ends.
    pub fn close(&mut self) {
        self.halt();
        self.story.end = self.time;
        let open: Vec<usize> =
            self.chains.all().filter(|standing| standing.call.is_some()).map(|standing| standing.place).collect();
        for place in open.into_iter().rev() {
            self.end_call(place, Ended::Later);
        }
        self.open = false;
    }
}

/// A name or a part of a line; what is not printable becomes a dot.
fn text(record: &Record) -> String {
    let bytes = record.text();
    let length = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    bytes[..length].iter().map(|byte| if (b' '..=b'~').contains(byte) { *byte as char } else { '.' }).collect()
}
