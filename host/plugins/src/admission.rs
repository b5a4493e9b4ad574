//! Checks whether the policy lets a file be loaded, and with which grants: a file in the plugin folders, or a version
//! that its owner restores.

use std::path::Path;

use semver::Version;

use crate::grants::{check_routes_and_actions, missing_grants, refused_claims};
use crate::pins::Pin;
use crate::policy::{Grants, Policy};
use crate::signature::Signatures;
use plugin_manifest::Manifest;

/// The properties by which the policy judges a file.
#[derive(Clone, Copy)]
pub(crate) struct PluginFile<'a> {
    pub(crate) manifest: &'a Manifest,
    /// The digest of the whole file.
    pub(crate) digest: &'a str,
    pub(crate) signatures: &'a Signatures,
}

/// The device's additions to its policy.
#[derive(Clone, Copy)]
pub(crate) struct DeviceRules<'a> {
    /// The host's root folder as this process sees it.
    pub(crate) host_root: &'a Path,
    /// Whether files need no pin.
    pub(crate) allow_unpinned: bool,
}

impl Policy {
    /// Returns the file's grants if they include everything that its manifest claims. If the device has had the version
    /// `newest`, a signature alone does not permit an older one.
    ///
    /// # Errors
    /// Why it may not be loaded, and what its owner can do.
    pub(crate) fn admit(
        &self,
        file: PluginFile<'_>,
        device: DeviceRules<'_>,
        newest: Option<&Version>,
    ) -> Result<Grants, String> {
        let Manifest { name, version, .. } = file.manifest;
        let grants = match self.grants(name, file.digest, file.signatures, device.host_root) {
            Err(_) if device.allow_unpinned => self.without_pin(name, device.host_root),
            pinned => pinned?,
        };
        let policy = &self.files.owner;
        check_routes_and_actions(file.manifest, &grants, policy)?;
        match newest {
            Some(newest)
                if matches!(grants.pin, Pin::Key(_)) && version.cmp_precedence(newest).is_lt() =>
            {
                Err(format!(
                    "version {version} is older than {newest}, which this device has had, and a signature alone does not allow a downgrade; to load it anyway, add \"{}\" to `sha256` in [plugins.{name}] of the policy `{}`",
                    file.digest,
                    policy.display()
                ))
            }
            _ => Ok(grants),
        }
    }

    /// Returns everything because of which this policy refuses a file that the device has never had: that no pin is for
    /// it, and what is missing in its section, whether or not that pins it. The device itself reports the first of them.
    pub(crate) fn refusals(&self, file: PluginFile<'_>, device: DeviceRules<'_>) -> Vec<String> {
        let PluginFile { manifest, .. } = file;
        let name = &manifest.name;
        let pinned = self.grants(name, file.digest, file.signatures, device.host_root);
        let (grants, pin) = match pinned {
            Ok(grants) => (grants, None),
            Err(reason) => {
                let pin = (!device.allow_unpinned).then_some(reason);
                (self.without_pin(name, device.host_root), pin)
            }
        };
        let policy = &self.files.owner;
        let claims = refused_claims(manifest, &grants, policy);
        let missing = missing_grants(manifest, &grants.grants, policy);
        pin.into_iter().chain(claims).chain(missing).collect()
    }
}

#[cfg(test)]
mod tests {
    use signatures::PublicKey;

    use super::*;
    use crate::policy::PolicyFiles;

    /// Returns the policy's decision about version `version` of the plugin `a` with the digest `5f0c` on a device that
    /// has had 1.2.0.
    fn admit(policy: &Policy, version: &str, signatures: &Signatures) -> Result<Pin, String> {
        let manifest = Manifest::parse(&format!(
            "name = \"a\"\nversion = \"{version}\"\ninterface = \"1.0.0\"\nprovides = [\"identify\"]"
        ))
        .unwrap();
        let file = PluginFile {
            manifest: &manifest,
            digest: &"5f0c".repeat(16),
            signatures,
        };
        let device = DeviceRules {
            host_root: Path::new("/"),
            allow_unpinned: false,
        };
        let newest = Version::new(1, 2, 0);
        let grants = policy.admit(file, device, Some(&newest))?;
        Ok(grants.pin)
    }

    /// Creates a policy with this section for the plugin.
    fn policy(section: &str, key: &str) -> Policy {
        let owner = format!("[keys.acme]\npublic = \"{key}\"\n[plugins.a]\n{section}\n");
        let files = PolicyFiles {
            owner: "policy.toml".into(),
            stock: "stock-plugins.toml".into(),
        };
        Policy::parse(&files, &owner, "").unwrap()
    }

