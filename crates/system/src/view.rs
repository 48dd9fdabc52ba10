//! The reader of the compiled form: a checked view and iterators over it.

use crate::{
    ADMIN, FLAG_ARCHIVE, FLAG_COMPATIBLE, FLAG_CPUS, FLAG_FPU, FLAG_INSPECT, FLAG_SHARE, FLAG_TRUSTED, FLAG_VAULT,
    FLAG_WAITS_FOR_NOBODY, HEADER_BYTES, INTERRUPT_LINES, MAGIC, MAX_COMPARTMENTS, MAX_COMPONENTS, MAX_LEVELS,
    MAX_NAME_BYTES, MAX_SLICE, NO_INTERRUPT, NOBODY, Restart, Special, VERSION,
};
use abi::layout::FIRST_FREE;
use abi::level;

/// A compiled description that was checked.
#[derive(Clone, Copy, Debug)]
pub struct System<'a> {
    compartments: &'a [u8],
    components: &'a [u8],
    programs: &'a [u8],
    component_count: u16,
    program_count: u16,
    shell: u16,
}

/// A component.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Component<'a> {
    /// Its place in the start order, from 0.
    pub number: u16,
    /// Name of the component and its domain, 1 to 16 bytes.
    pub name: &'a str,
    /// Its file in the boot archive is `boot/` and this.
    pub binary: &'a str,
    /// Frames that may be charged to its account, at least.
    pub account: u32,
    /// Percent of what the machine has beyond all accounts, which its account has besides.
    pub rest: u8,
    /// The same of its vault.
    pub vault_rest: u8,
    /// Priority of its first thread.
    pub priority: u8,
    /// Highest priority of its threads.
    pub max_priority: u8,
    /// Milliseconds of the longest slice of its threads, and of those of domains that it makes.
    pub max_slice: u16,
    /// The share of a CPU's time that its threads have ahead of others, in percent, together with all that have one; 0 = all.
    pub share: u8,
    /// Numbers of threads that domains on its account may have; 0 = as many as there are.
    pub threads: u16,
    /// It uses floating point.
    pub fpu: bool,
    /// It is outside of the flow rules.
    pub trusted: bool,
    /// It sees the boot archive, at `layout::ARCHIVE`.
    pub archive: bool,
    /// The entry at `layout::SPECIAL`.
    pub special: Special,
    /// The consequence of its death.
    pub restart: Restart,
    /// Deaths within a minute that `Restart::Always` answers at once.
    pub restarts_per_minute: u8,
    /// Its interrupt line.
    pub interrupt: Option<u8>,
    /// Its I/O ports: first and number.
    pub io_ports: Option<(u16, u16)>,
    /// On a machine with a device tree: what its device is compatible with.
    pub compatible: Option<&'a str>,
    /// The CPUs on which its threads may run: a bit for each. `None`: all.
    pub cpus: Option<u64>,
    /// Frames of the account of what it keeps over its death; 0 = it keeps nothing.
    pub vault: u32,
    /// It starts when what it has portals to is published.
    pub waits: bool,
    portals: &'a [u8],
    arguments: &'a [u8],
    services: &'a [u8],
    /// So many of the services are not private: the first ones.
    public: u8,
    /// Compartments that it has when it starts.
    pub levels: Levels<'a>,
}

/// A portal that a component finds in its table when it starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Portal<'a> {
    /// Index of the table.
    pub index: u16,
    /// Number of the component that offers the service; less than that of the holder.
    pub component: u16,
    /// Name under which it published the service.
    pub service: &'a str,
}

/// A program a person may start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Program<'a> {
    /// Name typed to start it.
    pub name: &'a str,
    /// Its file in the boot archive is `bin/` and the name; this is the crate it was built from.
    pub binary: &'a str,
    /// Frames it may have; `None` = what `proc` gives.
    pub account: Option<u32>,
    /// It may look at the nucleus's lists.
    pub inspect: bool,
    /// Compartments that it has when the shell starts it.
    pub levels: Levels<'a>,
}

