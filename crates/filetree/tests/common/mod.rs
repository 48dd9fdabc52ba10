//! Memory that can stop after any number of stores, and a model of a file tree.
#![allow(dead_code)]

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use filetree::{Error, Kind, Node, Pages, Tree};
use proptest::prelude::*;

/// Thrown when the stores are used up.
pub struct Killed;

/// The memory itself, which outlives a tree that is killed.
#[derive(Clone, Default)]
pub struct Store {
    pub pages: Vec<Option<Box<[u64; 512]>>>,
    pub payers: Vec<u32>,
    /// Stores until the kill.
    pub stores_left: u64,
    pub stores: u64,
    /// Pages each payer may have.
    pub limit: usize,
}

impl Store {
    fn step(&mut self) {
        if self.stores_left == 0 {
            std::panic::panic_any(Killed);
        }
        self.stores_left -= 1;
        self.stores += 1;
    }
    fn page(&mut self, page: u32) -> &mut [u64; 512] {
        self.pages[page as usize].as_mut().expect("page is present")
    }
    fn set_byte(&mut self, page: u32, at: usize, byte: u8) {
        let word = &mut self.page(page)[at / 8];
        let mut bytes = word.to_le_bytes();
        bytes[at % 8] = byte;
        *word = u64::from_le_bytes(bytes);
    }
}

/// A handle to a [`Store`].
#[derive(Clone)]
pub struct Memory {
    pub store: Rc<RefCell<Store>>,
    archive: Rc<Vec<u8>>,
}

impl Memory {
    pub fn new(archive: Vec<u8>) -> Self {
        let store = Store { stores_left: u64::MAX, limit: usize::MAX, ..Store::default() };
        Self::from(store, archive)
    }
    pub fn from(store: Store, archive: Vec<u8>) -> Self {
        Self { store: Rc::new(RefCell::new(store)), archive: Rc::new(archive) }
    }
    pub fn present(&self) -> usize {
        self.store.borrow().pages.iter().flatten().count()
    }
    pub fn stores(&self) -> u64 {
        self.store.borrow().stores
    }
}

impl Pages for Memory {
    fn load(&self, page: u32, word: usize) -> u64 {
        self.store.borrow_mut().page(page)[word]
    }
    fn store(&mut self, page: u32, word: usize, value: u64) {
        let mut store = self.store.borrow_mut();
        store.step();
        store.page(page)[word] = value;
    }
    fn read(&self, page: u32, offset: usize, length: usize, look: impl FnOnce(&[u8])) {
        let mut store = self.store.borrow_mut();
        let words = store.page(page);
        let bytes: Vec<u8> = (offset..offset + length).map(|at| words[at / 8].to_le_bytes()[at % 8]).collect();
        look(&bytes);
    }
    /// A kill may strike in the middle, so that half of the bytes is written.
    fn write(&mut self, page: u32, offset: usize, length: usize, fill: impl FnOnce(&mut [u8])) {
        let mut bytes = vec![0; length];
        fill(&mut bytes);
        let mut store = self.store.borrow_mut();
        store.step();
        for (index, byte) in bytes.iter().enumerate() {
            if index == bytes.len() / 2 {
                store.step();
            }
            store.set_byte(page, offset + index, *byte);
        }
    }
    fn clear(&mut self, page: u32, offset: usize, length: usize) {
        self.write(page, offset, length, |_| {});
    }
    fn populate(&mut self, page: u32, payer: u32) -> Result<(), Error> {
        let index = page as usize;
        let mut store = self.store.borrow_mut();
        if store.pages.len() <= index {
            store.pages.resize_with(index + 1, || None);
            store.payers.resize(index + 1, 0);
        }
        if store.pages[index].is_none() {
            let used = store.pages.iter().zip(&store.payers).filter(|(p, by)| p.is_some() && **by == payer).count();
            if used >= store.limit {
                return Err(Error::NoSpace);
            }
            store.step();
            // Not clear on purpose: nobody may rely on it.
            store.pages[index] = Some(Box::new([0xdead_beef_dead_beef; 512]));
            store.payers[index] = payer;
        }
        Ok(())
    }
    fn release(&mut self, page: u32) {
        let mut store = self.store.borrow_mut();
        store.step();
        store.pages[page as usize] = None;
    }
    fn exists(&self) -> bool {
        self.store.borrow().pages.first().is_some_and(|page| page.is_some())
    }
    fn archive(&self) -> &[u8] {
        &self.archive
    }
}

