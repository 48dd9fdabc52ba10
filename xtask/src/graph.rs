//! `./x graph`: a system description as a picture.
//!
//! Components are boxes, in rows: the holder of a portal stands above the component that it leads to. A box shows the
//! component's keys of the description. Portals of the description are arrows; every component also reaches
//! `names`, and through it whatever is published there, which is a thin dashed line.

use crate::command_line::GraphOptions;
use crate::image::System;
use crate::isa::Isa;
use crate::project::{Project, write};
use anyhow::Result;
use std::fmt::Write as _;
use system::host::{ComponentText, Description};
use system::{Restart, Special};

const WIDTH: usize = 210;
const HEIGHT: usize = 96;
const GAP: usize = 34;
const MARGIN: usize = 30;
/// Where the rows begin, below the title.
const TOP: usize = 80;
/// Space between rows, for arrows.
const BETWEEN: usize = 64;

/// Writes the picture.
pub fn graph(project: &Project, options: &GraphOptions) -> Result<u8> {
    let system = System::read(project, &options.system)?;
    system.plan(project, None)?;
    let title = options.system.display().to_string();
    write(&options.output, draw(&title, &system.description, project.isa).as_bytes())?;
    println!("{} shows {title}", options.output.display());
    Ok(0)
}

/// A box and where it stands.
struct Placed<'a> {
    component: &'a ComponentText,
    row: usize,
    x: usize,
    y: usize,
}

/// Row of a component: 0 for those that the others stand on, else one above the highest that it has a portal to.
fn row(description: &Description, component: &ComponentText) -> usize {
    if is_base(component) {
        return 0;
    }
    let below = component.portals.iter().filter_map(|portal| find(description, &portal.value.0));
    below.map(|other| row(description, other) + 1).max().unwrap_or(1)
}

/// Whether every component needs this one, so that it is drawn as a base.
fn is_base(component: &ComponentText) -> bool {
    matches!(component.name.value.as_str(), "sigma0" | "roottask" | "names")
        || component.special.value == Special::Scheduler
}

fn find<'a>(description: &'a Description, name: &str) -> Option<&'a ComponentText> {
    description.components.iter().find(|component| component.name.value == name)
}

fn place(description: &Description) -> (Vec<Placed<'_>>, usize, usize) {
    let rows: Vec<usize> = description.components.iter().map(|component| row(description, component)).collect();
    let highest = rows.iter().copied().max().unwrap_or(0);
    let widest = (0..=highest).map(|row| rows.iter().filter(|other| **other == row).count()).max().unwrap_or(1);
    let width = 2 * MARGIN + widest * WIDTH + (widest - 1) * GAP;
    let mut placed = Vec::new();
    for row in 0..=highest {
        let inside: Vec<_> = description.components.iter().zip(&rows).filter(|(_, other)| **other == row).collect();
        let used = inside.len() * WIDTH + inside.len().saturating_sub(1) * GAP;
        for (number, (component, _)) in inside.into_iter().enumerate() {
            let x = (width - used) / 2 + number * (WIDTH + GAP);
            placed.push(Placed { component, row, x, y: TOP + (highest - row) * (HEIGHT + BETWEEN) });
        }
    }
    (placed, width, TOP + (highest + 1) * (HEIGHT + BETWEEN))
}

