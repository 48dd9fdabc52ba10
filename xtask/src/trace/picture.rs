//! A story as a picture: domains are lanes, time goes to the right.
//!
//! A filled bar is a time in which the domain has the CPU; a frame is a call, from its start to its end, in the lane
//! of the callee, with a line from the caller. Times in which the CPU is idle are cut short.

use super::labels::Labels;
use super::perfetto;
use super::story::{Call, Happening, Span, Step, Story, Who};
use crate::bench::grouped;
use crate::graph::{escaped, text};
use anyhow::{Result, bail};
use std::fmt::Write as _;

/// Pixels.
const WIDTH: usize = 1240;
const LEFT: usize = 130;
const RIGHT: usize = 30;
const TOP: usize = 96;
const LANE: usize = 52;
const BETWEEN: usize = 14;
/// The widest that an idle time is drawn, however long it is; all of them take at most half of the picture.
const IDLE: f64 = 34.0;
/// Height of a bar within its lane, and how much a frame is moved in for each frame around it.
const BAR: usize = 14;
const INSET: usize = 5;
/// Height of a CPU's strip, if there are several, and where in it the bar begins.
const STRIP: usize = 28;
const STRIP_BAR: usize = 11;
/// Width of a letter of a label, about.
const LETTER: f64 = 6.2;
/// More spans than that cannot be distinguished.
const MOST: usize = 3000;

/// Where ticks are drawn.
struct Axis {
    /// Tick and place, at each start and end of an idle time.
    marks: Vec<(u64, f64)>,
    /// Pixels of a tick that is not idle.
    scale: f64,
    /// Pixels of an idle time.
    idle: f64,
}

impl Axis {
    fn new(idle: &[(u64, u64)], begin: u64, end: u64) -> Self {
        let idle_ticks: u64 = idle.iter().map(|(begin, end)| end - begin).sum();
        let (all, count) = ((WIDTH - LEFT - RIGHT) as f64, idle.len() as f64);
        let width = IDLE.min(all / 2.0 / count.max(1.0));
        let scale = (all - count * width) / (end - begin).saturating_sub(idle_ticks).max(1) as f64;
        let mut marks = vec![(begin, LEFT as f64)];
        for (begin, end) in idle {
            let (last, at) = marks[marks.len() - 1];
            let at = at + (begin - last) as f64 * scale;
            marks.extend([(*begin, at), (*end, at + width)]);
        }
        Self { marks, scale, idle: width }
    }

    fn place(&self, tick: u64) -> f64 {
        let after = self.marks.partition_point(|(mark, _)| *mark <= tick);
        let (mark, at) = self.marks[after.saturating_sub(1)];
        let place = at + tick.saturating_sub(mark) as f64 * self.scale;
        // Not beyond the end of an idle time, or of the picture.
        let most = self.marks.get(after).map_or((WIDTH - RIGHT) as f64, |(_, next)| *next);
        place.min(most)
    }
}

/// Times between the first and the last of these spans, which are in the order of their start, in which none is.
fn idle(busy: &[&Span]) -> Vec<(u64, u64)> {
    let mut idle = Vec::new();
    let mut until = busy.first().map_or(0, |first| first.begin);
    for span in busy {
        if span.begin > until {
            idle.push((until, span.begin));
        }
        until = until.max(span.end);
    }
    idle
}

/// The picture as text.
pub fn draw(title: &str, story: &Story, labels: &Labels) -> Result<String> {
    if story.spans.len() > MOST {
        bail!("the picture would have {} bars; --svg is for runs of at most {MOST}", story.spans.len());
    }
    let busy: Vec<_> = story.spans.iter().filter(|span| span.who != Who::Idle).collect();
    let (Some(first), Some(end)) = (busy.first(), busy.iter().map(|span| span.end).max()) else {
        bail!("nothing ran: there is nothing to draw")
    };
    let axis = Axis::new(&idle(&busy), first.begin, end);
    let mut picture = Picture { svg: Svg(String::new(), story.unit()), story, axis, lanes: lanes(&busy) };
    picture.head(title);
    picture.lanes();
    picture.idle_times();
    picture.calls(labels);
    picture.bars(&busy);
    picture.interrupts(first.begin);
    picture.svg.add("</svg>");
    Ok(picture.svg.0)
}

