//! The tables `[[dbus]]` of a device file: what methods on the system bus answer.
//!
//! ```toml
//! [[dbus]]
//! service = "org.acme.Meter"
//! path = "/org/acme/Meter"
//! member = "org.acme.Meter.Read"
//! values = [{ type = "d", data = 1.5 }]       # or error = "org.acme.Error.Busy" and message = "it measures"
//! ```

use anyhow::{Context as _, Result};
use plugin_test_host::protocol::text::LONGEST;
use serde::Deserialize;
use serde_json::Value;
use supervisor_testing::Host;

/// The longest name of an error, in bytes, according to the specification of D-Bus.
const ERROR_NAME: usize = 255;

/// A method and its answer.
#[derive(Debug, Deserialize)]
#[serde(try_from = "DbusToml")]
pub(super) struct DbusAnswer {
    service: String,
    path: String,
    interface: String,
    member: String,
    answer: Result<Vec<Value>, BusError>,
}

/// An error of a service.
#[derive(Debug)]
struct BusError {
    name: String,
    message: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct DbusToml {
    service: String,
    path: String,
    /// Interface, dot and method.
    member: String,
    /// The values, in the form that `wit/dbus.wit` describes.
    values: Option<Vec<Value>>,
    /// The name of an error, instead of the values.
    error: Option<String>,
    /// The text of the error.
    message: Option<String>,
}

impl TryFrom<DbusToml> for DbusAnswer {
    type Error = String;

    fn try_from(written: DbusToml) -> Result<DbusAnswer, String> {
        let DbusToml {
            service,
            path,
            member: full_member,
            values,
            error,
            message,
        } = written;
        let Some((interface, member)) = full_member.rsplit_once('.') else {
            return Err(format!(
                "`dbus` has the member `{full_member}`: write the interface, a dot and the method"
            ));
        };
        let answer = match (values, error, message) {
            (Some(values), None, None) => Ok(values),
            (None, Some(name), Some(message)) => Err(BusError { name, message }.checked()?),
            _ => {
                return Err(format!(
                    "`dbus` has the member `{full_member}`: it answers `values`, or an `error` with its `message`"
                ));
            }
        };
        Ok(DbusAnswer {
            service,
            path,
            interface: interface.to_owned(),
            member: member.to_owned(),
            answer,
        })
    }
}

impl BusError {
    fn checked(self) -> Result<BusError, String> {
        let BusError { name, message } = &self;
        if !is_error_name(name) {
            return Err(format!(
                "`dbus` has the error `{name}`: write the name of an error of D-Bus, such as `org.acme.Error.Busy`"
            ));
        }
        if message.len() > LONGEST {
            return Err(format!(
                "the message of the error `{name}` has {} bytes, but a plugin receives at most {LONGEST} of it",
                message.len()
            ));
        }
        Ok(self)
    }
}

/// Returns whether a service may give an error this name: two parts or more, each with letters, digits and `_`, and none
/// that begins with a digit.
fn is_error_name(name: &str) -> bool {
    let is_part = |part: &str| {
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        part.bytes().all(fits) && part.starts_with(|first: char| !first.is_ascii_digit())
    };
    name.len() <= ERROR_NAME && name.contains('.') && name.split('.').all(is_part)
}

impl DbusAnswer {
    /// Returns the service, the path, the interface and the member.
    pub(super) fn method(&self) -> [String; 4] {
        [&self.service, &self.path, &self.interface, &self.member].map(String::clone)
    }

    /// Returns the policy's entry for this method.
    pub(super) fn grant(&self) -> toml::Value {
        let member = format!("{}.{}", self.interface, self.member);
        let mut grant = toml::Table::new();
        grant.insert("service".to_owned(), self.service.clone().into());
        grant.insert("paths".to_owned(), vec![self.path.clone()].into());
        grant.insert("members".to_owned(), vec![member].into());
        grant.into()
    }

    /// Adds the method to a host.
    ///
    /// # Errors
    /// The values cannot be written as JSON.
    pub(super) fn add_to(&self, host: Host) -> Result<Host> {
        let DbusAnswer {
            service,
            path,
            interface,
            member,
            answer,
        } = self;
        Ok(match answer {
            Ok(values) => {
                let values = serde_json::to_string(values).context("invalid values")?;
                host.dbus_answer(service, path, interface, member, values)
            }
            Err(BusError { name, message }) => {
                host.dbus_error(service, path, interface, member, [name, message])
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(more: &str) -> Result<DbusAnswer, String> {
        let text = format!(
            "service = \"org.acme.Meter\"\npath = \"/org/acme/Meter\"\nmember = \"org.acme.Meter.Read\"\n{more}"
        );
        toml::from_str(&text).map_err(|error| error.to_string())
    }

    #[test]
    fn a_method_answers_values_or_an_error() {
        let values = answer("values = [1]").unwrap().answer.unwrap();
        assert_eq!(values, [Value::from(1)]);
        let error = answer("error = \"org.acme.Error.Busy\"\nmessage = \"it measures\"");
        let BusError { name, message } = error.unwrap().answer.unwrap_err();
        assert_eq!((&*name, &*message), ("org.acme.Error.Busy", "it measures"));
        let both = "it answers `values`, or an `error` with its `message`";
        let name = "such as `org.acme.Error.Busy`";
        let long = format!("a.{}", "x".repeat(ERROR_NAME));
        let long_name = format!("error = \"{long}\"\nmessage = \"\"");
        let long = "x".repeat(LONGEST + 1);
        let long_message = format!("error = \"a.b\"\nmessage = \"{long}\"");
        for (more, expected) in [
            ("", both),
            ("values = []\nerror = \"a.b\"\nmessage = \"\"", both),
            ("values = []\nmessage = \"\"", both),
            ("error = \"a.b\"", both),
            ("error = \"Busy\"\nmessage = \"\"", name),
            ("error = \"\"\nmessage = \"\"", name),
            ("error = \"a..b\"\nmessage = \"\"", name),
            ("error = \"a.1b\"\nmessage = \"\"", name),
            ("error = \"a.b c\"\nmessage = \"\"", name),
            (long_name.as_str(), name),
            (
                long_message.as_str(),
                "a plugin receives at most 4096 of it",
            ),
            ("reply = []", "unknown field `reply`"),
        ] {
            let error = answer(more).unwrap_err();
            assert!(error.contains(expected), "{expected}: {error}");
        }
        let text = "service = \"a.b\"\npath = \"/\"\nmember = \"Read\"\nvalues = []";
        let error = toml::from_str::<DbusAnswer>(text).unwrap_err().to_string();
        assert!(error.contains("write the interface, a dot"), "{error}");
    }
}
