//! The types of the domain: what a device should run, what it runs, and the names of both.
//!
//! Plain data. Nothing here reads a clock, a file or an engine, so the planner, which depends only
//! on this crate, can be tested by tables. Wire formats are parsed here only if they define a whole
//! type (target states, compose fields); all others are in the same module as their handler.

#![warn(missing_docs)]

mod action;
mod backoff;
mod branding;
pub mod compose;
pub mod config_variables;
mod container;
pub mod contracts;
mod current;
mod desired;
mod error_chain;
mod excerpt;
mod ids;
mod key_parameter;
mod os_update;
mod service_config;
mod settings;
mod status;
pub mod target;
mod truthy;
mod update_lock;

pub use action::{Action, ActionError, PowerAction, Verb};
pub use backoff::Backoff;
pub use branding::Branding;
pub use compose::DeviceFacts;
pub use container::{
    BOOT_LABEL, CONFIG_DIGEST_LABEL, Container, ContainerHealth, ContainerState, DEPENDS_ON_LABEL,
    EngineKind, Image, Network, STOP_GRACE_PERIOD_LABEL, Volume,
};
pub use current::{CurrentRelease, CurrentService, HANDING_OVER_PREFIX, UnreadableContainer};
pub use desired::{
    DesiredApp, DesiredHost, DesiredNetwork, DesiredObject, DesiredService, DesiredState,
    DesiredVolume, HostPart, NetworkConfig, UpdateStrategy, VolumeConfig,
};
pub use error_chain::error_chain;
pub use ids::{
    ApiKey, AppId, AppUuid, BootId, Commit, ContainerId, DeviceUuid, EngineImageId, IdError,
    ImageId, ImageRef, OsVersion, ReleaseId, ServiceId, ServiceKey, ServiceName,
};
pub use key_parameter::{key_in_query, query_without_key};
pub use os_update::{DesiredOs, OS_BUNDLE, OS_VERSION, OsBundle};
pub use service_config::{
    DeviceMapping, Healthcheck, IpamPool, Mount, NetworkAttachment, NetworkMode, PortMapping,
    Protocol, RestartPolicy, ServiceConfig, Ulimit,
};
pub use settings::{FirewallMode, Settings};
pub use status::{
    AppStatus, DeviceStatus, ImageState, ImageStatus, RejectedRelease, ReleaseState, ServiceState,
    ServiceStatus,
};
pub use target::{
    AppClass, LocalDefaults, RefusedTarget, SetTargetError, TargetApp, TargetErrors, TargetRelease,
    TargetService, TargetState,
};
pub use truthy::{read_flag, truthy, truthy_text};
pub use update_lock::{
    ApiLock, LockHolder, LockKind, LockRefusal, LockRequest, MAX_LOCK_REASON, MAX_LOCK_TTL,
    UpdateLock,
};
