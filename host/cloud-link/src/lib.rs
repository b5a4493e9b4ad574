//! The device's connection to its cloud: its identity, the HTTP client, and the data that is exchanged.
//!
//! - [`establish`] reads the device's identity from its config.json, and creates the missing parts.
//! - [`ProvisioningState`] registers the device with its cloud, and sends its initial configuration once.
//! - [`Client`] sends requests to the cloud with the device's key: bounded in time, in size and in depth.
//! - [`Poll`] requests the target, periodically and when triggered, and passes it on.
//! - [`Connectivity`] says whether the cloud can be reached at all.
//! - [`upload_logs`] sends the output of services to the cloud, and stores it on the disk while the cloud is away.
//! - [`report`] reports the device's state to the cloud, as it changes.
//! - [`keep_tunnel`] keeps a connection on which the cloud sends requests to the device.
//! - [`Queue`] keeps data for the cloud until the cloud has accepted it.
//!
//! The binary starts these and implements [`Device`] over the reconciler. The meaning of a target is not known here: it
//! is JSON of a bounded size until the reconciler has checked it. Nothing here touches a service, so if the cloud is
//! gone, slow or hostile, the device only misses updates.

#![warn(missing_docs)]

mod blocking;
mod client;
mod clock;
mod connectivity;
mod identity;
mod logs;
mod payload;
mod poll;
mod provisioning;
mod queue;
mod report;
mod retry;
mod target_source;
mod tunnel;

pub use client::{Client, CloudError, Connections, TargetAnswer, user_agent};
pub use connectivity::Connectivity;
pub use identity::{ConfigFile, DeviceIdentity, Identity, IdentityError, PlainHttp, establish};
pub use logs::{CloudLogSink, LogLine, LogShipping, LogSink, LogSource, upload_logs};
pub use poll::{Device, Poll, Settings, TargetRefusal};
pub use provisioning::{Description, IntroductionRecord, IntroductionSource, ProvisioningState};
pub use queue::{Queue, QueueError, Sink};
pub use report::{METRICS, PLUGIN_FIELDS, StateSource, report};
pub use target_source::Source;
pub use tunnel::keep_tunnel;
