//! The book's tables of components and of published names, compared with the description.

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};
    use std::path::Path;
    use system::host::Description;

    /// Owner, and permitted clients: of each name by the book, of each by the description.
    type Names = BTreeMap<String, (String, String)>;

    fn of_book(text: &str) -> Names {
        let section = text.split("\n### Every published name\n").nth(1).unwrap_or_default();
        let section = section.split("\n## ").next().unwrap_or_default();
        let rows = section.lines().filter_map(|line| line.strip_prefix("| `"));
        rows.map(|row| {
            let cells: Vec<&str> = row.split('|').map(|cell| cell.trim().trim_end_matches('`')).collect();
            assert!(cells.len() == 5 && !cells[3].is_empty(), "not a row with a reason: {row}");
            (cells[0].into(), (cells[1].trim_start_matches('`').into(), cells[2].into()))
        })
        .collect()
    }

    fn of_description(text: &str) -> Names {
        let description = Description::read(text).unwrap();
        let mut names = Names::new();
        for owner in &description.components {
            for service in &owner.services {
                let target = (owner.name.value.clone(), service.value.clone());
                let holders = description.components.iter();
                let holders = holders.filter(|holder| holder.portals.iter().any(|portal| portal.value == target));
                let holders: Vec<&str> = holders.map(|holder| holder.name.value.as_str()).collect();
                let is_private = owner.private.iter().any(|private| private.value == service.value);
                let who = match owner.name.value.as_str() {
                    "sigma0" | "roottask" | "sched" => "nobody".to_string(),
                    _ if is_private => format!("portals of `{}", holders.join("`, `")),
                    _ => "everybody".to_string(),
                };
                names.insert(service.value.clone(), (owner.name.value.clone(), who));
            }
        }
        names
    }

    #[test]
    fn each_component_has_its_row() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let read = |path: &str| std::fs::read_to_string(root.join(path)).unwrap();
        let book = read("docs/book/what-cairn-is.md");
        let section = book.split("\n## The components\n").nth(1).unwrap().split("\n## ").next().unwrap();
        let rows = section.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next());
        let description = Description::read(&read("systems/default.toml")).unwrap();
        let components: BTreeSet<&str> =
            description.components.iter().map(|component| component.name.value.as_str()).collect();
        assert_eq!(
            rows.collect::<BTreeSet<_>>(),
            components,
            "left: docs/book/what-cairn-is.md, right: the description"
        );
    }

    #[test]
    fn every_name_has_its_row() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let read = |path: &str| std::fs::read_to_string(root.join(path)).unwrap();
        let (book, description) = (read("docs/book/interfaces.md"), read("systems/default.toml"));
        assert_eq!(
            of_book(&book),
            of_description(&description),
            "left: docs/book/interfaces.md, right: the description"
        );
        let more = description.replace("services = [\"nic\"]", "services = [\"nic\", \"other\"]");
        assert!(more != description && of_book(&book) != of_description(&more), "a name without a row is not noticed");
        let public = description.replace("private = [\"nic\"]\n", "");
        assert!(public != description && of_book(&book) != of_description(&public), "who may open it is not compared");
    }
}
