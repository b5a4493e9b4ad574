//! The visitor's own account: keys for programs, sessions, and the password.

use std::net::SocketAddr;

use axum::Router;
use axum::extract::{ConnectInfo, State};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::{get, post};
use http::{HeaderMap, header};
use maud::{Markup, html};
use resources::{KeyLimits, KeyScope, Role};
use serde::Deserialize;
use serde_json::json;

use super::form::{Form, Number};
use super::live::{Part, follow};
use super::page::{self, Page, Section};
use super::problem::Problem;
use super::show::{self, once};
use super::visitor::{self, Visitor, leave_for};
use crate::accounts::cloud_administrators::is_one;
use crate::accounts::keys::{self, Described};
use crate::accounts::sessions::{Beginning, Door};
use crate::accounts::users::{self, PasswordChange};
use crate::accounts::verification::{Claim, verified};
use crate::answer::Refusal;
use crate::cloud::{Cloud, Shared, now};
use crate::credential::{Credential, Identity};
use crate::session::random_text;

/// Keys on the page.
const MOST: usize = 200;
const PLACE: &str = "/dashboard/account";

pub(super) fn routes() -> Router<Shared> {
    Router::new()
        .route("/account", get(page))
        .route("/account/live", get(live))
        .route("/account/keys", post(make))
        .route("/account/keys/{id}/delete", post(delete))
        .route("/account/password", post(password))
        .route("/account/sessions/{id}/end", post(end_session))
}

#[derive(Deserialize)]
struct Key {
    id: i64,
    name: Option<String>,
    description: Option<String>,
    created_at: String,
    expiry_date: Option<String>,
    scope: Option<String>,
    last_used_at: Option<String>,
}

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

async fn page(State(cloud): State<Shared>, visitor: Visitor) -> Result<Response, Problem> {
    let keys = part(&cloud, &visitor).await?;
    let sessions = sessions_part(&cloud, &visitor).await?;
    let administers_cloud = is_one(&cloud, &visitor.identity).await?;
    let main = html! {
        h1 { "Account" }
        p {
            "Signed in as " strong { (visitor.name) } ". " a href="/dashboard/audit" { "Audit log" }
            @if administers_cloud { ". " a href="/dashboard/organizations" { "Organizations and their quotas" } }
        }
        section.stack aria-labelledby="keys" {
            h2 id="keys" { "API keys" }
            p.faint { "For programs: a key may do what you may, or less, until you delete it. It never changes people, organizations or keys." }
            (keys.placed())
            (new(&visitor))
        }
        section.stack aria-labelledby="sessions-title" {
            h2 id="sessions-title" { "Sessions" }
            p.faint { "Where you are signed in. End what you do not know, and then change your password." }
            (sessions.placed())
            div.answer id="sessions-said" role="status" {}
        }
        (new_password(&visitor))
    };
    Ok(Page {
        visitor: &visitor,
        section: Section::Account,
        title: "Account",
        above: Vec::new(),
        live: Some(format!("{PLACE}/live")),
        main,
    }
    .into_response())
}

async fn live(State(cloud): State<Shared>, visitor: Visitor) -> Result<Response, Problem> {
    follow(cloud, visitor, |cloud, visitor| async move {
        Ok(vec![
            part(&cloud, &visitor).await?,
            sessions_part(&cloud, &visitor).await?,
        ])
    })
    .await
}

async fn part(cloud: &Cloud, visitor: &Visitor) -> Result<Part, Problem> {
    let actor = visitor.identity.actor().unwrap_or_default();
    let query = format!(
        "$select=id,name,description,created_at,expiry_date,scope,last_used_at&$filter=is_of__actor eq {actor}\
         &$orderby=created_at desc&$top={MOST}"
    );
    let keys: Vec<Key> = visitor.rows(cloud, "/api_key", &query).await?;
    Ok(Part::new(
        "keys",
        html! {
            @if keys.is_empty() {
                p.empty { "No keys." }
            } @else {
                table.rows {
                    caption.hidden { "Your API keys" }
                    thead { tr {
                        th scope="col" { "Name" } th scope="col" { "May" } th scope="col" { "Made" }
                        th scope="col" { "Last used" } th scope="col" { "Good until" }
                        th scope="col" { span.hidden { "Change" } }
                    } }
                    tbody { @for key in &keys { (row(key)) } }
                }
            }
        },
    ))
}

