//! The messages between plugins and their host, as plain data.
//!
//! A plugin's instance uses its capabilities with a [`CapabilityCall`]; the host looks up the required grant
//! ([`CapabilityCall::capability`]), carries out the call, and answers with a [`CapabilityAnswer`]. The host calls the
//! actions that plugins provide with an [`ActionCall`]. Neither message contains pointers into the other side: an
//! instance refers to the host's objects by [`Handle`], and streams are read piece by piece. So the two sides need not
//! be in one process.
//!
//! [`GuestRuntime`] hides where plugins run, and [`HostCalls`] hides what they reach of the host. This crate does
//! nothing itself: the host does the work, and checks what is requested.

#![warn(missing_docs)]

/// The interfaces of `wit/` whose types are generated from it, and what their functions require of the host.
#[macro_use]
#[allow(
    clippy::all,
    missing_docs,
    unused_qualifications,
    reason = "generated code, described in `wit/`"
)]
pub mod wit {
    include!(concat!(env!("OUT_DIR"), "/wit.rs"));
}

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
mod usage;
mod values;

pub use action_call::{
    ActionAnswer, ActionCall, BootAnswer, BootCall, OsAnswer, OwnCall, ProxyAnswer,
};
pub use answer::{AnswerHead, HEADER_BYTES, HEADERS};
pub use blueprint::{Blueprint, ComponentFacts, FolderView};
pub use bound::{
    ACTION_BYTES, ALL_HOST_ANSWER_BYTES, ALL_HOST_CALL_BYTES, Bound, DBUS_ANSWER, DBUS_ARGUMENTS,
    DBUS_NAME, DEFAULT_SLOTS, FIELD_NAME, FIELD_TEXT, FIELD_UNIT, HARDWARE_NAME, HOST_ANSWER_BYTES,
    HOST_CALL_BYTES, HTTP_BODY, HTTP_HEADER_BYTES, HTTP_HEADERS, HTTP_URL, I2C_BYTES, PATIENCE,
    SERIAL_BYTES,
};
pub use caller::{Caller, CallerScope};
pub use capability_call::*;
pub use errors::*;
pub use event::{EventAnswer, EventCall, kind_of_event};
pub use failure::Failure;
pub use limits::Limits;
pub use origin::{Origin, ServedCall};
pub use plugin_manifest::{Action, Capability, EventKind};
pub use plugin_values::{
    BootComparison, BootSetting, DnsRemote, InstalledRelease, OsCall, OsStatus, PendingUpdate,
    PluginEvent, Proxy, ProxyCall, ProxyError, ProxyKind, ProxyState, Redirection, ServiceChange,
    TargetProgress, bounded_list,
};
pub use runtime::{
    AnswerBody, AnswerStream, CallRefusal, GuestAnswer, GuestCode, GuestError, GuestPlugin,
    GuestRequest, GuestRuntime, HostCalls, InstanceId, JournalAnswer, LogEntry, LogLevel, Outcome,
    RequestBody, RequestHead, RequestStream,
};
pub use usage::{CallUsage, UsedResources};
pub use values::{Handle, JournalOptions, OpenLed, Parity, Piece, SerialSettings};
// Types of `wit/` that several crates use, some with their interface in the name.
pub use wit::actions::ActionError as OwnActionError;
pub use wit::api::{ApiError, Request as ApiRequest, Response as ApiResponse};
pub use wit::cloud::CloudError as CloudRefusal;
pub use wit::dbus::{DbusError, MethodCall as DbusMethodCall, Refusal as DbusRefusal};
pub use wit::device::DeviceIdentity as Identity;
pub use wit::gpio::{Edge as GpioEdge, EdgeEvent as GpioEdgeEvent, GpioError};
pub use wit::host_name::HostNameError;
pub use wit::http::{HttpError, Request as HttpRequest, Response as HttpResponse};
pub use wit::i2c::I2cError;
pub use wit::store::StoreError as DataError;
pub use wit::units::UnitError;

#[cfg(test)]
mod tests {
    use super::bounded_list::LIST;
    use super::*;

    #[test]
    fn a_list_of_a_generated_call_or_type_has_the_same_limit() {
        let labels = |entries: usize| {
            let labels = vec![r#"{"name":"","value":""}"#; entries].join(",");
            format!(r#"{{"name":"","labels":[{labels}],"value":1.0}}"#)
        };
        assert!(serde_json::from_str::<MetricsSetGauge>(&labels(LIST)).is_ok());
        assert!(serde_json::from_str::<MetricsSetGauge>(&labels(LIST + 1)).is_err());
        let request = |entries: usize| {
            let headers = vec![r#"["",[]]"#; entries].join(",");
            format!(r#"{{"method":"","url":"","headers":[{headers}],"body":[]}}"#)
        };
        assert!(serde_json::from_str::<HttpRequest>(&request(LIST)).is_ok());
        assert!(serde_json::from_str::<HttpRequest>(&request(LIST + 1)).is_err());
    }
}
