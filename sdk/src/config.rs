//! The plugin's own configuration: the table `[plugins.NAME]` of the supervisor's configuration file.
//! Needs no capability.

use serde::de::DeserializeOwned;

use crate::Error;
use crate::bindings::capabilities::platform::supervisor::config as wit;

/// Reads the configuration. If the file has no such table, it reads as `{}`, so give the fields a
/// default.
///
/// # Errors
/// 500, with a message that names the invalid field.
pub fn read<T: DeserializeOwned>() -> Result<T, Error> {
    let json = wit::json();
    let deserializer = &mut serde_json::Deserializer::from_str(&json);
    serde_path_to_error::deserialize(deserializer).map_err(|error| {
        let (path, cause) = (error.path().to_string(), error.inner());
        Error::internal(format_args!(
            "the plugin's configuration is invalid at `{path}`: {cause}"
        ))
    })
}