/// Why a compiled description is refused, and at which byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Error {
    /// The cause.
    pub kind: ErrorKind,
    /// Byte at which the guilty record begins.
    pub offset: usize,
}

/// Causes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// It does not begin with `CAIRNSYS`.
    BadMagic,
    /// It is of another version.
    BadVersion,
    /// It ends within a record.
    Truncated,
    /// A length does not match its content, or bytes are left over.
    BadLength,
    /// A string is not UTF-8, or a name is empty or too long.
    BadString,
    /// A number has no meaning where it stands.
    BadValue,
    /// A portal leads to a component that does not start before its holder, or the shell does not exist.
    BadReference,
}

impl ErrorKind {
    /// The description, for people.
    pub const fn text(self) -> &'static str {
        match self {
            ErrorKind::BadMagic => "not a compiled description",
            ErrorKind::BadVersion => "compiled for another version",
            ErrorKind::Truncated => "ends within a record",
            ErrorKind::BadLength => "a length does not match",
            ErrorKind::BadString => "bad text",
            ErrorKind::BadValue => "a number has no meaning",
            ErrorKind::BadReference => "names a component that is not there",
        }
    }
}

impl core::fmt::Display for Error {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "system description, byte {}: {}", self.offset, self.kind.text())
    }
}

impl core::error::Error for Error {}

impl<'a> System<'a> {
    /// Checks every record of a compiled description. Bytes after its end are ignored only if there are none:
    /// the length in the header must be the length of `bytes`.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Error> {
        let at = |offset| move |kind| Error { kind, offset };
        let mut header = Fields { bytes };
        if header.take(MAGIC.len()).map_err(at(0))? != MAGIC {
            return Err(at(0)(ErrorKind::BadMagic));
        }
        if header.u32().map_err(at(0))? != VERSION {
            return Err(at(0)(ErrorKind::BadVersion));
        }
        let length = header.u32().map_err(at(0))? as usize;
        if length > bytes.len() {
            return Err(at(0)(ErrorKind::Truncated));
        }
        if length != bytes.len() {
            return Err(at(0)(ErrorKind::BadLength));
        }
        let component_count = header.u16().map_err(at(0))?;
        let program_count = header.u16().map_err(at(0))?;
        let shell = header.u16().map_err(at(0))?;
        let compartment_count = header.u16().map_err(at(0))?;
        if compartment_count as usize > MAX_COMPARTMENTS || component_count as usize > MAX_COMPONENTS {
            return Err(at(0)(ErrorKind::BadValue));
        }
        if shell != NOBODY && shell >= component_count {
            return Err(at(0)(ErrorKind::BadReference));
        }
        let mut rest = Fields { bytes: header.bytes };
        for _ in 0..compartment_count {
            let offset = bytes.len() - rest.bytes.len();
            compartment(&mut rest).map_err(at(offset))?;
        }
        let start = bytes.len() - rest.bytes.len();
        let is_known = |(number, _)| number == ADMIN || u16::from(number) < compartment_count;
        let known = |mut levels: Levels<'_>| match levels.all(is_known) {
            true => Ok(()),
            false => Err(ErrorKind::BadReference),
        };
        for number in 0..component_count {
            let offset = bytes.len() - rest.bytes.len();
            let component = component(&mut rest, number).map_err(at(offset))?;
            component.check().and_then(|()| known(component.levels)).map_err(at(offset))?;
        }
        let middle = bytes.len() - rest.bytes.len();
        for _ in 0..program_count {
            let offset = bytes.len() - rest.bytes.len();
            program(&mut rest).and_then(|program| known(program.levels)).map_err(at(offset))?;
        }
        if !rest.bytes.is_empty() {
            return Err(at(bytes.len() - rest.bytes.len())(ErrorKind::BadLength));
        }
        let (compartments, components, programs) =
            (&bytes[HEADER_BYTES..start], &bytes[start..middle], &bytes[middle..]);
        Ok(Self { compartments, components, programs, component_count, program_count, shell })
    }

    /// The component to which the description gives this name of a service.
    pub fn owner_of(&self, service: &str) -> Option<Component<'a>> {
        self.components().find(|component| component.services().any(|name| name == service))
    }

    /// The names of its compartments.
    pub const fn compartments(&self) -> Compartments<'a> {
        Compartments { rest: Fields { bytes: self.compartments } }
    }

    /// The components in the order in which they start.
    pub const fn components(&self) -> Components<'a> {
        Components { rest: Fields { bytes: self.components }, number: 0, count: self.component_count }
    }

    /// The component of this name.
    pub fn component(&self, name: &str) -> Option<Component<'a>> {
        self.components().find(|component| component.name == name)
    }

    /// The component with this number in the start order.
    pub fn component_number(&self, number: u16) -> Option<Component<'a>> {
        self.components().nth(number as usize)
    }

    /// The programs.
    pub const fn programs(&self) -> Programs<'a> {
        Programs { rest: Fields { bytes: self.programs }, left: self.program_count }
    }

    /// The component that runs commands, if there is one.
    pub fn shell(&self) -> Option<Component<'a>> {
        self.component_number(self.shell)
    }
}

