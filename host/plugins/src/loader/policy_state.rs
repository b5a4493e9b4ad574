//! The policy that applies to plugins, and whether it is that of the current files.

use std::sync::Arc;

use model::error_chain;
use signatures::PublicKey;

use crate::load_context::LoadContext;
use crate::policy::{Policy, PolicyFiles};
use crate::table::PolicyStanding;

/// The policy in force.
pub(super) struct PolicyState {
    pub(super) in_force: Policy,
    pub(super) standing: PolicyStanding,
    /// Whether a policy has been read since the start.
    was_read: bool,
    /// The public keys in it.
    pub(super) keys: Arc<[PublicKey]>,
}

impl PolicyState {
    /// Creates a policy that grants nothing until `files` are read.
    pub(super) fn new(files: &PolicyFiles) -> PolicyState {
        PolicyState {
            in_force: Policy::empty(files.clone()),
            standing: PolicyStanding::Valid,
            was_read: false,
            keys: Arc::default(),
        }
    }

    /// Reads the policy again.
    pub(super) fn read(&mut self, load_context: &LoadContext) {
        match Policy::read(&load_context.policy_files, load_context.allow_unpinned) {
            Ok(policy) => {
                self.standing = PolicyStanding::Valid;
                self.was_read = true;
                self.keys = policy.keys().public_keys().cloned().collect();
                let memory = policy
                    .memory_of_all()
                    .unwrap_or(load_context.memory_of_board);
                load_context.runtime.set_memory(memory);
                self.in_force = policy;
            }
            // What was granted stays granted: a typing error takes no plugin down.
            Err(error) => {
                let error = error_chain(&error);
                let standing = if self.was_read {
                    PolicyStanding::OlderInForce { error }
                } else {
                    PolicyStanding::Missing { error }
                };
                if self.standing != standing {
                    tracing::error!("{}", standing.error().unwrap_or_default());
                }
                self.standing = standing;
            }
        }
    }
}
