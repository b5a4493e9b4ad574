//! Adds what a plugin asks for to the policy; otherwise the owner adds the lines of `trust` by hand.

use std::path::{Path, PathBuf};

use crate::file_with_signature::replace_alone;
use crate::policy::{Policy, PolicyError, PolicyFiles, policy_text};
use crate::section_merge::{extended, merged_section};
use crate::source_file::SourceFile;
use crate::trust::{TrustError, TrustedPlugin, has_section, is_pinned, trust};

/// Why nothing was added to the policy, which is unchanged.
#[derive(Debug, thiserror::Error)]
pub enum GrantError {
    /// The file is not a plugin.
    #[error(transparent)]
    File(#[from] TrustError),
    /// The policy is invalid, or would be with the lines.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// The section of the policy is for other files. Whatever it grants would then apply to this one too.
    #[error(
        "[plugins.{plugin}] of the policy `{}` is for other files than this one: whatever the section grants would apply to this \
         file too, and any file can claim the name `{plugin}`; if it is from the same maker, put the following section in place of \
         that one, and repeat the command:\n\n{section}",
        policy.display()
    )]
    OtherFiles {
        /// The policy.
        policy: PathBuf,
        /// The plugin's name.
        plugin: String,
        /// What the file asks for, in comments, and the section that grants it to this file as well: TOML.
        section: String,
    },
    /// The policy cannot be written.
    #[error("the policy `{}` cannot be written", policy.display())]
    Write {
        /// The policy.
        policy: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
}

/// What will be added to a policy, which is unchanged until [`PolicyAddition::write`].
#[derive(Debug)]
pub struct PolicyAddition {
    files: PolicyFiles,
    exists: bool,
    after: String,
    added: String,
    policy: Policy,
}

impl PolicyAddition {
    /// Finds out what has to be added to `policy` for the plugin in `source`: a section at the end or, if there is
    /// already one for this maker's key or this content, whatever it does not grant yet. The rest of the policy stays
    /// unchanged, comments included. `stock_plugins` is the layout's list. With `maker_key`, the lines are for
    /// everything signed with the key in that file ([`trust_lines`](crate::trust_lines)). With `anybodys`, a policy
    /// that others can write is also accepted.
    ///
    /// # Errors
    /// [`GrantError`].
    pub fn find(
        source: &SourceFile,
        policy: &Path,
        stock_plugins: &Path,
        maker_key: Option<&Path>,
        anybodys: bool,
    ) -> Result<PolicyAddition, GrantError> {
        let TrustedPlugin {
            name,
            pin,
            request,
            section,
        } = trust(source, policy, stock_plugins, maker_key)?;
        let text = policy_text(policy, anybodys)?;
        let files = PolicyFiles {
            owner: policy.to_owned(),
            stock: stock_plugins.to_owned(),
        };
        let stock = policy_text(stock_plugins, anybodys)?.unwrap_or_default();
        let before = text.clone().unwrap_or_default();
        Policy::parse(&files, &before, &stock)?;
        let lines = format!("{request}{section}");
        let table: toml::Table = before.parse().unwrap_or_default();
        let (after, added) = if !has_section(&table, &name) {
            (with_section(&before, &lines), lines)
        } else if is_pinned(&table, &name, &pin) {
            extended(&before, &section)
        } else {
            let (merged, added) = extended(&before, &section);
            // The owner pastes this: it has to be valid.
            Policy::parse(&files, &merged, &stock)?;
            return Err(GrantError::OtherFiles {
                policy: policy.to_owned(),
                section: request + &merged_section(&merged, &added, &name),
                plugin: name,
            });
        };
        let policy = Policy::parse(&files, &after, &stock)?;
        Ok(PolicyAddition {
            files,
            exists: text.is_some(),
            after,
            added,
            policy,
        })
    }

    /// Returns the added lines; empty if the policy already grants everything.
    #[must_use]
    pub fn lines(&self) -> &str {
        &self.added
    }

    /// Returns the text of the policy with the lines.
    #[must_use]
    pub fn policy_text(&self) -> &str {
        &self.after
    }

    /// Returns the policy with the lines.
    pub(crate) fn policy(&self) -> &Policy {
        &self.policy
    }

