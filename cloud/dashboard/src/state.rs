//! What the pages of the dashboard work with.

use std::sync::Arc;

use axum::Router;
use axum::extract::FromRef;
use cloud_core::cloud::SharedCloud;

use super::live_pages::LivePages;

/// Pages at their addresses.
pub(crate) type Routes = Router<DashboardState>;

/// The state of the dashboard's router. Clones are the same one.
#[derive(Clone)]
pub struct DashboardState {
    /// What the pages share with the server.
    pub(crate) cloud: SharedCloud,
    /// The pages that are open.
    pub(crate) live: Arc<LivePages>,
}

impl DashboardState {
    /// No page is open yet.
    pub fn new(cloud: SharedCloud) -> Self {
        DashboardState {
            cloud,
            live: Arc::default(),
        }
    }
}

impl FromRef<DashboardState> for SharedCloud {
    fn from_ref(state: &DashboardState) -> Self {
        state.cloud.clone()
    }
}
