//! A profile as tables.

use super::names::Profile;
use crate::bench::grouped;
use std::fmt::Write;

/// Functions that are shown.
const SHOWN: usize = 40;

/// The programs, then the functions with most instructions.
pub fn text(profile: &Profile) -> String {
    let total = profile.total();
    let share = |part: u64| format!("{:.1} %", 100.0 * part as f64 / total.max(1) as f64);
    let mut text = format!("{} instructions\n\n", grouped(total));
    // Writing to a text does not fail.
    let _ = writeln!(text, "INSTRUCTIONS   SHARE       ITS OWN   THE NUCLEUS'S  PROGRAM");
    for (name, own, of_nucleus) in &profile.programs {
        let (sum, shown) = (own + of_nucleus, grouped(*own));
        let _ = writeln!(
            text,
            "{:>12}  {:>6}  {shown:>12}  {:>14}  {name}",
            grouped(sum),
            share(sum),
            grouped(*of_nucleus)
        );
    }
    let _ = writeln!(text, "\nINSTRUCTIONS   SHARE  PROGRAM       FUNCTION");
    for (program, function, times) in profile.functions.iter().take(SHOWN) {
        let _ = writeln!(text, "{:>12}  {:>6}  {program:12}  {function}", grouped(*times), share(*times));
    }
    let rest: u64 = profile.functions.iter().skip(SHOWN).map(|(_, _, times)| times).sum();
    if rest > 0 {
        let more = profile.functions.len() - SHOWN;
        let _ = writeln!(text, "{:>12}  {:>6}  {more} others", grouped(rest), share(rest));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_and_shares() {
        let functions =
            (0..SHOWN as u64 + 2).rev().map(|number| ("netd".into(), format!("f{number}"), 10 * number)).collect();
        let total = 10 * 41 * 42 / 2;
        let profile = Profile { paths: vec![], functions, programs: vec![("netd".into(), total - 861, 861)] };
        let text = text(&profile);
        let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(lines[0], ["8,610", "instructions"]);
        assert_eq!(lines[3], ["8,610", "100.0", "%", "7,749", "861", "netd"]);
        assert_eq!(lines[6], ["410", "4.8", "%", "netd", "f41"]);
        assert_eq!(lines[5 + SHOWN], ["20", "0.2", "%", "netd", "f2"]);
        assert_eq!(lines[6 + SHOWN], ["10", "0.1", "%", "2", "others"]);
    }
}
