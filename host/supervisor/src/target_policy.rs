//! What the device's owner wants signed of targets: the policy's file, read anew for each target, so that a change
//! takes effect at once.

use std::sync::Arc;

use model::error_chain;
use reconcile::ReadTargetPolicy;
use signed_targets::TargetPolicy;

use crate::configuration::Configuration;

/// Reads the file of the policy, where nobody else can have written it.
pub(crate) fn reader(configuration: &Configuration) -> ReadTargetPolicy {
    let path = configuration.policy.clone();
    let anybodys = configuration.allow_unpinned;
    Arc::new(move || {
        let text = plugins::policy_text(&path, anybodys).map_err(|error| error_chain(&error))?;
        let policy = TargetPolicy::parse(&text.unwrap_or_default());
        policy.map_err(|error| format!("`{}`: {}", path.display(), error.message()))
    })
}
