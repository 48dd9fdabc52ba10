//! From a plan to the compiled form; see the crate's head for the layout.

use super::{At, ComponentText, Level, Plan, ProgramText};
use crate::{
    ADMIN, FLAG_ARCHIVE, FLAG_COMPATIBLE, FLAG_CPUS, FLAG_FPU, FLAG_INSPECT, FLAG_SHARE, FLAG_TRUSTED, FLAG_VAULT,
    FLAG_WAITS_FOR_NOBODY, HEADER_BYTES, MAGIC, NO_INTERRUPT, NOBODY, VERSION,
};
use abi::layout::FIRST_FREE;
use std::string::String;
use std::vec::Vec;

impl Plan<'_> {
    /// The bytes that [`crate::System::parse`] reads.
    pub fn encode(&self) -> Vec<u8> {
        let description = self.description;
        let shell = description.shell.as_ref().and_then(|shell| self.number(&shell.value)).unwrap_or(NOBODY);
        let mut records = Vec::new();
        for compartment in &description.compartments {
            let mut record = Vec::new();
            string(&mut record, &compartment.value);
            append(&mut records, &record);
        }
        for &place in &self.order {
            append(&mut records, &self.component(&description.components[place]));
        }
        for program in &description.programs {
            append(&mut records, &self.program(program));
        }
        let mut bytes = Vec::from(*MAGIC);
        bytes.extend_from_slice(&VERSION.to_le_bytes());
        bytes.extend_from_slice(&((HEADER_BYTES + records.len()) as u32).to_le_bytes());
        let counts = [description.components.len(), description.programs.len()].map(|count| count as u16);
        for half in [counts[0], counts[1], shell, description.compartments.len() as u16] {
            bytes.extend_from_slice(&half.to_le_bytes());
        }
        bytes.extend_from_slice(&records);
        bytes
    }

    /// Place of a component in the start order.
    fn number(&self, name: &str) -> Option<u16> {
        let components = &self.description.components;
        self.order.iter().position(|&place| components[place].name.value == name).map(|number| number as u16)
    }

    fn component(&self, component: &ComponentText) -> Vec<u8> {
        let flags = if component.fpu { FLAG_FPU } else { 0 }
            | if component.trusted { FLAG_TRUSTED } else { 0 }
            | if component.cpus.is_some() { FLAG_CPUS } else { 0 }
            | if component.compatible.is_some() { FLAG_COMPATIBLE } else { 0 }
            | if component.vault.is_some() { FLAG_VAULT } else { 0 }
            | if component.waits { 0 } else { FLAG_WAITS_FOR_NOBODY }
            | if component.share.value != 0 { FLAG_SHARE } else { 0 }
            | if component.archive { FLAG_ARCHIVE } else { 0 };
        let (first_port, ports) = component.io_ports.as_ref().map_or((0, 0), |ports| ports.value);
        let mut record = Vec::new();
        record.extend_from_slice(&component.account.value.to_le_bytes());
        record.extend_from_slice(&[
            component.priority.value,
            component.max_priority.value,
            flags,
            component.special.value as u8,
            component.restart.value as u8,
            component.restarts_per_minute,
            component.interrupt.as_ref().map_or(NO_INTERRUPT, |line| line.value),
        ]);
        record.extend_from_slice(&first_port.to_le_bytes());
        record.extend_from_slice(&ports.to_le_bytes());
        let is_private = |service: &&At<String>| component.private.iter().any(|private| private.value == service.value);
        let (private, public): (Vec<_>, Vec<_>) = component.services.iter().partition(is_private);
        let counts = [component.portals.len(), component.arguments.len(), component.services.len(), private.len()];
        record.extend(counts.map(|count| count as u8));
        record.extend_from_slice(&component.max_slice.to_le_bytes());
        record.extend_from_slice(&component.threads.to_le_bytes());
        record.extend_from_slice(&[component.rest.value, component.vault_rest.value]);
        if let Some(cpus) = &component.cpus {
            record.extend_from_slice(&cpus.value.to_le_bytes());
        }
        if component.share.value != 0 {
            record.push(component.share.value);
        }
        if let Some(frames) = component.vault {
            record.extend_from_slice(&frames.to_le_bytes());
        }
        string(&mut record, &component.name.value);
        string(&mut record, &component.binary.value);
        if let Some(compatible) = &component.compatible {
            string(&mut record, &compatible.value);
        }
        for (place, portal) in component.portals.iter().enumerate() {
            let target = self.number(&portal.value.0).unwrap_or(NOBODY);
            record.extend_from_slice(&((FIRST_FREE + place) as u16).to_le_bytes());
            record.extend_from_slice(&target.to_le_bytes());
            string(&mut record, &portal.value.1);
        }
        for argument in &component.arguments {
            string(&mut record, argument);
        }
        for service in public.into_iter().chain(private) {
            string(&mut record, &service.value);
        }
        self.levels(&mut record, &component.levels);
        record
    }

    fn program(&self, program: &ProgramText) -> Vec<u8> {
        let mut record = Vec::from(program.account.to_le_bytes());
        record.push(if program.inspect { FLAG_INSPECT } else { 0 });
        string(&mut record, &program.name.value);
        string(&mut record, &program.binary.value);
        self.levels(&mut record, &program.levels);
        record
    }

    /// Compartments by number; checks have made sure that they are there. `admin` alone is not declared.
    fn levels(&self, record: &mut Vec<u8>, levels: &[Level]) {
        for Level { compartment, level, .. } in levels {
            let mut all = self.description.compartments.iter();
            let number = all.position(|other| other.value == compartment.value);
            record.extend_from_slice(&[number.map_or(ADMIN, |number| number as u8), *level as u8]);
        }
    }
}

/// A record: its length, itself included, then its content.
fn append(records: &mut Vec<u8>, content: &[u8]) {
    records.extend_from_slice(&(content.len() as u16 + 2).to_le_bytes());
    records.extend_from_slice(content);
}

/// A string; checks have made sure that it is short.
fn string(record: &mut Vec<u8>, text: &str) {
    record.push(text.len() as u8);
    record.extend_from_slice(text.as_bytes());
}
