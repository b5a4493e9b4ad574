//! `wit/host-name.wit`: the host's name.

use plugin_protocol::{HostNameGet, HostNameSet};

use crate::bindings::platform::supervisor::host_name::{self, HostNameError};
use crate::guest::{Answer, Guest, GuestAccess, GuestData, host};

impl host_name::Host for &mut Guest {}

impl host_name::HostWithStore<Guest> for GuestData {
    async fn get(access: &GuestAccess) -> Answer<Option<String>, HostNameError> {
        host(access).try_ask(HostNameGet {}).await
    }

    async fn set(access: &GuestAccess, name: String) -> Answer<(), HostNameError> {
        host(access).try_ask(HostNameSet { name }).await
    }
}

mirror! { one way enum plugin_protocol::HostNameError, HostNameError { Invalid(why), Other(why) } }