    #[test]
    fn a_signature_brings_no_version_of_a_lower_precedence_and_a_digest_does() {
        let pair = minisign::KeyPair::generate_unencrypted_keypair().unwrap();
        let key = pair.pk.to_base64();
        let signatures = Signatures {
            keys: vec![PublicKey::from_base64(&key).unwrap()],
            ..Signatures::default()
        };
        let provides = "provides = [\"identify\"]";
        let signed = policy(&format!("keys = [\"acme\"]\n{provides}"), &key);
        let digest = "5f0c".repeat(16);
        let pinned = policy(&format!("sha256 = [\"{digest}\"]\n{provides}"), &key);
        for (version, is_admitted) in [
            ("1.2.0", true),
            ("1.2.0+build2", true),
            ("1.10.0", true),
            ("1.2.0-rc1", false),
            ("1.1.9", false),
        ] {
            let admitted = admit(&signed, version, &signatures);
            assert_eq!(admitted.is_ok(), is_admitted, "{version}: {admitted:?}");
            if let Err(reason) = admitted {
                let remedy = format!(
                    "add \"{digest}\" to `sha256` in [plugins.a] of the policy `policy.toml`"
                );
                assert!(
                    reason.contains("is older than 1.2.0") && reason.ends_with(&remedy),
                    "{reason}"
                );
            }
            assert_eq!(admit(&pinned, version, &signatures), Ok(Pin::Digest));
        }
    }

    #[test]
    fn all_that_a_policy_refuses_begins_with_what_a_device_reports() {
        let manifest = Manifest::parse(
            "name = \"a\"\nversion = \"1.0.0\"\ninterface = \"1.0.0\"\nprovides = [\"identify\", \"events\"]\n\
             events = [\"start\"]\nroutes = [{ method = \"GET\", path = \"/v3/a\" }]\n\
             capabilities = [{ name = \"store\", reason = \"x\" }, { name = \"led\", reason = \"y\" }]",
        )
        .unwrap();
        let digest = "5f0c".repeat(16);
        let file = PluginFile {
            manifest: &manifest,
            digest: &digest,
            signatures: &Signatures::default(),
        };
        let device = DeviceRules {
            host_root: Path::new("/"),
            allow_unpinned: false,
        };
        let pair = minisign::KeyPair::generate_unencrypted_keypair().unwrap();
        let key = pair.pk.to_base64();
        let others = "0000".repeat(16);
        let policy_of = |lines: &str| policy(lines, &key);
        let (claims, missing) = (
            ["`/v3/a`", "`identify`", "events `start`"],
            "`store` (x), `led` (y)",
        );
        let nothing = policy_of(&format!("sha256 = [\"{others}\"]"));
        let refusals = nothing.refusals(file, device);
        let expected = ["pins other files", claims[0], claims[1], claims[2], missing];
        assert_eq!(refusals.len(), expected.len(), "{refusals:?}");
        for (refusal, expected) in refusals.iter().zip(expected) {
            assert!(refusal.contains(expected), "{refusal}");
        }
        let first = nothing.admit(file, device, None).unwrap_err();
        assert_eq!(first, refusals[0]);

        // What its section grants is not refused because the pin is for another file.
        let some = policy_of(&format!(
            "sha256 = [\"{others}\"]\nroutes = [\"/v3/*\"]\nevents = [\"start\"]\ngrants = [\"store\"]"
        ));
        let refusals = some.refusals(file, device);
        assert_eq!(refusals.len(), 3, "{refusals:?}");
        assert!(refusals[2].contains("the line `grants = [\"store\", \"led\"]`"));

        let all = policy_of(&format!(
            "sha256 = [\"{digest}\"]\nroutes = [\"/v3/a\"]\nprovides = [\"identify\"]\nevents = [\"start\"]\n\
             grants = [\"store\", \"led\"]"
        ));
        assert_eq!(all.refusals(file, device), [""; 0]);
        assert!(all.admit(file, device, None).is_ok());
    }

    #[test]
    fn what_the_manifest_claims_and_the_policy_does_not_give_is_not_admitted() {
        let pair = minisign::KeyPair::generate_unencrypted_keypair().unwrap();
        let digest = "5f0c".repeat(16);
        let pins = format!("sha256 = [\"{digest}\"]");
        let policy = policy(&pins, &pair.pk.to_base64());
        let refused = admit(&policy, "1.2.0", &Signatures::default());
        assert!(refused.unwrap_err().contains("provides `identify`"));
    }
}
