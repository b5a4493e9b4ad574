//! The device owner's requirements for signatures of targets: the policy's file, read again for each target, so a
//! change takes effect at once.

use std::sync::Arc;

use model::error_chain;
use plugin_manifest::FormError;
use reconcile::ReadTargetPolicy;
use signed_targets::TargetPolicy;

use crate::configuration::Configuration;

/// Reads the file of the policy, if no other user can have written it.
pub(crate) fn reader(configuration: &Configuration) -> ReadTargetPolicy {
    let path = configuration.policy.clone();
    let anybodys = configuration.allow_unpinned;
    Arc::new(move || {
        let text = plugins::policy_text(&path, anybodys).map_err(|error| error_chain(&error))?;
        let policy = TargetPolicy::parse(&text.unwrap_or_default());
        policy.map_err(|error| format!("`{}`: {}", path.display(), FormError::new(&error).message))
    })
}
