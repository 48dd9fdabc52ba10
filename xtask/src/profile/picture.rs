//! A profile as a flame graph.

use super::names::Profile;
use crate::bench::grouped;
use anyhow::{Context, Result};
use inferno::flamegraph::{Options, from_lines};

/// Draws it, as SVG; bars narrower than so many percent are left out.
pub fn draw(title: &str, profile: &Profile, narrowest: f64) -> Result<Vec<u8>> {
    let lines: Vec<String> = profile.paths.iter().map(line).collect();
    let mut options = Options::default();
    options.title = format!("{title}: {} instructions", grouped(profile.total()));
    options.count_name = "instructions".into();
    options.min_width = narrowest;
    // Colours by names: the same profile is the same picture.
    options.hash = true;
    let mut picture = Vec::new();
    from_lines(&mut options, lines.iter().map(String::as_str), &mut picture).context("the picture cannot be drawn")?;
    Ok(picture)
}

/// A path as the crate takes it: names with `;` between, and how many instructions.
fn line((path, instructions): &(Vec<String>, u64)) -> String {
    let names: Vec<String> = path.iter().map(|name| name.replace(';', ",")).collect();
    format!("{} {instructions}", names.join(";"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draw(narrowest: f64) -> String {
        let path = |names: &[&str], instructions| (names.iter().map(|name| name.to_string()).collect(), instructions);
        let paths = vec![path(&["netd", "main", "send::<[u8; 4]>"], 990), path(&["sched", "choose"], 10)];
        let functions = vec![("netd".into(), "main".into(), 1000)];
        String::from_utf8(super::draw("a page", &Profile { paths, functions, programs: vec![] }, narrowest).unwrap())
            .unwrap()
    }

    #[test]
    fn names_and_sums_are_drawn() {
        let picture = draw(0.1);
        for part in [
            "a page: 1,000 instructions",
            "send::&lt;[u8, 4]&gt; (990 instructions, 99.00%)",
            "choose (10 instructions",
        ] {
            assert!(picture.contains(part), "{part} is not in {picture}");
        }
        assert_eq!(picture, draw(0.1), "the same profile is the same picture");
        assert!(!draw(2.0).contains("choose"));
    }
}
