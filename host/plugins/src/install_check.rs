//! Checks whether a device would load a plugin that its owner installs, before anything is changed: by the rules of the
//! loader, as far as they depend on manifests, signatures, versions and the policy. What only the compiled code shows,
//! such as its exports, is found out where it is loaded.

use std::path::Path;

use semver::Version;

use crate::admission::{DeviceRules, PluginFile};
use crate::assembly::{PluginClaims, conflict};
use crate::config::PluginData;
use crate::grant::PolicyAddition;
use crate::installed_plugins::InstalledPlugins;
use crate::newest;
use crate::owners;
use crate::placement::Placement;
use crate::policy::Grants;
use crate::source_file::SourceFile;

/// Why the device would refuse the plugin.
#[derive(Debug, thiserror::Error)]
#[error("nothing is changed, because the device would refuse `{plugin}` {version}: {reason}")]
pub struct InstallCheckError {
    plugin: String,
    version: Version,
    reason: String,
}

impl InstallCheckError {
    /// Creates the error for the plugin in `source`.
    #[must_use]
    pub fn new(source: &SourceFile, reason: String) -> InstallCheckError {
        InstallCheckError {
            plugin: source.manifest.name.clone(),
            version: source.manifest.version.clone(),
            reason,
        }
    }
}

/// The device on which a plugin is installed.
#[derive(Clone, Copy)]
pub struct InstallDevice<'a> {
    /// The plugins in its folders.
    pub installed: &'a InstalledPlugins,
    /// The host's root folder.
    pub host_root: &'a Path,
    /// The type of the board.
    pub board: &'a str,
    /// Whether files need no pin.
    pub allow_unpinned: bool,
    /// The store of plugins, for the newest version of each that was loaded because of a signature.
    pub data: &'a dyn PluginData,
}

/// Checks that the device would load the plugin in `source` from its place once the policy has the addition.
///
/// # Errors
/// [`InstallCheckError`].
pub fn check_install(
    source: &SourceFile,
    placement: &Placement<'_>,
    addition: &PolicyAddition,
    device: InstallDevice<'_>,
) -> Result<(), InstallCheckError> {
    let refused = |reason| InstallCheckError::new(source, reason);
    check_place(placement, device).map_err(refused)?;
    // The loader ignores what is for other boards, whatever else is wrong with it.
    if !source.manifest.is_for(device.board) {
        return Ok(());
    }
    let grants = admit(source, addition, device).map_err(refused)?;
    let claims = PluginClaims {
        manifest: &source.manifest,
        is_boards_own: grants.boards.include(device.board),
    };
    check_others(placement, addition, device, claims).map_err(refused)
}

/// Checks that nobody else can write the file's folder, or the file that is replaced: the new one gets its permissions.
fn check_place(placement: &Placement<'_>, device: InstallDevice<'_>) -> Result<(), String> {
    if device.allow_unpinned {
        return Ok(());
    }
    let folder = placement.file.parent().unwrap_or(Path::new("/"));
    let replaced = placement.previous.as_ref().map(|_| &*placement.file);
    let mut paths = [Some(folder), replaced].into_iter().flatten();
    paths
        .try_for_each(owners::check)
        .map_err(|error| error.to_string())
}

/// Returns the grants of the plugin by the policy with the addition.
fn admit(
    source: &SourceFile,
    addition: &PolicyAddition,
    device: InstallDevice<'_>,
) -> Result<Grants, String> {
    let policy = addition.policy();
    let keys: Vec<_> = policy.keys().public_keys().cloned().collect();
    let signatures = source.signatures(&keys);
    // As in the loader: a digest needs no record, and a damaged store does not concern it.
    let newest = if signatures.keys.is_empty() {
        None
    } else {
        newest::stored_version(device.data, &source.manifest.name)?
    };
    let file = PluginFile {
        manifest: &source.manifest,
        digest: &source.digest,
        signatures: &signatures,
    };
    policy.admit(file, rules(device), newest.as_ref())
}

