//! The branches of portal code. Each depends on something that differs between two crossings of the same portal, and is listed here with
//! that: a branch that the specification could decide is one more than expected.

use crate::common::{Random, TABLE, any_specification};
use listing::{Isa, Portal, specification};
use portalgen::{Letter, Letters, Specification};

/// Where a branch leads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum To {
    /// The slow path in the nucleus.
    Slowly,
    /// The crossing is refused: more bytes than fit.
    Refuse,
    /// The call is refused: its control word is that of another shape.
    RefuseControl,
    /// Further on in the code.
    On,
    /// Back: a loop.
    Again,
}

/// A branch: the comment of its part in the listing, or how that begins, and where it leads.
type Branch = (&'static str, To);

/// The caller's control word.
const EXPECTS: Branch = ("the caller expects what goes along", To::RefuseControl);
/// The length that a word gives.
const LENGTH: Branch = ("no more bytes than a message area has", To::Refuse);
/// The control word of a message.
const CONTROL: Branch = ("the control word asks for bytes only", To::Slowly);
/// The word with an entry's index, or a page.
const NO_ENTRY: Branch = ("no entry goes along, or no page", To::Slowly);
/// Labels and state of both domains.
const FLOW: Branch = ("the flow is allowed, both domains live, and nothing is special about them", To::Slowly);
/// The pool.
const FREE: Branch = ("an activation of the callee is free on this CPU", To::Slowly);
/// The depth.
const CHAIN: Branch = ("the chain may be longer", To::Slowly);
/// Whether the caller gives a window.
const WINDOW: Branch = ("a window goes along", To::On);
/// The window's size and place, its table, and its page: x86-64 looks at two bits of that at once.
const PAGE: Branch = ("it is one page, the caller has it, and may lend it so", To::Slowly);
/// Whether the callee had a window on this CPU before.
const SLOT: Branch = ("the callee sees it in the slot of the activation, and executes nothing there", To::Slowly);
/// The size of the window that the call opened.
const IS_MANY: Branch = ("the window has one page, or there is none", To::Slowly);
/// Whether it opened one.
const CLOSES: Branch = ("the window closes", To::On);
/// State of both domains, and of the activation.
const SPECIAL: Branch =
    ("nothing became special about the two domains, and nobody waits for the activation", To::Slowly);
/// A length: that of the control word may be 0; AArch64 copies 64 bytes at a time, then 32, 16 and 8.
const COPY: &str = "words and bytes of the message area";
/// AArch64: a conditional branch reaches the nucleus through one of these.
const JUMPS: &str = "jumps to the nucleus";

fn has(letters: &Letters, what: &[Letter]) -> bool {
    letters.iter().any(|(_, letter)| what.contains(&letter))
}

/// The branches of a half, in their order.
fn expected(isa: Isa, specification: &Specification, is_call: bool) -> Vec<Branch> {
    let letters = if is_call { &specification.call } else { &specification.result };
    let has_bytes = has(letters, &[Letter::Bytes]);
    let has_control = has(letters, &[Letter::Control]);
    let has_window = has(&specification.call, &[Letter::Window]);
    let is_aarch64 = isa == Isa::AArch64;
    let mut all = Vec::new();
    let mut add = |there: bool, branches: &[Branch]| all.extend(branches.iter().filter(|_| there));
    add(is_aarch64, &[(JUMPS, To::Slowly)]);
    add(is_aarch64 && has_bytes, &[(JUMPS, To::Refuse)]);
    add(is_aarch64 && is_call && !has_control, &[(JUMPS, To::RefuseControl)]);
    add(is_call && !has_control, &[EXPECTS]);
    add(has_bytes, &[LENGTH]);
    add(has_control, &[CONTROL]);
    add(has(letters, &[Letter::Delegated, Letter::Minted, Letter::Torn]), &[NO_ENTRY]);
    add(is_call, &[FLOW, FREE, CHAIN]);
    add(is_call && has_window, &[WINDOW, PAGE, PAGE, PAGE, PAGE]);
    add(is_call && has_window && is_aarch64, &[PAGE]);
    add(is_call && has_window, &[SLOT]);
    add(!is_call && has_window, &[IS_MANY]);
    add(!is_call, &[SPECIAL]);
    add(has_control, &[(COPY, To::On)]);
    let copies = [To::On, To::Again, To::On, To::On, To::On].map(|to| (COPY, to));
    add(is_aarch64 && (has_bytes || has_control), &copies);
    add(!is_call && has_window, &[CLOSES]);
    all
}

/// Conditional branches of call and return.
pub fn conditional(isa: Isa, specification: &Specification) -> usize {
    let halves = [true, false].map(|is_call| expected(isa, specification, is_call));
    halves.iter().flatten().filter(|(part, _)| *part != JUMPS).count()
}

/// A line of a listing that is an instruction.
fn instruction(line: &str) -> Option<&str> {
    line.strip_prefix("    ")
}

/// Whether an instruction is a branch, but for the one that leaves the nucleus.
fn is_branch(text: &str) -> bool {
    let name = text.split(' ').next().unwrap_or(text);
    let others = ["b", "bl", "br", "blr", "ret", "cbz", "cbnz", "tbz", "tbnz"];
    name.starts_with('j')
        || name.starts_with("b.")
        || name.starts_with("call")
        || name.starts_with("loop")
        || others.contains(&name)
}

/// The branches of a listing, of the return and of the call.
fn found(isa: Isa, listing: &str) -> [Vec<(String, To)>; 2] {
    let instructions: Vec<&str> = listing.lines().filter_map(instruction).collect();
    let (mut branches, mut part, mut at) = ([Vec::new(), Vec::new()], "", 0);
    // The jumps of a half of AArch64 stand before its name.
    let mut half = 0;
    for line in listing.lines() {
        if let Some(comment) = line.strip_prefix("  ; ") {
            part = comment;
        }
        if line == "call:" || line.ends_with(JUMPS) && at > 0 {
            half = 1;
        }
        let Some(text) = instruction(line) else { continue };
        if is_branch(text) {
            branches[half].push((part.to_string(), leads_to(isa, text, at, &instructions)));
        }
        at += 1;
    }
    branches
}

/// Where the branch at this place in the code leads.
fn leads_to(isa: Isa, text: &str, at: usize, instructions: &[&str]) -> To {
    let target = text.rsplit(' ').next().unwrap_or(text);
    if target.starts_with("call_slowly") || target.starts_with("return_slowly") {
        return To::Slowly;
    }
    if target == "refuse_control" {
        return To::RefuseControl;
    }
    if target.starts_with("refuse_") {
        return To::Refuse;
    }
    if isa == Isa::X86_64 {
        // There are no loops: a crossing counts as many instructions as its listing has.
        return To::On;
    }
    let distance: usize = target.parse().unwrap_or_else(|_| panic!("{text} leads nowhere"));
    let place = distance / 4;
    match instructions[place].strip_prefix("b ") {
        Some(_) => leads_to(isa, instructions[place], place, instructions),
        None if place > at => To::On,
        None => To::Again,
    }
}

/// Compares the branches of a specification with what they ought to be.
fn compare(isa: Isa, text: &str) {
    let specification = specification(text).expect("a specification");
    let listing = Portal::generated(isa, &specification).expect("a portal").to_string();
    for (found, is_call) in found(isa, &listing).into_iter().zip([false, true]) {
        let expected = expected(isa, &specification, is_call);
        let same = found.len() == expected.len()
            && found.iter().zip(&expected).all(|((part, to), (begin, ought))| part.starts_with(begin) && to == ought);
        assert!(same, "{text}: the branches are\n{found:#?}\nand ought to be\n{expected:#?}");
    }
}

/// Each branch has its reason, in the listings that are checked in and in others.
pub fn have_reasons(isa: Isa) {
    TABLE.iter().for_each(|text| compare(isa, &String::from_utf8_lossy(text)));
    let mut random = Random(1);
    (0..500).for_each(|_| compare(isa, &any_specification(&mut random)));
}
