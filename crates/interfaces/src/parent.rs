//! What every domain can ask of the one that created it: `roottask` for components, `proc` for programs.

use interface::{codes, interface};

codes! {
    /// Why the parent refused.
    pub enum ParentError {
        1 BadName "not a valid service name"
        2 NotAllowed "the system description does not let this component do it"
        3 Full "too many services"
        4 NoVault "this component keeps nothing over its death"
    }
}

/// Who created this domain. The badge says who asks.
#[interface]
pub trait Parent {
    /// Publishes a service under a name; it stays known when the name service restarts.
    fn publish(&self, name: &str, service: Delegate) -> Result<(), ParentError>;
    /// The component's own vault: a call entry of [`crate::vault::Vault`].
    fn vault(&self) -> Result<Delegated, ParentError>;
    /// A domain that the caller made gets its portal to `names` (`layout::NAMES`), now and after every
    /// restart of the name service. What stands there before must be empty.
    fn equip(&self, domain: Delegate) -> Result<(), ParentError>;
}
