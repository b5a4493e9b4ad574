//! The secret that distinguishes this device's compiled code from any other file.
//!
//! A file of compiled code is run without further checks, so a name and a digest that anybody can compute prove too
//! little: whoever could bring a file into the folder, by a restored copy or a path that was not checked, could run
//! code as the supervisor. The digest is keyed, and the key is generated here, for this device, and only its user can
//! read it.

use std::fs::{self, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;

use hmac::{Hmac, Mac as _};
use sha2::Sha256;

use crate::CompileError;

/// The key's file in the folder of compiled code.
const NAME: &str = "key";
/// The key's length in bytes: a block of the digest, so the digest uses it unchanged.
const LENGTH: usize = 64;

/// The key. Cloning it is cheap.
#[derive(Clone)]
pub(crate) struct CodeKey(Hmac<Sha256>);

/// A digest of a file's name and content, not finished yet.
#[derive(Clone)]
pub(crate) struct KeyedDigest(Hmac<Sha256>);

impl CodeKey {
    /// Returns the key in `folder`, which is only ours. If there is no trustworthy one, creates a new key; then
    /// everything is compiled again.
    pub(crate) fn open(folder: &Path) -> Result<CodeKey, CompileError> {
        let path = folder.join(NAME);
        let failed = |error| CompileError::folder(&path, error);
        match CodeKey::read(folder) {
            Ok(key) => return Ok(key),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => {
                tracing::warn!(
                    path = %path.display(),
                    "cannot use the key of the compiled code `{}`: {error}; everything is compiled again",
                    path.display()
                );
                fs::remove_file(&path).map_err(failed)?;
            }
        }
        make(folder).map_err(failed)?;
        CodeKey::read(folder).map_err(failed)
    }

    /// Reads the key in `folder`, without changing anything.
    pub(crate) fn read(folder: &Path) -> io::Result<CodeKey> {
        let nofollow = rustix::fs::OFlags::NOFOLLOW.union(rustix::fs::OFlags::NONBLOCK);
        let flags = i32::try_from(nofollow.bits()).unwrap_or_default();
        let file = OpenOptions::new()
            .read(true)
            .custom_flags(flags)
            .open(folder.join(NAME))?;
        let about = file.metadata()?;
        let refused = |why: String| Err(io::Error::new(io::ErrorKind::InvalidData, why));
        let we = rustix::process::geteuid().as_raw();
        if !about.is_file() || about.len() != LENGTH as u64 {
            return refused(format!("it is not a file of {LENGTH} bytes"));
        }
        if about.uid() != we || about.mode() & 0o077 != 0 {
            return refused(format!(
                "it belongs to user {} and has mode {:o}, but only user {we} may have access to it",
                about.uid(),
                about.mode() & 0o777
            ));
        }
        let mut bytes = [0; LENGTH];
        { file }.read_exact(&mut bytes)?;
        Ok(CodeKey::from_bytes(&bytes))
    }

    fn from_bytes(bytes: &[u8; LENGTH]) -> CodeKey {
        CodeKey(Hmac::new(bytes.into()))
    }

    /// Begins the digest of a file of compiled code whose name begins with `stem`.
    pub(crate) fn digest(&self, stem: &str) -> KeyedDigest {
        let mut digest = KeyedDigest(self.0.clone());
        digest.update(stem.as_bytes());
        digest.update(&[0]);
        digest
    }
}

impl KeyedDigest {
    /// Adds the next bytes of the content.
    pub(crate) fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// Returns the digest in hexadecimal.
    pub(crate) fn in_words(self) -> String {
        hex::encode(self.0.finalize().into_bytes())
    }

    /// Compares it with `digest`, which is in hexadecimal, in constant time.
    pub(crate) fn is(self, digest: &str) -> bool {
        hex::decode(digest).is_ok_and(|digest| self.0.verify_slice(&digest).is_ok())
    }
}

/// Creates a key in `folder`, unless another process has created one in the meantime.
fn make(folder: &Path) -> io::Result<()> {
    let mut bytes = [0; LENGTH];
    getrandom::fill(&mut bytes)
        .map_err(|_| io::Error::other("the system has no random numbers"))?;
    let beside = folder.join(format!("{NAME}.new-{}", std::process::id()));
    let made = || {
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&beside)?;
        file.write_all(&bytes)?;
        file.sync_all()?;
        // A hard link replaces nothing: the first key counts.
        match fs::hard_link(&beside, folder.join(NAME)) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
            _ => Ok(()),
        }
    };
    // A file left over after a kill, by a process with the same number.
    let _ = fs::remove_file(&beside);
    let outcome = made();
    let _ = fs::remove_file(&beside);
    outcome
}
