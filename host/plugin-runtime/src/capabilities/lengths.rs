//! Arguments that are too long for a message to the host: the plugin gets an error of the interface with the limit,
//! instead of being ended. The host checks lengths again, since it does not trust this process.

use plugin_protocol::wit::report::{FieldValue, ReportError};
use plugin_protocol::{
    ACTION_BYTES, ActionsCall, ApiError, ApiSend, Call, DBUS_ARGUMENTS, DBUS_NAME, DbusCall,
    DbusError, FIELD_NAME, FIELD_TEXT, FIELD_UNIT, GpioError, GpioRead, GpioWaitEdge, GpioWrite,
    HARDWARE_NAME, HTTP_BODY, HTTP_HEADER_BYTES, HTTP_HEADERS, HTTP_URL, HttpError, HttpSend,
    I2C_BYTES, I2cError, I2cReadByte, I2cReadWord, I2cWriteByte, I2cWriteRead, I2cWriteWord,
    OwnActionError, ReportRemove, ReportSet,
};

/// A call whose arguments have limits.
pub(crate) trait Lengths: Call {
    type Error;

    /// Checks that the arguments are not too long for a message.
    fn check(&self) -> Result<(), Self::Error>;
}

/// A part of a call: what it is called, in what it is measured, its length, and the limit.
type Part<'a> = (&'a str, &'a str, usize, usize);

/// Describes the first part that is longer than it may be.
fn check_parts<'a>(parts: impl IntoIterator<Item = Part<'a>>) -> Result<(), String> {
    let mut parts = parts.into_iter();
    match parts.find(|(_, _, length, most)| length > most) {
        None => Ok(()),
        Some((part, unit, length, most)) => Err(format!(
            "{part} has {length} {unit}, but at most {most} are allowed"
        )),
    }
}

/// Says what the error of a call is if its arguments are too long.
macro_rules! lengths {
    ($($call:ident or $error:ident::$case:ident = $check:expr;)*) => {
        $(impl Lengths for $call {
            type Error = $error;

            fn check(&self) -> Result<(), $error> {
                let check: fn(&$call) -> Result<(), String> = $check;
                check(self).map_err($error::$case)
            }
        })*
    };
}

lengths! {
    ActionsCall or OwnActionError::Invalid = |call| {
        let (length, limit) = (call.input.len(), ACTION_BYTES >> 10);
        if length > ACTION_BYTES {
            return Err(format!("the input has {length} bytes, more than {limit} KiB"));
        }
        Ok(())
    };
    ApiSend or ApiError::Invalid = |ApiSend { request }| check_parts([
        ("`method`", "bytes", request.method.len(), 16),
        ("`path`", "bytes", request.path.len(), HTTP_URL),
        ("`content-type`", "bytes", optional(&request.content_type), HTTP_URL),
        ("`body`", "bytes", request.body.len(), HTTP_BODY),
    ]);
    HttpSend or HttpError::Invalid = |HttpSend { request }| {
        let fields = request.headers.iter().map(|(name, value)| name.len() + value.len());
        check_parts([
            ("`method`", "bytes", request.method.len(), 16),
            ("`url`", "bytes", request.url.len(), HTTP_URL),
            ("`headers`", "fields", request.headers.len(), HTTP_HEADERS),
            ("`headers`", "bytes", fields.sum(), HTTP_HEADER_BYTES),
            ("`body`", "bytes", request.body.len(), HTTP_BODY),
        ])
    };
    DbusCall or DbusError::Invalid = |DbusCall { call }| check_parts([
        ("`service`", "bytes", call.service.len(), DBUS_NAME),
        ("`path`", "bytes", call.path.len(), DBUS_NAME),
        ("`interface`", "bytes", call.interface.len(), DBUS_NAME),
        ("`member`", "bytes", call.member.len(), DBUS_NAME),
        ("`signature`", "bytes", call.signature.len(), DBUS_NAME),
        ("`arguments`", "bytes", call.arguments.len(), DBUS_ARGUMENTS),
    ]);
    ReportSet or ReportError::Invalid = |call| {
        let text = match &call.value {
            FieldValue::Text(text) => text.len(),
            FieldValue::Number(_) | FieldValue::Boolean(_) => 0,
        };
        check_parts([
            ("the name of a field", "bytes", call.name.len(), FIELD_NAME),
            ("the text of a field", "bytes", text, FIELD_TEXT),
            ("the unit of a field", "bytes", optional(&call.unit), FIELD_UNIT),
        ])
    };
    ReportRemove or ReportError::Invalid = |call| check_parts([
        ("the name of a field", "bytes", call.name.len(), FIELD_NAME),
    ]);
    GpioRead or GpioError::NotGranted = |call| check_hardware_name("line", &call.name);
    GpioWrite or GpioError::NotGranted = |call| check_hardware_name("line", &call.name);
    GpioWaitEdge or GpioError::NotGranted = |call| check_hardware_name("line", &call.name);
    I2cReadByte or I2cError::NotGranted = |call| check_hardware_name("chip", &call.name);
    I2cReadWord or I2cError::NotGranted = |call| check_hardware_name("chip", &call.name);
    I2cWriteByte or I2cError::NotGranted = |call| check_hardware_name("chip", &call.name);
    I2cWriteWord or I2cError::NotGranted = |call| check_hardware_name("chip", &call.name);
}

impl Lengths for I2cWriteRead {
    type Error = I2cError;

    fn check(&self) -> Result<(), I2cError> {
        let length = self.bytes.len();
        if length > I2C_BYTES {
            let why = format!("a transfer writes at most {I2C_BYTES} bytes, not {length}");
            return Err(I2cError::Invalid(why));
        }
        check_hardware_name("chip", &self.name).map_err(I2cError::NotGranted)
    }
}

fn check_hardware_name(what: &str, name: &str) -> Result<(), String> {
    if name.len() > HARDWARE_NAME {
        return Err(format!(
            "no {what} has a name of more than {HARDWARE_NAME} bytes"
        ));
    }
    Ok(())
}

fn optional(text: &Option<String>) -> usize {
    text.as_ref().map_or(0, String::len)
}
