//! Links and headings of a page in Markdown.

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};
use std::collections::{BTreeMap, BTreeSet};

/// A page, as far as links go.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Page {
    /// The names that `#anchor` can have in it: its headings, as GitHub writes them there.
    pub anchors: BTreeSet<String>,
    /// Where its links and pictures lead, each with its line, from 1 on.
    pub links: Vec<(usize, String)>,
}

impl Page {
    /// Reads a page.
    pub fn read(text: &str) -> Self {
        let mut page = Self::default();
        let mut heading: Option<String> = None;
        let mut seen: BTreeMap<String, usize> = BTreeMap::new();
        for (event, place) in Parser::new_ext(text, Options::ENABLE_TABLES).into_offset_iter() {
            match event {
                Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                    let line = text[..place.start].matches('\n').count() + 1;
                    page.links.push((line, dest_url.into_string()));
                }
                Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
                Event::Text(part) | Event::Code(part) => {
                    if let Some(heading) = &mut heading {
                        heading.push_str(&part);
                    }
                }
                Event::End(TagEnd::Heading(_)) => {
                    let anchor = anchor(&heading.take().unwrap_or_default());
                    let count = seen.entry(anchor.clone()).or_default();
                    page.anchors.insert(if *count == 0 { anchor } else { format!("{anchor}-{count}") });
                    *count += 1;
                }
                _ => {}
            }
        }
        page
    }
}

/// The name of a heading in an address: small letters, `-` for a space, without other signs.
fn anchor(heading: &str) -> String {
    let kept = heading.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.flat_map(char::to_lowercase).map(|c| if c == ' ' { '-' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_and_headings_are_found_and_code_is_none() {
        let text = "# A `b_c`: D, e\n\n[x](y.md#z)\n| a | b |\n|---|---|\n| ![p](q.png) | [r][s] |\n\n\
                    ```\n[no](no.md)\n# No\n```\n## Twice\n## Twice\n`[no](no)`\n\n[s]: t/u.md\n";
        let page = Page::read(text);
        assert_eq!(page.anchors, ["a-b_c-d-e", "twice", "twice-1"].map(String::from).into());
        assert_eq!(page.links, [(3, "y.md#z".into()), (6, "q.png".into()), (6, "t/u.md".into())]);
    }
}
