//! The protocols and their sockets, behind one lock.

use alloc::vec::Vec;
use core::fmt::Write;

use interfaces::nic::{MAX_FRAME, NicError};
use runtime::interface::Failure;
use runtime::op;
use runtime::sync::{Condvar, Mutex};
use smoltcp::iface::{Config, Interface, SocketHandle, SocketSet};
use smoltcp::socket::dhcpv4;
use smoltcp::time::Instant;
use smoltcp::wire::{EthernetAddress, IpCidr};

use crate::link::{Link, NIC};

/// How long nothing happens at most, in nanoseconds: a change of the timers ends a wait before.
const LONGEST_WAIT: u64 = 60_000_000_000;

/// See the module.
pub struct Stack {
    interface: Interface,
    link: Link,
    /// All sockets.
    pub sockets: SocketSet<'static>,
    dhcp: SocketHandle,
    /// Until when the main thread waits.
    waits_until: u64,
    /// Frames that came.
    pub received: u64,
}

static STACK: Mutex<Option<Stack>> = Mutex::new(None);
/// A socket changed.
pub static CHANGED: Condvar = Condvar::new();

/// The stack, locked. It is open before anybody can call.
pub fn lock() -> runtime::sync::MutexGuard<'static, Option<Stack>> {
    STACK.lock()
}

fn now() -> Instant {
    Instant::from_micros((op::clock() / 1_000) as i64)
}

/// Asks the driver for its address and makes everything.
pub fn open() -> Result<(), Failure<NicError>> {
    let address = NIC.address()?.to_le_bytes();
    let address = EthernetAddress([address[0], address[1], address[2], address[3], address[4], address[5]]);
    let mut link = Link::new();
    let mut config = Config::new(address.into());
    config.random_seed = op::clock();
    let interface = Interface::new(config, &mut link, now());
    let mut sockets = SocketSet::new(Vec::new());
    let dhcp = sockets.add(dhcpv4::Socket::new());
    runtime::log!("interface {address}");
    *STACK.lock() = Some(Stack { interface, link, sockets, dhcp, waits_until: 0, received: 0 });
    Ok(())
}

impl Stack {
    /// Does what there is to do; what is to be sent is sent.
    pub fn poll(&mut self) {
        self.interface.poll(now(), &mut self.link, &mut self.sockets);
        match self.sockets.get_mut::<dhcpv4::Socket<'_>>(self.dhcp).poll() {
            Some(dhcpv4::Event::Configured(lease)) => {
                runtime::log!("address {}", lease.address);
                self.interface.update_ip_addrs(|addresses| {
                    addresses.clear();
                    let _ = addresses.push(IpCidr::Ipv4(lease.address));
                });
                self.interface.routes_mut().remove_default_ipv4_route();
                if let Some(router) = lease.router {
                    let _ = self.interface.routes_mut().add_default_ipv4_route(router);
                }
            }
            Some(dhcpv4::Event::Deconfigured) => self.interface.update_ip_addrs(|addresses| addresses.clear()),
            None => {}
        }
    }

    /// As [`Self::poll`], for a call: the main thread hears of timers that are due before it looks again.
    pub fn poll_from_call(&mut self) {
        self.poll();
        let next = self.next();
        if next < self.waits_until {
            self.waits_until = next;
            let _ = NIC.wake();
        }
    }

    /// When something is to be done next, in nanoseconds since boot.
    fn next(&mut self) -> u64 {
        let now_ = now();
        let delay = self.interface.poll_delay(now_, &self.sockets).map(|delay| delay.total_micros() * 1_000);
        op::clock() + delay.unwrap_or(LONGEST_WAIT).min(LONGEST_WAIT)
    }

    /// The interface in text.
    pub fn describe(&self) -> alloc::string::String {
        let mut text = alloc::string::String::new();
        let _ = writeln!(text, "net0  ether {}", self.interface.hardware_addr());
        for address in self.interface.ip_addrs() {
            let _ = writeln!(text, "      inet {address}");
        }
        let _ = writeln!(text, "      frames received {}", self.received);
        text
    }
}

/// The main thread.
pub fn run() -> ! {
    let mut frame = [0; MAX_FRAME];
    loop {
        let mut deadline = 0;
        if let Some(stack) = STACK.lock().as_mut() {
            stack.poll();
            deadline = stack.next();
            stack.waits_until = deadline;
        }
        CHANGED.notify_all();
        // A driver that died is opened again by the connection; what was lost comes again.
        let length = NIC.receive(deadline, &mut frame).unwrap_or(0);
        if length > 0
            && let Some(stack) = STACK.lock().as_mut()
        {
            stack.link.arrived[..length].copy_from_slice(&frame[..length]);
            stack.link.length = length;
            stack.received += 1;
        }
    }
}