/// Checks that no other plugin which the policy admits has what this one claims.
fn check_others(
    placement: &Placement<'_>,
    addition: &PolicyAddition,
    device: InstallDevice<'_>,
    claims: PluginClaims<'_>,
) -> Result<(), String> {
    let policy = addition.policy();
    let others = device.installed.iter().filter(|other| {
        other.file != placement.file && (other.place.is_none() || device.allow_unpinned)
    });
    for other in others {
        if !other.manifest.is_for(device.board) {
            continue;
        }
        let admitted = PluginFile {
            manifest: &other.manifest,
            digest: &other.digest,
            signatures: &other.signatures,
        };
        let Ok(grants) = policy.admit(admitted, rules(device), None) else {
            continue;
        };
        let others_claims = PluginClaims {
            manifest: &other.manifest,
            is_boards_own: grants.boards.include(device.board),
        };
        conflict(claims, others_claims)?;
    }
    Ok(())
}

fn rules(device: InstallDevice<'_>) -> DeviceRules<'_> {
    DeviceRules {
        host_root: device.host_root,
        allow_unpinned: device.allow_unpinned,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::PathBuf;

    use super::*;
    use crate::config::{DataError, ValueChange};
    use crate::placement::install_folder;

    /// Stores the newest version of each plugin that was loaded because of a signature.
    struct Newest(Option<&'static str>);

    impl PluginData for Newest {
        fn get(&self, _: &str, _: &str) -> Result<Option<Vec<u8>>, DataError> {
            Ok(self.0.map(|version| version.as_bytes().to_vec()))
        }

        fn change(&self, _: &str, _: &str, _: &ValueChange<'_>) -> Result<bool, DataError> {
            Err(DataError::Other("it is read only".to_owned()))
        }

        fn delete(&self, _: &str, _: &str) -> Result<(), DataError> {
            Err(DataError::Other("it is read only".to_owned()))
        }

        fn keys(&self, _: &str, _: &str) -> Result<Vec<String>, DataError> {
            Ok(Vec::new())
        }
    }

    struct Owner {
        folder: tempfile::TempDir,
        maker: minisign::KeyPair,
        newest: Newest,
    }

    impl Owner {
        fn new() -> Owner {
            let owner = Owner {
                folder: tempfile::tempdir().unwrap(),
                maker: minisign::KeyPair::generate_unencrypted_keypair().unwrap(),
                newest: Newest(None),
            };
            fs::create_dir(owner.path("plugins")).unwrap();
            fs::write(owner.path("maker.pub"), owner.maker.pk.to_base64()).unwrap();
            owner
        }

        fn path(&self, below: &str) -> PathBuf {
            self.folder.path().join(below)
        }

        /// Writes a plugin with these further lines in its manifest into a file, and returns its digest.
        fn plugin(&self, below: &str, name: &str, version: &str, lines: &str) -> String {
            let manifest = format!(
                "name = \"{name}\"\nversion = \"{version}\"\ninterface = \"1.0.0\"\n{lines}\n\
                 [[routes]]\nmethod = \"GET\"\npath = \"/v3/rails/:id\"\n"
            );
            let mut wasm = plugin_manifest::COMPONENT.to_vec();
            plugin_manifest::append_section(&mut wasm, crate::SECTION, manifest.as_bytes());
            fs::write(self.path(below), &wasm).unwrap();
            compiled_code::digest(&wasm)
        }

        fn sign(&self, below: &str) {
            let wasm = fs::read(self.path(below)).unwrap();
            let signature = minisign::sign(None, &self.maker.sk, &wasm[..], None, None).unwrap();
            let beside = self.path(&format!("{below}.minisig"));
            fs::write(beside, signature.to_string()).unwrap();
        }

        /// Checks the installation of `new.wasm`, by the maker's key or by its digest.
        fn check(&self, key: Option<&str>) -> Result<(), String> {
            self.check_after(key, || ())
        }

        /// Like [`Owner::check`]; `change` runs once the plugin folder has been read.
        fn check_after(&self, key: Option<&str>, change: impl FnOnce()) -> Result<(), String> {
            let source = SourceFile::read(&self.path("new.wasm")).unwrap();
            let (policy, stock) = (self.path("policy.toml"), self.path("stock.toml"));
            let key = key.map(|key| self.path(key));
            let folders = [self.path("plugins")];
            let folder = install_folder(&source, &folders, &stock).unwrap();
            let addition =
                PolicyAddition::find(&source, &policy, &stock, key.as_deref(), false).unwrap();
            let installed = InstalledPlugins::read(&folders, &addition);
            change();
            let placement = Placement::find(&source, folder, &installed).unwrap();
            let device = InstallDevice {
                installed: &installed,
                host_root: Path::new("/"),
                board: "board-1",
                allow_unpinned: false,
                data: &self.newest,
            };
            let checked = check_install(&source, &placement, &addition, device);
            // Nothing is written, whatever the result is.
            assert!(!placement.file.exists() && !policy.exists());
            checked.map_err(|error| error.to_string())
        }
    }

    #[test]
    fn a_signed_version_that_is_older_than_one_before_is_refused_and_a_digest_is_not() {
        let mut owner = Owner::new();
        owner.plugin("new.wasm", "rails", "1.1.0", "");
        owner.sign("new.wasm");
        for newest in [None, Some("1.1.0")] {
            owner.newest = Newest(newest);
            assert_eq!(owner.check(Some("maker.pub")), Ok(()), "{newest:?}");
        }
        owner.newest = Newest(Some("1.2.0"));
        let refused = owner.check(Some("maker.pub")).unwrap_err();
        assert!(
            refused
                .starts_with("nothing is changed, because the device would refuse `rails` 1.1.0: ")
                && refused.contains("older than 1.2.0"),
            "{refused}"
        );
        assert_eq!(owner.check(None), Ok(()));
    }

    #[test]
    fn a_route_of_another_plugin_that_the_policy_admits_is_refused() {
        let owner = Owner::new();
        owner.plugin("new.wasm", "rails", "1.0.0", "");
        let digest = owner.plugin("plugins/other.wasm", "other", "1.0.0", "");
        // Until the policy admits it, it has nothing.
        assert_eq!(owner.check(None), Ok(()));
        let section =
            format!("[plugins.other]\nsha256 = [\"{digest}\"]\nroutes = [\"/v3/rails/*\"]\n");
        fs::write(owner.path("stock.toml"), section).unwrap();
        let refused = owner.check(None).unwrap_err();
        assert!(
            refused.contains("is also the plugin `other`'s"),
            "{refused}"
        );
        // The place and the claims of others are those of one reading.
        let other = owner.path("plugins/other.wasm");
        let refused = owner.check_after(None, || fs::remove_file(&other).unwrap());
        assert!(
            refused.is_err_and(|error| error.contains("is also the plugin `other`'s")),
            "the file was read again"
        );
        // A plugin for other boards claims nothing here.
        owner.plugin("plugins/other.wasm", "other", "1.0.0", "");
        owner.plugin("new.wasm", "rails", "1.0.0", "boards = [\"board-2\"]");
        assert_eq!(owner.check(None), Ok(()));
    }

    #[test]
    fn a_folder_that_others_can_write_is_refused() {
        use std::os::unix::fs::PermissionsExt as _;

        let owner = Owner::new();
        owner.plugin("new.wasm", "rails", "1.0.0", "");
        let mode = fs::Permissions::from_mode(0o757);
        fs::set_permissions(owner.path("plugins"), mode).unwrap();
        let refused = owner.check(None).unwrap_err();
        assert!(
            refused.contains("others than its owner can write it"),
            "{refused}"
        );
    }
}
