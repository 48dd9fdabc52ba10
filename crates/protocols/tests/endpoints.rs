//! Endpoints in words.
#![allow(missing_docs)]

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use protocols::net::Endpoint;

#[test]
fn addresses_are_what_they_were() {
    let addresses = [[0; 4], [127, 0, 0, 1], [10, 0, 2, 15], [255; 4], [1, 2, 3, 4]].map(Ipv4Addr::from);
    for address in addresses {
        let endpoint = Endpoint::new(address.into(), 80);
        assert_eq!(endpoint.address, address.to_ipv6_mapped().to_bits());
        assert_eq!(endpoint.ip(), IpAddr::V4(address));
    }
    for address in [Ipv6Addr::LOCALHOST, Ipv6Addr::UNSPECIFIED, Ipv6Addr::from([7; 16])] {
        let endpoint = Endpoint::new(address.into(), u16::MAX);
        let (high, low, port) = endpoint.words();
        assert_eq!(endpoint.ip(), IpAddr::V6(address));
        assert_eq!(Endpoint::from_words(high, low, port), Some(endpoint));
        assert_eq!(Endpoint::from_words(high, low, port + 1), None);
    }
}
