//! The book's tables of the nucleus's loops: each row names what makes its loop as long as a user can.

#[cfg(test)]
mod tests {
    use std::path::Path;

    /// The last cells of all rows of the tables.
    fn makers(page: &str) -> Vec<&str> {
        let rows = page.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| loop |"));
        rows.filter_map(|row| row.trim_end_matches(" |").rsplit(" | ").next()).collect()
    }

    /// The names in a cell.
    fn names(cell: &str) -> impl Iterator<Item = &str> {
        cell.split('`').skip(1).step_by(2)
    }

    #[test]
    fn each_loop_has_a_maker() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let read = |path: &str| std::fs::read_to_string(root.join(path)).unwrap();
        let longest = read("tests/boot/longest.toml");
        let commands = longest.lines().find_map(|line| line.strip_prefix("exec = ")).unwrap();
        assert!(commands.contains("negtest --all"));
        // Of each kind whether `negtest --all` has it, too.
        let cases: Vec<String> = std::fs::read_dir(root.join("apps/negtest/src"))
            .unwrap()
            .filter_map(|file| std::fs::read_to_string(file.unwrap().path()).ok())
            .collect();
        let in_all = |name: &str| {
            let begins = [format!("Case::refusal(\"{name}\""), format!("Case::harmless(\"{name}\"")];
            cases.iter().any(|text| begins.iter().any(|begin| text.contains(begin)))
        };
        let is_measured = |name: &str| {
            let mut commands = commands.split([';', '"', '&']).map(str::trim);
            commands.any(|command| {
                command == name
                    || command.strip_prefix(name).or(command.strip_prefix("negtest ")) == Some(name)
                    || command.starts_with(&format!("{name} >"))
            })
        };
        let exists =
            |name: &str| is_measured(name) || in_all(name) || root.join(format!("tests/boot/{name}.toml")).is_file();
        let page = read("docs/book/loops.md");
        let makers = makers(&page);
        assert!(makers.len() > 30, "{} rows", makers.len());
        for cell in makers {
            assert!(names(cell).next().is_some(), "nobody makes it: {cell}");
            names(cell).for_each(|name| assert!(exists(name), "`{name}` makes no loop longer"));
        }
        assert!(!exists("nothing-of-this-name") && exists("longest") && exists("deep-copy") && exists("kill sched"));
    }
}
