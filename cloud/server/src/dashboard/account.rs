//! The visitor's own account.

use axum::Router;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use maud::html;

use super::page::{Page, Section};
use super::visitor::Visitor;
use crate::cloud::Shared;

pub(super) fn routes() -> Router<Shared> {
    Router::new().route("/account", get(page))
}

async fn page(State(_cloud): State<Shared>, visitor: Visitor) -> Response {
    let main = html! { h1 { "Account" } p { "Signed in as " strong { (visitor.name) } "." } };
    Page {
        visitor: &visitor,
        section: Section::Account,
        title: "Account",
        above: Vec::new(),
        live: None,
        main,
    }
    .into_response()
}
