//! `wit/host-name.wit`: the host's name.

use std::sync::Arc;

use wasmtime::component::Accessor;

use crate::bindings::platform::supervisor::host_name;
use crate::config::HostNameError;
use crate::guest::{Guest, ThisGuest};

impl host_name::Host for &mut Guest {}

impl host_name::HostWithStore<Guest> for ThisGuest {
    async fn get(
        accessor: &Accessor<Guest, Self>,
    ) -> Result<Option<String>, host_name::HostNameError> {
        let around = accessor.with(|mut access| Arc::clone(&access.get().around));
        Ok(around.host_name.get().await?)
    }

    async fn set(
        accessor: &Accessor<Guest, Self>,
        name: String,
    ) -> Result<(), host_name::HostNameError> {
        let around = accessor.with(|mut access| Arc::clone(&access.get().around));
        Ok(around.host_name.set(name).await?)
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
