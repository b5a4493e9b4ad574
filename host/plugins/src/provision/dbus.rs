//! Methods on the system bus that the policy names.

use os::{MethodCall, MethodError};
use plugin_protocol::text::cut;
use plugin_protocol::wit::dbus::{DbusError, Host, MethodCall as DbusMethodCall, Refusal};
use plugin_protocol::{DBUS_ANSWER, DBUS_ARGUMENTS, DBUS_NAME};

use super::InstanceCall;

impl Host for InstanceCall<'_> {
    async fn call(&self, call: DbusMethodCall) -> Result<String, DbusError> {
        let plugin = self.plugin;
        let DbusMethodCall {
            service,
            path,
            interface,
            member,
            signature,
            arguments,
        } = call;
        // The call comes from a plugin's instance, so lengths are checked again.
        let names = [&service, &path, &interface, &member, &signature];
        if names.iter().any(|name| name.len() > DBUS_NAME) || arguments.len() > DBUS_ARGUMENTS {
            return Err(DbusError::Invalid(
                "the call is longer than a call may be".to_owned(),
            ));
        }
        if !plugin
            .grants
            .dbus
            .cover(&service, &path, &interface, &member)
        {
            return Err(DbusError::NotGranted(cut(format!(
                "the policy does not name `{interface}.{member}` of `{service}` at `{path}` in `dbus` of the plugin `{}`",
                plugin.name
            ))));
        }
        tracing::debug!(
            plugin = &*plugin.name,
            service,
            interface,
            member,
            "calling `{interface}.{member}` of `{service}`"
        );
        let call = MethodCall {
            service,
            path,
            interface,
            member,
            signature,
            arguments,
            longest_answer: DBUS_ANSWER,
        };
        let answer = plugin.services.os.call_method(&call).await;
        answer.map_err(|error| match error {
            MethodError::Invalid(why) => DbusError::Invalid(cut(why)),
            MethodError::Refused { name, message } => DbusError::Refused(Refusal {
                name: cut(name),
                message: cut(message),
            }),
            MethodError::Unreachable(why) => DbusError::Unreachable(cut(why)),
            MethodError::Unreadable(why) => DbusError::Unreadable(cut(why)),
        })
    }
}
