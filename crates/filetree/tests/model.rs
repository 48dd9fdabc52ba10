//! The tree does what a map from paths to contents does, with precise errors, and never loses a page.

mod common;

use common::*;
use filetree::{Error, Kind, Origin, Tree, normalize};
use proptest::prelude::*;
use std::cell::RefCell;

fn tree() -> Tree<Memory> {
    let (tree, existed) = Tree::open(Memory::new(archive()), PAYER).unwrap();
    assert!(!existed);
    tree
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn same_as_the_model(operations in prop::collection::vec(operation(), 0..40)) {
        let mut tree = tree();
        let mut model = Model::new();
        for operation in &operations {
            let expected = apply_model(&mut model, operation, &archive());
            prop_assert_eq!(apply_tree(&mut tree, operation), expected, "{:?}", operation);
            let usage = tree.audit().unwrap();
            prop_assert_eq!(usage.nodes as usize, model.len() + 1);
            let present = usage.fixed + usage.content + usage.inodes + usage.free;
            prop_assert_eq!(tree.pages().present(), present as usize);
            prop_assert_eq!(tree.used(), usage.fixed + usage.content + usage.inodes);
        }
        prop_assert_eq!(snapshot(&tree), model.clone());
        let (tree, existed) = Tree::open(tree.into_pages(), PAYER).unwrap();
        prop_assert!(existed);
        prop_assert_eq!(snapshot(&tree), model);
        tree.audit().unwrap();
    }

    /// With little memory: refused operations change nothing, and what was refused works when there is room.
    #[test]
    fn full(operations in prop::collection::vec(operation(), 0..40), limit in 4..30usize) {
        let mut tree = tree();
        tree.pages().store.borrow_mut().limit = limit;
        let mut model = Model::new();
        for operation in &operations {
            let mut after = model.clone();
            let expected = apply_model(&mut after, operation, &archive());
            match apply_tree(&mut tree, operation) {
                Err(Error::NoSpace) => {
                    // A write may have happened in part.
                    if let Operation::Write(path, offset, bytes) = operation {
                        let Some(Content::File(now)) = snapshot(&tree).remove(path) else { panic!("no file") };
                        let Some(Content::File(before)) = model.get(path).cloned() else { panic!("no file") };
                        let written = now.len().saturating_sub(*offset as usize).min(bytes.len());
                        let mut part = model.clone();
                        if now.len() > before.len() {
                            let part_written = Operation::Write(path.clone(), *offset, bytes[..written].to_vec());
                            apply_model(&mut part, &part_written, &archive()).unwrap();
                        } else if now != before {
                            part.insert(path.clone(), Content::File(now));
                        }
                        model = part;
                    }
                }
                result => {
                    prop_assert_eq!(result, expected, "{:?}", operation);
                    model = after;
                }
            }
            prop_assert_eq!(snapshot(&tree), model.clone(), "{:?}", operation);
            tree.audit().unwrap();
        }
    }

    #[test]
    fn normal_paths(current in "/[a-c./]{0,10}", path in "[a-c./]{0,12}") {
        let normal = normalize(&current, &path);
        prop_assert!(normal.starts_with('/'));
        prop_assert!(normal == "/" || !normal.ends_with('/'));
        prop_assert!(normal.split('/').skip(1).all(|part| part != "." && part != ".."));
        prop_assert_eq!(normalize("/x", &normal), normal);
    }
}

#[test]
fn refusals() {
    let mut tree = tree();
    let root = tree.root();
    let name = [b'n'; 121];
    assert_eq!(tree.create(root, &name, Kind::File, 0, 1), Err(Error::NameTooLong));
    assert!(tree.create(root, &name[..120], Kind::File, 0, 1).is_ok());
    for bad in [&b""[..], b".", b"..", b"a/b", b"a\0"] {
        assert_eq!(tree.create(root, bad, Kind::File, 0, 1), Err(Error::BadName));
    }
    assert_eq!(tree.import(root, b"i", 20_000, 1, false, 1), Err(Error::BadReference));
    assert_eq!(tree.import(root, b"i", u64::MAX, 2, false, 1), Err(Error::BadReference));
    let file = tree.create(root, b"f", Kind::File, 0, 1).unwrap();
    assert_eq!(tree.write(file, u64::MAX, b"x", 0, 1), Err(Error::TooLarge));
    assert_eq!(tree.truncate(file, u64::MAX, 0, 1), Err(Error::TooLarge));
    assert_eq!(tree.write(root, 0, b"x", 0, 1), Err(Error::IsADirectory));
    assert_eq!(tree.lookup(file, b"x"), Err(Error::NotADirectory));
    assert_eq!(tree.walk_parent(b"/"), Err(Error::IsRoot));
    tree.remove(root, b"f").unwrap();
    assert_eq!(tree.read(file, 0, &mut [0]), Err(Error::Stale));
    let again = tree.create(root, b"f", Kind::File, 0, 1).unwrap();
    assert_eq!(again.inode, file.inode);
    assert_eq!(tree.read(file, 0, &mut [0]), Err(Error::Stale));
    assert_eq!(tree.stat(filetree::Node { inode: 0, generation: 0 }), Err(Error::Stale));
    assert_eq!(tree.stat(filetree::Node { inode: u32::MAX, generation: 1 }), Err(Error::Stale));
}

