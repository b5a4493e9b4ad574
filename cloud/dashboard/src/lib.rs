//! The dashboard: web pages for people, under `/dashboard` (docs/dashboard.md).
//!
//! ```text
//! request ── guard     refuses requests of other sites; headers of answers; pages of refusals
//!         ├─ user      the user, by the cookie of the session, which the API does not accept
//!         ├─ data      what the user may read and change: the data API's own statements, with the user's rights
//!         ├─ page      the layout; each page is markup that escapes its values
//!         └─ live      server-sent events: parts of an open page, sent when they change
//! ```
//!
//! Nothing is shown or done here that the same user could not read or do through the API. Pages work without scripts;
//! with them, forms answer in place and pages are updated live.

mod account;
mod actions;
mod assets;
mod audit;
mod data;
mod device;
mod fleet;
mod fleets;
mod form;
mod guard;
mod key_values;
mod live;
mod live_pages;
mod new_key;
mod page;
mod page_error;
mod pickers;
mod plugin_address;
mod plugin_list;
mod quotas;
mod recent_sign_in;
mod release;
mod rows;
mod session_user;
mod show;
mod sign_in;
mod state;
mod switch;
mod tab;

use axum::Router;
use axum::middleware::from_fn_with_state;
use axum::response::Redirect;
use axum::routing::get;
use tower_http::compression::CompressionLayer;

use page_error::PageError;
pub use state::DashboardState;

/// Returns the routes of the dashboard, and of `/`, which redirects there.
pub fn routes<S>(state: DashboardState) -> Router<S> {
    let pages = Router::new()
        .merge(sign_in::routes())
        .merge(fleets::routes())
        .merge(fleet::routes())
        .merge(device::routes())
        .merge(key_values::routes())
        .merge(switch::routes())
        .merge(release::routes())
        .merge(account::routes())
        .merge(audit::routes())
        .merge(quotas::routes())
        .merge(assets::routes())
        .fallback(async || PageError::nothing_here())
        .layer(CompressionLayer::new())
        .layer(from_fn_with_state(state.cloud.clone(), guard::guard));
    Router::new()
        .route("/", get(async || Redirect::to("/dashboard")))
        .route("/dashboard/", get(async || Redirect::to("/dashboard")))
        .nest("/dashboard", pages)
        .with_state(state)
}
