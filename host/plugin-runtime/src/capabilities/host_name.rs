//! `wit/host-name.wit`: the host's name.

use plugin_protocol::{HostNameError, HostNameGet, HostNameSet};
use wasmtime::component::Accessor;

use crate::bindings::platform::supervisor::host_name;
use crate::guest::{Guest, ThisGuest, host};

impl host_name::Host for &mut Guest {}

impl host_name::HostWithStore<Guest> for ThisGuest {
    async fn get(
        accessor: &Accessor<Guest, Self>,
    ) -> wasmtime::Result<Result<Option<String>, host_name::HostNameError>> {
        let answer = host(accessor).ask(HostNameGet {}).await?;
        Ok(answer.map_err(Into::into))
    }

    async fn set(
        accessor: &Accessor<Guest, Self>,
        name: String,
    ) -> wasmtime::Result<Result<(), host_name::HostNameError>> {
        let answer = host(accessor).ask(HostNameSet { name }).await?;
        Ok(answer.map_err(Into::into))
    }
}

impl From<HostNameError> for host_name::HostNameError {
    fn from(error: HostNameError) -> Self {
        match error {
            HostNameError::Invalid(why) => Self::Invalid(why),
            HostNameError::Other(why) => Self::Other(why),
        }
    }
}
