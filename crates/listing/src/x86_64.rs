//! x86-64.

use crate::code::{Code, Instruction};
use crate::nucleus::{CODE, NUCLEUS, TARGETS, name_of, target_name};
use iced_x86::{Decoder, DecoderOptions, Formatter, IntelFormatter, OpKind, Register, SymbolResolver, SymbolResult};
use portalgen::Specification;
use portalgen::x86_64::Generator;

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
    let mut formatter = IntelFormatter::with_options(Some(Box::new(Names)), None);
    formatter.options_mut().set_space_after_operand_separator(true);
    formatter.options_mut().set_hex_prefix("0x");
    formatter.options_mut().set_hex_suffix("");
    formatter.options_mut().set_rip_relative_addresses(true);
    let decoder = Decoder::with_ip(64, bytes, CODE, DecoderOptions::NONE);
    let line = |instruction: iced_x86::Instruction| {
        let at = (instruction.ip() - CODE) as usize;
        if instruction.is_invalid() {
            return Err(at);
        }
        let mut text = String::new();
        formatter.format(&instruction, &mut text);
        Ok(Instruction { at, length: instruction.len(), text })
    };
    // Padding is no part of the code.
    decoder.into_iter().filter(|instruction| instruction.code() != iced_x86::Code::Int3).map(line).collect()
}

/// Names of fields at offsets from registers, and of the targets of jumps.
struct Names;

impl SymbolResolver for Names {
    fn symbol(
        &mut self,
        instruction: &iced_x86::Instruction,
        _: u32,
        operand: Option<u32>,
        address: u64,
        _: u32,
    ) -> Option<SymbolResult<'_>> {
        let name = match target_name(address) {
            Some(name) => name.to_string(),
            None if address == CODE => "back".to_string(),
            None if operand.is_some_and(|operand| instruction.op_kind(operand) != OpKind::Memory) => return None,
            None if matches!(instruction.memory_base(), Register::R12 | Register::R13) => return None,
            None if address == 0 && instruction.memory_index() != Register::None => "share.pool".to_string(),
            None if address == 0 => match instruction.memory_base() {
                Register::None => "cpu.domain".to_string(),
                _ if instruction.op0_kind() == OpKind::Memory && instruction.op1_register() == Register::RCX => {
                    "thread.top".to_string()
                }
                _ => "activation.frame".to_string(),
            },
            None if instruction.memory_displacement64() == address => name_of(address as i64)?,
            None => return None,
        };
        Some(SymbolResult::with_string(address, name))
    }
}
