//! The network interface as smoltcp sees it: one frame that came in, and calls for those that go out.

use alloc::boxed::Box;
use alloc::vec;
use interfaces::nic::{MAX_FRAME, NicClient};
use runtime::connection::{Connection, Name};
use smoltcp::phy::{Device, DeviceCapabilities, Medium, RxToken, TxToken};
use smoltcp::time::Instant;

/// The driver, by name: it may be started again at any time.
pub static NIC: NicClient<Connection<Name<'static>>> = NicClient(Connection::named("nic"));

/// See the module.
pub struct Link {
    /// What came in and was not looked at yet.
    pub arrived: Box<[u8]>,
    /// Its bytes; 0 = nothing.
    pub length: usize,
    outgoing: Box<[u8]>,
}

impl Link {
    /// With nothing in it.
    pub fn new() -> Self {
        let buffer = || vec![0; MAX_FRAME].into_boxed_slice();
        Self { arrived: buffer(), length: 0, outgoing: buffer() }
    }
}

/// The frame that came in.
pub struct Arrived<'a>(&'a [u8]);
/// Room for one that goes out.
pub struct Outgoing<'a>(&'a mut [u8]);

impl RxToken for Arrived<'_> {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, work: F) -> R {
        work(self.0)
    }
}

impl TxToken for Outgoing<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, length: usize, work: F) -> R {
        let frame = &mut self.0[..length];
        let outcome = work(frame);
        // A frame that the driver cannot send is lost, as on any wire.
        let _ = NIC.send(frame);
        outcome
    }
}

impl Device for Link {
    type RxToken<'a> = Arrived<'a>;
    type TxToken<'a> = Outgoing<'a>;

    fn receive(&mut self, _: Instant) -> Option<(Arrived<'_>, Outgoing<'_>)> {
        let length = core::mem::take(&mut self.length);
        if length == 0 {
            return None;
        }
        Some((Arrived(&self.arrived[..length]), Outgoing(&mut self.outgoing)))
    }

    fn transmit(&mut self, _: Instant) -> Option<Outgoing<'_>> {
        Some(Outgoing(&mut self.outgoing))
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        capabilities.medium = Medium::Ethernet;
        capabilities.max_transmission_unit = MAX_FRAME;
        capabilities
    }
}
