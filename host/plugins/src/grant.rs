//! Adds to the policy what a plugin asks for: what an owner else does by hand with the lines of `trust`.

use std::path::{Path, PathBuf};

use crate::file_with_signature::replace_alone;
use crate::policy::{Policy, PolicyError, PolicyFiles, policy_text};
use crate::trust::{TrustError, TrustedPlugin, has_section, trust};

/// Why nothing was added to the policy, which is as it was.
#[derive(Debug, thiserror::Error)]
pub enum GrantError {
    /// The file is no plugin.
    #[error(transparent)]
    File(#[from] TrustError),
    /// The policy is invalid as it is, or would be with the lines.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// The owner has decided about this plugin before.
    #[error(
        "the policy `{}` has a section [plugins.{plugin}] already; to change it, edit it by hand with these lines:\n\n{lines}",
        policy.display()
    )]
    Present {
        /// The policy.
        policy: PathBuf,
        /// The plugin's name.
        plugin: String,
        /// What would have been added.
        lines: String,
    },
    /// The policy cannot be written.
    #[error("the policy `{}` cannot be written", policy.display())]
    Write {
        /// The policy.
        policy: PathBuf,
        /// Why.
        source: std::io::Error,
    },
}

/// Adds the section that gives the plugin in `file` what it asks for to the end of `policy`, and returns the lines. The
/// rest of the policy stays as it is, comments included; it is replaced in one step. `stock_plugins` is the layout's
/// list. With `maker_key` they are for what the key in that file signs ([`trust_lines`](crate::trust_lines)). With
/// `anybodys`, a policy that others can write is used too.
///
/// # Errors
/// [`GrantError`]; the policy is as it was then.
pub fn grant(
    file: &Path,
    policy: &Path,
    stock_plugins: &Path,
    maker_key: Option<&Path>,
    anybodys: bool,
) -> Result<String, GrantError> {
    let TrustedPlugin { name, lines } = trust(file, policy, stock_plugins, maker_key)?;
    let text = policy_text(policy, anybodys)?;
    let files = PolicyFiles {
        owner: policy.to_owned(),
        stock: stock_plugins.to_owned(),
    };
    let stock = policy_text(stock_plugins, anybodys)?.unwrap_or_default();
    let before = text.clone().unwrap_or_default();
    Policy::parse(&files, &before, &stock)?;
    if has_section(&before.parse().unwrap_or_default(), &name) {
        return Err(GrantError::Present {
            policy: policy.to_owned(),
            plugin: name,
            lines,
        });
    }
    let separator = match before.as_str() {
        "" => "",
        text if text.ends_with('\n') => "\n",
        _ => "\n\n",
    };
    let after = format!("{before}{separator}{lines}");
    Policy::parse(&files, &after, &stock)?;
    let write = || {
        // A new policy is for its owner to write, and for everybody to read.
        if text.is_none() {
            std::fs::write(policy, "")?;
        }
        replace_alone(policy, after.as_bytes())
    };
    write().map_err(|source| GrantError::Write {
        policy: policy.to_owned(),
        source,
    })?;
    Ok(lines)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    struct Owner(tempfile::TempDir);

    impl Owner {
        fn new(policy: &str) -> Owner {
            let folder = tempfile::tempdir().unwrap();
            fs::write(folder.path().join("policy.toml"), policy).unwrap();
            let plugin = crate::signature::tests::plugin();
            fs::write(folder.path().join("a.wasm"), plugin).unwrap();
            Owner(folder)
        }

        fn grant(&self) -> Result<String, GrantError> {
            let path = |name| self.0.path().join(name);
            grant(
                &path("a.wasm"),
                &path("policy.toml"),
                &path("stock-plugins.toml"),
                None,
                true,
            )
        }

        fn policy(&self) -> String {
            fs::read_to_string(self.0.path().join("policy.toml")).unwrap()
        }
    }

    #[test]
    fn what_a_plugin_asks_for_is_added_and_the_rest_stays() {
        let before = "# by hand\n[plugins.b]\ngrants = [\"store\"] # for b\n";
        let owner = Owner::new(before);
        let lines = owner.grant().unwrap();
        assert!(lines.contains("[plugins.a]"), "{lines}");
        assert_eq!(owner.policy(), format!("{before}\n{lines}"));
        // A second time the owner has decided already.
        let error = owner.grant().unwrap_err();
        assert!(matches!(&error, GrantError::Present { plugin, .. } if plugin == "a"));
        assert_eq!(owner.policy(), format!("{before}\n{lines}"));
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
