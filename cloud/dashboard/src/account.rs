//! The visitor's own account: keys for programs, sessions, and the password.

use std::net::SocketAddr;

use axum::Router;
use axum::extract::{ConnectInfo, State};
use axum::response::{IntoResponse, Redirect};
use axum::routing::{get, post};
use cloud_core::accounts::cloud_administrators::is_one;
use cloud_core::accounts::keys::{self, KeyDescription};
use cloud_core::accounts::sessions::{SessionOrigin, SignInKind};
use cloud_core::accounts::users::{self, PasswordChange};
use cloud_core::accounts::verification::{Claim, verified};
use cloud_core::answer::Refusal;
use cloud_core::clock::now;
use cloud_core::credential::{Credential, Identity};
use cloud_core::random::random_text;
use http::{HeaderMap, header};
use maud::{Markup, html};
use resources::{KeyLimits, KeyScope, Role};
use serde::Deserialize;
use serde_json::json;

use super::form::{Form, Number};
use super::live::{LiveFragment, stream_fragments};
use super::page::{self, Page, Section};
use super::problem::{PageError, PageResult};
use super::show::{self, once};
use super::state::DashboardState;
use super::visitor::{self, SessionUser, leave_for};

/// Keys on the page.
const MOST: usize = 200;
const PLACE: &str = "/dashboard/account";

