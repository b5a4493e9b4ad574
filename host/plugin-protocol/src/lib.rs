//! What plugins and their host say to each other, as plain data.
//!
//! A plugin's instance asks for what its capabilities reach with a [`CapabilityCall`]; the host looks up the
//! grant that the call takes ([`CapabilityCall::capability`]), does it, and answers with a
//! [`CapabilityAnswer`]. The host has what plugins provide done with an [`ActionCall`]. Nothing of either is a
//! pointer into the other: what an instance holds of the host is a [`Handle`], and streams are read piece by
//! piece. So none of it needs the two to be in one process.
//!
//! Where plugins run is behind [`GuestRuntime`], and what it reaches of the host behind [`HostCalls`]. Nothing here does
//! anything: the host does, and checks what it is asked for.

#![warn(missing_docs)]

mod action_call;
mod answer;
mod blueprint;
mod bound;
mod caller;
mod capability_call;
mod errors;
mod event;
mod failure;
mod limits;
mod origin;
mod runtime;
pub mod text;
mod values;

pub use action_call::{
    ActionAnswer, ActionCall, BootAnswer, BootCall, OsAnswer, OsCall, OwnCall, ProxyAnswer,
    ProxyCall,
};
pub use answer::{AnswerHead, HEADER_BYTES, HEADERS};
pub use blueprint::{Blueprint, ComponentFacts, FolderView};
pub use bound::{
    ACTION_BYTES, Bound, DBUS_ANSWER, DBUS_ARGUMENTS, DBUS_NAME, DEFAULT_SLOTS, FIELD_NAME,
    FIELD_TEXT, FIELD_UNIT, HARDWARE_NAME, HTTP_BODY, HTTP_HEADER_BYTES, HTTP_HEADERS, HTTP_URL,
    I2C_BYTES, PATIENCE, SERIAL_BYTES,
};
pub use caller::{Caller, CallerScope};
pub use capability_call::*;
pub use errors::*;
pub use event::{
    EventAnswer, InstalledRelease, PendingUpdate, PluginEvent, ServiceChange, TargetProgress,
};
pub use failure::Failure;
pub use limits::Limits;
pub use origin::{Origin, ServedCall};
pub use plugin_manifest::{Action, Capability, EventKind};
pub use runtime::{
    AnswerBody, AnswerStream, GuestAnswer, GuestCode, GuestError, GuestPlugin, GuestRequest,
    GuestRuntime, HostCalls, InstanceId, JournalAnswer, LogEntry, LogLevel, Outcome, RequestBody,
    RequestHead, RequestStream,
};
pub use values::{
    ApiRequest, ApiResponse, BootComparison, BootSetting, DbusMethodCall, DnsRemote, FieldValue,
    GpioEdge, GpioEdgeEvent, Handle, HttpRequest, HttpResponse, I2cOperation, Identity,
    JournalOptions, OpenLed, OsStatus, Parity, Piece, Proxy, ProxyKind, ProxyState, Redirection,
    SerialSettings, UnitState,
};
