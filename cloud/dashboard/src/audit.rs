//! The events of the user's organizations, and of the user.

use axum::routing::get;
use maud::{Markup, html};
use serde::Deserialize;
use serde_json::Value;

use super::form::Search;
use super::page::{Page, Section};
use super::page_error::PageResult;
use super::session_user::SessionUser;
use super::show::{self, table};
use super::state::Routes;

/// The number of events on the page.
const MOST: usize = 100;
const PLACE: &str = "/dashboard/audit";

pub(super) fn routes() -> Routes {
    Routes::new().route("/audit", get(page))
}

#[derive(Deserialize)]
struct AuditEvent {
    id: i64,
    created_at: String,
    verb: String,
    resource: String,
    row_id: Option<i64>,
    fields: Option<Value>,
    times: i64,
    user_name: Option<String>,
    credential: Option<String>,
    credential_id: Option<i64>,
    address: Option<String>,
}

/// `GET /dashboard/audit?before=<id>`: the newest events that the user may see, or those before the given one.
async fn page(user: SessionUser, Search(search): Search) -> PageResult<Markup> {
    let before = search.text("before").parse::<i64>().unwrap_or(i64::MAX);
    let query = format!(
        "$select=id,created_at,verb,resource,row_id,fields,times,user_name,credential,credential_id,address\
         &$filter=id lt {before}&$orderby=id desc&$top={MOST}"
    );
    let events: Vec<AuditEvent> = user.rows("/audit_event", &query).await?;
    let older = events.last().filter(|_| events.len() == MOST);
    let main = html! {
        h1 { "Audit log" }
        p.faint { "What was done in the organizations that you administer, and what you did yourself." }
        @if events.is_empty() {
            p.empty { "Nothing yet." }
        } @else {
            (table("Events, newest first", &["When", "Who", "What", "Details", "From"], None, events.iter().map(row)))
        }
        @if let Some(oldest) = older {
            p { a.button href={ (PLACE) "?before=" (oldest.id) } { "Older events" } }
        }
    };
    Ok(Page::below(Section::Account, "Audit log", main).markup(&user))
}

fn row(event: &AuditEvent) -> Markup {
    let details = event.fields.as_ref().map(Value::to_string);
    html! {
        tr id={ "event-" (event.id) } {
            td data-label="When" { (show::time(Some(&event.created_at))) }
            td data-label="Who" {
                (event.user_name.as_deref().unwrap_or("No user"))
                @if let (Some(kind), Some(id)) = (&event.credential, event.credential_id) {
                    span.under { "by " (kind) " " (id) }
                }
            }
            th scope="row" data-label="What" {
                (event.verb) " " (event.resource)
                @if let Some(id) = event.row_id { " " (id) }
                @if event.times > 1 { span.under { (event.times) " times" } }
            }
            td data-label="Details" { (details.unwrap_or_default()) }
            td data-label="From" { (event.address.as_deref().unwrap_or_default()) }
        }
    }
}
