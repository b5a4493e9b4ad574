//! Everything that an instance can request from the host, in one table.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{
    ApiError, ApiRequest, ApiResponse, Capability, CloudRefusal, DataError, DbusError,
    DbusMethodCall, FieldValue, GpioEdge, GpioEdgeEvent, GpioError, Handle, HostNameError,
    HttpError, HttpRequest, HttpResponse, I2cError, I2cOperation, Identity, JournalError,
    JournalOptions, LedError, LocksError, MetricsError, OpenLed, OwnActionError, Piece,
    ProxyAnswer, ProxyCall, ProxyError, ReportError, SerialError, SerialSettings, UnitError,
    UnitState,
};

/// A call whose answer has its own type.
pub trait Call: Into<CapabilityCall> + Send {
    /// The type of the answer.
    type Answer: Send;

    /// Extracts the answer to this call; returns `None` for an answer to another call.
    fn answer(answer: CapabilityAnswer) -> Option<Self::Answer>;
}

/// Turns each line `NAME needs [CAPABILITY] { ARGUMENTS } -> ANSWER;` into a type, and into a variant of the call and
/// of the answer.
macro_rules! capability_calls {
    ($(
        $(#[$doc:meta])*
        $name:ident needs [$($capability:ident)?] { $($(#[$field_doc:meta])* $field:ident: $kind:ty),* } -> $answer:ty;
    )*) => {
        $(
            $(#[$doc])*
            #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
            pub struct $name {
                $($(#[$field_doc])* pub $field: $kind,)*
            }

            impl From<$name> for CapabilityCall {
                fn from(call: $name) -> CapabilityCall {
                    CapabilityCall::$name(call)
                }
            }

            impl Call for $name {
                type Answer = $answer;

                fn answer(answer: CapabilityAnswer) -> Option<$answer> {
                    match answer {
                        CapabilityAnswer::$name(answer) => Some(answer),
                        _ => None,
                    }
                }
            }
        )*

        /// A request from an instance to the host.
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
        pub enum CapabilityCall {
            $($(#[$doc])* $name($name),)*
        }

        /// The host's answer: of the same kind as the call.
        #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
        pub enum CapabilityAnswer {
            $($(#[$doc])* $name($answer),)*
        }

        impl CapabilityCall {
            /// Returns the grant that the call requires; `None` if every plugin may make it. The host must also check
            /// the details of the grant (which LED, which unit).
            #[must_use]
            pub fn capability(&self) -> Option<Capability> {
                match self {
                    $(CapabilityCall::$name(_) => None$(.or(Some(Capability::$capability)))?,)*
                }
            }

            /// Returns the call's name for messages.
            #[must_use]
            pub fn name(&self) -> &'static str {
                match self {
                    $(CapabilityCall::$name(_) => stringify!($name),)*
                }
            }
        }
    };
}

capability_calls! {
    /// The device's identity.
    DeviceIdentity needs [Device] {} -> Identity;
    /// The object that `GET /v1/device` returns, as JSON.
    DeviceState needs [Device] {} -> String;
    /// The value of a key.
    StoreGet needs [Store] {
        /// At most 256 bytes.
        key: String
    } -> Result<Option<Vec<u8>>, DataError>;
    /// Sets a key.
    StoreSet needs [Store] {
        /// At most 256 bytes.
        key: String,
        /// At most 64 KiB.
        value: Vec<u8>,
        /// The key is removed after this time.
        lifetime: Option<Duration>
    } -> Result<(), DataError>;
    /// Sets or removes a key if it has the expected value; returns whether it did.
    StoreCompareAndSet needs [Store] {
        /// At most 256 bytes.
        key: String,
        /// `None` if the key is expected not to exist.
        expected: Option<Vec<u8>>,
        /// At most 64 KiB; `None` to remove the key.
        value: Option<Vec<u8>>,
        /// The key is removed after this time.
        lifetime: Option<Duration>
    } -> Result<bool, DataError>;
    /// Removes a key.
    StoreDelete needs [Store] {
        /// At most 256 bytes.
        key: String
    } -> Result<(), DataError>;
    /// The keys that begin with a prefix, sorted.
    StoreKeys needs [Store] {
        /// May be empty.
        prefix: String
    } -> Result<Vec<String>, DataError>;
    /// The names of the existing LEDs that are granted.
    LedNames needs [Led] {} -> Result<Vec<String>, LedError>;
    /// Opens an LED for exclusive use.
    LedOpen needs [Led] {
        /// The kernel's name for it.
        name: String
    } -> Result<OpenLed, LedError>;
    /// Sets the brightness of an LED that this instance has opened.
    LedSet needs [Led] {
        /// The LED.
        light: Handle,
        /// A value above the LED's maximum counts as the maximum.
        brightness: u32
    } -> Result<(), LedError>;
    /// The records of one kind that the cloud stores for this device, as JSON.
    CloudRecords needs [Cloud] {
        /// The kind.
        kind: String,
        /// The fields of each record.
        #[serde(with = "crate::bounded_list")]
        fields: Vec<String>
    } -> Result<String, CloudRefusal>;
    /// Sets values in the cloud.
    CloudQueue needs [Cloud] {
        /// The kind.
        kind: String,
        /// By name.
        #[serde(with = "crate::bounded_list")]
        values: Vec<(String, String)>
    } -> Result<(), CloudRefusal>;
    /// The state of a unit of the host.
    UnitQuery needs [Units] {
        /// Such as `openvpn.service`.
        unit: String
    } -> Result<UnitState, UnitError>;
    /// Restarts a unit of the host.
    UnitRestart needs [Units] {
        /// Such as `openvpn.service`.
        unit: String
    } -> Result<(), UnitError>;
    /// Starts reading the journal.
    JournalOpen needs [Journal] {
        /// What to print.
        options: JournalOptions
    } -> Result<Handle, JournalError>;
    /// Returns the next piece of the journal's output, or the previous piece again if not all of its bytes were used.
    JournalRead needs [Journal] {
        /// The reader.
        reader: Handle,
        /// How many bytes were used so far: all pieces before the latest in full, and the latest not at all, in part or
        /// in full.
        used: u64
    } -> Piece;
    /// How long a device identifies itself, in milliseconds.
    IdentifyWindow needs [] {} -> u32;
    /// Makes the device identifiable to a person, and waits until that ends.
    Identify needs [Identify] {} -> Result<(), String>;
    /// Asks the provider to configure the redirector of connections.
    ProxyRequest needs [ProxyRedirector] {
        /// Which of the provider's functions to call.
        call: ProxyCall
    } -> Result<ProxyAnswer, ProxyError>;
    /// Takes the update locks of all apps.
    LockAcquire needs [UpdateLock] {
        /// Also take locks that services hold, if the policy grants that.
        force: bool
    } -> Result<Handle, LocksError>;
    /// The host's name.
    HostNameGet needs [HostName] {} -> Result<Option<String>, HostNameError>;
    /// Sets the host's name.
    HostNameSet needs [HostName] {
        /// The new name.
        name: String
    } -> Result<(), HostNameError>;
    /// Sets one of the plugin's gauges.
    GaugeSet needs [Metrics] {
        /// The metric's name.
        name: String,
        /// Pairs of a name and a value.
        #[serde(with = "crate::bounded_list")]
        labels: Vec<(String, String)>,
        /// The new value.
        value: f64
    } -> Result<(), MetricsError>;
    /// Adds to one of the plugin's counters.
    CounterAdd needs [Metrics] {
        /// The metric's name.
        name: String,
        /// Pairs of a name and a value.
        #[serde(with = "crate::bounded_list")]
        labels: Vec<(String, String)>,
        /// The amount to add.
        increment: u64
    } -> Result<(), MetricsError>;
    /// Sets a field in the device's report to its cloud.
    ReportFieldSet needs [Report] {
        /// The field's name.
        name: String,
        /// The field's value.
        value: FieldValue,
        /// The unit, for people.
        unit: Option<String>
    } -> Result<(), ReportError>;
    /// Removes a field from the device's report to its cloud.
    ReportFieldRemove needs [Report] {
        /// The field's name.
        name: String
    } -> Result<(), ReportError>;
    /// Asks another plugin to perform one of its own actions.
    ActionRequest needs [Actions] {
        /// The plugin, a slash and the action's name.
        action: String,
        /// The action's input.
        input: Vec<u8>
    } -> Result<Vec<u8>, OwnActionError>;
    /// Sends a request to the device's own API.
    ApiSend needs [Api] {
        /// The request.
        request: ApiRequest
    } -> Result<ApiResponse, ApiError>;
    /// Opens a serial port.
    SerialOpen needs [Serial] {
        /// The port's name in the policy.
        name: String,
        /// The port's settings.
        settings: SerialSettings
    } -> Result<Handle, SerialError>;
    /// Waits for bytes from a serial port.
    SerialRead needs [Serial] {
        /// The port.
        port: Handle,
        /// The most bytes to return.
        most: u32,
        /// If nothing arrives within this many milliseconds, the answer is empty.
        milliseconds: u32
    } -> Result<Vec<u8>, SerialError>;
    /// Writes to a serial port.
    SerialWrite needs [Serial] {
        /// The port.
        port: Handle,
        /// The bytes to write.
        bytes: Vec<u8>
    } -> Result<(), SerialError>;
    /// Calls a method of a service on the system bus.
    DbusCall needs [Dbus] {
        /// The method, with its arguments.
        call: DbusMethodCall
    } -> Result<String, DbusError>;
    /// Reads a GPIO line.
    GpioRead needs [Gpio] {
        /// The line's name in the policy.
        name: String
    } -> Result<bool, GpioError>;
    /// Switches a GPIO line.
    GpioWrite needs [Gpio] {
        /// The line's name in the policy.
        name: String,
        /// The line's new state.
        on: bool
    } -> Result<(), GpioError>;
    /// Waits for an edge of a GPIO line.
    GpioWait needs [Gpio] {
        /// The line's name in the policy.
        name: String,
        /// Which edges count.
        edge: GpioEdge,
        /// If no edge occurs within this many milliseconds, the answer is `None`.
        milliseconds: u32
    } -> Result<Option<GpioEdgeEvent>, GpioError>;
    /// Performs a transfer on an I2C bus, and returns the bytes that were read.
    I2cTransfer needs [I2c] {
        /// The chip's name in the policy.
        name: String,
        /// The operation.
        operation: I2cOperation
    } -> Result<Vec<u8>, I2cError>;
    /// Sends a request to another host.
    HttpSend needs [Http] {
        /// The request.
        request: HttpRequest
    } -> Result<HttpResponse, HttpError>;
}