fn row(key: &Key) -> Markup {
    let place = format!("{PLACE}/keys/{}/delete", key.id);
    let name = key.name.as_deref().unwrap_or("Without a name");
    html! {
        tr id={ "key-" (key.id) } {
            th scope="row" {
                (name)
                @if let Some(about) = &key.description { span.under { (about) } }
            }
            td data-label="May" { (may(key.scope.as_deref())) }
            td data-label="Made" { (show::time(Some(&key.created_at))) }
            td data-label="Last used" {
                @match key.last_used_at.as_deref() {
                    Some(at) => (show::time(Some(at))),
                    None => "Never",
                }
            }
            td data-label="Good until" {
                @match key.expiry_date.as_deref() {
                    Some(at) => (show::time(Some(at))),
                    None => "Without end",
                }
            }
            td.act {
                form method="post" action=(place) hx-post=(place) hx-target="#key-said" hx-sync="this:drop" {
                    button.small.danger type="submit" { "Delete" span.hidden { " the key " (name) } }
                }
            }
        }
    }
}

async fn sessions_part(cloud: &Cloud, visitor: &Visitor) -> Result<Part, Problem> {
    let query = format!(
        "$select=id,created_at,last_used_at,expires_at,address,user_agent,is_of_dashboard\
         &$orderby=last_used_at desc&$top={MOST}"
    );
    let sessions: Vec<Session> = visitor.rows(cloud, "/user_session", &query).await?;
    Ok(Part::new(
        "sessions",
        html! {
            table.rows {
                caption.hidden { "Your sessions" }
                thead { tr {
                    th scope="col" { "From" } th scope="col" { "Signed in" } th scope="col" { "Last used" }
                    th scope="col" { "Good until" } th scope="col" { span.hidden { "Change" } }
                } }
                tbody { @for session in &sessions { (session_row(session, visitor.claims.session)) } }
            }
        },
    ))
}

fn session_row(session: &Session, current: i64) -> Markup {
    let place = format!("{PLACE}/sessions/{}/end", session.id);
    let door = match session.is_of_dashboard {
        true => "Dashboard",
        false => "API",
    };
    html! {
        tr id={ "session-" (session.id) } {
            th scope="row" {
                (session.address) " (" (door) ")"
                @if let Some(agent) = &session.user_agent { span.under { (agent) } }
            }
            td data-label="Signed in" { (show::time(Some(&session.created_at))) }
            td data-label="Last used" { (show::time(Some(&session.last_used_at))) }
            td data-label="Good until" { (show::time(Some(&session.expires_at))) }
            td.act {
                @if session.id == current {
                    "This session"
                } @else {
                    form method="post" action=(place) hx-post=(place) hx-target="#sessions-said" hx-sync="this:drop" {
                        button.small.danger type="submit" { "End" span.hidden { " the session from " (session.address) } }
                    }
                }
            }
        }
    }
}

/// What keys of a scope may do, for people.
fn may(scope: Option<&str>) -> &str {
    match scope {
        None => "What you may",
        Some("read") => "Look",
        Some("deploy") => "Look and deploy",
        Some("device") => "Look and change devices",
        Some("fleet") => "Look, deploy, and change fleets and devices",
        Some(other) => other,
    }
}

fn new(visitor: &Visitor) -> Markup {
    let place = format!("{PLACE}/keys");
    html! {
        form.card.stack method="post" action=(place) hx-post=(place) hx-target="find .answer" hx-sync="this:drop"
            data-reset {
            h3 { "New key" }
            div.line {
                label { "What it is for" input name="name" required maxlength="50" autocomplete="off"; }
                label { "What it may do"
                    select name="scope" {
                        option value="" { (may(None)) }
                        @for scope in KeyScope::ALL {
                            option value=(scope.word()) { (may(Some(scope.word()))) }
                        }
                    }
                }
                label { "Good until (may be left out)" input type="date" name="expires"; }
            }
            @if !visitor.claims.fresh() {
                div {
                    label { "Your password"
                        input type="password" name="password" required maxlength="1000" autocomplete="current-password"
                            aria-describedby="password-hint";
                    }
                    small id="password-hint" { "It was given a while ago: a new key takes it once more." }
                }
            }
            div.answer id="key-said" role="status" {}
            div.buttons { button type="submit" { "Make a key" } }
        }
    }
}