impl<'a> Component<'a> {
    /// The portals that stand in its table when it starts.
    pub const fn portals(&self) -> Portals<'a> {
        Portals { rest: Fields { bytes: self.portals } }
    }

    /// Its arguments, without its name.
    pub const fn arguments(&self) -> Arguments<'a> {
        Arguments { rest: Fields { bytes: self.arguments } }
    }

    /// The names that it alone may publish services under.
    pub const fn services(&self) -> Services<'a> {
        Services { rest: Fields { bytes: self.services } }
    }

    /// Those of them that everybody can open by their names.
    pub fn public_services(&self) -> impl Iterator<Item = &'a str> {
        self.services().take(self.public.into())
    }

    /// Whether it has a service of this name to which only portals of the description lead.
    pub fn is_private(&self, service: &str) -> bool {
        self.services().skip(self.public.into()).any(|private| private == service)
    }

    fn check(&self) -> Result<(), ErrorKind> {
        let mut previous = FIRST_FREE - 1;
        for portal in self.portals() {
            if portal.component >= self.number {
                return Err(ErrorKind::BadReference);
            }
            let index = portal.index as usize;
            if index <= previous {
                return Err(ErrorKind::BadValue);
            }
            previous = index;
        }
        Ok(())
    }
}

/// Iterator over the names of compartments.
#[derive(Clone, Debug)]
pub struct Compartments<'a> {
    rest: Fields<'a>,
}

impl<'a> Iterator for Compartments<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        compartment(&mut self.rest).ok()
    }
}

/// Iterator over the compartments of a component or a program: the number of each, and the level in the send label (`abi::level`). All but the level 0
/// raise the receive label to 3.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Levels<'a> {
    pairs: &'a [u8],
}

impl Iterator for Levels<'_> {
    type Item = (u8, u64);

    fn next(&mut self) -> Option<(u8, u64)> {
        let (&[number, level], rest) = self.pairs.split_first_chunk()?;
        self.pairs = rest;
        Some((number, level.into()))
    }
}

/// Iterator over components.
#[derive(Clone, Debug)]
pub struct Components<'a> {
    rest: Fields<'a>,
    number: u16,
    count: u16,
}

impl<'a> Iterator for Components<'a> {
    type Item = Component<'a>;

    fn next(&mut self) -> Option<Component<'a>> {
        if self.number == self.count {
            return None;
        }
        let component = component(&mut self.rest, self.number).ok()?;
        self.number += 1;
        Some(component)
    }
}

/// Iterator over programs.
#[derive(Clone, Debug)]
pub struct Programs<'a> {
    rest: Fields<'a>,
    left: u16,
}

impl<'a> Iterator for Programs<'a> {
    type Item = Program<'a>;

    fn next(&mut self) -> Option<Program<'a>> {
        self.left = self.left.checked_sub(1)?;
        program(&mut self.rest).ok()
    }
}

