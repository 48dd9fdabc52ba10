//! `portals`: who can call whom, and the code that does it.

use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};

use runtime::abi::info::Shape;
use tool::table::{Side, Table};
use tool::{Arguments, inspect, println};

/// What `--help` prints.
pub const HELP: &str = "\
usage: portals
       portals --shapes
       portals --code SHAPE

Shows who can call whom: the call entries of all portal tables.

  FROM     the domain in whose table they stand
  TO       the domain that they call
  ENTRIES  how many there are of one service: as many files are open, say
  SERVICE  address at which the service is entered
  SHAPE    what a call passes there and back: the specification of its portal

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
    let name = |number: u64| match domains.iter().find(|(_, domain)| domain.number == number) {
        Some((name, _)) => alloc::format!("{name} ({number})"),
        None => number.to_string(),
    };
    let shape = |number: u64| match shapes.iter().find(|shape| shape.number == number) {
        Some(shape) => specification(shape),
        None => number.to_string(),
    };
    let mut edges = BTreeMap::new();
    for portal in portals {
        *edges.entry((portal.from, portal.to, portal.service, portal.shape)).or_insert(0_u64) += 1;
    }
    let columns = [
        ("FROM", Side::Left),
        ("TO", Side::Left),
        ("ENTRIES", Side::Right),
        ("SERVICE", Side::Right),
        ("SHAPE", Side::Left),
    ];
    let mut table = Table::new(&columns);
    for ((from, to, service, number), entries) in edges {
        let service = alloc::format!("{service:#x}");
        let cells: [String; 5] = [name(from), name(to), entries.to_string(), service, shape(number)];
        table.row(cells);
    }
    table.print();
    0
}

fn list(shapes: &[Shape]) -> u8 {
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
