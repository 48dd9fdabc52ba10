//! Boot tests with a device tree that is not as it should be: the key `fdt` of a boot test lists changes of what the emulator
//! would give, in this order.
//!
//! | change | what |
//! |---|---|
//! | `remove PATH` | a node with all below |
//! | `remove PATH PROPERTY` | a property |
//! | `set PATH PROPERTY VALUE …` | a property: numbers, one text, or nothing; nodes that are not there are made |
//! | `cut BYTES` | nothing is behind so many bytes, and the tree says that it ends there |
//! | `header OFFSET NUMBER` | a word of the header |
//!
//! Names of nodes may leave out the unit (`@0`). The emulator itself would refuse or mend such a tree, so it does not see it: nucleus,
//! archive and device tree are put into memory where it would have put them, and a few instructions lead from one to the other.

use crate::emulator::{self, Machine};
use crate::image::Image;
use crate::project::{Scratch, read, write};
use anyhow::{Context, Result, bail, ensure};
use std::process::Stdio;

const HEADER_BYTES: u32 = 40;
const MAGIC: u32 = 0xd00d_feed;
const BEGIN_NODE: u32 = 1;
const END_NODE: u32 = 2;
const PROPERTY: u32 = 3;
const NOP: u32 = 4;
const END: u32 = 9;

/// From the start of RAM: where nucleus, device tree and first instructions lie. The archive is where the tree says.
const NUCLEUS: u64 = 2 << 20;
const TREE: u64 = 56 << 20;
const FIRST: u64 = 60 << 20;

/// A node as it can be changed.
#[derive(Debug, Default, PartialEq)]
struct Node {
    name: String,
    properties: Vec<(String, Vec<u8>)>,
    nodes: Vec<Node>,
}

impl Node {
    fn called(name: &str) -> Self {
        Self { name: name.into(), ..Self::default() }
    }

    fn is_called(&self, name: &str) -> bool {
        self.name == name || self.name.split_once('@').is_some_and(|(before, _)| before == name)
    }

    fn find(&mut self, path: &str) -> Option<&mut Self> {
        let mut parts = path.split('/').filter(|part| !part.is_empty());
        parts.try_fold(self, |node, part| node.nodes.iter_mut().find(|node| node.is_called(part)))
    }

    fn find_or_make(&mut self, path: &str) -> &mut Self {
        let parts = path.split('/').filter(|part| !part.is_empty());
        parts.fold(self, |node, part| {
            let at = node.nodes.iter().position(|node| node.is_called(part)).unwrap_or(node.nodes.len());
            if at == node.nodes.len() {
                node.nodes.push(Self::called(part));
            }
            &mut node.nodes[at]
        })
    }

    fn property(&self, name: &str) -> Option<&[u8]> {
        self.properties.iter().find(|(own, _)| own == name).map(|(_, value)| value.as_slice())
    }

    /// A property of one or two cells.
    fn number(&self, name: &str) -> Option<u64> {
        let value = self.property(name)?;
        matches!(value.len(), 4 | 8 | 16)
            .then(|| value.iter().take(8).fold(0, |number, byte| number << 8 | u64::from(*byte)))
    }
}

/// Where in a tree's bytes.
struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    strings: usize,
}

impl Reader<'_> {
    fn word(&mut self) -> Result<u32> {
        let word = self.bytes.get(self.at..self.at + 4).context("a device tree that is cut off")?;
        self.at += 4;
        Ok(u32::from_be_bytes([word[0], word[1], word[2], word[3]]))
    }

    fn text(&self, at: usize) -> Result<String> {
        let bytes = self.bytes.get(at..).context("a device tree that is cut off")?;
        let end = bytes.iter().position(|byte| *byte == 0).context("a name without an end")?;
        Ok(String::from_utf8_lossy(&bytes[..end]).into_owned())
    }

    /// Reads what follows the token that begins a node.
    fn node(&mut self) -> Result<Node> {
        let mut node = Node::called(&self.text(self.at)?);
        self.at = (self.at + node.name.len() + 1).next_multiple_of(4);
        loop {
            match self.word()? {
                BEGIN_NODE => node.nodes.push(self.node()?),
                END_NODE => return Ok(node),
                PROPERTY => {
                    let (length, name) = (self.word()? as usize, self.word()? as usize);
                    let value = self.bytes.get(self.at..self.at + length).context("a device tree that is cut off")?;
                    node.properties.push((self.text(self.strings + name)?, value.to_vec()));
                    self.at = (self.at + length).next_multiple_of(4);
                }
                NOP => {}
                token => bail!("token {token} in a device tree"),
            }
        }
    }
}

