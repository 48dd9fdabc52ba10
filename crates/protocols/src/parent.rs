//! The requests that every domain can make of its creator: `roottask` for components, `proc` for programs.

use idl::{codes, interface, scalar_enum};

codes! {
    /// Why the parent refused.
    pub enum ParentError {
        1 BadName "not a valid service name"
        2 NotAllowed "`services` in the system description does not let this component do it"
        3 Full "programs have as many names as they can have: end one (ps, kill)"
        4 NoVault "this component keeps nothing over its death"
        5 NoSuchComponent "no component that runs has this domain"
        6 Essential "a component without which the machine stops"
        7 StaysDead "a component that nobody starts again"
        8 Taken "a component has this name"
        9 NotAService "not a service that may be passed on"
        10 NoStandby "no scheduler stands by yet that would take over its CPU"
        11 Confined "not for a program that may reach only what is on a list"
        12 Flow "names are everybody's: a tainted program publishes none, a tainted component each once"
        13 NotTrusted "only for components that are `trusted` in the system description"
        14 Failed "it could not be done: dmesg says why"
        15 NotForPrograms "only for components: this is a program"
        16 NotHolder "only for the component that has the machine"
        17 Gone "the caller does not run any more"
        18 TooMany "the program has as many names as one may have"
        19 InUse "another program has this name"
    }
}

/// A record of `compartments`: one that the description declares.
pub const DECLARED: u8 = 0;
/// A record of `compartments`: one that a program has when the shell starts it.
pub const OF_PROGRAM: u8 = 1;

/// A record of `compartments`: `admin`, which is always there and has no files; value = 8 · handle + level 0.
pub const ADMIN: u8 = 2;

/// Names that one program can have.
pub const MAX_PROGRAM_SERVICES: usize = 4;

scalar_enum! {
    /// How sure the caller is that ends a component.
    pub enum Force {
        0 Gentle "only what comes back by itself"
        1 Forced "whatever comes of it"
    }
}

scalar_enum! {
    /// The state of a component.
    pub enum State {
        0 Runs "it runs"
        1 Waits "it does not run; it is started later"
        2 Dead "it does not run, and nobody starts it again"
    }
}

/// The creator of this domain. The badge says who asks.
#[interface]
pub trait Parent {
    /// Publishes a service under a name; it stays known when the name service restarts. Of `roottask`: a name that
    /// the system description gives to the caller.
    #[repeatable]
    fn publish(&self, name: &str, service: Delegate) -> Result<(), ParentError>;
    /// The component's own vault: a call entry of `crate::vault::Vault`.
    #[repeatable]
    fn vault(&self) -> Result<Delegated, ParentError>;
    /// A domain that the caller made gets its portal to `names` (`layout::NAMES`), now and after every
    /// restart of the name service. The entry there must be empty before.
    fn equip(&self, domain: Delegate) -> Result<(), ParentError>;
    /// Ends the component whose domain has this number. Only for components that may stop the machine; one that the
    /// system description does not start again is ended only by force.
    fn kill(&self, domain: u64, force: Force) -> Result<(), ParentError>;
    /// The component with the lowest number of a domain above `after`: that number, and how often the component
    /// was started again since boot. Zeros if there is none.
    #[repeatable]
    fn restarts(&self, after: u64) -> Result<(u64, u64), ParentError>;
    /// The state of the component with this name.
    #[repeatable]
    fn state(&self, component: &str) -> Result<State, ParentError>;
    /// As `publish`, for a program of the caller's: never a name that the description gives to a component, whether it
    /// runs or not. Only for callers that may stop the machine.
    #[repeatable]
    fn publish_for_program(&self, name: &str, service: Delegate) -> Result<(), ParentError>;
    /// Programs whose account the system description gives, from a position on (0 at first), as
    /// [`crate::listing::Listing`] reads them: value = frames. Gives bytes and the next position, 0 after the last.
    #[repeatable]
    fn programs(&self, position: u64, into: &mut [u8]) -> Result<(usize, u64), ParentError>;
    /// `admin`, the compartments of the system description, and then those of its programs, from a position on (0 at first), as
    /// [`crate::listing::Listing`] reads them: [`ADMIN`] and [`DECLARED`] have the name of a compartment, [`OF_PROGRAM`] that of a program; value = 8 · handle + level.
    /// Gives bytes and the next position, 0 after the last. Only for trusted components: they own all of them.
    #[repeatable]
    fn compartments(&self, position: u64, into: &mut [u8]) -> Result<(usize, u64), ParentError>;
    /// The compartments with which the component whose domain has this number started: 8 · handle + level each, as many as fit; 0 if it is trusted, and so
    /// owns all. Gives their bytes. Only for trusted components.
    #[repeatable]
    fn compartments_of(&self, domain: u64, into: &mut [u8]) -> Result<usize, ParentError>;
}
