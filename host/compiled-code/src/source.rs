//! The component to compile, and the name of its compiled file.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use crate::code_digest::{CodeDigest, code};
use crate::{Profile, Settings, entries};

/// A component's code, with the digest that identifies it.
pub struct Source<'a> {
    pub(crate) name: &'a str,
    pub(crate) wasm: &'a [u8],
    digest: CodeDigest,
    pub(crate) edition: String,
}

impl<'a> Source<'a> {
    /// Digests the code of `wasm`; `name` is for messages: the component's file.
    #[must_use]
    pub fn new(name: &'a str, wasm: &'a [u8]) -> Source<'a> {
        Source::with_digest(name, wasm, CodeDigest::new(wasm))
    }

    /// Like [`Source::new`], with the known digest of its code.
    #[must_use]
    pub fn with_digest(name: &'a str, wasm: &'a [u8], digest: CodeDigest) -> Source<'a> {
        Source {
            name,
            // What is compiled is exactly what the digest covers.
            wasm: code(wasm),
            digest,
            edition: String::new(),
        }
    }

    pub(crate) fn stem(&self, profile: Profile) -> String {
        entries::stem(self.digest.as_str(), profile.into(), &settings(profile))
    }

    /// Sets a word that changes when somebody wants another attempt after a failure.
    #[must_use]
    pub fn edition(mut self, edition: String) -> Source<'a> {
        self.edition = edition;
        self
    }
}

/// Returns a short word for everything that determines compiled code, except for the processor.
pub(crate) fn settings(profile: Profile) -> String {
    let mut hasher = DefaultHasher::new();
    env!("CARGO_PKG_VERSION").hash(&mut hasher);
    std::env::consts::ARCH.hash(&mut hasher);
    Settings::for_profile(profile).hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}