fn parse(bytes: &[u8]) -> Result<Node> {
    let mut reader = Reader { bytes, at: 0, strings: 0 };
    ensure!(reader.word()? == MAGIC, "no device tree");
    reader.at = 8;
    let (structure, strings) = (reader.word()? as usize, reader.word()? as usize);
    reader.at = structure;
    reader.strings = strings;
    ensure!(reader.word()? == BEGIN_NODE, "a device tree without a root");
    reader.node()
}

/// A tree's structure and strings.
#[derive(Default)]
struct Written {
    structure: Vec<u8>,
    strings: Vec<u8>,
}

impl Written {
    fn words(&mut self, words: &[u32]) {
        words.iter().for_each(|word| self.structure.extend_from_slice(&word.to_be_bytes()));
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.structure.extend_from_slice(bytes);
        self.structure.resize(self.structure.len().next_multiple_of(4), 0);
    }

    fn node(&mut self, node: &Node) {
        self.words(&[BEGIN_NODE]);
        self.bytes(format!("{}\0", node.name).as_bytes());
        for (name, value) in &node.properties {
            self.words(&[PROPERTY, value.len() as u32, self.strings.len() as u32]);
            self.strings.extend_from_slice(format!("{name}\0").as_bytes());
            self.bytes(value);
        }
        node.nodes.iter().for_each(|node| self.node(node));
        self.words(&[END_NODE]);
    }
}

fn format(root: &Node) -> Vec<u8> {
    let mut written = Written::default();
    written.node(root);
    written.words(&[END]);
    // Behind the header there are no reservations.
    let start = HEADER_BYTES + 16;
    let (structure, strings) = (written.structure.len() as u32, written.strings.len() as u32);
    let header =
        [MAGIC, start + structure + strings, start, start + structure, HEADER_BYTES, 17, 16, 0, strings, structure];
    let mut bytes: Vec<u8> = header.iter().flat_map(|word| word.to_be_bytes()).collect();
    bytes.resize(start as usize, 0);
    bytes.extend([written.structure, written.strings].concat());
    bytes
}

