//! Checks of the action's texts. Callers use them to refuse invalid texts early; providers use them because
//! a caller may not have.

use std::net::{IpAddr, Ipv4Addr};

/// The longest host name, in bytes.
const NAME: usize = 253;
/// The longest label of a host name, in bytes.
const LABEL: usize = 63;

/// Checks whether `text` is a host name: labels of letters, digits and `-`, which neither begin nor end
/// with `-`, at most 63 bytes each and 253 together (RFC 1123).
#[must_use]
pub fn is_host_name(text: &str) -> bool {
    let is_label = |label: &str| {
        (1..=LABEL).contains(&label.len())
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    text.len() <= NAME && text.split('.').all(is_label)
}

/// Checks whether `text` can be the address of [`super::Proxy`] and of [`super::DnsRemote`]: an IPv4
/// address, or a host name that cannot be mistaken for one. Redirectors redirect only IPv4.
#[must_use]
pub fn is_address(text: &str) -> bool {
    let last = text.rsplit('.').next().unwrap_or_default();
    let like_a_number = last.bytes().all(|byte| byte.is_ascii_digit());
    if like_a_number {
        text.parse::<Ipv4Addr>().is_ok()
    } else {
        is_host_name(text)
    }
}

/// Checks whether `text` is an IP address or a subnet (`10.0.0.0/8`).
#[must_use]
pub fn is_subnet(text: &str) -> bool {
    let (address, length) = match text.split_once('/') {
        Some((address, length)) => (address, Some(length)),
        None => (text, None),
    };
    let Ok(address) = address.parse::<IpAddr>() else {
        return false;
    };
    let most = if address.is_ipv4() { 32 } else { 128 };
    length.is_none_or(|length| {
        let digits = (1..=3).contains(&length.len()) && length.bytes().all(|b| b.is_ascii_digit());
        digits && length.parse::<u8>().is_ok_and(|bits| bits <= most)
    })
}

/// Checks whether `text` can be a login or a password: 1 to 255 bytes (the most that SOCKS 5 carries)
/// without control characters.
#[must_use]
pub fn is_credential(text: &str) -> bool {
    (1..=255).contains(&text.len()) && !text.chars().any(char::is_control)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_ipv4_or_host_names_that_do_not_look_like_one() {
        for good in [
            "10.0.0.1",
            "proxy",
            "proxy-1.example.org",
            "3proxy.example",
            "1.2.3.4.example",
            "xn--bcher-kva.example",
        ] {
            assert!(is_address(good), "{good}");
        }
        let long = "a".repeat(64);
        for bad in [
            "",
            ".",
            "a.",
            ".a",
            "a..b",
            "-a",
            "a-",
            "a_b",
            "a b",
            "a\nb",
            "256.0.0.1",
            "1.2.3",
            "1",
            "010.0.0.1",
            "::1",
            "[::1]",
            "10.0.0.1:80",
            "10.0.0.0/8",
            "bücher.example",
            long.as_str(),
        ] {
            assert!(!is_address(bad), "{bad}");
        }
    }

    #[test]
    fn subnets_have_an_address_and_a_length_within_its_bits() {
        for good in [
            "10.0.0.1",
            "10.0.0.0/8",
            "0.0.0.0/0",
            "10.0.0.1/32",
            "fd00::/8",
            "::1",
        ] {
            assert!(is_subnet(good), "{good}");
        }
        for bad in [
            "",
            "/8",
            "10.0.0.0/",
            "10.0.0.0/33",
            "10.0.0.0/+8",
            "10.0.0.0/8/8",
            "fd00::/129",
            "10.0.0",
            "localhost",
            "10.0.0.1\n",
            " 10.0.0.1",
        ] {
            assert!(!is_subnet(bad), "{bad}");
        }
    }

    #[test]
    fn host_names_are_as_rfc_1123_has_them() {
        let label = "a".repeat(63);
        let longest = [label.as_str(); 4].join(".");
        assert!(is_host_name(&label));
        assert!(!is_host_name(&longest), "255 bytes");
        assert!(is_host_name(&longest[..253]));
        assert!(is_host_name("0a1"));
        assert!(!is_host_name(&"a".repeat(64)));
    }
}
