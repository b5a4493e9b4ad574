//! `wit/dbus.wit`: the methods on the system bus that the policy names.

use plugin_protocol::{DBUS_ARGUMENTS, DBUS_NAME, DbusCall, DbusMethodCall};

use crate::bindings::platform::supervisor::dbus::{self, DbusError, MethodCall, Refusal};
use crate::guest::{Answer, Guest, GuestAccess, GuestData, host};

impl dbus::Host for &mut Guest {}

impl dbus::HostWithStore<Guest> for GuestData {
    async fn call(access: &GuestAccess, call: MethodCall) -> Answer<String, DbusError> {
        // A longer call does not fit into a message to the host.
        if let Some(why) = too_long(&call) {
            return Ok(Err(DbusError::Invalid(why)));
        }
        let call = call.into();
        host(access).try_ask(DbusCall { call }).await
    }
}

fn too_long(call: &MethodCall) -> Option<String> {
    let parts = [
        ("service", &call.service, DBUS_NAME),
        ("path", &call.path, DBUS_NAME),
        ("interface", &call.interface, DBUS_NAME),
        ("member", &call.member, DBUS_NAME),
        ("signature", &call.signature, DBUS_NAME),
        ("arguments", &call.arguments, DBUS_ARGUMENTS),
    ];
    let mut parts = parts.into_iter();
    let (part, text, most) = parts.find(|(_, text, most)| text.len() > *most)?;
    let length = text.len();
    Some(format!(
        "`{part}` has {length} bytes, but at most {most} are allowed"
    ))
}

mirror! { one way struct MethodCall, DbusMethodCall { service, path, interface, member, signature, arguments } }
mirror! { one way struct plugin_protocol::DbusRefusal, Refusal { name, message } }

impl From<plugin_protocol::DbusError> for DbusError {
    fn from(error: plugin_protocol::DbusError) -> Self {
        use plugin_protocol::DbusError as Error;
        match error {
            Error::NotGranted(why) => DbusError::NotGranted(why),
            Error::Invalid(why) => DbusError::Invalid(why),
            Error::Refused(refusal) => DbusError::Refused(refusal.into()),
            Error::Unreachable(why) => DbusError::Unreachable(why),
            Error::Unreadable(why) => DbusError::Unreadable(why),
        }
    }
}
