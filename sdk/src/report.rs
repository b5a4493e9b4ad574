//! Fields of the plugin's own in what the device tells its cloud, where people read them on the device's page. Capability
//! `report`.
//!
//! The device reports a change at once if there was none for 5 minutes, otherwise at most every 5 minutes. The supervisor
//! keeps the fields in memory, until the plugin's file or its grants change, or the supervisor starts anew: then they are
//! gone, unless the plugin sets them again, for example on the event [`Start`](crate::events::Event::Start).
//!
//! A field's name is a lower-case letter and up to 63 of lower-case letters, digits and single `_`. A plugin has at most
//! 16 fields, and all plugins together have at most 64.
//!
//! ```no_run
//! # async fn handler() -> Result<(), supervisor_sdk::Error> {
//! use supervisor_sdk::report;
//!
//! report::set_with_unit("level", 63.5, "%").await?;
//! report::set("door", "open").await?;
//! report::set("armed", true).await?;
//! report::remove("door").await?;
//! # Ok(())
//! # }
//! ```

use crate::bindings::capabilities::platform::supervisor::report as wit;
use crate::capability_error::capability_error;

/// What a field says. Made from text, `f64`, `i32`, `u32` and `bool`.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// At most 256 bytes, without control characters and without those that turn the direction of writing.
    Text(String),
    /// A finite number.
    Number(f64),
    /// True or false.
    Boolean(bool),
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Value::Text(text.to_owned())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Value::Text(text)
    }
}

impl From<f64> for Value {
    fn from(number: f64) -> Self {
        Value::Number(number)
    }
}

impl From<i32> for Value {
    fn from(number: i32) -> Self {
        Value::Number(number.into())
    }
}

impl From<u32> for Value {
    fn from(number: u32) -> Self {
        Value::Number(number.into())
    }
}

impl From<bool> for Value {
    fn from(flag: bool) -> Self {
        Value::Boolean(flag)
    }
}

/// Sets the field `name`, whatever it was before; it has no unit then.
///
/// # Errors
/// [`Error::Invalid`] or [`Error::TooMany`]; then nothing was changed.
pub async fn set(name: &str, value: impl Into<Value>) -> Result<(), Error> {
    Ok(wit::set(name.to_owned(), value.into().into(), None).await?)
}

/// As [`set`], with a unit for people, such as `%` or `°C`, of 1 to 16 bytes.
///
/// # Errors
/// As those of [`set`].
pub async fn set_with_unit(name: &str, value: impl Into<Value>, unit: &str) -> Result<(), Error> {
    Ok(wit::set(name.to_owned(), value.into().into(), Some(unit.to_owned())).await?)
}

/// Removes the field `name`; one that is not there is no error.
///
/// # Errors
/// [`Error::Invalid`] if no field can have this name.
pub async fn remove(name: &str) -> Result<(), Error> {
    Ok(wit::remove(name.to_owned()).await?)
}

mirror! { one way enum Value, wit::FieldValue { Text(text), Number(number), Boolean(flag) } }

capability_error! {
    /// Why the supervisor did not change a field.
    ///
    /// As a [`crate::Error`]: 500, since it is the plugin's own mistake.
    wit::ReportError {
        /// The name, the value or the unit is not valid; the text says which.
        Invalid from Invalid answers internal,
        /// The plugin, or all plugins together, have as many fields as they may have.
        TooMany from TooMany answers internal,
    }
}
