//! Plots as SVG: lines over a few named places.

use super::show::grouped;
use crate::graph::escaped;
use std::fmt::Write as _;

/// Pixels.
const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 400.0;
const LEFT: f64 = 80.0;
const RIGHT: f64 = 160.0;
const TOP: f64 = 80.0;
const BOTTOM: f64 = 60.0;
/// Lines across, at least.
const GRID: u64 = 4;
/// Pixels between two labels, at least.
const LINE: f64 = 16.0;

/// Lines over the same places.
pub struct Plot<'a> {
    pub title: &'a str,
    /// The counted quantity and its unit.
    pub unit: &'a str,
    /// The title of the axis of places.
    pub axis: &'a str,
    /// The places, from left to right.
    pub places: &'a [&'a str],
    pub scale: Scale,
    pub lines: Vec<Line>,
}

/// How the height of a point follows from its value.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Scale {
    /// From 0 on.
    Even,
    /// From 1 on, ten times as much from line to line.
    Tenfold,
}

impl Scale {
    /// The values at which there are lines, of which the last is the top.
    fn lines(self, most: u64) -> Vec<u64> {
        match self {
            Self::Even => {
                let step = step(most);
                (0..=most.div_ceil(step)).map(|number| number * step).collect()
            }
            Self::Tenfold => {
                let last = (1..19).find(|power| 10_u64.pow(*power) >= most).unwrap_or(19);
                (0..=last).map(|power| 10_u64.pow(power)).collect()
            }
        }
    }

    /// From 0, at the bottom, to 1.
    fn height(self, value: u64, top: u64) -> f64 {
        match self {
            Self::Even => value as f64 / top as f64,
            Self::Tenfold => (value.max(1) as f64).ln() / (top as f64).ln(),
        }
    }
}

/// A line, which may begin late and end early.
pub struct Line {
    pub name: String,
    /// Of each place, if known.
    pub values: Vec<Option<u64>>,
    pub kind: Kind,
}

/// The form of a line.
#[derive(Clone, Copy)]
pub enum Kind {
    /// In one colour: the first ISA's, for example.
    One,
    /// In the other.
    Two,
    /// Somebody else's: dashed.
    Other,
}

impl Kind {
    const fn class(self) -> &'static str {
        match self {
            Self::One => "one",
            Self::Two => "two",
            Self::Other => "other",
        }
    }
}

/// The distance of lines across: 1, 2 or 5 times a power of ten, so that there are [`GRID`] or a few more.
fn step(most: u64) -> u64 {
    let mut power = 1;
    loop {
        if let Some(step) = [5, 2, 1].into_iter().map(|digit| digit * power).rfind(|step| step * 2 * GRID > most) {
            return step;
        }
        power *= 10;
    }
}

