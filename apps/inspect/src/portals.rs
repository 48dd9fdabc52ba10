//! `portals`: possible calls between domains, and the code that does them.

use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};

use runtime::abi::boot::SERVICES_PATH;
use runtime::abi::info::{Portal, Shape};
use tool::compartments::give_up_privileges;
use tool::table::{Side, Table};
use tool::{Arguments, files, inspect, println};

/// The text of `--help`.
pub const HELP: &str = "\
usage: portals
       portals --shapes
       portals --code SHAPE

Shows who can call whom: the call entries of all portal tables.

  FROM       the domain in whose table they stand: the client
  TO         the domain that they call
  ENTRIES    how many there are of one service: as many files are open, say
  INTERFACE  what the service serves; its address if that is not known
  SHAPE      what a call passes there and back: the specification of its portal
  BYTES      of the portal's code, which all portals of the shape share

  --shapes      what portal code there is: number, specification, bytes of code,
                and how many domains serve through it or hold it
  --code SHAPE  the bytes of a shape's code
";

/// The program.
pub fn main(mut arguments: Arguments) -> u8 {
    let shapes = match inspect::shapes() {
        Ok(shapes) => shapes,
        Err(error) => return arguments.fail("shapes", error),
    };
    match arguments.number("--code") {
        Ok(Some(number)) if arguments.none() => return code(&arguments, &shapes, number),
        Ok(None) => {}
        _ => return tool::USAGE,
    }
    let only_shapes = arguments.flag("--shapes");
    if !arguments.none() {
        return tool::USAGE;
    }
    if only_shapes { list(&shapes) } else { edges(&arguments, &shapes) }
}

fn edges(arguments: &Arguments, shapes: &[Shape]) -> u8 {
    let (portals, domains) = match (inspect::portals(), inspect::domains()) {
        (Ok(portals), Ok(domains)) => (portals, domains),
        (Err(error), _) | (_, Err(error)) => return arguments.fail("portals", error),
    };
    give_up_privileges();
    let name = |number: u64| match domains.iter().find(|(_, domain)| domain.number == number) {
        Some((name, _)) => alloc::format!("{name} ({number})"),
        None => number.to_string(),
    };
    let shape = |number: u64| match shapes.iter().find(|shape| shape.number == number) {
        Some(shape) => [specification(shape), shape.length.to_string()],
        None => [number.to_string(), String::new()],
    };
    let text = services();
    let interface = |portal: &Portal| {
        let callee = domains.iter().find(|(_, domain)| domain.number == portal.to);
        let known = callee.and_then(|(name, _)| interface(&text, name, portal));
        known.map_or_else(|| alloc::format!("{:#x}", portal.service), String::from)
    };
    let mut edges = BTreeMap::new();
    for portal in portals {
        *edges.entry((portal.from, portal.to, interface(&portal), portal.shape)).or_insert(0_u64) += 1;
    }
    let columns = [
        ("FROM", Side::Left),
        ("TO", Side::Left),
        ("ENTRIES", Side::Right),
        ("INTERFACE", Side::Left),
        ("SHAPE", Side::Left),
        ("BYTES", Side::Right),
    ];
    let mut table = Table::new(&columns);
    for ((from, to, interface, number), entries) in edges {
        let [specification, bytes] = shape(number);
        table.row([name(from), name(to), entries.to_string(), interface, specification, bytes]);
    }
    table.print();
    0
}

/// The list of services in the boot archive; empty if there is none.
fn services() -> String {
    let read = files::whole(&alloc::format!("/{SERVICES_PATH}"));
    read.ok().and_then(|bytes| String::from_utf8(bytes).ok()).unwrap_or_default()
}

/// The interface that a portal to a domain of this name leads to.
fn interface<'a>(services: &'a str, name: &str, portal: &Portal) -> Option<&'a str> {
    services.lines().find_map(|line| {
        let mut words = line.split(' ');
        let is_it = words.next() == Some(name)
            && words.next().is_some_and(|at| u64::from_str_radix(at, 16) == Ok(portal.service));
        let first = words.next().filter(|_| is_it)?;
        Some(words.next().filter(|_| portal.badge != 0).unwrap_or(first))
    })
}

fn list(shapes: &[Shape]) -> u8 {
    give_up_privileges();
    let columns =
        [("SHAPE", Side::Right), ("SPECIFICATION", Side::Left), ("BYTES", Side::Right), ("USES", Side::Right)];
    let mut table = Table::new(&columns);
    for shape in shapes {
        let [number, bytes, uses] = [shape.number, shape.length, shape.uses].map(|value| value.to_string());
        table.row([number, specification(shape), bytes, uses]);
    }
    table.print();
    0
}

fn code(arguments: &Arguments, shapes: &[Shape], number: u64) -> u8 {
    let Some(shape) = shapes.iter().find(|shape| shape.number == number) else {
        return arguments.fail(&number.to_string(), "there is no such shape; portals --shapes lists them");
    };
    let code = match inspect::code(shape) {
        Ok(code) => code,
        Err(error) => return arguments.fail("code", error),
    };
    give_up_privileges();
    println!("{}: call from {:#05x}, return from {:#05x}", specification(shape), shape.call, shape.back);
    for (line, bytes) in code.chunks(16).enumerate() {
        let words = bytes.iter().map(|byte| alloc::format!(" {byte:02x}")).collect::<String>();
        println!("{:03x} {words}", 16 * line);
    }
    0
}

fn specification(shape: &Shape) -> String {
    let text = shape.specification.split(|byte| *byte == 0).next().unwrap_or_default();
    String::from_utf8_lossy(text).into_owned()
}
