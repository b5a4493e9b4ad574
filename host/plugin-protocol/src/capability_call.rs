//! What an instance can ask of the host: all of it, in one table.

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

/// A call whose answer has a type of its own.
pub trait Call: Into<CapabilityCall> + Send {
    /// What is answered.
    type Answer: Send;

    /// The answer to this call out of any; `None` for an answer to another.
    fn answer(answer: CapabilityAnswer) -> Option<Self::Answer>;
}

/// Of each line `NAME needs [CAPABILITY] { ARGUMENTS } -> ANSWER;` a type, and an arm of the call and of the answer.
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

        /// What an instance asks of the host.
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
        pub enum CapabilityCall {
            $($(#[$doc])* $name($name),)*
        }

        /// What the host answers: of the same kind as the call.
        #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
        pub enum CapabilityAnswer {
            $($(#[$doc])* $name($answer),)*
        }

        impl CapabilityCall {
            /// The grant that it takes; `None` where every plugin may. What in a grant it takes (which LED, which
            /// unit) is the host's to check as well.
            #[must_use]
            pub fn capability(&self) -> Option<Capability> {
                match self {
                    $(CapabilityCall::$name(_) => None$(.or(Some(Capability::$capability)))?,)*
                }
            }

            /// What it is called in messages.
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
    /// Who the device is.
    DeviceIdentity needs [Device] {} -> Identity;
    /// The object that `GET /v1/device` answers, as JSON.
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
        /// After that it is removed.
        lifetime: Option<Duration>
    } -> Result<(), DataError>;
    /// Sets or removes a key that holds what is expected; answers whether it did.
    StoreCompareAndSet needs [Store] {
        /// At most 256 bytes.
        key: String,
        /// None where the key is not there.
        expected: Option<Vec<u8>>,
        /// At most 64 KiB; none to remove the key.
        value: Option<Vec<u8>>,
        /// After that it is removed.
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
    /// The names of the LEDs that are there and granted.
    LedNames needs [Led] {} -> Result<Vec<String>, LedError>;
    /// Takes an LED.
    LedOpen needs [Led] {
        /// The kernel's name of it.
        name: String
    } -> Result<OpenLed, LedError>;
    /// Sets the brightness of an LED that this instance has taken.
    LedSet needs [Led] {
        /// The LED.
        light: Handle,
        /// Above its highest it is taken as that.
        brightness: u32
    } -> Result<(), LedError>;
    /// The records of a kind that the cloud keeps of this device, as JSON.
    CloudRecords needs [Cloud] {
        /// The kind.
        kind: String,
        /// The fields of each record.
        fields: Vec<String>
    } -> Result<String, CloudRefusal>;
    /// Has the cloud set values.
    CloudQueue needs [Cloud] {
        /// The kind.
        kind: String,
        /// By name.
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
    /// Begins to read the journal.
    JournalOpen needs [Journal] {
        /// What is printed.
        options: JournalOptions
    } -> Result<Handle, JournalError>;
    /// The next piece of what it prints. The piece before is given again where its bytes were not all used.
    JournalRead needs [Journal] {
        /// The reader.
        reader: Handle,
        /// How many bytes of it were used so far: all of the pieces before the latest, and of that none, some or all.
        used: u64
    } -> Piece;
    /// How long a device that identifies itself goes on, in milliseconds.
    IdentifyWindow needs [] {} -> u32;
    /// Has the device shown to a person, and waits until that ends.
    Identify needs [Identify] {} -> Result<(), String>;
    /// Has whoever provides it configure the redirector of connections.
    ProxyRequest needs [ProxyRedirector] {
        /// Which function of its.
        call: ProxyCall
    } -> Result<ProxyAnswer, ProxyError>;
    /// Takes the update locks of all apps.
    LockAcquire needs [UpdateLock] {
        /// Also those that services hold, where the policy grants that.
        force: bool
    } -> Result<Handle, LocksError>;
    /// The host's name.
    HostNameGet needs [HostName] {} -> Result<Option<String>, HostNameError>;
    /// Names the host.
    HostNameSet needs [HostName] {
        /// The new name.
        name: String
    } -> Result<(), HostNameError>;
    /// Sets a gauge of the plugin's.
    GaugeSet needs [Metrics] {
        /// The metric's name.
        name: String,
        /// Pairs of a name and a value.
        labels: Vec<(String, String)>,
        /// What it is set to.
        value: f64
    } -> Result<(), MetricsError>;
    /// Adds to a counter of the plugin's.
    CounterAdd needs [Metrics] {
        /// The metric's name.
        name: String,
        /// Pairs of a name and a value.
        labels: Vec<(String, String)>,
        /// What is added.
        increment: u64
    } -> Result<(), MetricsError>;
    /// Sets a field of the device's report to its cloud.
    ReportFieldSet needs [Report] {
        /// The field's name.
        name: String,
        /// What it says.
        value: FieldValue,
        /// For people.
        unit: Option<String>
    } -> Result<(), ReportError>;
    /// Removes a field of the device's report to its cloud.
    ReportFieldRemove needs [Report] {
        /// The field's name.
        name: String
    } -> Result<(), ReportError>;
    /// Has another plugin do an action of its own.
    ActionRequest needs [Actions] {
        /// The plugin, a slash and the action's name.
        action: String,
        /// What it is done with.
        input: Vec<u8>
    } -> Result<Vec<u8>, OwnActionError>;
    /// Asks the device's own API.
    ApiSend needs [Api] {
        /// What is asked.
        request: ApiRequest
    } -> Result<ApiResponse, ApiError>;
    /// Opens a serial port.
    SerialOpen needs [Serial] {
        /// As the policy has it.
        name: String,
        /// How it is set.
        settings: SerialSettings
    } -> Result<Handle, SerialError>;
    /// Waits for something from a serial port.
    SerialRead needs [Serial] {
        /// The port.
        port: Handle,
        /// The most bytes that are answered.
        most: u32,
        /// After so many milliseconds nothing is answered.
        milliseconds: u32
    } -> Result<Vec<u8>, SerialError>;
    /// Writes to a serial port.
    SerialWrite needs [Serial] {
        /// The port.
        port: Handle,
        /// What is written.
        bytes: Vec<u8>
    } -> Result<(), SerialError>;
    /// Calls a method of a service on the system bus.
    DbusCall needs [Dbus] {
        /// Which method, with its arguments.
        call: DbusMethodCall
    } -> Result<String, DbusError>;
    /// Reads a GPIO line.
    GpioRead needs [Gpio] {
        /// As the policy calls it.
        name: String
    } -> Result<bool, GpioError>;
    /// Switches a GPIO line.
    GpioWrite needs [Gpio] {
        /// As the policy calls it.
        name: String,
        /// Whether it is on from then on.
        on: bool
    } -> Result<(), GpioError>;
    /// Waits for an edge of a GPIO line.
    GpioWait needs [Gpio] {
        /// As the policy calls it.
        name: String,
        /// Which edges count.
        edge: GpioEdge,
        /// After so many milliseconds nothing is answered.
        milliseconds: u32
    } -> Result<Option<GpioEdgeEvent>, GpioError>;
    /// Transfers something on an I2C bus, and answers what was read.
    I2cTransfer needs [I2c] {
        /// The chip, as the policy calls it.
        name: String,
        /// What is done.
        operation: I2cOperation
    } -> Result<Vec<u8>, I2cError>;
    /// Sends a request to another host.
    HttpSend needs [Http] {
        /// What is sent.
        request: HttpRequest
    } -> Result<HttpResponse, HttpError>;
}