/// Iterator over the portals of a component.
#[derive(Clone, Debug)]
pub struct Portals<'a> {
    rest: Fields<'a>,
}

impl<'a> Iterator for Portals<'a> {
    type Item = Portal<'a>;

    fn next(&mut self) -> Option<Portal<'a>> {
        self.rest.portal().ok()
    }
}

/// Iterator over the arguments of a component.
#[derive(Clone, Debug)]
pub struct Arguments<'a> {
    rest: Fields<'a>,
}

impl<'a> Iterator for Arguments<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        self.rest.string().ok()
    }
}

/// Iterator over the names of a component's services.
#[derive(Clone, Debug)]
pub struct Services<'a> {
    rest: Fields<'a>,
}

impl<'a> Iterator for Services<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        self.rest.name().ok()
    }
}

/// Takes the record of a compartment.
fn compartment<'a>(rest: &mut Fields<'a>) -> Result<&'a str, ErrorKind> {
    let mut fields = rest.record()?;
    let name = fields.name()?;
    if fields.bytes.is_empty() { Ok(name) } else { Err(ErrorKind::BadLength) }
}

/// Takes the record of the component with this number.
fn component<'a>(rest: &mut Fields<'a>, number: u16) -> Result<Component<'a>, ErrorKind> {
    let mut fields = rest.record()?;
    let account = fields.u32()?;
    let (priority, max_priority) = (fields.u8()?, fields.u8()?);
    let flags = fields.u8()?;
    let special = fields.u8()? as usize;
    let restart = fields.u8()? as usize;
    let restarts_per_minute = fields.u8()?;
    let interrupt = fields.u8()?;
    let (first_port, port_count) = (fields.u16()?, fields.u16()?);
    let (portal_count, argument_count, service_count) = (fields.u8()?, fields.u8()?, fields.u8()?);
    let public = service_count.checked_sub(fields.u8()?).ok_or(ErrorKind::BadValue)?;
    let (max_slice, threads) = (fields.u16()?, fields.u16()?);
    let (rest, vault_rest) = (fields.u8()?, fields.u8()?);
    let cpus = if flags & FLAG_CPUS != 0 { Some(fields.u64()?) } else { None };
    let share = if flags & FLAG_SHARE != 0 { fields.u8()? } else { 0 };
    let vault = if flags & FLAG_VAULT != 0 { fields.u32()? } else { 0 };
    let (name, binary) = (fields.name()?, fields.name()?);
    let compatible = if flags & FLAG_COMPATIBLE != 0 { Some(fields.string()?) } else { None };
    let portals = fields.repeated(portal_count, |fields| fields.portal().map(|_| ()))?;
    let arguments = fields.repeated(argument_count, |fields| fields.string().map(|_| ()))?;
    let services = fields.repeated(service_count, |fields| fields.name().map(|_| ()))?;
    let levels = fields.levels()?;
    let bad = account == 0
        || priority > max_priority
        || max_priority as usize >= abi::PRIORITIES
        || max_slice == 0
        || max_slice > MAX_SLICE
        || cpus == Some(0)
        || (share == 0) == (flags & FLAG_SHARE != 0)
        || share > 100
        || rest > 100
        || vault_rest > if vault == 0 { 0 } else { 100 }
        || (vault == 0) == (flags & FLAG_VAULT != 0)
        || interrupt != NO_INTERRUPT && interrupt >= INTERRUPT_LINES
        || first_port as usize + port_count as usize > 0x1_0000
        || port_count == 0 && first_port != 0;
    let (special, restart) = (Special::ALL.get(special), Restart::ALL.get(restart));
    let (false, Some(&special), Some(&restart)) = (bad, special, restart) else {
        return Err(ErrorKind::BadValue);
    };
    Ok(Component {
        number,
        name,
        binary,
        account,
        rest,
        vault_rest,
        priority,
        max_priority,
        max_slice,
        share,
        threads,
        fpu: flags & FLAG_FPU != 0,
        trusted: flags & FLAG_TRUSTED != 0,
        archive: flags & FLAG_ARCHIVE != 0,
        special,
        restart,
        restarts_per_minute,
        interrupt: (interrupt != NO_INTERRUPT).then_some(interrupt),
        io_ports: (port_count != 0).then_some((first_port, port_count)),
        compatible,
        cpus,
        vault,
        waits: flags & FLAG_WAITS_FOR_NOBODY == 0,
        portals,
        arguments,
        services,
        public,
        levels,
    })
}