/// Bytes of a client that changes them all the time: each has another value whenever it is read.
struct Changing<'a> {
    /// How often each was read.
    reads: &'a RefCell<Vec<u8>>,
}

impl Changing<'_> {
    fn first_value(at: usize) -> u8 {
        (at % 251) as u8 ^ 0x55
    }
}

impl Origin for Changing<'_> {
    fn count(&self) -> usize {
        self.reads.borrow().len()
    }
    fn take(&self, at: usize, into: &mut [u8]) {
        let mut reads = self.reads.borrow_mut();
        for (place, byte) in into.iter_mut().enumerate() {
            let reads = &mut reads[at + place];
            *byte = Self::first_value(at + place).wrapping_add(*reads);
            *reads += 1;
        }
    }
}

/// Also where there is room for a part only.
#[test]
fn bytes_that_change_are_read_once() {
    for (offset, count) in [(0, 1), (5, 8), (0, 4096), (4090, 12), (100, 3 * 4096), (4096, 16 * 4096)] {
        for limit in [usize::MAX, 6] {
            let mut tree = tree();
            let file = tree.create(tree.root(), b"f", Kind::File, 0, PAYER).unwrap();
            tree.pages().store.borrow_mut().limit = limit;
            let reads = RefCell::new(vec![0; count]);
            let done = tree.write_from(file, offset as u64, Changing { reads: &reads }, 0, PAYER).unwrap();
            assert!(done > 0 && (done == count || limit == 6));
            let reads = reads.into_inner();
            assert!(reads[..done].iter().all(|times| *times == 1), "{offset}, {count}");
            assert!(reads[done..].iter().all(|times| *times == 0), "{offset}, {count}");
            let mut content = vec![0; offset + count];
            assert_eq!(tree.read(file, 0, &mut content), Ok(offset + done));
            let written = &content[offset..offset + done];
            assert!(written.iter().enumerate().all(|(at, byte)| *byte == Changing::first_value(at)));
            tree.audit().unwrap();
        }
    }
}

#[test]
fn truncated_bytes_do_not_come_back() {
    for by_writing in [false, true] {
        let mut tree = tree();
        let file = tree.create(tree.root(), b"f", Kind::File, 0, 1).unwrap();
        tree.write(file, 0, b"hello, world", 0, 1).unwrap();
        tree.truncate(file, 5, 0, 1).unwrap();
        if by_writing {
            tree.write(file, 11, b"!", 0, 1).unwrap();
        } else {
            tree.truncate(file, 12, 0, 1).unwrap();
        }
        let mut content = [9; 12];
        assert_eq!(tree.read(file, 0, &mut content), Ok(12));
        assert_eq!(&content[..11], b"hello\0\0\0\0\0\0");
    }
}

#[test]
fn archive_files_cost_no_pages_until_written() {
    let mut tree = tree();
    let root = tree.root();
    let before = tree.audit().unwrap();
    let node = tree.import(root, b"f", 100, 10_000, true, 1).unwrap();
    assert_eq!(tree.audit().unwrap().content, before.content + 1, "one page of directory entries");
    assert_eq!(tree.archive_range(node).unwrap(), Some((100, 10_000)));
    tree.write(node, 5_000, b"hello", 7, 1).unwrap();
    assert_eq!(tree.archive_range(node).unwrap(), None);
    let mut expected = archive()[100..10_100].to_vec();
    expected[5_000..5_005].copy_from_slice(b"hello");
    let mut content = vec![0; 20_000];
    assert_eq!(tree.read(node, 0, &mut content).unwrap(), 10_000);
    assert_eq!(content[..10_000], expected);
    assert!(tree.stat(node).unwrap().executable);
}

#[test]
fn many_files_and_payers() {
    let mut tree = tree();
    let root = tree.root();
    for number in 0..1_500u32 {
        let node = tree.create(root, number.to_string().as_bytes(), Kind::File, 0, number % 3).unwrap();
        tree.write(node, 0, &number.to_le_bytes(), 0, number % 3).unwrap();
    }
    let full = tree.audit().unwrap();
    assert_eq!(full.nodes, 1_501);
    for number in 0..1_500u32 {
        let node = tree.walk(format!("/{number}").as_bytes()).unwrap();
        let mut bytes = [0; 4];
        assert_eq!(tree.read(node, 0, &mut bytes).unwrap(), 4);
        assert_eq!(bytes, number.to_le_bytes());
        tree.remove(root, number.to_string().as_bytes()).unwrap();
    }
    let present = tree.pages().present();
    for payer in 0..3 {
        assert_eq!(tree.give_back(payer, usize::MAX), 500);
    }
    assert_eq!(tree.pages().present(), present - 1_500);
    tree.audit().unwrap();
    let (tree, _) = Tree::open(tree.into_pages(), 1).unwrap();
    tree.audit().unwrap();
}

/// The cost in stores of the file benchmark: create, write 4 KiB, delete.
#[test]
fn cost_in_stores() {
    let mut tree = tree();
    let root = tree.root();
    let mut cost = 0;
    for _ in 0..2 {
        let before = tree.pages().stores();
        let node = tree.create(root, b"benchmark", Kind::File, 0, 1).unwrap();
        tree.write(node, 0, &[7; 4096], 0, 1).unwrap();
        tree.remove(root, b"benchmark").unwrap();
        cost = tree.pages().stores() - before;
    }
    assert!(cost <= 30, "{cost} stores");
}
