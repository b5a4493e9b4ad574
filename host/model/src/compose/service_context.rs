//! What a service is read with: its place in the target, the device, and the source of its API key.

use super::api_keys::ApiKeys;
use crate::{DeviceFacts, TargetApp, TargetRelease, TargetService};

/// The context in which a service is read.
#[derive(Clone, Copy)]
pub(super) struct ServiceContext<'a> {
    pub(super) app: &'a TargetApp,
    pub(super) release: &'a TargetRelease,
    pub(super) service: &'a TargetService,
    pub(super) facts: &'a DeviceFacts,
    pub(super) keys: &'a dyn ApiKeys,
}
