//! What identifies native code: the part of a component's file that it is compiled from.

use sha2::{Digest as _, Sha256};

/// The length of the magic bytes, the version and the layer with which a component begins.
const PREAMBLE: usize = 8;
/// The number of custom sections, which contain no code.
const CUSTOM: u8 = 0;

/// The digest of a component's code, by which its native code is found: SHA-256 of its file without the custom sections
/// at its end. Manifests and signatures are such sections, so a file that is signed, or whose manifest changes, is not
/// compiled again.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct CodeDigest(String);

impl CodeDigest {
    /// Digests the code of the component `wasm`.
    #[must_use]
    pub fn new(wasm: &[u8]) -> CodeDigest {
        CodeDigest(digest(code(wasm)))
    }

    /// In hexadecimal.
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

/// The digests of a component, computed together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Digests {
    /// That of the whole file, as [`digest`] returns it.
    pub file: String,
    /// That of its code.
    pub code: CodeDigest,
}

impl Digests {
    /// Digests the component `wasm`.
    #[must_use]
    pub fn new(wasm: &[u8]) -> Digests {
        let (code, rest) = wasm.split_at(code(wasm).len());
        let mut hasher = Sha256::new_with_prefix(code);
        let code = CodeDigest(hex::encode(hasher.clone().finalize()));
        hasher.update(rest);
        Digests {
            file: hex::encode(hasher.finalize()),
            code,
        }
    }
}

/// Returns the digest of a whole file: SHA-256, in hexadecimal.
#[must_use]
pub fn digest(wasm: &[u8]) -> String {
    hex::encode(Sha256::digest(wasm))
}

/// Returns the component without the custom sections at its end. Of a file that does not consist of sections, that is
/// everything.
pub(crate) fn code(wasm: &[u8]) -> &[u8] {
    let mut rest = wasm.get(PREAMBLE..).unwrap_or_default();
    let mut end = wasm.len() - rest.len();
    while !rest.is_empty() {
        let Some((id, after)) = section(rest) else {
            return wasm;
        };
        rest = after;
        if id != CUSTOM {
            end = wasm.len() - rest.len();
        }
    }
    &wasm[..end]
}

/// Splits the first section off `bytes`; returns its number and the bytes after it.
fn section(bytes: &[u8]) -> Option<(u8, &[u8])> {
    let (id, rest) = bytes.split_first()?;
    let (size, rest) = size(rest)?;
    Some((*id, rest.get(size..)?))
}

/// Reads a size in the format of the WebAssembly specification: 7 bits in each of at most 5 bytes, the lowest first.
fn size(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let mut size = 0;
    for (index, byte) in bytes.iter().take(5).enumerate() {
        size |= u64::from(byte & 0x7f) << (7 * index);
        if byte & 0x80 == 0 {
            let size = u32::try_from(size).ok()?;
            return Some((usize::try_from(size).ok()?, &bytes[index + 1..]));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: &[u8] = b"\0asm\x0d\0\x01\0";
    const CODE: &[u8] = &[1, 3, b'a', b'b', b'c'];
    const NOTE: &[u8] = &[0, 4, 1, b'n', b'o', b'k'];

    /// A custom section of 200 bytes, whose size takes two.
    fn long_note() -> Vec<u8> {
        [&[0, 0xc8, 1, 1, b'n'][..], &[7; 198]].concat()
    }

    #[test]
    fn code_ends_with_the_last_section_that_is_not_custom() {
        let long_note = long_note();
        for (parts, expected) in [
            (vec![START, CODE], 2),
            (vec![START, CODE, NOTE], 2),
            (vec![START, CODE, NOTE, &long_note], 2),
            (vec![START, NOTE, CODE, &long_note, NOTE], 3),
            (vec![START, NOTE, CODE, NOTE, CODE], 5),
            (vec![START, NOTE], 1),
            (vec![START], 1),
        ] {
            let file = parts.concat();
            assert_eq!(code(&file), parts[..expected].concat(), "{parts:?}");
        }
    }

    #[test]
    fn a_file_without_valid_sections_counts_as_code_as_a_whole() {
        for rest in [
            &b"x"[..],                             // no size
            &[0, 7, 1],                            // ends within a section
            &[0, 0x80],                            // ends within a size
            &[0, 0x80, 0x80, 0x80, 0x80, 0x80, 0], // a size of six bytes
            &[0, 0xff, 0xff, 0xff, 0xff, 0x7f],    // a size of 35 bits
            &[0, 0xff, 0xff, 0xff, 0xff, 0x0f],    // a size of 4 GiB
        ] {
            let file = [START, CODE, NOTE, rest].concat();
            assert_eq!(code(&file), file, "{rest:?}");
        }
        for short in [&b""[..], b"\0asm"] {
            assert_eq!(code(short), short);
        }
    }

    #[test]
    fn both_digests_are_those_that_are_computed_alone() {
        let (bare, noted) = ([START, CODE].concat(), [START, CODE, NOTE].concat());
        for file in [&bare, &noted] {
            let both = Digests::new(file);
            assert_eq!(both.file, digest(file));
            assert_eq!(both.code, CodeDigest::new(file));
        }
        assert_eq!(CodeDigest::new(&noted), CodeDigest::new(&bare));
        assert_ne!(digest(&noted), digest(&bare));
        assert_ne!(
            CodeDigest::new(&[START, NOTE, CODE].concat()),
            CodeDigest::new(&bare)
        );
    }
}