fn number(text: &str) -> Option<u32> {
    match text.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

/// The bytes of a tree with these changes.
fn changed(mut root: Node, changes: &[String]) -> Result<Vec<u8>> {
    let mut bytes = None;
    for change in changes {
        let words: Vec<&str> = change.split_whitespace().collect();
        let no_node = || format!("no such node: {change}");
        let bad = || format!("no change of a device tree: {change}");
        match words[..] {
            ["remove", path] => {
                let (above, name) = path.rsplit_once('/').with_context(bad)?;
                let above = root.find(above).with_context(no_node)?;
                let before = above.nodes.len();
                above.nodes.retain(|node| !node.is_called(name));
                ensure!(above.nodes.len() < before, no_node());
            }
            ["remove", path, property] => {
                let node = root.find(path).with_context(no_node)?;
                ensure!(node.property(property).is_some(), "no such property: {change}");
                node.properties.retain(|(name, _)| name != property);
            }
            ["set", path, property, ref values @ ..] => {
                let value = match values {
                    [text] if number(text).is_none() => format!("{text}\0").into_bytes(),
                    numbers => {
                        let numbers: Option<Vec<u32>> = numbers.iter().map(|text| number(text)).collect();
                        numbers.with_context(bad)?.iter().flat_map(|number| number.to_be_bytes()).collect()
                    }
                };
                let node = root.find_or_make(path);
                node.properties.retain(|(name, _)| name != property);
                node.properties.push((property.into(), value));
            }
            ["cut", end] => {
                let end = number(end).with_context(bad)?;
                let bytes = bytes.get_or_insert_with(|| format(&root));
                bytes.truncate(end as usize);
                bytes[4..8].copy_from_slice(&end.to_be_bytes());
            }
            ["header", offset, value] => {
                let (offset, value) = (number(offset).with_context(bad)? as usize, number(value).with_context(bad)?);
                let bytes = bytes.get_or_insert_with(|| format(&root));
                bytes[offset..offset + 4].copy_from_slice(&value.to_be_bytes());
            }
            _ => bail!(bad()),
        }
    }
    Ok(bytes.unwrap_or_else(|| format(&root)))
}

/// Instructions that go to the nucleus with the tree's address in X0.
fn first_instructions(tree: u64, nucleus: u64) -> Vec<u8> {
    let load = |register: u32, value: u64| {
        // MOVZ, MOVK with a shift of 16.
        let [low, high] = [value, value >> 16].map(|part| (part as u32 & 0xffff) << 5 | register);
        [0xd280_0000 | low, 0xf2a0_0000 | high]
    };
    let jump = [0xd61f_0020];
    let [tree, nucleus] = [load(0, tree), load(1, nucleus)];
    [&tree[..], &nucleus, &jump].concat().iter().flat_map(|word: &u32| word.to_le_bytes()).collect()
}

/// The files that the emulator loads in place of kernel, archive and command line: all of it, with a tree that is changed so.
pub fn loaded(image: &Image, machine: &Machine, changes: &[String], scratch: &Scratch) -> Result<Vec<String>> {
    let (usual, tree, first) = (scratch.file("usual.dtb"), scratch.file("changed.dtb"), scratch.file("first"));
    let mut command = emulator::command(image.isa);
    command.args(emulator::arguments(image, machine)).args(["-M", &format!("dumpdtb={}", usual.display())]);
    let status = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
    ensure!(status.context("cannot start the emulator")?.success(), "the emulator gives no device tree");
    let mut root = parse(&read(&usual)?)?;
    let mut place = |path, property| root.find(path).and_then(|node| node.number(property));
    let ram = place("/memory", "reg").context("the emulator's device tree has no memory")?;
    let archive = place("/chosen", "linux,initrd-start").context("the emulator's device tree has no archive")?;
    write(&tree, &changed(root, changes)?)?;
    write(&first, &first_instructions(ram + TREE, ram + NUCLEUS))?;
    let files = [
        (&image.nucleus, ram + NUCLEUS, ""),
        (&image.archive, archive, ""),
        (&tree, ram + TREE, ""),
        (&first, ram + FIRST, ",cpu-num=0"),
    ];
    let load = |(file, at, more): (&std::path::PathBuf, u64, &str)| {
        ["-device".into(), format!("loader,file={},addr={at:#x},force-raw=on{more}", file.display())]
    };
    Ok(files.into_iter().flat_map(load).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn board() -> Node {
        let mut root = Node::default();
        root.properties.push(("#address-cells".into(), vec![0, 0, 0, 2]));
        root.find_or_make("/soc/uart@9000000").properties.push(("reg".into(), vec![0, 0, 0, 0, 9, 0, 0, 0]));
        root.find_or_make("/memory@40000000");
        root
    }

    fn change(changes: &[&str]) -> Result<Vec<u8>> {
        changed(board(), &changes.iter().map(|change| (*change).to_string()).collect::<Vec<_>>())
    }

    #[test]
    fn a_formatted_tree_is_parsed_again() {
        assert_eq!(parse(&format(&board())).unwrap(), board());
        let tree = format(&board());
        let tree = devicetree::Tree::new(&tree).unwrap();
        assert!(tree.find("/soc/uart").is_some_and(|uart| uart.number("reg") == Some(0x900_0000)));
    }

    #[test]
    fn changes_are_made() {
        let mut root =
            parse(&change(&["remove /memory", "set /soc/uart reg 1 0x10", "set /a/b c text"]).unwrap()).unwrap();
        assert!(root.find("/memory").is_none());
        assert_eq!(root.find("/soc/uart").unwrap().property("reg"), Some(&[0, 0, 0, 1, 0, 0, 0, 0x10][..]));
        assert_eq!(root.find("/a/b").unwrap().property("c"), Some(&b"text\0"[..]));
        let mut root = parse(&change(&["remove /soc/uart reg"]).unwrap()).unwrap();
        assert!(root.find("/soc/uart").unwrap().properties.is_empty());
        let bytes = change(&["cut 60", "header 20 99"]).unwrap();
        assert_eq!((bytes.len(), &bytes[4..8], &bytes[20..24]), (60, &[0, 0, 0, 60][..], &[0, 0, 0, 99][..]));
    }

    #[test]
    fn nonsense_is_refused() {
        for text in ["", "remove", "remove /nothing", "remove /soc nothing", "set /a b 1 x", "cut x", "melt /soc"] {
            assert!(change(&[text]).is_err(), "{text}");
        }
    }
}