/// The picture as text.
fn draw(title: &str, description: &Description, isa: Isa) -> String {
    let (placed, width, floor) = place(description);
    let height = floor + 110;
    let mut svg = String::new();
    let mut add = |text: &str| {
        svg.push_str(text);
        svg.push('\n');
    };
    add(&format!(
        r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" role="img">"#
    ));
    add(&format!("<title>{}</title>", escaped(title)));
    add(STYLE);
    add(&text(MARGIN, 34, "title", title));
    let frames = description.memory_frames.value;
    let about =
        format!("{} components, {} programs, {} of memory", placed.len(), description.programs.len(), size(frames));
    add(&text(MARGIN, 56, "small", &about));
    let names = placed.iter().find(|placed| placed.component.name.value == "names");
    for from in &placed {
        if let Some(names) = names.filter(|names| names.row < from.row) {
            add(&arrow(from, names, "reach", 0));
        }
        for (number, portal) in from.component.portals.iter().enumerate() {
            if let Some(to) = placed.iter().find(|other| other.component.name.value == portal.value.0) {
                add(&arrow(from, to, "portal", number + 1));
            }
        }
    }
    for placed in &placed {
        add(&boxed(placed, isa));
    }
    add(&format!(
        r#"<rect class="nucleus" x="{MARGIN}" y="{floor}" width="{}" height="44" rx="8"/>"#,
        width - 2 * MARGIN
    ));
    add(&text(MARGIN + 16, floor + 28, "name", "nucleus"));
    add(&text(MARGIN + 106, floor + 28, "small", "portals, accounts, mappings, semaphores: one system call"));
    add(&text(MARGIN, floor + 76, "small", "arrow: a portal of the description; dashed: found through names"));
    svg.push_str("</svg>\n");
    svg
}

