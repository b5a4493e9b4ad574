//! A statement with its signature, in the one text that the cloud keeps: the four lines of a `.minisig` file, and the
//! statement after them. Whoever has minisign can check it by hand: `head -n 4` is the signature, `tail -n +5` what
//! it is of.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;

/// The largest such text, in bytes.
pub const MOST_BYTES: usize = 256 << 10;

/// Lines of a signature.
const LINES: usize = 4;

/// The text in its two parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SignedText<'a> {
    /// As minisign writes it into a file.
    pub signature: &'a str,
    /// What it is of, byte by byte.
    pub statement: &'a str,
}

/// Why a text is no signed statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TextError {
    /// It is too large.
    #[error("the signed statement has more than {MOST_BYTES} bytes")]
    TooLarge,
    /// There are no four lines of a signature before it.
    #[error("the signed statement does not begin with the four lines of a minisign signature")]
    NoSignature,
}

impl<'a> SignedText<'a> {
    /// Takes the text apart. Nothing in it is checked.
    ///
    /// # Errors
    /// [`TextError`] where it has not both parts.
    pub fn parse(text: &'a str) -> Result<Self, TextError> {
        if text.len() > MOST_BYTES {
            return Err(TextError::TooLarge);
        }
        let mut ends = text.match_indices('\n').map(|(at, _)| at + 1);
        let end = ends.nth(LINES - 1).ok_or(TextError::NoSignature)?;
        let (signature, statement) = text.split_at(end);
        Ok(SignedText {
            signature,
            statement,
        })
    }

    /// What minisign calls the key of the signature, as it stands in the first line of the key's .pub file. The
    /// signature is not checked for that.
    #[must_use]
    pub fn key_id(&self) -> Option<String> {
        let line = self.signature.lines().nth(1)?;
        let bytes = BASE64_STANDARD.decode(line).ok()?;
        // Two bytes of the algorithm, and the number.
        let number = bytes.get(2..10)?.try_into().ok()?;
        Some(format!("{:016X}", u64::from_le_bytes(number)))
    }

    /// The one text of both.
    #[must_use]
    pub fn join(&self) -> String {
        format!("{}\n{}", self.signature.trim_end(), self.statement)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_called_as_its_public_file_calls_it() {
        let pair = minisign::KeyPair::generate_unencrypted_keypair().unwrap();
        let signature = minisign::sign(None, &pair.sk, &b"{}"[..], None, None);
        let both = SignedText {
            signature: &signature.unwrap().into_string(),
            statement: "{}",
        };
        let public = pair.pk.to_box().unwrap().into_string();
        let id = both.key_id().unwrap();
        assert!(public.lines().next().unwrap().ends_with(&id), "{public}");
    }

    #[test]
    fn the_two_parts_are_found_again() {
        let both = SignedText {
            signature: "untrusted comment: a\nRW\ntrusted comment: b\nxx",
            statement: "{\n}\n",
        };
        let text = both.join();
        let found = SignedText::parse(&text).unwrap();
        assert_eq!(found.statement, both.statement);
        assert_eq!(found.signature.trim_end(), both.signature);
        assert_eq!(found.key_id(), None);
        assert_eq!(SignedText::parse("a\nb\nc"), Err(TextError::NoSignature));
        let long = "x".repeat(MOST_BYTES + 1);
        assert_eq!(SignedText::parse(&long), Err(TextError::TooLarge));
    }
}