/// The domains in which threads ran, in the order of their first time, with the ticks of each.
fn lanes(busy: &[&Span]) -> Vec<(u32, u64)> {
    let mut lanes: Vec<(u32, u64)> = Vec::new();
    for span in busy {
        if let Who::Thread(_, domain) = span.who {
            let ticks = span.end - span.begin;
            match lanes.iter_mut().find(|(lane, _)| *lane == domain) {
                Some((_, sum)) => *sum += ticks,
                None => lanes.push((domain, ticks)),
            }
        }
    }
    lanes
}

/// A picture that is being drawn.
struct Picture<'a> {
    svg: Svg,
    story: &'a Story,
    axis: Axis,
    lanes: Vec<(u32, u64)>,
}

impl Picture<'_> {
    fn cpus(&self) -> usize {
        self.story.cpu_count()
    }

    /// Where the lanes begin. With several CPUs each has a strip of its own above them.
    fn lanes_top(&self) -> usize {
        TOP + if self.cpus() > 1 { self.cpus() * STRIP + BETWEEN } else { 0 }
    }

    /// Where they end.
    fn bottom(&self) -> usize {
        self.lanes_top() + self.lanes.len() * (LANE + BETWEEN)
    }

    /// Where the lane of a domain begins.
    fn top(&self, domain: u32) -> Option<usize> {
        let lane = self.lanes.iter().position(|(lane, _)| *lane == domain)?;
        Some(self.lanes_top() + lane * (LANE + BETWEEN))
    }

    fn head(&mut self, title: &str) {
        let height = self.bottom() + 40;
        let total: u64 = self.lanes.iter().map(|(_, ticks)| ticks).sum();
        let (total, unit) = (grouped(total), self.story.unit());
        let about = format!("{total} {unit}; a bar runs, a frame is a call, a triangle an interrupt");
        let several = if self.cpus() > 1 { "; in a lane, CPUs stand as they do above" } else { "" };
        self.svg.add(&format!(
            r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" role="img">"#
        ));
        self.svg.add(&format!("<title>{}</title>", escaped(title)));
        self.svg.add(STYLE);
        self.svg.add(&text(LEFT, 34, "title", title));
        self.svg.add(&text(LEFT, 56, "small", &format!("{about}{several}")));
    }

    fn lanes(&mut self) {
        for (domain, ticks) in self.lanes.clone() {
            let y = self.top(domain).unwrap_or(TOP);
            self.svg.add(&format!(
                r#"<rect class="lane" x="{LEFT}" y="{y}" width="{}" height="{LANE}"/>"#,
                WIDTH - LEFT - RIGHT
            ));
            self.svg.add(&text(14, y + 22, "name", self.story.name(domain)));
            self.svg.add(&text(14, y + 40, "small", &grouped(ticks)));
        }
    }

    /// Marks are where the picture begins, then where an idle time begins and ends.
    fn idle_times(&mut self) {
        let (bottom, width) = (self.bottom(), self.axis.idle);
        for (_, x) in self.axis.marks.iter().skip(1).step_by(2) {
            self.svg.add(&format!(
                r#"<rect class="idle" x="{x:.1}" y="{}" width="{width:.1}" height="{}"><title>idle</title></rect>"#,
                TOP - 10,
                bottom - TOP + 10
            ));
            if width == IDLE {
                self.svg.add(&text((x + 7.0) as usize, bottom + 18, "small", "idle"));
            }
        }
    }

    fn calls(&mut self, labels: &Labels) {
        for (place, call) in self.story.calls.iter().enumerate() {
            if let (Some(from), Some(to)) = (self.top(call.from), self.top(call.to)) {
                let method = labels.method(self.story, call);
                self.svg.call(call, &self.axis, (from, to), depth(self.story, place), &method);
            }
        }
    }

    /// A bar for each span: in the lane of the domain, and in the strip of the CPU.
    fn bars(&mut self, busy: &[&Span]) {
        let cpus = self.cpus();
        for span in busy {
            let Who::Thread(_, domain) = span.who else { continue };
            let Some(y) = self.top(domain) else { continue };
            let (x, end) = (self.axis.place(span.begin), self.axis.place(span.end));
            let (name, place) = (self.story.name(domain), self.story.cpu_place(span.cpu));
            let (at, high) = bar_place(place, cpus);
            self.svg.bar((x, end), (y + at, high), name);
            if cpus > 1 {
                let y = TOP + place * STRIP + STRIP_BAR;
                self.svg.bar((x, end), (y, BAR), name);
                if end - x > name.len() as f64 * LETTER + 6.0 {
                    self.svg.add(&text(x as usize + 3, y + 11, "on", name));
                }
            }
        }
        for (place, cpu) in self.story.cpus.iter().enumerate().filter(|_| cpus > 1) {
            self.svg.add(&text(14, TOP + place * STRIP + STRIP_BAR + 12, "name", &format!("CPU {cpu}")));
        }
    }

    fn interrupts(&mut self, begin: u64) {
        for (time, step) in &self.story.steps {
            let Step::Happens(cpu, Happening::Interrupt(vector)) = step else { continue };
            let x = self.axis.place((*time).max(begin));
            let strip = TOP + self.story.cpu_place(*cpu) * STRIP + 1;
            let y = if self.cpus() > 1 { strip } else { TOP - 20 };
            self.svg.add(&format!(
                r#"<path class="interrupt" d="M{:.1} {y}h10l-5 9z"><title>{}</title></path>"#,
                x - 5.0,
                perfetto::interrupt(*vector)
            ));
        }
    }
}

