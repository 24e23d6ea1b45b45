//! Which addresses belong to the public internet.
//!
//! **Invariant.** What is not known to be public is private: a range that is set aside later is private
//! until somebody adds it here.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// What an address is, for somebody who wants to reach it from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reachable {
    /// On the public internet.
    Public,
    /// On this machine or in its neighbourhood, or in a range set aside: only if it is listed itself.
    Private,
    /// Where clouds hand out a machine's identity and credentials: never.
    Metadata,
}

/// Names under which clouds hand out credentials. What they resolve to is refused as well; this keeps
/// them from being looked up at all.
const METADATA_NAMES: [&str; 8] = [
    "metadata",
    "metadata.google.internal",
    "metadata.goog",
    "metadata.azure.internal",
    "metadata.tencentyun.com",
    "instance-data",
    "instance-data.ec2.internal",
    "rancher-metadata",
];

/// Ranges of version 4 that are not public, with the length of their prefix.
const PRIVATE_V4: [(Ipv4Addr, u32); 15] = [
    (Ipv4Addr::new(0, 0, 0, 0), 8),
    (Ipv4Addr::new(10, 0, 0, 0), 8),
    (Ipv4Addr::new(100, 64, 0, 0), 10),
    (Ipv4Addr::new(127, 0, 0, 0), 8),
    (Ipv4Addr::new(169, 254, 0, 0), 16),
    (Ipv4Addr::new(172, 16, 0, 0), 12),
    (Ipv4Addr::new(192, 0, 0, 0), 24),
    (Ipv4Addr::new(192, 0, 2, 0), 24),
    (Ipv4Addr::new(192, 88, 99, 0), 24),
    (Ipv4Addr::new(192, 168, 0, 0), 16),
    (Ipv4Addr::new(198, 18, 0, 0), 15),
    (Ipv4Addr::new(198, 51, 100, 0), 24),
    (Ipv4Addr::new(203, 0, 113, 0), 24),
    (Ipv4Addr::new(224, 0, 0, 0), 4),
    (Ipv4Addr::new(240, 0, 0, 0), 4),
];

/// Metadata services of version 4. The whole link-local range is one: every cloud answers somewhere in
/// it. The others are Azure's, Alibaba's and Oracle's.
const METADATA_V4: [(Ipv4Addr, u32); 4] = [
    (Ipv4Addr::new(169, 254, 0, 0), 16),
    (Ipv4Addr::new(168, 63, 129, 16), 32),
    (Ipv4Addr::new(100, 100, 100, 200), 32),
    (Ipv4Addr::new(192, 0, 0, 192), 32),
];

/// Parts of `2000::/3`, the only public range of version 6, that are not public: special purposes and
/// Teredo, documentation twice, 6to4.
const PRIVATE_V6: [(Ipv6Addr, u32); 4] = [
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 23),
    (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0), 32),
    (Ipv6Addr::new(0x2002, 0, 0, 0, 0, 0, 0, 0), 16),
    (Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 0), 20),
];

/// Metadata services of version 6: link-local as above, Amazon's two, Google's.
const METADATA_V6: [(Ipv6Addr, u32); 4] = [
    (Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0), 10),
    (Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254), 128),
    (Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x23), 128),
    (Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254), 128),
];

/// What an address is.
pub(super) fn reachable(address: IpAddr) -> Reachable {
    match address.to_canonical() {
        IpAddr::V4(address) => reachable_v4(address),
        IpAddr::V6(address) => reachable_v6(address),
    }
}

/// Whether a name, in its one spelling, is a metadata service's.
pub(super) fn is_metadata_name(name: &str) -> bool {
    METADATA_NAMES.contains(&name)
}

fn reachable_v4(address: Ipv4Addr) -> Reachable {
    let within = |&(range, prefix): &(Ipv4Addr, u32)| {
        let outside = 32_u32.saturating_sub(prefix);
        (address.to_bits() ^ range.to_bits()).checked_shr(outside).is_none_or(|rest| rest == 0)
    };
    if METADATA_V4.iter().any(within) {
        Reachable::Metadata
    } else if PRIVATE_V4.iter().any(within) {
        Reachable::Private
    } else {
        Reachable::Public
    }
}

