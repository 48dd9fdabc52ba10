//! The pages in a browser: on a desk and on a phone, light and dark.
//!
//! The machine serves; Chromium shows. Obvious faults of the page are measured: nothing sticks out, no text
//! leaves its box or lies on another, everything can be read against what is behind it, the figures are those of
//! `/status.json` and move, a lost connection is reported and found again. Needs Chromium, so it runs with
//! `--soak` or when it is named.

use super::report::Report;
use crate::browser::{Browser, Scheme, Screen};
use crate::build::Checks;
use crate::emulator::{self, Machine};
use crate::image::{self, Size, System};
use crate::install;
use crate::project::{Project, read_text, write};
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::path::Path;
use std::time::Duration;

/// Name of the test.
pub const NAME: &str = "browser";

const SYSTEM: &str = "systems/default.toml";
const MEMORY: &str = "64M";
/// Time for everything.
const LIMIT: Duration = Duration::from_secs(120);
/// Time for something to be seen.
const SEEN: Duration = Duration::from_secs(15);
/// Bytes of a page, and of a picture of the book, at most.
const MAX_PAGE: usize = 40 << 10;
const MAX_PICTURE: usize = 150_000;
/// CPUs of the machine that is tested, and of the one in the pictures.
const TESTED_CPUS: u32 = 2;
const SHOWN_CPUS: u32 = 4;
/// The machine's commands meanwhile: a component dies and comes back.
const EXEC: &str = "sleep 4; kill status; sleep 600";

const DESK: Screen = Screen { name: "desk", width: 1280, height: 900, mobile: false };
const PHONE: Screen = Screen { name: "phone", width: 390, height: 844, mobile: true };
const NARROW: Screen = Screen { name: "small phone", width: 320, height: 568, mobile: true };
const PAGES: [(&str, &str); 2] = [("/", "index"), ("/status", "status")];

/// Runs the machine with so many CPUs and does something with a browser and the address of its web server.
fn with_browser<T: Send>(
    project: &Project,
    cpus: u32,
    work: impl FnOnce(&mut Browser, &str) -> Result<T> + Send,
) -> Result<T> {
    install::emulator(project.isa)?;
    let system = System::read(project, Path::new(SYSTEM))?;
    let image = image::make(project, &system, Checks::Off, Size::of(MEMORY, cpus)?, Some(EXEC))?;
    let port = image.web().context("the machine has no web server")?.host;
    let address = format!("http://localhost:{port}");
    // A clock of instructions: a busy host is not taken for a dead scheduler. While all waits it goes on with the host's.
    let clock = ["-icount", "shift=0,sleep=on"].map(String::from).to_vec();
    let machine = Machine { cpus, emulator: clock, ..Machine::new(MEMORY) };
    emulator::boot_for(image.isa, &emulator::arguments(&image, &machine), LIMIT, |_| {
        work(&mut Browser::start(project)?, &address)
    })
}

/// The test.
pub fn check(project: &Project, report: &mut Report) {
    report.run(NAME, || {
        pages_are_alone(project)?;
        with_browser(project, TESTED_CPUS, |browser, address| {
            for screen in [DESK, PHONE, NARROW] {
                for scheme in [Scheme::Light, Scheme::Dark] {
                    browser.show_on(screen, scheme)?;
                    for (path, _) in PAGES {
                        looks_right(browser, &format!("{address}{path}"))
                            .with_context(|| format!("{path} on a {}, {scheme:?}", screen.name))?;
                    }
                }
            }
            browser.show_on(DESK, Scheme::Light)?;
            reports_the_truth(browser, address)?;
            many_readers(browser)?;
            is_found_again(browser)?;
            ensure!(browser.complaints.is_empty(), "the pages complain: {:?}", browser.complaints);
            let foreign = |request: &&String| !request.starts_with(address) && !request.starts_with("data:");
            let foreign = browser.requests.iter().filter(|request| *request != "about:blank").find(foreign);
            ensure!(foreign.is_none(), "a page asked for {foreign:?}");
            Ok(())
        })
    });
}

/// The pages are small, and nothing in them leads elsewhere.
fn pages_are_alone(project: &Project) -> Result<()> {
    for (_, name) in PAGES {
        let page = read_text(&project.root.join(format!("systems/files/www/{name}.html")))?;
        ensure!(page.len() <= MAX_PAGE, "{name}.html has {} bytes", page.len());
        let plain = page.replace("http://www.w3.org/2000/svg", "");
        for foreign in ["http:", "https:", "src=", "@import", "url("] {
            let own = plain.replace("url(#", "");
            ensure!(!own.contains(foreign), "{name}.html has `{foreign}`");
        }
    }
    Ok(())
}

/// Opens the page, waits until it lives, and measures.
fn looks_right(browser: &mut Browser, address: &str) -> Result<()> {
    browser.open(address)?;
    if address.ends_with("/status") {
        // Rates need the status twice.
        browser.wait_for("document.querySelectorAll('.box').length > 9 && !/–/.test($('rate').textContent)", SEEN)?;
    } else {
        browser.wait_for("/domains in/.test(document.getElementById('now').textContent)", SEEN)?;
    }
    let found = browser.value(MEASURE)?;
    let found = found.as_array().context("no list")?;
    ensure!(found.is_empty(), "{}", found.iter().map(Value::to_string).collect::<Vec<_>>().join("\n"));
    Ok(())
}

/// The errors of the page, as a list of texts: the body of a function in the page.
const MEASURE: &str = include_str!("measure.js");