/// The content that a path leads to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Content {
    Directory,
    File(Vec<u8>),
}

pub type Model = BTreeMap<String, Content>;

#[derive(Clone, Debug)]
pub enum Operation {
    Create(String),
    MakeDirectory(String),
    Import(String, usize, usize),
    Write(String, u64, Vec<u8>),
    Truncate(String, u64),
    Remove(String),
    Rename(String, String),
    GiveBack,
}

pub const PAYER: u32 = 3;

pub fn archive() -> Vec<u8> {
    (0..20_000u32).map(|n| (n * 7 + n / 256) as u8).collect()
}

fn parent(path: &str) -> &str {
    &path[..path.rfind('/').unwrap()]
}

fn has_directory(model: &Model, path: &str) -> Result<(), Error> {
    if path.is_empty() {
        return Ok(());
    }
    has_directory(model, parent(path))?;
    match model.get(path) {
        None => Err(Error::NotFound),
        Some(Content::File(_)) => Err(Error::NotADirectory),
        Some(Content::Directory) => Ok(()),
    }
}

/// The effect of the operation on the model.
pub fn apply_model(model: &mut Model, operation: &Operation, archive: &[u8]) -> Result<(), Error> {
    fn file<'a>(model: &'a mut Model, path: &str) -> Result<&'a mut Vec<u8>, Error> {
        has_directory(model, parent(path))?;
        match model.get_mut(path) {
            None => Err(Error::NotFound),
            Some(Content::Directory) => Err(Error::IsADirectory),
            Some(Content::File(bytes)) => Ok(bytes),
        }
    }
    let mut make = |path: &str, content: Content| {
        has_directory(model, parent(path))?;
        match model.contains_key(path) {
            true => Err(Error::Exists),
            false => {
                model.insert(path.to_string(), content);
                Ok(())
            }
        }
    };
    match operation {
        Operation::Create(path) => make(path, Content::File(Vec::new())),
        Operation::MakeDirectory(path) => make(path, Content::Directory),
        Operation::Import(path, start, length) => make(path, Content::File(archive[*start..*start + *length].to_vec())),
        Operation::Write(path, offset, bytes) => {
            let content = file(model, path)?;
            let end = *offset as usize + bytes.len();
            if !bytes.is_empty() {
                content.resize(content.len().max(end), 0);
                content[*offset as usize..end].copy_from_slice(bytes);
            }
            Ok(())
        }
        Operation::Truncate(path, size) => {
            file(model, path)?.resize(*size as usize, 0);
            Ok(())
        }
        Operation::Remove(path) => {
            has_directory(model, parent(path))?;
            if !model.contains_key(path) {
                return Err(Error::NotFound);
            }
            if model.keys().any(|other| other.starts_with(&format!("{path}/"))) {
                return Err(Error::NotEmpty);
            }
            model.remove(path);
            Ok(())
        }
        Operation::Rename(from, to) => {
            has_directory(model, parent(from))?;
            has_directory(model, parent(to))?;
            let content = model.get(from).cloned().ok_or(Error::NotFound)?;
            if content == Content::Directory && to.starts_with(&format!("{from}/")) {
                return Err(Error::IntoItself);
            }
            if from == to {
                return Ok(());
            }
            if let Some(old) = model.get(to) {
                if (*old == Content::Directory) != (content == Content::Directory) {
                    return Err(Error::Exists);
                }
                if model.keys().any(|other| other.starts_with(&format!("{to}/"))) {
                    return Err(Error::NotEmpty);
                }
            }
            let below: Vec<String> =
                model.keys().filter(|path| path.starts_with(&format!("{from}/"))).cloned().collect();
            for path in below {
                let content = model.remove(&path).unwrap();
                model.insert(format!("{to}{}", &path[from.len()..]), content);
            }
            model.remove(from);
            model.insert(to.clone(), content);
            Ok(())
        }
        Operation::GiveBack => Ok(()),
    }
}

