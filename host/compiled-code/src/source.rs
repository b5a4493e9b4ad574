//! The component to compile, and the name of its compiled file.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use sha2::{Digest as _, Sha256};

use crate::{Profile, Settings, entries};

/// A component's bytes, with the digest that identifies it.
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

    /// Like [`Source::new`], with a known digest; it must be the one of [`digest`].
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

    /// Sets a word that changes when somebody wants another attempt after a failure.
    #[must_use]
    pub fn edition(mut self, edition: String) -> Source<'a> {
        self.edition = edition;
        self
    }
}

/// Returns the digest that identifies a component: SHA-256, in hexadecimal.
#[must_use]
pub fn digest(wasm: &[u8]) -> String {
    hex::encode(Sha256::digest(wasm))
}

/// Returns a short word for everything that determines compiled code, except for the processor.
pub(crate) fn settings(profile: Profile) -> String {
    let mut hasher = DefaultHasher::new();
    env!("CARGO_PKG_VERSION").hash(&mut hasher);
    std::env::consts::ARCH.hash(&mut hasher);
    Settings::for_profile(profile).hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}
