//! The operating system through systemd's services on the system bus.

use std::path::Path;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use tokio::sync::Mutex;
use tokio::time::timeout;
use zbus::{Connection, DBusError, DynamicType, Message, OwnedObjectPath, OwnedVariant};

use crate::{
    Action, HostOs, MethodCall, MethodError, OsError, UnitName, UnitState, bus_values, host_name,
};

/// How long the bus may take to greet us.
const CONNECT_WITHIN: Duration = Duration::from_secs(5);
/// How long a service may take to answer; systemd can be busy with a reload of all its units.
const ANSWER_WITHIN: Duration = Duration::from_secs(20);

/// systemd's services on the system bus. The first call makes the connection; a call that finds it closed makes it
/// again.
pub struct DBus {
    address: String,
    connection: Mutex<Option<Connection>>,
    answer_within: Duration,
}

/// Returns the bus's address for a host whose file system is at `host_root`.
#[must_use]
pub fn system_bus_below(host_root: &Path) -> String {
    // All other characters are escaped in an address (D-Bus specification, "Server Addresses").
    const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC
        .remove(b'-')
        .remove(b'_')
        .remove(b'/')
        .remove(b'.')
        .remove(b'*');
    let socket = host_root.join("run/dbus/system_bus_socket");
    let socket = socket.to_string_lossy();
    format!("unix:path={}", utf8_percent_encode(&socket, ESCAPED))
}

impl DBus {
    /// Sends nothing to the bus yet; the first call notices if the bus does not exist.
    #[must_use]
    pub fn connect(address: impl Into<String>) -> Self {
        DBus {
            address: address.into(),
            connection: Mutex::new(None),
            answer_within: ANSWER_WITHIN,
        }
    }

    /// Sets another limit on the time that a service may take to answer; the default is 20 s.
    #[must_use]
    pub fn answer_within(mut self, limit: Duration) -> Self {
        self.answer_within = limit;
        self
    }

    async fn manager<B>(
        &self,
        service: &Service,
        method: &str,
        body: &B,
    ) -> Result<Message, OsError>
    where
        B: serde::Serialize + DynamicType + Sync,
    {
        self.call(service, service.path, service.interface, method, body)
            .await
    }

    async fn call<B>(
        &self,
        service: &Service,
        path: &str,
        interface: &str,
        method: &str,
        body: &B,
    ) -> Result<Message, OsError>
    where
        B: serde::Serialize + DynamicType + Sync,
    {
        let call = format!("{interface}.{method}");
        let answer = async {
            self.connection()
                .await?
                .call_method(Some(service.name), path, Some(interface), method, body)
                .await
                // Not tried again: the service may have done it before the connection was lost.
                .map_err(|error| self.failed(&call, error))
        };
        match timeout(self.answer_within, answer).await {
            Ok(outcome) => outcome,
            Err(_) => Err(OsError::TimedOut {
                call: call.clone(),
                limit: self.answer_within,
            }),
        }
    }

    /// Returns the connection, and makes it again if there is none or the bus has closed it. Other callers wait while
    /// it is being made.
    async fn connection(&self) -> Result<Connection, OsError> {
        let mut slot = self.connection.lock().await;
        if let Some(connection) = slot.as_ref().filter(|connection| !connection.is_closed()) {
            return Ok(connection.clone());
        }
        let greeting = async {
            zbus::connection::Builder::address(self.address.as_str())
                .build()
                .await
        };
        let unreachable = |source: Box<dyn std::error::Error + Send + Sync>| OsError::Unreachable {
            address: self.address.clone(),
            source,
        };
        let connection = timeout(CONNECT_WITHIN, greeting)
            .await
            .map_err(|elapsed| unreachable(elapsed.into()))?
            .map_err(|error| unreachable(error.into()))?;
        *slot = Some(connection.clone());
        Ok(connection)
    }

    fn failed(&self, call: &str, error: zbus::Error) -> OsError {
        let call = call.to_owned();
        match error {
            zbus::Error::MethodError(name, message, _) => OsError::Refused {
                call,
                name: name.to_string(),
                message: message.unwrap_or_else(|| "without saying why".into()),
            },
            zbus::Error::FDO(error) => OsError::Refused {
                call,
                name: error.name().to_string(),
                message: error.description().unwrap_or("without saying why").into(),
            },
            error if is_transport(&error) => OsError::Unreachable {
                address: self.address.clone(),
                source: error.into(),
            },
            error => unreadable(call, error),
        }
    }

    async fn property(&self, path: &OwnedObjectPath, name: &str) -> Result<String, OsError> {
        const UNIT: &str = "org.freedesktop.systemd1.Unit";
        let answer = self
            .call(
                &SYSTEMD,
                path.as_str(),
                "org.freedesktop.DBus.Properties",
                "Get",
                &(UNIT, name),
            )
            .await?;
        let unreadable = |error| unreadable(format!("{UNIT}.{name}"), error);
        let value: OwnedVariant = answer.body().deserialize().map_err(unreadable)?;
        String::try_from(value).map_err(unreadable)
    }

    /// Starts, stops or restarts a unit; jobs that contradict this are replaced.
    async fn job(&self, method: &str, unit: &UnitName) -> Result<Message, OsError> {
        self.manager(&SYSTEMD, method, &(unit.as_str(), "replace"))
            .await
    }
}

