//! The shapes of portals: code for a specification is made once, and everybody who serves through such portals gets it.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use portalgen::Specification;
use portalgen::specification::MAX_BYTES;
use protocols::names::{COMPONENT, NamesError, SPECIFICATIONS};
use runtime::entry::{Entry, Owned};
use runtime::label::Compartments;
use runtime::{log, log_refused, op};

/// Answers whether a caller is tainted.
static CALLERS: Compartments = Compartments::new();

/// Each with its specification, in the order in which they were asked for.
pub struct Shapes(Vec<(String, Owned)>);

impl Shapes {
    /// None yet.
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// The shape of a specification. Only components have others than those that everybody knows: there are few places for
    /// code.
    #[inline(never)]
    pub fn find_or_make(&mut self, specification: &str, badge: u64) -> Result<Entry, NamesError> {
        if badge != COMPONENT && !SPECIFICATIONS.contains(&specification) {
            return Err(NamesError::NoShape);
        }
        if let Some((_, shape)) = self.0.iter().find(|(known, _)| known == specification) {
            return Ok(shape.entry());
        }
        // Everybody sees which shapes there are, and what we log about a specification.
        if !SPECIFICATIONS.contains(&specification) && !CALLERS.caller_may(0).change {
            log_refused!("a new shape of portals");
            return Err(NamesError::Flow);
        }
        let make = || op::shape_new(Entry::SPECIAL, specification.as_bytes());
        let made = make().or_else(|error| match error {
            abi::Error::TooManyShapes => {
                // Servers that serve through the others keep their code.
                self.0.retain(|(known, _)| SPECIFICATIONS.contains(&known.as_str()));
                make()
            }
            error => Err(error),
        });
        let shape = Owned::new(made.map_err(|error| refused(specification, error))?);
        let entry = shape.entry();
        self.0.push((specification.to_string(), shape));
        Ok(entry)
    }
}

#[inline(never)]
fn refused(specification: &str, error: abi::Error) -> NamesError {
    match error {
        abi::Error::TooManyShapes => NamesError::Full,
        abi::Error::AccountExhausted | abi::Error::NoFrames | abi::Error::TableFull => NamesError::NoMemory,
        error => {
            report(specification, error);
            NamesError::BadSpecification
        }
    }
}

/// The nucleus says only that it refuses. The log says where and why, for the author of the server.
#[cold]
#[inline(never)]
fn report(specification: &str, error: abi::Error) {
    match Specification::parse(specification.as_bytes()) {
        Err(refusal) => log!("no shape of {specification:.MAX_BYTES$}: {refusal}"),
        Ok(_) if error == abi::Error::NotOffered => {
            log!(
                "no shape of {specification:.MAX_BYTES$}: m needs trust, and o is only for npkox5>ox5 and npkox4w>ox5"
            );
        }
        Ok(_) => log!("no shape of {specification:.MAX_BYTES$}: {error}"),
    }
}
