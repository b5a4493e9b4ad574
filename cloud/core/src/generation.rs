//! The number that distinguishes one target state of a device from another (`data::generation`), for replicas and
//! devices.

use std::collections::BTreeMap;

use sha2::{Digest, Sha256};

/// Returns a number that identifies the inputs of a target state: a hash of the device's own number and the numbers of
/// the fleets, by fleet. It changes when one of these numbers or the set of fleets changes.
///
/// `of_fleets` has the number of each fleet, 0 if nothing has been changed there yet.
pub fn fingerprint(of_device: i64, of_fleets: &BTreeMap<i64, i64>) -> i64 {
    let mut hash = Sha256::new();
    hash.update(of_device.to_be_bytes());
    for (fleet, generation) in of_fleets {
        hash.update(fleet.to_be_bytes());
        hash.update(generation.to_be_bytes());
    }
    let hash: [u8; 32] = hash.finalize().into();
    let (first, _) = hash.split_first_chunk().unwrap_or((&[0; 8], &[]));
    i64::from_be_bytes(*first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_move_between_fleets_is_another_state_whatever_their_numbers_add_up_to() {
        let of =
            |device, fleets: &[(i64, i64)]| fingerprint(device, &fleets.iter().copied().collect());
        let before = of(1, &[(7, 4)]);
        assert_eq!(before, of(1, &[(7, 4)]));
        for (device, fleets) in [
            // The move increases the device's number, and the new fleet has a lower one.
            (2, &[(8, 3)][..]),
            (1, &[(8, 4)]),
            (1, &[(7, 4), (8, 0)]),
            (1, &[(4, 7)]),
            (5, &[(7, 0)]),
            (1, &[]),
        ] {
            assert_ne!(of(device, fleets), before, "{device} {fleets:?}");
        }
    }
}