impl Plot<'_> {
    /// The picture as text.
    pub fn draw(&self) -> String {
        let values = || self.lines.iter().flat_map(|line| line.values.iter().flatten());
        let most = values().copied().max().unwrap_or(0).max(1);
        let lines = self.scale.lines(most);
        let top = lines.last().copied().unwrap_or(1);
        let x = |place: usize| LEFT + (WIDTH - LEFT - RIGHT) * place as f64 / (self.places.len().max(2) - 1) as f64;
        let y = |value: u64| HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * self.scale.height(value, top);
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" width=\"{WIDTH}\" role=\"img\">\n\
             <title>{}</title>\n{STYLE}\n",
            escaped(self.title)
        );
        let mut text = |class: &str, x: f64, y: f64, text: &str| {
            let _ = writeln!(svg, r#"<text class="{class}" x="{x:.0}" y="{y:.0}">{}</text>"#, escaped(text));
        };
        text("title", 20.0, 32.0, self.title);
        text("small", 20.0, 54.0, self.unit);
        text("small middle", (LEFT + WIDTH - RIGHT) / 2.0, HEIGHT - 16.0, self.axis);
        for (number, place) in self.places.iter().enumerate() {
            text("small middle", x(number), HEIGHT - BOTTOM + 22.0, place);
        }
        for value in lines.iter().copied() {
            text("small end", LEFT - 14.0, y(value) + 4.0, &grouped(value));
        }
        for (line, at) in self.lines.iter().zip(self.labels(y)) {
            text(line.kind.class(), WIDTH - RIGHT + 18.0, at + 4.0, &line.name);
        }
        for value in lines.iter().copied() {
            let (right, y) = (WIDTH - RIGHT + 8.0, y(value));
            let _ = writeln!(svg, r#"<path class="grid" d="M{:.0} {y:.1}H{right:.0}"/>"#, LEFT - 8.0);
        }
        for line in &self.lines {
            let known = line.values.iter().enumerate().filter_map(|(place, value)| Some((x(place), y((*value)?))));
            let class = line.kind.class();
            let mut path = String::new();
            for (x, y) in known {
                let _ = write!(path, "{}{x:.1} {y:.1}", if path.is_empty() { 'M' } else { 'L' });
                let _ = writeln!(svg, r#"<circle class="{class}" cx="{x:.1}" cy="{y:.1}" r="3.5"/>"#);
            }
            let _ = writeln!(svg, r#"<path class="{class}" d="{path}"/>"#);
        }
        svg.push_str("</svg>\n");
        svg
    }

    /// Where the lines' names stand: at the height of their last value, but not one on the other.
    fn labels(&self, y: impl Fn(u64) -> f64) -> Vec<f64> {
        let last = |line: &Line| line.values.iter().flatten().last().map_or(HEIGHT - BOTTOM, |value| y(*value));
        let mut order: Vec<(usize, f64)> = self.lines.iter().map(last).enumerate().collect();
        order.sort_by(|one, other| one.1.total_cmp(&other.1));
        let mut labels = vec![0.0; order.len()];
        let mut least = 0.0;
        for (number, wanted) in order {
            labels[number] = wanted.max(least);
            least = labels[number] + LINE;
        }
        labels
    }
}

/// Light and dark, as the viewer wants it.
const STYLE: &str = "<style>
svg{background:#fff;font-family:system-ui,sans-serif}
text{fill:#1c2430;font-size:13px}.title{font-size:18px;font-weight:600}.small{font-size:12px;fill:#556070}
.middle{text-anchor:middle}.end{text-anchor:end}
path{fill:none;stroke-width:2}.grid{stroke:#e2e6ec;stroke-width:1}.other{stroke-dasharray:6 4}
path.one{stroke:#2f62c9}.one{fill:#2f62c9}path.two{stroke:#b8560f}.two{fill:#b8560f}path.other{stroke:#6b7686}.other{fill:#6b7686}
path.one,path.two,path.other{fill:none}
@media (prefers-color-scheme:dark){svg{background:#14181f}text{fill:#e6eaf0}.small{fill:#9aa5b5}.grid{stroke:#2b323d}
path.one{stroke:#7ea6ff}.one{fill:#7ea6ff}path.two{stroke:#f0a060}.two{fill:#f0a060}path.other{stroke:#9aa5b5}.other{fill:#9aa5b5}
path.one,path.two,path.other{fill:none}}
</style>";

#[cfg(test)]
mod tests {
    use super::*;

    fn plot(lines: Vec<Line>) -> String {
        scaled(lines, Scale::Even)
    }

    fn scaled(lines: Vec<Line>, scale: Scale) -> String {
        Plot { title: "a < b", unit: "instructions", axis: "domains", places: &["2", "4", "8"], scale, lines }.draw()
    }

    fn line(name: &str, values: [Option<u64>; 3]) -> Line {
        Line { name: name.into(), values: values.to_vec(), kind: Kind::Two }
    }

    #[test]
    fn each_known_value_is_a_point() {
        let svg = plot(vec![line("all", [Some(10), Some(20), Some(1000)]), line("some", [Some(5), None, None])]);
        assert_eq!(svg.matches("<circle").count(), 4);
        // The largest is on the uppermost line, and each place below its name.
        assert!(svg.contains(r#"cx="560.0" cy="80.0""#), "{svg}");
        for part in ["a &lt; b", ">instructions<", ">domains<", ">8<", ">1,000<", ">all<", ">some<"] {
            assert!(svg.contains(part), "{part} is not in\n{svg}");
        }
        for tag in ["svg", "text", "style", "title"] {
            assert_eq!(svg.matches(&format!("<{tag}")).count(), svg.matches(&format!("</{tag}>")).count(), "{tag}");
        }
        assert!(svg.contains("prefers-color-scheme:dark"));
    }

    #[test]
    fn ten_times_as_much_is_a_line_higher() {
        assert_eq!(Scale::Tenfold.lines(1000), [1, 10, 100, 1000]);
        assert_eq!(Scale::Tenfold.lines(1001).last(), Some(&10_000));
        let svg = scaled(vec![line("all", [Some(10), Some(100), Some(1000)])], Scale::Tenfold);
        // 260 pixels from 1 to 1,000, from below.
        for y in ["253.3", "166.7", "80.0"] {
            assert!(svg.contains(&format!("cy=\"{y}\"")), "{y} is not in\n{svg}");
        }
    }

    #[test]
    fn lines_across_are_few_and_round() {
        for (most, expected) in [(1, 1), (4, 1), (8, 2), (78, 10), (79, 10), (80, 20), (1712, 500), (6545, 1000)] {
            assert_eq!(step(most), expected, "{most}");
        }
        for most in 4..10_000_u64 {
            let lines = most.div_ceil(step(most));
            assert!((2..=2 * GRID).contains(&lines), "{most}: {lines}");
        }
    }

    #[test]
    fn names_do_not_stand_one_on_the_other() {
        let svg = plot(vec![line("one", [Some(70); 3]), line("two", [Some(71); 3]), line("three", [Some(72); 3])]);
        let places: Vec<i64> = ["one", "two", "three"]
            .map(|name| {
                let (before, _) = svg.split_once(&format!("\">{name}<")).expect("a name");
                before.rsplit_once("y=\"").expect("a place").1.parse().expect("a number")
            })
            .into();
        assert!(places.windows(2).all(|pair| pair[0] - pair[1] >= LINE as i64), "{places:?}");
    }
}
