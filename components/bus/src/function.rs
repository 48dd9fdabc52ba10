//! Functions of devices on bus 0.

/// One function of a device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Function {
    /// Number of the device.
    pub device: u32,
    /// Number in the device.
    pub function: u32,
}