pub(super) fn routes() -> Router<DashboardState> {
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

async fn page(visitor: SessionUser) -> PageResult {
    let keys = part(&visitor).await?;
    let sessions = sessions_part(&visitor).await?;
    let administers_cloud = is_one(&visitor.cloud, &visitor.identity).await?;
    let main = html! {
        h1 { "Account" }
        p {
            "Signed in as " strong { (visitor.name) } ". " a href="/dashboard/audit" { "Audit log" }
            @if administers_cloud { ". " a href="/dashboard/organizations" { "Organizations and their quotas" } }
        }
        section.stack aria-labelledby="keys" {
            h2 id="keys" { "API keys" }
            p.faint { "For programs: a key may do what you may do, or less, until you delete it. It can never change people, organizations or keys." }
            (keys.placed())
            (new(&visitor))
        }
        section.stack aria-labelledby="sessions-title" {
            h2 id="sessions-title" { "Sessions" }
            p.faint { "Where you are signed in. End any session that you do not recognize, and then change your password." }
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

async fn live(State(state): State<DashboardState>, visitor: SessionUser) -> PageResult {
    stream_fragments(state, visitor, |visitor| async move {
        Ok(vec![part(&visitor).await?, sessions_part(&visitor).await?])
    })
    .await
}

async fn part(visitor: &SessionUser) -> PageResult<LiveFragment> {
    let actor = visitor.identity.actor().unwrap_or_default();
    let query = format!(
        "$select=id,name,description,created_at,expiry_date,scope,last_used_at&$filter=is_of__actor eq {actor}\
         &$orderby=created_at desc&$top={MOST}"
    );
    let keys: Vec<Key> = visitor.rows("/api_key", &query).await?;
    Ok(LiveFragment::new(
        "keys",
        html! {
            @if keys.is_empty() {
                p.empty { "No keys." }
            } @else {
                table.rows {
                    caption.hidden { "Your API keys" }
                    thead { tr {
                        th scope="col" { "Name" } th scope="col" { "Scope" } th scope="col" { "Created" }
                        th scope="col" { "Last used" } th scope="col" { "Valid until" }
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
    let name = key.name.as_deref().unwrap_or("Unnamed");
    html! {
        tr id={ "key-" (key.id) } {
            th scope="row" {
                (name)
                @if let Some(about) = &key.description { span.under { (about) } }
            }
            td data-label="Scope" { (may(key.scope.as_deref())) }
            td data-label="Created" { (show::time(Some(&key.created_at))) }
            td data-label="Last used" {
                @match key.last_used_at.as_deref() {
                    Some(at) => (show::time(Some(at))),
                    None => "Never",
                }
            }
            td data-label="Valid until" {
                @match key.expiry_date.as_deref() {
                    Some(at) => (show::time(Some(at))),
                    None => "No expiry",
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

async fn sessions_part(visitor: &SessionUser) -> PageResult<LiveFragment> {
    let query = format!(
        "$select=id,created_at,last_used_at,expires_at,address,user_agent,is_of_dashboard\
         &$orderby=last_used_at desc&$top={MOST}"
    );
    let sessions: Vec<Session> = visitor.rows("/user_session", &query).await?;
    Ok(LiveFragment::new(
        "sessions",
        html! {
            table.rows {
                caption.hidden { "Your sessions" }
                thead { tr {
                    th scope="col" { "From" } th scope="col" { "Signed in" } th scope="col" { "Last used" }
                    th scope="col" { "Valid until" } th scope="col" { span.hidden { "Change" } }
                } }
                tbody { @for session in &sessions { (session_row(session, visitor.claims.session)) } }
            }
        },
    ))
}

fn session_row(session: &Session, current: i64) -> Markup {
    let place = format!("{PLACE}/sessions/{}/end", session.id);
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
        None => "Everything you may do",
        Some("read") => "Look",
        Some("deploy") => "Read and deploy",
        Some("device") => "Read and change devices",
        Some("fleet") => "Read, deploy, and change fleets and devices",
        Some(other) => other,
    }
}

fn new(visitor: &SessionUser) -> Markup {
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
                label { "Valid until (optional)" input type="date" name="expires"; }
            }
            @if !visitor.claims.fresh() {
                div {
                    label { "Your password"
                        input type="password" name="password" required maxlength="1000" autocomplete="current-password"
                            aria-describedby="password-hint";
                    }
                    small id="password-hint" { "You entered it some time ago. Creating a key requires it again." }
                }
            }
            div.answer id="key-said" role="status" {}
            div.buttons { button type="submit" { "Create key" } }
        }
    }
}

fn new_password(visitor: &SessionUser) -> Markup {
    let place = format!("{PLACE}/password");
    html! {
        form.card.stack method="post" action=(place) hx-post=(place) hx-target="find .answer" hx-sync="this:drop"
            aria-labelledby="password" {
            h2 id="password" { "Password" }
            p.faint { "A new password ends all your other sessions." }
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
    visitor: &SessionUser,
    form: &Form,
    from: SocketAddr,
) -> PageResult<Identity> {
    let mut identity = visitor.identity.clone();
    if !form.exact("password").is_empty() {
        let password = form.exact("password").to_owned();
        let given = verified(
            &visitor.cloud,
            Claim::User(visitor.user),
            password,
            from.ip(),
        )
        .await;
        given.map_err(|error| match error {
            Refusal::Unauthorized => Refusal::Forbidden("The password is incorrect.".to_owned()),
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
    ConnectInfo(from): ConnectInfo<SocketAddr>,
    visitor: SessionUser,
    form: Form,
) -> PageResult {
    let name = form.text("name");
    if name.is_empty() {
        return Err(PageError::wrong("Enter what the key is for."));
    }
    let identity = with_password(&visitor, &form, from).await?;
    let actor = keys::of_user(&identity).map_err(|error| {
        match error {
        Refusal::UnauthorizedSaying(_) => Refusal::Forbidden(
            "You signed in some time ago. Reload this page and enter your password for the new key."
                .to_owned(),
        ),
        error => error,
    }
    })?;
    let expires = form.text("expires");
    let described = KeyDescription {
        name: Some(name.to_owned()),
        description: None,
        expiry_date: if expires.is_empty() {
            None
        } else {
            Some(json!(format!("{expires}T23:59:59Z")))
        },
        limits: KeyLimits {
            scope: match form.text("scope") {
                "" => None,
                word => {
                    Some(KeyScope::named(word).ok_or_else(|| PageError::wrong("Unknown scope."))?)
                }
            },
            fleet: None,
        },
    };
    let key = random_text(16).map_err(Refusal::Fault)?;
    keys::kept(&visitor.cloud, actor, Role::UserKey, &key, described).await?;
    let message = once("The key", &key);
    Ok(if visitor.in_place {
        message.into_response()
    } else {
        page::bare(
            "The key",
            html! { (message) p { a.button href=(PLACE) { "Back to your account" } } },
        )
        .into_response()
    })
}

async fn delete(visitor: SessionUser, Number(id): Number) -> PageResult {
    visitor.delete(&format!("/api_key({id})")).await?;
    Ok(visitor.done("The key was deleted.", PLACE))
}

async fn end_session(visitor: SessionUser, Number(id): Number) -> PageResult {
    visitor.delete(&format!("/user_session({id})")).await?;
    Ok(visitor.done("The session has ended.", PLACE))
}

async fn password(
    ConnectInfo(from): ConnectInfo<SocketAddr>,
    headers: HeaderMap,
    visitor: SessionUser,
    form: Form,
) -> PageResult {
    let change = PasswordChange {
        current: form.exact("current").to_owned(),
        new: form.exact("new").to_owned(),
        end_keys: form.text("end_keys") == "true",
    };
    let beginning = SessionOrigin::of(&headers, from, SignInKind::Dashboard);
    let changed =
        users::password_changed(&visitor.cloud, visitor.user, change, from, beginning).await;
    let token = changed.map_err(|error| match error {
        Refusal::Unauthorized => {
            Refusal::Forbidden("The current password is incorrect.".to_owned())
        }
        error => error,
    })?;
    let cookie = [(header::SET_COOKIE, visitor::kept(&visitor.cloud, &token)?)];
    Ok(if visitor.in_place {
        (cookie, leave_for(PLACE)).into_response()
    } else {
        (cookie, Redirect::to(PLACE)).into_response()
    })
}
