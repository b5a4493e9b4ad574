//! Everything that an instance can request from the host, in one table: the calls below, and one for each function that
//! is generated from `wit/` (`host/capability-codegen`).

use serde::{Deserialize, Serialize};

use crate::{
    Capability, Handle, JournalError, JournalOptions, LedError, LocksError, OpenLed, Piece,
    ProxyAnswer, ProxyCall, ProxyError, SerialError, SerialSettings,
};

/// A call whose answer has its own type.
pub trait Call: Into<CapabilityCall> + Send {
    /// The type of the answer.
    type Answer: Send;

    /// Extracts the answer to this call; returns `None` for an answer to another call.
    fn answer(answer: CapabilityAnswer) -> Option<Self::Answer>;
}

/// The host of an instance, for calls of one kind. For a call that is generated from `wit/`, it implements the trait
/// `Host` of the interface instead.
pub trait Provide<C: Call, R> {
    /// Carries out the call. An error is for a call that no instance makes if it keeps to the rules: it gets no answer.
    fn provide(&self, call: C) -> impl Future<Output = Result<C::Answer, R>> + Send;
}

/// Turns each line `NAME needs [CAPABILITY] by [HOST: FUNCTION] { ARGUMENTS } -> ANSWER;` into a type, and into a variant
/// of the call and of the answer. A line with `by` is of a function of `wit/`, which whoever implements the trait HOST
/// carries out.
macro_rules! capability_calls {
    ($(
        $(#[$doc:meta])*
        $name:ident needs [$($capability:ident)?] $(by [$host:path: $function:ident])? {
            $($(#[$field_doc:meta])* $field:ident: $kind:ty),*
        } -> $answer:ty;
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

            provide! { $($host: $function)? ($name $($field)*) -> $answer }
        )*

        /// A request from an instance to the host.
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
        pub enum CapabilityCall {
            $($(#[$doc])* $name($name),)*
        }

        /// The host's answer: of the same kind as the call.
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
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

            /// Has `host` carry out the call.
            ///
            /// # Errors
            /// See [`Provide::provide`].
            pub async fn provide<H, R>(self, host: &H) -> Result<CapabilityAnswer, R>
            where
                $(H: Provide<$name, R>,)*
            {
                Ok(match self {
                    $(CapabilityCall::$name(call) => CapabilityAnswer::$name(
                        <H as Provide<$name, R>>::provide(host, call).await?,
                    ),)*
                })
            }
        }
    };
}

/// Has the host of an interface carry out the calls that are generated from it.
macro_rules! provide {
    (($name:ident $($field:ident)*) -> $answer:ty) => {};
    ($host:path: $function:ident ($name:ident $($field:ident)*) -> $answer:ty) => {
        impl<H: $host + Sync, R> Provide<$name, R> for H {
            async fn provide(&self, $name { $($field),* }: $name) -> Result<$answer, R> {
                Ok(<H as $host>::$function(self, $($field),*).await)
            }
        }
    };
}

with_wit_calls! {
    capability_calls {
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
            #[serde(with = "serde_bytes")]
            bytes: Vec<u8>
        } -> Result<(), SerialError>;
    }
}
