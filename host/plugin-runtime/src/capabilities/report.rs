//! `wit/report.wit`: fields in the device's report to its cloud.

use plugin_protocol::{FIELD_NAME, FIELD_TEXT, FIELD_UNIT, ReportFieldRemove, ReportFieldSet};

use crate::bindings::platform::supervisor::report::{self, FieldValue, ReportError};
use crate::guest::{Answer, Guest, GuestAccess, GuestData, host};

impl report::Host for &mut Guest {}

impl report::HostWithStore<Guest> for GuestData {
    async fn set(
        access: &GuestAccess,
        name: String,
        value: FieldValue,
        unit: Option<String>,
    ) -> Answer<(), ReportError> {
        // A longer text may not fit into a message to the host.
        let text = match &value {
            FieldValue::Text(text) => text.len(),
            FieldValue::Number(_) | FieldValue::Boolean(_) => 0,
        };
        let unit_length = unit.as_ref().map_or(0, String::len);
        let too_long = too_long("name of a field", name.len(), FIELD_NAME)
            .or_else(|| too_long("text of a field", text, FIELD_TEXT))
            .or_else(|| too_long("unit of a field", unit_length, FIELD_UNIT));
        if let Some(error) = too_long {
            return Ok(Err(error));
        }
        let value = value.into();
        host(access)
            .try_ask(ReportFieldSet { name, value, unit })
            .await
    }

    async fn remove(access: &GuestAccess, name: String) -> Answer<(), ReportError> {
        if let Some(error) = too_long("name of a field", name.len(), FIELD_NAME) {
            return Ok(Err(error));
        }
        host(access).try_ask(ReportFieldRemove { name }).await
    }
}

fn too_long(what: &str, length: usize, most: usize) -> Option<ReportError> {
    let is_too_long = length > most;
    is_too_long.then(|| {
        ReportError::Invalid(format!(
            "the {what} has {length} bytes, but at most {most} are allowed"
        ))
    })
}

mirror! { one way enum FieldValue, plugin_protocol::FieldValue { Text(text), Number(number), Boolean(flag) } }
mirror! { one way enum plugin_protocol::ReportError, ReportError { Invalid(why), TooMany(why) } }