fn boxed(placed: &Placed, isa: Isa) -> String {
    let component = placed.component;
    let (x, y) = (placed.x, placed.y);
    let kind = if is_base(component) { "base" } else { "service" };
    let mut svg = format!(r#"<rect class="{kind}" x="{x}" y="{y}" width="{WIDTH}" height="{HEIGHT}" rx="8"/>"#);
    let more = if component.rest.value != 0 { " or more" } else { "" };
    let priority = format!("{}{more}, priority {}", size(component.account.value.into()), component.priority.value);
    let restart = match component.restart.value {
        Restart::Always => "started again",
        Restart::Never => "stays dead",
        Restart::Reboot => "the machine stops without it",
    };
    let mut has = Vec::new();
    if component.special.value != Special::None {
        has.push(component.special.value.text().to_string());
    }
    match isa {
        Isa::X86_64 => {
            has.extend(component.interrupt.as_ref().map(|line| format!("irq {}", line.value)));
            has.extend(
                component.io_ports.as_ref().map(|ports| format!("ports {:#x}+{}", ports.value.0, ports.value.1)),
            );
        }
        Isa::Aarch64 => {
            has.extend(component.compatible.as_ref().map(|compatible| format!("device {}", compatible.value)))
        }
    }
    has.extend(component.cpus.as_ref().map(|cpus| format!("CPU {}", numbers(cpus.value))));
    if component.fpu {
        has.push("fpu".to_string());
    }
    has.extend(component.levels.iter().map(|level| format!("{} {}", level.key, level.compartment.value)));
    let lines =
        [("name", component.name.value.as_str()), ("small", &priority), ("small", &has.join(", ")), ("small", restart)];
    for (number, (class, line)) in lines.iter().filter(|(_, line)| !line.is_empty()).enumerate() {
        let _ = write!(svg, "\n{}", text(x + 14, y + 24 + number * 20, class, line));
    }
    svg
}

/// The numbers in a set of CPUs.
fn numbers(cpus: u64) -> String {
    let numbers: Vec<String> = (0..64).filter(|cpu| cpus >> cpu & 1 != 0).map(|cpu| cpu.to_string()).collect();
    numbers.join(", ")
}

/// From the lower edge of one box to the upper edge of another; arrows of one box begin side by side.
fn arrow(from: &Placed, to: &Placed, class: &str, number: usize) -> String {
    let (x1, y1) = (from.x + WIDTH / 2 + number * 14, from.y + HEIGHT);
    let (x2, y2) = (to.x + WIDTH / 2 + number * 14, to.y);
    let bend = (y1 + y2) / 2;
    format!(
        r#"<path class="{class}" d="M{x1} {y1}C{x1} {bend} {x2} {bend} {x2} {}"/><path class="head" d="M{} {}h10l-5 9z"/>"#,
        y2 - 9,
        x2 - 5,
        y2 - 9
    )
}

/// A text of one of the classes of the style.
pub fn text(x: usize, y: usize, class: &str, text: &str) -> String {
    format!(r#"<text class="{class}" x="{x}" y="{y}">{}</text>"#, escaped(text))
}

/// As it may stand in a picture.
pub fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// Frames as a person reads them.
fn size(frames: u64) -> String {
    let kibibytes = frames * 4;
    if kibibytes.is_multiple_of(1024) { format!("{} MiB", kibibytes / 1024) } else { format!("{kibibytes} KiB") }
}

/// Light and dark, as the viewer wants it.
const STYLE: &str = "<style>
svg{background:#fff;font-family:system-ui,sans-serif}
text{fill:#1c2430}.title{font-size:20px;font-weight:600}.name{font-size:15px;font-weight:600}.small{font-size:12px;fill:#556070}
rect{stroke-width:1.5}.service{fill:#eef4ff;stroke:#3b6fd4}.base{fill:#f3f4f6;stroke:#7a8494}.nucleus{fill:#fff4e5;stroke:#c77a1a}
path{fill:none;stroke-width:1.5}.portal{stroke:#3b6fd4}.reach{stroke:#a5adba;stroke-dasharray:4 4}.head{fill:#7a8494}
@media (prefers-color-scheme:dark){svg{background:#14181f}text{fill:#e6eaf0}.small{fill:#9aa5b5}.service{fill:#182338;stroke:#6b9bff}
.base{fill:#1e232c;stroke:#8a94a5}.nucleus{fill:#2b2116;stroke:#e0a050}.portal{stroke:#6b9bff}.reach{stroke:#566070}.head{fill:#8a94a5}}
</style>";

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"
[memory]
size = "64M"
[boot]
shell = "web"
[[compartment]]
name = "secrets"
[[component]]
name = "sigma0"
account = "256K"
special = "memory"
restart = "reboot"
[[component]]
name = "disk"
account = "1M"
restart = "always"
devices = { irq = 4, ports = [0x3f8, 8], compatible = "arm,pl011" }
[[component]]
name = "web"
owns = ["secrets"]
account = "12K"
restart = "never"
portals = ["disk/blocks"]
"#;

    fn picture() -> String {
        draw("a <b> & \"c\"", &Description::read(TEXT).expect("a description"), Isa::X86_64)
    }

    #[test]
    fn devices_are_those_of_the_machine() {
        let picture = draw("a", &Description::read(TEXT).expect("a description"), Isa::Aarch64);
        assert!(picture.contains(">device arm,pl011<") && !picture.contains("irq 4"), "{picture}");
    }

    #[test]
    fn every_component_and_portal_is_drawn() {
        let picture = picture();
        for part in [
            ">sigma0<",
            ">disk<",
            ">web<",
            "irq 4, ports 0x3f8+8",
            "12 KiB, priority 16",
            ">owns secrets<",
            ">memory<",
            "stays dead",
        ] {
            assert!(picture.contains(part), "{part} is not in\n{picture}");
        }
        assert_eq!(picture.matches("class=\"portal\"").count(), 1);
        assert_eq!(picture.matches("<rect").count(), 4, "three components and the nucleus");
    }

    #[test]
    fn holders_of_portals_stand_above() {
        let description = Description::read(TEXT).expect("a description");
        let (placed, ..) = place(&description);
        let y = |name| placed.iter().find(|placed| placed.component.name.value == name).map(|placed| placed.y);
        assert!(y("web") < y("disk") && y("disk") < y("sigma0"));
    }

    #[test]
    fn the_book_shows_the_default_system() -> Result<()> {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let read = |path| crate::project::read_text(&root.join(path));
        let description = Description::read(&read("systems/default.toml")?).expect("a description");
        let shown = read("docs/book/pictures/default.svg")?;
        assert_eq!(
            draw("systems/default.toml", &description, Isa::X86_64),
            shown,
            "`./x graph --output docs/book/pictures/default.svg`"
        );
        Ok(())
    }

    #[test]
    fn texts_cannot_break_the_picture() {
        let picture = picture();
        assert!(picture.contains("a &lt;b&gt; &amp; &quot;c&quot;"));
        for tag in ["svg", "text", "style", "title"] {
            assert_eq!(
                picture.matches(&format!("<{tag}")).count(),
                picture.matches(&format!("</{tag}>")).count(),
                "{tag}"
            );
        }
    }
}
