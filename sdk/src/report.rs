//! The plugin's own fields in the device's report to its cloud; people read them on the device's page. Capability
//! `report`.
//!
//! The device reports a change at once if there was none for 5 minutes, otherwise at most every 5 minutes. The
//! supervisor keeps the fields in memory until the plugin's file or its grants change, or the supervisor restarts. Then
//! they are gone, unless the plugin sets them again, for example on the event [`Start`](crate::events::Event::Start).
//!
//! A field's name is a lower-case letter followed by up to 63 lower-case letters, digits and single `_`. A plugin has
//! at most 16 fields, and all plugins together have at most 64.
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

/// The value of a field. Created from text, `f64`, `i32`, `u32` or `bool`.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// At most 256 bytes, without control characters and without those that change the direction of writing.
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

/// Sets the field `name`, whatever its previous value; it then has no unit.
///
/// # Errors
/// [`Error::Invalid`] or [`Error::TooMany`]; then nothing has changed.
pub async fn set(name: &str, value: impl Into<Value>) -> Result<(), Error> {
    Ok(wit::set(name.to_owned(), value.into().into(), None).await?)
}

/// Like [`set`], with a unit for people, such as `%` or `°C`, of 1 to 16 bytes.
///
/// # Errors
/// Those of [`set`].
pub async fn set_with_unit(name: &str, value: impl Into<Value>, unit: &str) -> Result<(), Error> {
    Ok(wit::set(name.to_owned(), value.into().into(), Some(unit.to_owned())).await?)
}

/// Removes the field `name`; a missing field is not an error.
///
/// # Errors
/// [`Error::Invalid`] if no field can have this name.
pub async fn remove(name: &str) -> Result<(), Error> {
    Ok(wit::remove(name.to_owned()).await?)
}

mirror! { one way enum Value, wit::FieldValue { Text(text), Number(number), Boolean(flag) } }

capability_error! {
    /// The reason why the supervisor did not change a field.
    ///
    /// As a [`crate::Error`]: 500, since it is the plugin's own mistake.
    wit::ReportError {
        /// The name, the value or the unit is not valid; the text says which.
        Invalid from Invalid answers internal,
        /// The plugin, or all plugins together, already have the maximum number of fields.
        TooMany from TooMany answers internal,
    }
}
