//! The file with the keys that encrypt secrets in the database.

use std::fs::File;
use std::io::Read as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use data::Keyring;

/// Maximum bytes of a key file.
const MOST_BYTES: u64 = 64 << 10;

/// Reads the keys from a file that only its owner may read.
///
/// # Errors
/// If it cannot be read, others may read it, or it contains no keys.
pub(crate) fn read(path: &Path) -> Result<Keyring> {
    let of_file = || format!("the keys of `{}` cannot be used", path.display());
    let file = File::open(path).with_context(of_file)?;
    let mode = file.metadata().with_context(of_file)?.permissions().mode();
    // systemd grants a service access to its credentials by an ACL, whose mask takes the place of the group's rights.
    let credentials = std::env::var_os("CREDENTIALS_DIRECTORY");
    let is_credential = credentials.is_some_and(|folder| path.starts_with(folder));
    let others = if is_credential { 0o027 } else { 0o077 };
    ensure!(
        mode & others == 0,
        "the keys of `{path}` cannot be used: others than its owner may read or change the file (mode {mode:o}); \
         `chmod 600 {path}`",
        path = path.display(),
        mode = mode & 0o777,
    );
    let mut text = String::new();
    file.take(MOST_BYTES)
        .read_to_string(&mut text)
        .with_context(of_file)?;
    Keyring::parse(&text).with_context(of_file)
}

#[cfg(test)]
mod tests {
    use std::fs::{Permissions, set_permissions, write};

    use super::*;

    #[test]
    fn a_file_of_keys_is_its_owners_alone() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("keys");
        write(&path, Keyring::new_line(Some("a")).expect("a key")).expect("a file");
        for (mode, is_good) in [
            (0o600, true),
            (0o400, true),
            (0o640, false),
            (0o604, false),
            (0o620, false),
            (0o644, false),
        ] {
            set_permissions(&path, Permissions::from_mode(mode)).expect("the mode");
            let keyring = read(&path);
            assert_eq!(keyring.is_ok(), is_good, "{mode:o}: {keyring:?}");
            if let Err(error) = keyring {
                assert!(error.to_string().contains("chmod 600"), "{error}");
            }
        }
    }
}