pub fn apply_tree(tree: &mut Tree<Memory>, operation: &Operation) -> Result<(), Error> {
    match operation {
        Operation::Create(path) => {
            let (directory, name) = tree.walk_parent(path.as_bytes())?;
            tree.create(directory, name, Kind::File, 1, PAYER).map(drop)
        }
        Operation::MakeDirectory(path) => {
            let (directory, name) = tree.walk_parent(path.as_bytes())?;
            tree.create(directory, name, Kind::Directory, 1, PAYER).map(drop)
        }
        Operation::Import(path, start, length) => {
            let (directory, name) = tree.walk_parent(path.as_bytes())?;
            tree.import(directory, name, *start as u64, *length as u64, true, PAYER).map(drop)
        }
        Operation::Write(path, offset, bytes) => {
            let node = tree.walk(path.as_bytes())?;
            let written = tree.write(node, *offset, bytes, 1, PAYER)?;
            if written == bytes.len() { Ok(()) } else { Err(Error::NoSpace) }
        }
        Operation::Truncate(path, size) => {
            let node = tree.walk(path.as_bytes())?;
            tree.truncate(node, *size, 1, PAYER)
        }
        Operation::Remove(path) => {
            let (directory, name) = tree.walk_parent(path.as_bytes())?;
            tree.remove(directory, name)
        }
        Operation::Rename(from, to) => {
            let (from, name) = tree.walk_parent(from.as_bytes())?;
            let (to, new_name) = tree.walk_parent(to.as_bytes())?;
            tree.rename(from, name, to, new_name, PAYER)
        }
        Operation::GiveBack => {
            tree.give_back(PAYER, 5);
            Ok(())
        }
    }
}

/// Everything in the tree.
pub fn snapshot(tree: &Tree<Memory>) -> Model {
    fn visit(tree: &Tree<Memory>, node: Node, path: &str, model: &mut Model) {
        let mut position = 0;
        while let Some(entry) = tree.list(node, position).unwrap() {
            position = entry.next;
            let path = format!("{path}/{}", std::str::from_utf8(entry.name()).unwrap());
            let stat = tree.stat(entry.node).unwrap();
            let content = match stat.kind {
                Kind::Directory => {
                    visit(tree, entry.node, &path, model);
                    Content::Directory
                }
                Kind::File => {
                    let mut bytes = vec![0; stat.size as usize];
                    assert_eq!(tree.read(entry.node, 0, &mut bytes).unwrap(), bytes.len());
                    Content::File(bytes)
                }
            };
            assert!(model.insert(path, content).is_none(), "a name is there twice");
        }
    }
    let mut model = Model::new();
    visit(tree, tree.root(), "", &mut model);
    model
}

pub fn path() -> impl Strategy<Value = String> {
    prop::sample::select(vec!["/a", "/b", "/c", "/d", "/d/x", "/d/y", "/d/e", "/d/e/z", "/a long name of twenty-five"])
        .prop_map(str::to_string)
}

pub fn operation() -> impl Strategy<Value = Operation> {
    let offset = prop_oneof![0..6_000u64, 90_000..100_000u64, 2_180_000..2_200_000u64];
    let bytes = (any::<u8>(), 0..9_000usize).prop_map(|(byte, length)| vec![byte; length]);
    prop_oneof![
        4 => path().prop_map(Operation::Create),
        3 => path().prop_map(Operation::MakeDirectory),
        2 => (path(), 0..9_000usize, 0..11_000usize).prop_map(|(p, start, length)| Operation::Import(p, start, length)),
        6 => (path(), offset.clone(), bytes).prop_map(|(p, o, b)| Operation::Write(p, o, b)),
        3 => (path(), offset).prop_map(|(p, o)| Operation::Truncate(p, o)),
        3 => path().prop_map(Operation::Remove),
        3 => (path(), path()).prop_map(|(a, b)| Operation::Rename(a, b)),
        1 => Just(Operation::GiveBack),
    ]
}