fn new_password(visitor: &Visitor) -> Markup {
    let place = format!("{PLACE}/password");
    html! {
        form.card.stack method="post" action=(place) hx-post=(place) hx-target="find .answer" hx-sync="this:drop"
            aria-labelledby="password" {
            h2 id="password" { "Password" }
            p.faint { "A new one ends your sessions everywhere else." }
            input type="hidden" name="username" value=(visitor.name) autocomplete="username";
            label { "Current password"
                input type="password" name="current" required maxlength="1000" autocomplete="current-password";
            }
            label { "New password"
                input type="password" name="new" required minlength="8" maxlength="1000" autocomplete="new-password";
            }
            label.check { input type="checkbox" name="end_keys" value="true"; "Delete my API keys as well" }
            div.answer role="alert" {}
            div.buttons { button type="submit" { "Change the password" } }
        }
    }
}

/// The visitor, as one who just signed in where the form has their password.
///
/// # Errors
/// 403 where the password is not right.
pub(super) async fn with_password(
    cloud: &Cloud,
    visitor: &Visitor,
    form: &Form,
    from: SocketAddr,
) -> Result<Identity, Problem> {
    let mut identity = visitor.identity.clone();
    if !form.exact("password").is_empty() {
        let password = form.exact("password").to_owned();
        let given = verified(cloud, Claim::User(visitor.user), password, from.ip()).await;
        given.map_err(|error| match error {
            Refusal::Unauthorized => Refusal::Forbidden("The password is not right.".to_owned()),
            error => error,
        })?;
        let mut claims = visitor.claims.clone();
        claims.auth_time = now();
        identity.credential = Credential::Session(claims);
    }
    Ok(identity)
}

/// `POST /dashboard/account/keys`: a key, shown this once.
async fn make(
    State(cloud): State<Shared>,
    ConnectInfo(from): ConnectInfo<SocketAddr>,
    visitor: Visitor,
    form: Form,
) -> Result<Response, Problem> {
    let name = form.text("name");
    if name.is_empty() {
        return Err(Problem::wrong("Say what the key is for."));
    }
    let identity = with_password(&cloud, &visitor, &form, from).await?;
    let actor = keys::of_user(&identity).map_err(|error| match error {
        Refusal::UnauthorizedSaying(_) => Refusal::Forbidden(
            "You signed in a while ago. Load this page again and give your password with the key."
                .to_owned(),
        ),
        error => error,
    })?;
    let expires = form.text("expires");
    let described = Described {
        name: Some(name.to_owned()),
        description: None,
        expiry_date: match expires.is_empty() {
            true => None,
            false => Some(json!(format!("{expires}T23:59:59Z"))),
        },
        limits: KeyLimits {
            scope: match form.text("scope") {
                "" => None,
                word => Some(
                    KeyScope::named(word)
                        .ok_or_else(|| Problem::wrong("There is no such scope."))?,
                ),
            },
            fleet: None,
        },
    };
    let key = random_text(16).map_err(Refusal::Fault)?;
    keys::kept(&cloud, actor, Role::UserKey, &key, described).await?;
    let shown = once("The key", &key);
    Ok(match visitor.in_place {
        true => shown.into_response(),
        false => page::bare(
            "The key",
            html! { (shown) p { a.button href=(PLACE) { "To your account" } } },
        )
        .into_response(),
    })
}

async fn delete(
    State(cloud): State<Shared>,
    visitor: Visitor,
    Number(id): Number,
) -> Result<Response, Problem> {
    visitor.delete(&cloud, &format!("/api_key({id})")).await?;
    Ok(visitor.done("The key is deleted.", PLACE))
}

async fn end_session(
    State(cloud): State<Shared>,
    visitor: Visitor,
    Number(id): Number,
) -> Result<Response, Problem> {
    visitor
        .delete(&cloud, &format!("/user_session({id})"))
        .await?;
    Ok(visitor.done("The session has ended.", PLACE))
}

async fn password(
    State(cloud): State<Shared>,
    ConnectInfo(from): ConnectInfo<SocketAddr>,
    headers: HeaderMap,
    visitor: Visitor,
    form: Form,
) -> Result<Response, Problem> {
    let change = PasswordChange {
        current: form.exact("current").to_owned(),
        new: form.exact("new").to_owned(),
        end_keys: form.text("end_keys") == "true",
    };
    let beginning = Beginning::of(&headers, from, Door::Dashboard);
    let changed = users::password_changed(&cloud, visitor.user, change, from, beginning).await;
    let token = changed.map_err(|error| match error {
        Refusal::Unauthorized => Refusal::Forbidden("The current password is another.".to_owned()),
        error => error,
    })?;
    let cookie = [(header::SET_COOKIE, visitor::kept(&cloud, &token)?)];
    Ok(match visitor.in_place {
        true => (cookie, leave_for(PLACE)).into_response(),
        false => (cookie, Redirect::to(PLACE)).into_response(),
    })
}
