//! `./x bench --functions`: in which functions the instructions of a row are executed.
//!
//! The emulator's plugin reports for each instruction how often it is executed between the marks of the program `bench`.

use super::machine::MEMORY;
use super::show::grouped;
use crate::code::{File, is_nucleus, owners};
use crate::counter::Executed;
use std::collections::BTreeMap;

/// Functions that are shown.
const SHOWN: usize = 60;

/// The functions in which most instructions of so many operations are, with how many for each operation.
pub fn table(executed: &[Executed], files: &[File], operations: u64) -> String {
    let mut all: BTreeMap<(&str, &str), u64> = BTreeMap::new();
    for (Executed { address, times, .. }, owner) in executed.iter().zip(owners(executed, files)) {
        let place = match owner.map(|place| &files[place]) {
            Some(file) => (file.name.as_str(), file.function(*address).map_or("?", |(_, name)| name)),
            None if is_nucleus(*address) => ("nucleus", "code of portals"),
            None => ("?", "?"),
        };
        *all.entry(place).or_default() += times;
    }
    let total: u64 = all.values().sum();
    let mut sorted: Vec<_> = all.into_iter().collect();
    sorted.sort_by_key(|(_, times)| std::cmp::Reverse(*times));
    let each = |times: u64| format!("{:.1}", times as f64 / operations as f64);
    let lines = sorted
        .iter()
        .take(SHOWN)
        .map(|((file, function), times)| format!("{:>10}  {file:12}  {function}\n", each(*times)));
    let lines: String = lines.collect();
    format!("{:>10}  of {} operations, on a machine of {MEMORY}\n{lines}", each(total), grouped(operations))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counter::NUCLEUS_FROM;
    use crate::elf;

    fn ourselves() -> Vec<u8> {
        std::fs::read(std::env::current_exe().unwrap()).unwrap()
    }

    fn executed(address: u64, bytes: [u8; 4], times: u64) -> Executed {
        Executed { address, page: 1, bytes, times }
    }

    #[test]
    fn instructions_are_their_functions() {
        let start = elf::functions(&ourselves()).unwrap()[0].0;
        let other = File::of("other", ourselves(), vec![(start, "first".into()), (start + 8, "second".into())]);
        let bytes = |at| elf::loaded(&other.bytes, at, 4).unwrap().try_into().unwrap();
        let mut all = [(0, 3), (4, 4), (8, 30)]
            .map(|(place, times)| executed(start + place, bytes(start + place), times))
            .into_iter()
            .collect::<Vec<_>>();
        all.push(executed(NUCLEUS_FROM, [0xff; 4], 5));
        let text = table(&all, &[File::of("nucleus", ourselves(), vec![]), other], 2);
        let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(lines[0][0], "21.0");
        assert_eq!(lines[1], ["15.0", "other", "second"]);
        assert_eq!(lines[2], ["3.5", "other", "first"]);
        assert_eq!(lines[3], ["2.5", "nucleus", "code", "of", "portals"]);
    }
}
