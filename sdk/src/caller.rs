//! The caller that the plugin is called for. Needs no capability, but a supervisor with version 1.1 of the
//! interface.
//!
//! The host has checked the caller's key. A plugin that keeps data for each app should give the key of a service
//! access only to the data of that service's app:
//!
//! ```
//! use supervisor_sdk::{Caller, Error, Path, plugin};
//!
//! plugin! {
//!     routes: { GET "/v3/counter/:app" => count }
//! }
//!
//! async fn count(caller: Caller, Path(app): Path<u64>) -> Result<String, Error> {
//!     if !caller.covers(app) {
//!         return Err(Error::unauthorized("this key is not for that app"));
//!     }
//!     Ok("7".to_owned())
//! }
//! ```

use crate::bindings::capabilities::platform::supervisor::caller as wit;
use crate::{Error, FromRequest, Request};

/// Who a call is for: an argument of handlers and of the functions of a plugin's own actions; in other provided actions,
/// [`Caller::current`] returns it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    scope: Scope,
    plugin: Option<String>,
}

/// What a caller may see and change on the device.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Scope {
    /// The device itself is the caller, for its target state.
    Device,
    /// The request came with the device's own key: everything, whichever app it belongs to.
    DeviceKey,
    /// The request needed no key, since the device is in local mode and its owner opened the listener: everything.
    LocalMode,
    /// The request came with the key of a service: what belongs to the service's app.
    Service {
        /// The app's number in the device API.
        app_id: u64,
        /// The service's name in the app.
        service: String,
    },
    /// A scope that this version of the SDK does not know; the text describes it.
    Other(String),
}

impl Caller {
    /// Returns the caller of the call that this instance serves.
    #[must_use]
    pub fn current() -> Self {
        Self {
            scope: wit::scope().into(),
            plugin: wit::plugin(),
        }
    }

    /// Returns what the caller may see and change. If an action is performed for another plugin, this is the scope
    /// of the request that the other plugin serves.
    #[must_use]
    pub fn scope(&self) -> &Scope {
        &self.scope
    }

    /// Returns the plugin that called this action. `None` for a request, and if the host itself called the action.
    #[must_use]
    pub fn plugin(&self) -> Option<&str> {
        self.plugin.as_deref()
    }

    /// Returns whether the caller may see and change what belongs to the app with this number.
    #[must_use]
    pub fn covers(&self, app_id: u64) -> bool {
        match &self.scope {
            Scope::Device | Scope::DeviceKey | Scope::LocalMode => true,
            Scope::Service { app_id: own, .. } => *own == app_id,
            Scope::Other(_) => false,
        }
    }
}

/// A caller that is not a plugin, for tests of handlers.
impl From<Scope> for Caller {
    fn from(scope: Scope) -> Self {
        Self {
            scope,
            plugin: None,
        }
    }
}

impl FromRequest for Caller {
    async fn from_request(_: &mut Request) -> Result<Self, Error> {
        Ok(Self::current())
    }
}

impl From<wit::CallerScope> for Scope {
    fn from(scope: wit::CallerScope) -> Self {
        match scope {
            wit::CallerScope::Device => Self::Device,
            wit::CallerScope::DeviceKey => Self::DeviceKey,
            wit::CallerScope::LocalMode => Self::LocalMode,
            wit::CallerScope::Service(wit::AppService { app_id, service }) => {
                Self::Service { app_id, service }
            }
            wit::CallerScope::Other(what) => Self::Other(what),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_covers_its_own_app_and_an_unknown_scope_covers_none() {
        let service = |app_id| Scope::Service {
            app_id,
            service: "web".to_owned(),
        };
        for (scope, covers) in [
            (Scope::Device, true),
            (Scope::DeviceKey, true),
            (Scope::LocalMode, true),
            (service(7), true),
            (service(8), false),
            (Scope::Other("a friend's key".to_owned()), false),
        ] {
            assert_eq!(Caller::from(scope.clone()).covers(7), covers, "{scope:?}");
        }
    }
}
