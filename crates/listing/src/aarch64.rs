//! AArch64.

use crate::code::{Code, Instruction};
use crate::nucleus::{CODE, NUCLEUS, TARGETS, name_of, target_name};
use portalgen::Specification;
use portalgen::aarch64::Generator;

const GENERATOR: Generator = Generator::new(&NUCLEUS);

pub fn generate(specification: &Specification) -> Code {
    let mut bytes = vec![0; 4096];
    let mut code = portalgen::Code::new(&mut bytes, CODE);
    let extent = GENERATOR.write(&mut code, specification, &TARGETS);
    let parts = code.parts().to_vec();
    bytes.truncate(extent.length);
    Code { bytes, extent, parts }
}

pub fn instructions(bytes: &[u8]) -> Result<Vec<Instruction>, usize> {
    let line = |(place, bytes): (usize, &[u8])| {
        let at = 4 * place;
        let word = u32::from_le_bytes(bytes.try_into().map_err(|_| at)?);
        let opcode = disarm64::decoder::decode(word).ok_or(at)?;
        let mut text = String::new();
        disarm64::format_insn::format_insn_pc(CODE + at as u64, &mut text, &opcode).map_err(|_| at)?;
        Ok(Instruction { at, length: 4, text: named(&text) })
    };
    bytes.chunks(4).enumerate().map(line).collect()
}

/// The text with names in place of distances and addresses.
fn named(text: &str) -> String {
    let text = text.trim().replace("\t\t", " ").replace('\t', " ").replace(", lsl #0x0", "").replace("  ", " ");
    let number = |text: &str| match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    };
    if let Some((before, address)) = text.rsplit_once(' ')
        && let Some(address) = number(address)
    {
        let name = target_name(address).map_or_else(|| format!("{:+}", address.wrapping_sub(CODE)), String::from);
        return format!("{before} {name}");
    }
    let Some((before, rest)) = text.split_once(", #") else { return text };
    let (Some(digits), true) = (rest.strip_suffix(']'), before.contains("[x1") || before.contains("[x8")) else {
        return text;
    };
    match number(digits).and_then(|offset| name_of(offset as i64)) {
        Some(name) => format!("{before}, {name}]"),
        None => text,
    }
}
