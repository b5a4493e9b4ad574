//! The ids of keys: how people tell minisign's keys and the signatures by them apart.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// The number of a key, which its public key and its signatures contain. It proves nothing: anybody can write a
/// signature with any id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyId([u8; 8]);

impl KeyId {
    /// Returns the id of the key that made the signature `text`, according to the signature; `None` if that is not a
    /// signature.
    #[must_use]
    pub fn of_signature(text: &[u8]) -> Option<KeyId> {
        // The first line is a comment.
        KeyId::of_line(std::str::from_utf8(text).ok()?.lines().nth(1)?)
    }

    /// Reads the id in a line of base64: both a public key and a signature begin with two bytes for the algorithm, and
    /// eight for the id.
    pub(crate) fn of_line(line: &str) -> Option<KeyId> {
        let bytes = STANDARD.decode(line.trim()).ok()?;
        Some(KeyId(bytes.get(2..10)?.try_into().ok()?))
    }
}

impl fmt::Display for KeyId {
    /// Writes it as minisign does: as one number, in hexadecimal digits.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:016X}", u64::from_le_bytes(self.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PublicKeyText;

    #[test]
    fn a_key_and_its_signatures_have_the_id_that_minisign_prints() {
        let pair = minisign::KeyPair::generate_unencrypted_keypair().unwrap();
        let public = pair.pk.to_box().unwrap().to_string();
        let id = PublicKeyText::parse(&public).unwrap().id().unwrap();
        // The comment in the first line of a .pub file.
        let first = public.lines().next().unwrap();
        assert!(first.ends_with(&id.to_string()), "{first}: {id}");
        let signature = minisign::sign(None, &pair.sk, &b"content"[..], None, None).unwrap();
        let signature = signature.to_string();
        assert_eq!(KeyId::of_signature(signature.as_bytes()), Some(id));
    }

    #[test]
    fn an_invalid_signature_has_no_id() {
        for text in [
            &b""[..],
            b"one line",
            b"comment\nRWQ",
            b"comment\n!!!!",
            b"comment\nUlc=",
            b"\xff\nRWQ",
        ] {
            assert_eq!(KeyId::of_signature(text), None, "{text:?}");
        }
    }
}
