//! The device's side of its cloud: who the device is to it, the HTTP client, and what is asked and told.
//!
//! - [`establish`] reads the device's identity from its config.json, and makes what is not there yet.
//! - [`Provisioned`] makes the device known to its cloud, and says once what it was set up with.
//! - [`Client`] speaks to the cloud: bounded in time, in size and in depth, with the device's key.
//! - [`Poll`] asks for the target, at its period and when somebody triggers it, and hands it on.
//! - [`Connectivity`] says whether the cloud can be reached at all.
//! - [`upload_logs`] brings what services print to the cloud, over the disk while the cloud is away.
//! - [`report`] tells the cloud how the device is, as that changes.
//! - [`keep_tunnel`] keeps a connection on which the cloud asks the device.
//! - [`Queue`] keeps what is to be told to the cloud until the cloud has taken it.
//!
//! The binary starts it and implements [`Device`] over the reconciler. What a target means is not known
//! here: it is JSON of a bounded size until the reconciler has checked it. Nothing here touches a service,
//! so a cloud that is gone, slow or hostile costs the device nothing but news.

#![warn(missing_docs)]

mod client;
mod connectivity;
mod identity;
mod logs;
mod payload;
mod poll;
mod provisioning;
mod queue;
mod report;
mod retry;
mod tunnel;

use std::error::Error;

pub use client::{Client, CloudError, Connections, TargetAnswer, user_agent};
pub use connectivity::Connectivity;
pub use identity::{ConfigFile, DeviceIdentity, Identity, IdentityError, PlainHttp, establish};
pub use logs::{LogEnd, LogLine, LogShipping, LogSink, LogSource, upload_logs};
pub use poll::{Device, Poll, Settings, Source, TargetRefusal};
pub use provisioning::{Description, IntroductionRecord, Newcomer, ProvisioningState};
pub use queue::{Queue, QueueError, Sink};
pub use report::{METRICS, PLUGIN_FIELDS, StateSource, report};
pub use tunnel::keep_tunnel;

/// Does work where it holds up nobody: the disk may be slow.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Box<dyn Error + Send + Sync>> + Send + 'static,
) -> Result<T, Box<dyn Error + Send + Sync>> {
    tokio::task::spawn_blocking(work).await?
}