    /// Adds the lines; the file is replaced in one step.
    ///
    /// # Errors
    /// [`GrantError::Write`]; the policy is then unchanged.
    pub fn write(&self) -> Result<(), GrantError> {
        let policy = &self.files.owner;
        let write = || {
            // A new policy can be written by its owner and read by everyone.
            if !self.exists {
                std::fs::write(policy, "")?;
            }
            replace_alone(policy, self.after.as_bytes())
        };
        write().map_err(|source| GrantError::Write {
            policy: policy.clone(),
            source,
        })
    }
}

/// Returns the policy with these lines at its end.
fn with_section(policy: &str, lines: &str) -> String {
    let separator = match policy {
        "" => "",
        text if text.ends_with('\n') => "\n",
        _ => "\n\n",
    };
    format!("{policy}{separator}{lines}")
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    struct Owner(tempfile::TempDir);

    /// Creates the plugin `a`, which answers a route and has a store.
    fn plugin() -> Vec<u8> {
        let manifest = "name = \"a\"\nversion = \"1.0.0\"\ninterface = \"1.0.0\"\n\
            capabilities = [{ name = \"store\", reason = \"r\" }]\n\
            [[routes]]\nmethod = \"GET\"\npath = \"/v3/a\"\n";
        let mut wasm = b"\0asm\x0d\0\x01\0".to_vec();
        plugin_manifest::append_section(&mut wasm, plugin_manifest::SECTION, manifest.as_bytes());
        wasm
    }

    impl Owner {
        fn new(policy: &str) -> Owner {
            let folder = tempfile::tempdir().unwrap();
            fs::write(folder.path().join("policy.toml"), policy).unwrap();
            fs::write(folder.path().join("a.wasm"), plugin()).unwrap();
            Owner(folder)
        }

        fn grant(&self) -> Result<String, GrantError> {
            let path = |name| self.0.path().join(name);
            let source = SourceFile::read(&path("a.wasm")).unwrap();
            let addition = PolicyAddition::find(
                &source,
                &path("policy.toml"),
                &path("stock-plugins.toml"),
                None,
                true,
            )?;
            addition.write()?;
            Ok(addition.lines().to_owned())
        }

        fn policy(&self) -> String {
            fs::read_to_string(self.0.path().join("policy.toml")).unwrap()
        }
    }

    #[test]
    fn the_requests_of_a_plugin_are_added_and_the_rest_stays() {
        let before = "# by hand\n[plugins.b]\ngrants = [\"store\"] # for b\n";
        let owner = Owner::new(before);
        let lines = owner.grant().unwrap();
        assert!(lines.contains("[plugins.a]"), "{lines}");
        assert_eq!(owner.policy(), format!("{before}\n{lines}"));
        // The second time, everything is already there.
        assert_eq!(owner.grant().unwrap(), "");
        assert_eq!(owner.policy(), format!("{before}\n{lines}"));
    }

    #[test]
    fn a_section_for_the_same_content_gets_what_it_does_not_give_yet_and_is_else_its_owners() {
        let digest = compiled_code::digest(&plugin());
        let section = |lines: &str| {
            format!(
                "# by hand\n[plugins.a]\nsha256 = [\n  \"{digest}\", # of today\n]\n{lines}\n[plugins.b]\n# nothing\n"
            )
        };
        for (before, after, added) in [
            // Missing list values are added after the existing ones.
            (
                "routes = [\"/v3/other\"] # two\ngrants = [\"led\"]\nleds = [\"ACT\"]\n",
                "routes = [\"/v3/other\", \"/v3/a\"] # two\ngrants = [\"led\", \"store\"]\nleds = [\"ACT\"]\n",
                "[plugins.a]\nroutes = [\"/v3/a\"]\ngrants = [\"store\"]\n",
            ),
            // A value that covers the missing ones is enough.
            (
                "routes = [\"/v3/*\"]\ngrants = [\"store\"]\n",
                "routes = [\"/v3/*\"]\ngrants = [\"store\"]\n",
                "",
            ),
            // Keys that are missing.
            (
                "limits = { wall_ms = 500 }\n",
                "limits = { wall_ms = 500 }\nroutes = [\"/v3/a\"]\ngrants = [\"store\"]\n",
                "[plugins.a]\nroutes = [\"/v3/a\"]\ngrants = [\"store\"]\n",
            ),
        ] {
            let owner = Owner::new(&section(before));
            assert_eq!(owner.grant().unwrap(), added, "{before}");
            assert_eq!(owner.policy(), section(after));
        }
    }

    #[test]
    fn a_section_for_other_files_gives_nothing_to_a_file_that_claims_its_name() {
        let other = "0".repeat(64);
        for pins in [format!("sha256 = [\"{other}\"]"), String::new()] {
            let before = format!("[plugins.a]\n{pins}\ngrants = [\"store\"]\n");
            let owner = Owner::new(&before);
            let error = owner.grant().unwrap_err();
            assert!(
                matches!(&error, GrantError::OtherFiles { plugin, .. } if plugin == "a"),
                "{error}"
            );
            assert_eq!(owner.policy(), before);
        }
    }

    #[test]
    fn the_section_for_another_version_is_ready_to_be_put_in_place_of_the_present_one() {
        let other = "0".repeat(64);
        let digest = compiled_code::digest(&plugin());
        let first = "# one\n[plugins.b]\ngrants = [\"store\"]\n\n";
        let last = "\n[plugins.c]\ngrants = [\"store\"]\n";
        for present in [
            format!(
                "# by hand\n[plugins.a]\nsha256 = [\"{other}\"] # of May\ngrants = [\"led\"]\nleds = [\"ACT\"]\n[plugins.a.limits]\nmemory_mib = 8\n"
            ),
            format!(
                "[plugins]\na = {{ sha256 = [\"{other}\"], grants = [\"led\"], leds = [\"ACT\"] }}\n"
            ),
            format!(
                "plugins.a.sha256 = [\"{other}\"]\nplugins.a.grants = [\"led\"]\nplugins.a.leds = [\"ACT\"]\n"
            ),
        ] {
            let is_alone = !present.starts_with("# by hand");
            let before = if is_alone {
                present.clone()
            } else {
                format!("{first}{present}{last}")
            };
            let owner = Owner::new(&before);
            let error = owner.grant().unwrap_err();
            let GrantError::OtherFiles { section, .. } = &error else {
                panic!("{error}");
            };
            assert!(error.to_string().ends_with(section), "{error}");
            assert!(
                section.starts_with("# The plugin `a` 1.0.0 asks for permission:"),
                "{section}"
            );
            let merged: toml::Table = section.parse().unwrap();
            let plugins = merged["plugins"].as_table().unwrap();
            assert_eq!(plugins.keys().collect::<Vec<_>>(), ["a"], "{section}");
            let list = |key: &str| plugins["a"][key].as_array().unwrap().clone();
            let values = |values: &[&str]| -> Vec<toml::Value> {
                values.iter().map(|value| (*value).into()).collect()
            };
            assert_eq!(
                list("sha256"),
                values(&[other.as_str(), digest.as_str()]),
                "{section}"
            );
            assert_eq!(list("grants"), values(&["led", "store"]), "{section}");
            assert_eq!(list("leds"), values(&["ACT"]), "{section}");
            assert_eq!(list("routes"), values(&["/v3/a"]), "{section}");
            if !is_alone {
                assert!(section.contains("# by hand\n[plugins.a]"), "{section}");
                assert!(section.contains("memory_mib = 8"), "{section}");
            }
            // The owner follows it, and repeats the command.
            let after = if is_alone {
                section.clone()
            } else {
                format!("{first}{section}{last}")
            };
            fs::write(owner.0.path().join("policy.toml"), after).unwrap();
            assert_eq!(owner.grant().unwrap(), "");
        }
    }

    #[test]
    fn a_policy_that_is_invalid_stays_as_it_is() {
        for before in [
            "[plugins.b]\ngrants = [\"fly\"]\n",
            "[plugins",
            "[bounds]\nmemory_mib = 1\n",
        ] {
            let owner = Owner::new(before);
            assert!(
                matches!(owner.grant(), Err(GrantError::Policy(_))),
                "{before}"
            );
            assert_eq!(owner.policy(), before);
        }
    }

    #[test]
    fn a_policy_that_is_not_there_begins_with_the_plugin() {
        let owner = Owner::new("");
        fs::remove_file(owner.0.path().join("policy.toml")).unwrap();
        let lines = owner.grant().unwrap();
        assert_eq!(owner.policy(), lines);
    }
}
