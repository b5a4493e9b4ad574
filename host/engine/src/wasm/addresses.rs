//! A separate loopback address for each service.

use std::net::Ipv4Addr;

use model::{ContainerId, DeviceUuid};
use sha2::{Digest as _, Sha256};

/// Allocates an address for a container that is not among `in_use`.
///
/// It is derived from the device and the container, spread over some 16 million addresses, so two
/// devices on one machine do not collide either. The addresses that systems use themselves
/// (`127.0.0.1`, `127.0.1.1`, `127.0.0.53`) are excluded.
pub(super) fn allocate(device: &DeviceUuid, id: &ContainerId, in_use: &[Ipv4Addr]) -> Ipv4Addr {
    let mut attempt = 0_u32;
    loop {
        let digest = Sha256::digest(format!("{device} {id} {attempt}"));
        let address = Ipv4Addr::new(127, 1 + digest[0] % 254, digest[1], 1 + digest[2] % 254);
        if !in_use.contains(&address) {
            return address;
        }
        attempt += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_loopback_and_nobody_elses() {
        let device: DeviceUuid = "0123456789abcdef0123456789abcdef".parse().unwrap();
        let mut in_use = Vec::new();
        for number in 0..500 {
            let id: ContainerId = format!("container{number}").parse().unwrap();
            let address = allocate(&device, &id, &in_use);
            assert!(address.is_loopback() && address.octets()[1] != 0);
            assert!(!in_use.contains(&address));
            assert_eq!(address, allocate(&device, &id, &in_use));
            in_use.push(address);
        }
    }
}