/// The page shows the content of `/status.json`: each domain once, in the picture and in the table, with its name and
/// its restarts; a component that died has come back, and the page counted it.
fn reports_the_truth(browser: &mut Browser, address: &str) -> Result<()> {
    browser.open(&format!("{address}/status"))?;
    let restarted = "[...document.querySelectorAll('#rows tr')].some(row => row.children[0].textContent === 'status' \
                     && row.children[10].textContent === '1') && $('restarts').textContent === '1'";
    browser.wait_for(restarted, SEEN)?;
    // Figures that stand still, of each domain: from the data, and from the page.
    let same = "fetch('/status.json').then(answer => answer.json()).then(data => {
        const listed = data.domains.map(d => [d.name, String(d.number), String(d.threads), String(d.restarts ?? '–')]);
        const rows = [...document.querySelectorAll('#rows tr')].map(row => [0, 1, 8, 10].map(i => row.children[i].textContent));
        const boxes = [...document.querySelectorAll('.box .name')].map(name => name.textContent).sort();
        const names = listed.map(d => d[0]).sort();
        const cpus = data.cpus.map(c => 'CPU ' + c.number);
        const cells = [...document.querySelectorAll('#cpus > div')].map(cell => cell.querySelector('b').textContent);
        const places = [...document.querySelectorAll('#rows tr')].map(row => row.children[11].textContent);
        const runs = new Set(data.cpus.filter(c => c.state !== 'offline').map(c => String(c.number)));
        const strange = places.filter(place => place !== '–' && !place.split(', ').every(cpu => runs.has(cpu)));
        return [listed, rows, names, boxes, cpus, cells, strange];
    })";
    let all = browser.value(same)?;
    ensure!(all[0] == all[1], "the data have {}\nand the table {}", all[0], all[1]);
    ensure!(all[2] == all[3], "the data have {}\nand the picture {}", all[2], all[3]);
    ensure!(all[4] == all[5], "the data have the CPUs {}, and the page {}", all[4], all[5]);
    ensure!(all[5].as_array().is_some_and(|list| !list.is_empty()), "no CPU");
    ensure!(all[6].as_array().is_some_and(Vec::is_empty), "domains are on {}", all[6]);
    ensure!(all[0].as_array().is_some_and(|list| list.len() > 10), "too few domains: {}", all[0]);
    // It lives: the clock and the calls that the page itself causes go on.
    let before = browser.value("$('uptime').textContent")?;
    browser.wait_for(&format!("$('uptime').textContent !== {before}"), SEEN)?;
    browser.wait_for("parseFloat($('rate').textContent.replace(',', '')) > 10", SEEN)?;
    // So do loads, of which each is a share.
    let loads = "[...document.querySelectorAll('#cpus p:first-child span')].every(load => /^([0-9.]+ %|did not start)$/.test(load.textContent))";
    browser.wait_for(loads, SEEN)?;
    // Pointing at a box shows its possible callees.
    browser.value("document.querySelector('[data-key=\"c httpd 1\"]').focus()")?;
    browser.wait_for("/httpd can call .*netd \\(net.*Threads: \\d+ on CPU \\d/.test($('story').textContent)", SEEN)?;
    browser.wait_for("document.querySelectorAll('.box.near').length > 2", SEEN)
}

/// Hundreds of requests, several at a time: each gets a whole text, and `status` has no more memory afterwards.
fn many_readers(browser: &mut Browser) -> Result<()> {
    let read = "(async () => {
        const read = async () => (await fetch('/status.json')).json();
        const memory = data => data.domains.find(domain => domain.name === 'status').charged;
        const many = async () => {
            const all = [];
            for (let i = 0; i < 40; i++) all.push(...await Promise.all(Array.from({ length: 6 }, read)));
            return all;
        };
        // A text serves for a second. At first each place for one is used for the first time.
        for (let i = 0; i < 6; i++) await read(), await new Promise(done => setTimeout(done, 1100));
        const first = memory((await many()).at(-1)), all = await many();
        return [all.length, all.filter(data => data.complete && data.domains.length > 10).length, memory(all.at(-1)) - first];
    })()";
    let found = browser.value(read)?;
    ensure!(found == serde_json::json!([240, 240, 0]), "answers, whole ones, frames more: {found}");
    Ok(())
}

/// Without a network the page says so; with it, it goes on by itself.
fn is_found_again(browser: &mut Browser) -> Result<()> {
    browser.set_offline(true)?;
    browser.wait_for("/lost/.test($('state').textContent) && $('state').className === 'lost'", SEEN)?;
    browser.set_offline(false)?;
    browser.wait_for("$('state').textContent.trim() === 'live'", SEEN)
}

/// Makes the pictures of the README: the hidden command `./x pictures`.
pub fn pictures(project: &Project) -> Result<u8> {
    let folder = project.root.join("docs/book/pictures");
    let pictures = with_browser(project, SHOWN_CPUS, |browser, address| {
        let mut pictures = Vec::new();
        let screens =
            [("page", "/", Screen { height: 830, ..DESK }), ("status", "/status", Screen { height: 1000, ..DESK })];
        for (name, path, screen) in screens {
            browser.show_on(screen, Scheme::Light)?;
            browser.open(&format!("{address}{path}"))?;
            if path == "/status" {
                // Long enough for its lines to be seen, and for something to have come back.
                browser.wait_for("history.length > 24 && $('restarts').textContent === '1'", LIMIT)?;
            } else {
                browser.wait_for("/domains in/.test(document.getElementById('now').textContent)", SEEN)?;
            }
            pictures.push((name, browser.picture(screen)?));
        }
        Ok(pictures)
    })?;
    for (name, picture) in pictures {
        ensure!(picture.len() <= MAX_PICTURE, "the picture of {name} has {} bytes", picture.len());
        write(&folder.join(format!("{name}.png")), &picture)?;
        println!("docs/book/pictures/{name}.png: {} bytes", picture.len());
    }
    Ok(0)
}