fn reachable_v6(address: Ipv6Addr) -> Reachable {
    let within = |&(range, prefix): &(Ipv6Addr, u32)| {
        let outside = 128_u32.saturating_sub(prefix);
        (address.to_bits() ^ range.to_bits()).checked_shr(outside).is_none_or(|rest| rest == 0)
    };
    if METADATA_V6.iter().any(within) {
        return Reachable::Metadata;
    }
    let carried = carried(address).map(|(gateway, inner)| (gateway, reachable_v4(inner)));
    match carried {
        Some((_, Reachable::Metadata)) => Reachable::Metadata,
        // A network of version 6 alone reaches the rest of the internet by these.
        Some((Gateway::Nat64, inner)) => inner,
        Some((Gateway::Other, _)) => Reachable::Private,
        None => {
            let global = within(&(Ipv6Addr::new(0x2000, 0, 0, 0, 0, 0, 0, 0), 3));
            let public = global && !PRIVATE_V6.iter().any(within);
            if public { Reachable::Public } else { Reachable::Private }
        }
    }
}

/// By what an address of version 6 carries one of version 4.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Gateway {
    /// The well-known prefix of RFC 6052.
    Nat64,
    /// 6to4, the local prefix of RFC 8215, and the old compatible form.
    Other,
}

fn carried(address: Ipv6Addr) -> Option<(Gateway, Ipv4Addr)> {
    let [a, b, c, d, e, f, ..] = address.segments();
    let two = |high: u16, low: u16| Ipv4Addr::from_bits((u32::from(high) << 16) | u32::from(low));
    let [.., high, low] = address.segments();
    match [a, b, c, d, e, f] {
        [0x64, 0xff9b, 0, 0, 0, 0] => Some((Gateway::Nat64, two(high, low))),
        [0x64, 0xff9b, 1, ..] | [0, 0, 0, 0, 0, 0] => Some((Gateway::Other, two(high, low))),
        [0x2002, b, c, ..] => Some((Gateway::Other, two(b, c))),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(kind: Reachable, addresses: &[&str]) {
        for text in addresses {
            let address: IpAddr = text.parse().unwrap();
            assert_eq!(reachable(address), kind, "{text}");
        }
    }

    #[test]
    fn the_public_internet_is_public() {
        check(
            Reachable::Public,
            &[
                "1.1.1.1",
                "8.8.8.8",
                "9.255.255.255",
                "11.0.0.0",
                "100.63.255.255",
                "100.128.0.0",
                "126.255.255.255",
                "128.0.0.0",
                "140.82.121.4",
                "172.15.255.255",
                "172.32.0.0",
                "192.167.255.255",
                "192.169.0.0",
                "198.17.255.255",
                "198.20.0.0",
                "223.255.255.255",
                "2606:4700::1111",
                "2a00:1450:4001::1",
                "2001:4860:4860::8888",
                "::ffff:8.8.8.8",
                "64:ff9b::8.8.8.8",
            ],
        );
    }

    #[test]
    fn everything_else_is_private() {
        check(
            Reachable::Private,
            &[
                "0.0.0.0",
                "0.1.2.3",
                "10.0.0.1",
                "100.64.0.1",
                "100.127.255.255",
                "127.0.0.1",
                "127.255.255.255",
                "172.16.0.1",
                "172.31.255.255",
                "192.0.0.1",
                "192.0.2.1",
                "192.88.99.1",
                "192.168.0.1",
                "198.18.0.1",
                "198.19.255.255",
                "198.51.100.1",
                "203.0.113.1",
                "224.0.0.1",
                "239.255.255.255",
                "240.0.0.1",
                "255.255.255.255",
                "::",
                "::1",
                "::127.0.0.1",
                "::8.8.8.8",
                "::ffff:127.0.0.1",
                "::ffff:10.0.0.1",
                "64:ff9b::10.0.0.1",
                "64:ff9b::7f00:1",
                "64:ff9b:1::8.8.8.8",
                "2002:7f00:1::1",
                "2002:808:808::1",
                "2001::1",
                "2001:0:53aa:64c::1",
                "2001:20::1",
                "2001:db8::1",
                "3fff::1",
                "5f00::1",
                "100::1",
                "fc00::1",
                "fd12:3456::1",
                "fec0::1",
                "ff02::1",
                "ff0e::1",
                "4000::1",
            ],
        );
    }

    #[test]
    fn metadata_is_metadata_however_it_is_written() {
        check(
            Reachable::Metadata,
            &[
                "169.254.169.254",
                "169.254.170.2",
                "169.254.0.1",
                "168.63.129.16",
                "100.100.100.200",
                "192.0.0.192",
                "fd00:ec2::254",
                "fd00:ec2::23",
                "fd20:ce::254",
                "fe80::1",
                "febf::1",
                "::ffff:169.254.169.254",
                "::169.254.169.254",
                "64:ff9b::169.254.169.254",
                "64:ff9b:1::169.254.169.254",
                "2002:a9fe:a9fe::1",
            ],
        );
        assert!(is_metadata_name("metadata.google.internal"));
        assert!(!is_metadata_name("metadata.example"));
    }
}
