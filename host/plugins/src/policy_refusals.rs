//! Everything because of which a policy refuses a plugin, for authors: a device reports the first reason, and whoever
//! corrects that one would only then learn of the next.

use std::path::Path;

use crate::admission::{DeviceRules, PluginFile};
use crate::policy::{Policy, PolicyError, PolicyFiles};
use crate::source_file::SourceFile;

/// Returns the reasons for which a device with the policy in this text refuses the plugin, the one that the device itself
/// reports first, each with what to do. What the component imports and exports is not checked. `name` is the name of the
/// policy's file for people. The device has no stock plugins.
///
/// # Errors
/// [`PolicyError`]: the policy is invalid.
pub fn policy_refusals(
    source: &SourceFile,
    name: &Path,
    policy: &str,
) -> Result<Vec<String>, PolicyError> {
    let files = PolicyFiles {
        owner: name.to_owned(),
        ..PolicyFiles::default()
    };
    let policy = Policy::parse(&files, policy, "")?;
    let keys: Vec<_> = policy.keys().public_keys().cloned().collect();
    let file = PluginFile {
        manifest: &source.manifest,
        digest: &source.digest,
        signatures: &source.signatures(&keys),
    };
    let device = DeviceRules {
        host_root: Path::new("/"),
        allow_unpinned: false,
    };
    Ok(policy.refusals(file, device))
}
