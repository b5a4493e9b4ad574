//! The state that the pages of the dashboard share.

use std::sync::Arc;

use axum::Router;
use axum::extract::FromRef;
use cloud_core::cloud::SharedCloud;

use super::live_pages::LivePages;

/// Routes of pages.
pub(crate) type Routes = Router<DashboardState>;

/// The state of the dashboard's router. Clones share it.
#[derive(Clone)]
pub struct DashboardState {
    /// The state shared with the server.
    pub(crate) cloud: SharedCloud,
    /// The pages that are open.
    pub(crate) live: Arc<LivePages>,
}

impl DashboardState {
    /// Creates the state, with no open pages.
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
