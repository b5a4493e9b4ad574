//! The addresses of pages about one plugin.

use axum::extract::{FromRequestParts, Path};
use http::request::Parts;
use serde::de::DeserializeOwned;

use crate::page_error::{PageError, PageResult};
use crate::plugin_list::is_name;
use crate::state::DashboardState;

/// The address of a plugin below the page of a device or a fleet. An invalid name or owner there is a 404.
#[derive(Debug, Clone)]
pub(crate) struct PluginAddress<O> {
    /// The device or the fleet, as addresses contain it.
    pub(crate) owner: O,
    /// The name of the plugin.
    pub(crate) name: String,
}

impl<O: DeserializeOwned + Send> FromRequestParts<DashboardState> for PluginAddress<O> {
    type Rejection = PageError;

    async fn from_request_parts(parts: &mut Parts, state: &DashboardState) -> PageResult<Self> {
        let address = Path::<(O, String)>::from_request_parts(parts, state).await;
        match address {
            Ok(Path((owner, name))) if is_name(&name) => Ok(PluginAddress { owner, name }),
            _ => Err(PageError::nothing_here()),
        }
    }
}