/// Takes the record of a program.
fn program<'a>(rest: &mut Fields<'a>) -> Result<Program<'a>, ErrorKind> {
    let mut fields = rest.record()?;
    let (account, flags) = (fields.u32()?, fields.u8()?);
    let (name, binary) = (fields.name()?, fields.name()?);
    let levels = fields.levels()?;
    if flags & !FLAG_INSPECT != 0 {
        return Err(ErrorKind::BadValue);
    }
    let account = (account != 0).then_some(account);
    Ok(Program { name, binary, account, inspect: flags & FLAG_INSPECT != 0, levels })
}

/// Bytes from which fields are taken one after the other.
#[derive(Clone, Debug)]
struct Fields<'a> {
    bytes: &'a [u8],
}

impl<'a> Fields<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], ErrorKind> {
        let (taken, rest) = self.bytes.split_at_checked(count).ok_or(ErrorKind::Truncated)?;
        self.bytes = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], ErrorKind> {
        let (taken, rest) = self.bytes.split_first_chunk().ok_or(ErrorKind::Truncated)?;
        self.bytes = rest;
        Ok(*taken)
    }

    fn u8(&mut self) -> Result<u8, ErrorKind> {
        Ok(u8::from_le_bytes(self.array()?))
    }

    fn u16(&mut self) -> Result<u16, ErrorKind> {
        Ok(u16::from_le_bytes(self.array()?))
    }

    fn u32(&mut self) -> Result<u32, ErrorKind> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    fn u64(&mut self) -> Result<u64, ErrorKind> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    fn string(&mut self) -> Result<&'a str, ErrorKind> {
        let length = self.u8()? as usize;
        core::str::from_utf8(self.take(length)?).map_err(|_| ErrorKind::BadString)
    }

    /// A string of 1 to [`MAX_NAME_BYTES`] bytes.
    fn name(&mut self) -> Result<&'a str, ErrorKind> {
        let name = self.string()?;
        if name.is_empty() || name.len() > MAX_NAME_BYTES { Err(ErrorKind::BadString) } else { Ok(name) }
    }

    /// The compartments that are the rest of a record.
    fn levels(&mut self) -> Result<Levels<'a>, ErrorKind> {
        let pairs = core::mem::take(&mut self.bytes);
        if !pairs.len().is_multiple_of(2) || pairs.len() > 2 * MAX_LEVELS {
            return Err(ErrorKind::BadLength);
        }
        let levels = Levels { pairs };
        let is_level = |level| matches!(level, level::STAR | level::ZERO | level::ONE | level::THREE);
        if { levels }.all(|(_, level)| is_level(level)) { Ok(levels) } else { Err(ErrorKind::BadValue) }
    }

    fn portal(&mut self) -> Result<Portal<'a>, ErrorKind> {
        Ok(Portal { index: self.u16()?, component: self.u16()?, service: self.name()? })
    }

    /// The content of a record: its length field counts itself.
    fn record(&mut self) -> Result<Fields<'a>, ErrorKind> {
        let length = self.u16()? as usize;
        let content = length.checked_sub(2).ok_or(ErrorKind::BadLength)?;
        Ok(Fields { bytes: self.take(content)? })
    }

    /// Skips `count` items and returns the bytes they take.
    fn repeated(
        &mut self,
        count: u8,
        mut item: impl FnMut(&mut Self) -> Result<(), ErrorKind>,
    ) -> Result<&'a [u8], ErrorKind> {
        let before = self.bytes;
        for _ in 0..count {
            item(self)?;
        }
        Ok(&before[..before.len() - self.bytes.len()])
    }
}
