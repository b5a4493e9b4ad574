//! The user's sessions.

use maud::{Markup, html};
use serde::Deserialize;

use crate::form::Number;
use crate::live::LiveFragment;
use crate::page::ACCOUNT;
use crate::page_error::PageResult;
use crate::session_user::SessionUser;
use crate::show::{self, table};

/// The maximum number of sessions on the page.
const MOST: usize = 200;

#[derive(Deserialize)]
struct Session {
    id: i64,
    created_at: String,
    last_used_at: String,
    expires_at: String,
    address: String,
    user_agent: Option<String>,
    is_of_dashboard: bool,
}

/// The current sessions.
pub(super) async fn part(user: &SessionUser) -> PageResult<LiveFragment> {
    let query = format!(
        "$select=id,created_at,last_used_at,expires_at,address,user_agent,is_of_dashboard\
         &$orderby=last_used_at desc&$top={MOST}"
    );
    let sessions: Vec<Session> = user.rows("/user_session", &query).await?;
    let current = user.claims.session;
    let rows = sessions.iter().map(|session| row(session, current));
    let table = table(
        "Your sessions",
        &["From", "Signed in", "Last used", "Valid until"],
        Some("Change"),
        rows,
    );
    Ok(LiveFragment::new("sessions", table))
}

fn row(session: &Session, current: i64) -> Markup {
    let place = format!("{ACCOUNT}/sessions/{}/end", session.id);
    let door = if session.is_of_dashboard {
        "Dashboard"
    } else {
        "API"
    };
    html! {
        tr id={ "session-" (session.id) } {
            th scope="row" {
                (session.address) " (" (door) ")"
                @if let Some(agent) = &session.user_agent { span.under { (agent) } }
            }
            td data-label="Signed in" { (show::time(Some(&session.created_at))) }
            td data-label="Last used" { (show::time(Some(&session.last_used_at))) }
            td data-label="Valid until" { (show::time(Some(&session.expires_at))) }
            td.act {
                @if session.id == current {
                    "This session"
                } @else {
                    form method="post" action=(place) hx-post=(place) hx-target="#sessions-result" hx-sync="this:drop" {
                        button.small.danger type="submit" { "End" span.hidden { " the session from " (session.address) } }
                    }
                }
            }
        }
    }
}

pub(super) async fn end(user: SessionUser, Number(id): Number) -> PageResult {
    user.delete(&format!("/user_session({id})")).await?;
    Ok(user.done("The session has ended.", ACCOUNT))
}
