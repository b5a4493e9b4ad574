//! A statement with its signature, in the single text that the cloud stores: the four lines of a `.minisig` file,
//! followed by the statement. Anyone with minisign can check it by hand: `head -n 4` is the signature, `tail -n +5`
//! the signed statement.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;

/// The largest such text, in bytes.
pub const MOST_BYTES: usize = 256 << 10;

/// The number of lines of a signature.
const LINES: usize = 4;

/// The two parts of the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SignedText<'a> {
    /// The signature, as minisign writes it to a file.
    pub signature: &'a str,
    /// The signed statement, byte by byte.
    pub statement: &'a str,
}

/// The reason why a text is not a signed statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TextError {
    /// It is too large.
    #[error("the signed statement has more than {MOST_BYTES} bytes")]
    TooLarge,
    /// It does not begin with the four lines of a signature.
    #[error("the signed statement does not begin with the four lines of a minisign signature")]
    NoSignature,
}

impl<'a> SignedText<'a> {
    /// Splits the text into its parts. Their contents are not checked.
    ///
    /// # Errors
    /// [`TextError`] if it does not have both parts.
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

    /// Returns minisign's number of the signature's key, which is also in the first line of the key's .pub file. The
    /// signature is not checked.
    #[must_use]
    pub fn key_id(&self) -> Option<String> {
        let line = self.signature.lines().nth(1)?;
        let bytes = BASE64_STANDARD.decode(line).ok()?;
        // Two bytes for the algorithm, then the number.
        let number = bytes.get(2..10)?.try_into().ok()?;
        Some(format!("{:016X}", u64::from_le_bytes(number)))
    }

    /// Joins both into one text.
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