/// A service of the bus with the one object that manages the others.
struct Service {
    name: &'static str,
    path: &'static str,
    interface: &'static str,
}

const LOGIND: Service = Service {
    name: "org.freedesktop.login1",
    path: "/org/freedesktop/login1",
    interface: "org.freedesktop.login1.Manager",
};
const SYSTEMD: Service = Service {
    name: "org.freedesktop.systemd1",
    path: "/org/freedesktop/systemd1",
    interface: "org.freedesktop.systemd1.Manager",
};
const HOSTNAMED: Service = Service {
    name: "org.freedesktop.hostname1",
    path: "/org/freedesktop/hostname1",
    interface: "org.freedesktop.hostname1",
};

/// Nobody can enter a password.
const INTERACTIVE: bool = false;

fn unreadable(call: impl Into<String>, error: zbus::Error) -> OsError {
    OsError::Answer {
        call: call.into(),
        source: error.into(),
    }
}

fn is_transport(error: &zbus::Error) -> bool {
    matches!(
        error,
        zbus::Error::InputOutput(_) | zbus::Error::Handshake(_) | zbus::Error::Address(_)
    )
}

impl HostOs for DBus {
    fn describe(&self) -> String {
        format!("over the system bus at `{}`", self.address)
    }

    fn act(&self, action: Action) -> BoxFuture<'_, Result<(), OsError>> {
        async move {
            let answer = match &action {
                Action::Reboot => self.manager(&LOGIND, "Reboot", &INTERACTIVE).await,
                Action::PowerOff => self.manager(&LOGIND, "PowerOff", &INTERACTIVE).await,
                Action::Start(unit) => self.job("StartUnit", unit).await,
                Action::Stop(unit) => self.job("StopUnit", unit).await,
                Action::Restart(unit) => self.job("RestartUnit", unit).await,
                Action::SetHostName(name) => {
                    host_name::check(name)?;
                    let arguments = (name.as_str(), INTERACTIVE);
                    self.manager(&HOSTNAMED, "SetStaticHostname", &arguments)
                        .await
                }
            };
            answer.map(drop)
        }
        .boxed()
    }

    fn unit<'a>(&'a self, unit: &'a UnitName) -> BoxFuture<'a, Result<UnitState, OsError>> {
        async move {
            // Not GetUnit, which knows only units that are already loaded.
            let call = "LoadUnit";
            let answer = self.manager(&SYSTEMD, call, &unit.as_str()).await?;
            let path = answer.body().deserialize::<OwnedObjectPath>();
            let path = path.map_err(|error| unreadable(call, error))?;
            Ok(UnitState {
                load_state: self.property(&path, "LoadState").await?,
                active_state: self.property(&path, "ActiveState").await?,
                sub_state: self.property(&path, "SubState").await?,
            })
        }
        .boxed()
    }

    fn call_method<'a>(
        &'a self,
        call: &'a MethodCall,
    ) -> BoxFuture<'a, Result<String, MethodError>> {
        async move {
            let arguments = bus_values::arguments(&call.signature, &call.arguments);
            let arguments = arguments.map_err(MethodError::Invalid)?;
            let (service, path) = (call.service.as_str(), call.path.as_str());
            let (interface, member) = (call.interface.as_str(), call.member.as_str());
            let asking = async {
                let connection = self.connection().await.map_err(method_error)?;
                let answer = match &arguments {
                    Some(arguments) => {
                        connection
                            .call_method(Some(service), path, Some(interface), member, arguments)
                            .await
                    }
                    None => {
                        connection
                            .call_method(Some(service), path, Some(interface), member, &())
                            .await
                    }
                };
                answer.map_err(|error| {
                    method_error(self.failed(&format!("{interface}.{member}"), error))
                })
            };
            let answer = match timeout(self.answer_within, asking).await {
                Ok(answer) => answer?,
                Err(_) => {
                    return Err(MethodError::Unreachable(format!(
                        "`{service}` did not answer within {} s",
                        self.answer_within.as_secs()
                    )));
                }
            };
            let body = answer.body();
            let too_long = || {
                let most = call.longest_answer >> 10;
                MethodError::Unreadable(format!("the answer is longer than {most} KiB"))
            };
            if body.len() > call.longest_answer {
                return Err(too_long());
            }
            let values = bus_values::answer(&body).map_err(MethodError::Unreadable)?;
            let values = values.to_string();
            if values.len() > call.longest_answer {
                return Err(too_long());
            }
            Ok(values)
        }
        .boxed()
    }
}

fn method_error(error: OsError) -> MethodError {
    match error {
        OsError::Refused { name, message, .. } => MethodError::Refused { name, message },
        // The name or the path is invalid: nothing was sent.
        OsError::Answer { source, .. } => MethodError::Invalid(source.to_string()),
        error => MethodError::Unreachable(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_escapes_what_an_address_may_not_have() {
        assert_eq!(
            system_bus_below(Path::new("/")),
            "unix:path=/run/dbus/system_bus_socket"
        );
        assert_eq!(
            system_bus_below(Path::new("/mnt/a,b c=d")),
            "unix:path=/mnt/a%2Cb%20c%3Dd/run/dbus/system_bus_socket"
        );
    }
}
