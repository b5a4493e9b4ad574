//! What is compiled, and by what its compiled file is known.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use sha2::{Digest as _, Sha256};

use crate::{Profile, Settings, entries};

/// A component's bytes, with the digest that it is known by.
pub struct Source<'a> {
    pub(crate) name: &'a str,
    pub(crate) wasm: &'a [u8],
    digest: String,
    pub(crate) edition: String,
}

impl<'a> Source<'a> {
    /// Digests `wasm`; `name` is for messages: the component's file.
    #[must_use]
    pub fn new(name: &'a str, wasm: &'a [u8]) -> Source<'a> {
        Source::with_digest(name, wasm, digest(wasm))
    }

    /// The same where the digest is known already; it has to be [`digest`]'s.
    #[must_use]
    pub fn with_digest(name: &'a str, wasm: &'a [u8], digest: String) -> Source<'a> {
        Source {
            name,
            wasm,
            digest,
            edition: String::new(),
        }
    }

    pub(crate) fn stem(&self, profile: Profile) -> String {
        entries::stem(&self.digest, profile.into(), &settings(profile))
    }

    /// With a word that changes when somebody wants it tried again though it failed before.
    #[must_use]
    pub fn edition(mut self, edition: String) -> Source<'a> {
        self.edition = edition;
        self
    }
}

/// What a component is known by: SHA-256, in hexadecimal.
#[must_use]
pub fn digest(wasm: &[u8]) -> String {
    hex::encode(Sha256::digest(wasm))
}

/// A short word for all that decides what compiled code looks like, but for the processor.
pub(crate) fn settings(profile: Profile) -> String {
    let mut hasher = DefaultHasher::new();
    env!("CARGO_PKG_VERSION").hash(&mut hasher);
    std::env::consts::ARCH.hash(&mut hasher);
    Settings::of(profile).hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}