/// Where in a lane the bar of a CPU is, which is this one of so many, and how high: they lie one below the other.
fn bar_place(place: usize, cpus: usize) -> (usize, usize) {
    let all = (cpus * BAR / 2).clamp(BAR, LANE - 14);
    let each = (all / cpus).max(1);
    (LANE / 2 + 6 - all / 2 + (place * each).min(all), each)
}

/// Calls in the same lane around this one.
fn depth(story: &Story, place: usize) -> usize {
    let call = &story.calls[place];
    let around = |other: &&Call| other.to == call.to && other.begin <= call.begin && other.end >= call.end;
    story.calls[..place].iter().filter(around).count().min(3)
}

/// Its text, and what ticks count.
struct Svg(String, &'static str);

impl Svg {
    fn add(&mut self, text: &str) {
        self.0.push_str(text);
        self.0.push('\n');
    }

    /// A frame in the lane of the callee, and lines from and to that of the caller where it begins and ends.
    fn call(&mut self, call: &Call, axis: &Axis, (from, to): (usize, usize), depth: usize, label: &str) {
        let (x, end) = (axis.place(call.begin), axis.place(call.end));
        let (inset, width) = (depth * INSET, end - x);
        let (y, height) = (to + 2 + inset, LANE - 4 - 2 * inset);
        let what = format!("{label}: {} {}", grouped(call.ran), self.1);
        let _ = write!(
            self.0,
            r#"<rect class="call" x="{x:.1}" y="{y}" width="{width:.1}" height="{height}" rx="3"><title>{}</title></rect>"#,
            escaped(&what)
        );
        let (low, high) = if from < to { (from + LANE / 2, y) } else { (from + LANE / 2, y + height) };
        let mut line = |x: f64| {
            let _ = write!(self.0, r#"<path class="cross" d="M{x:.1} {low}V{high}"/>"#);
        };
        if !call.before {
            line(x);
        }
        if call.ended == super::Ended::Returned {
            line(end);
        }
        self.0.push('\n');
        if width > label.len() as f64 * LETTER && !call.before {
            self.add(&text(x as usize + 4, y + 12, "label", label));
        }
    }

    fn bar(&mut self, (x, end): (f64, f64), (y, height): (usize, usize), name: &str) {
        let width = (end - x).max(0.6);
        let _ = writeln!(
            self.0,
            r#"<rect class="bar" x="{x:.1}" y="{y}" width="{width:.1}" height="{height}"><title>{}</title></rect>"#,
            escaped(name)
        );
    }
}

/// Light and dark, as the viewer wants it.
const STYLE: &str = "<style>
svg{background:#fff;font-family:system-ui,sans-serif}
text{fill:#1c2430}.title{font-size:20px;font-weight:600}.name{font-size:15px;font-weight:600}
.small{font-size:12px;fill:#556070}.label{font-size:11px}
.lane{fill:#f3f4f6}.bar{fill:#3b6fd4}.call{fill:#3b6fd4;fill-opacity:.09;stroke:#3b6fd4;stroke-width:1}
.on{font-size:11px;fill:#fff}.idle{fill:#fff}.cross{fill:none;stroke:#3b6fd4;stroke-width:.7;stroke-opacity:.55}.interrupt{fill:#c77a1a}
@media (prefers-color-scheme:dark){svg{background:#14181f}text{fill:#e6eaf0}.small{fill:#9aa5b5}.lane{fill:#1e232c}
.bar{fill:#6b9bff}.call{fill:#6b9bff;stroke:#6b9bff}.on{fill:#14181f}.idle{fill:#14181f}.cross{stroke:#6b9bff}.interrupt{fill:#e0a050}}
</style>";
