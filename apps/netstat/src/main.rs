//! `netstat`: the sockets there are.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use tool::{Arguments, print};

runtime::entry!(main);

const HELP: &str = "\
usage: netstat

Shows all sockets, one a line: protocol, state, this end, the other end, and the number and
name of the program or component that has it, as ps shows them (-: its session is over).

For example, who has port 7:
    netstat | grep ' 7 '
";

fn main() -> u8 {
    let arguments = Arguments::new("netstat", HELP);
    if !arguments.none() {
        return tool::USAGE;
    }
    let mut bytes = [0; 2048];
    let mut position = 0;
    loop {
        match sockets::NET.sockets(position, &mut bytes) {
            Ok((count, next)) => {
                print!("{}", core::str::from_utf8(&bytes[..count]).unwrap_or("?\n"));
                if next == 0 {
                    return 0;
                }
                position = next;
            }
            Err(cause) => return arguments.fail("the network", cause),
        }
    }
}
