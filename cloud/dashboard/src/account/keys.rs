//! The user's API keys.

use std::net::SocketAddr;
use strum::VariantNames;

use axum::extract::ConnectInfo;
use cloud_core::accounts::keys::{self, KeyDescription};
use maud::{Markup, html};
use resources::{KeyLimits, KeyScope, Role};
use serde::Deserialize;
use serde_json::Value;

use crate::form::{Form, Number};
use crate::live::LiveFragment;
use crate::page::ACCOUNT;
use crate::page_error::{PageError, PageResult};
use crate::recent_sign_in::{explained, with_password};
use crate::session_user::SessionUser;
use crate::show::{self, table};

/// The maximum number of keys on the page.
const MOST: usize = 200;

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

/// The current keys.
pub(super) async fn part(user: &SessionUser) -> PageResult<LiveFragment> {
    let actor = user.identity.actor().unwrap_or_default();
    let query = format!(
        "$select=id,name,description,created_at,expiry_date,scope,last_used_at&$filter=is_of__actor eq {actor}\
         &$orderby=created_at desc&$top={MOST}"
    );
    let keys: Vec<Key> = user.rows("/api_key", &query).await?;
    let markup = html! {
        @if keys.is_empty() {
            p.empty { "No keys." }
        } @else {
            (table("Your API keys", &["Name", "Scope", "Created", "Last used", "Valid until"], Some("Change"), keys.iter().map(row)))
        }
    };
    Ok(LiveFragment::new("keys", markup))
}

fn row(key: &Key) -> Markup {
    let place = format!("{ACCOUNT}/keys/{}/delete", key.id);
    let name = key.name.as_deref().unwrap_or("Unnamed");
    html! {
        tr id={ "key-" (key.id) } {
            th scope="row" {
                (name)
                @if let Some(about) = &key.description { span.under { (about) } }
            }
            td data-label="Scope" { (may(key.scope.as_deref())) }
            td data-label="Created" { (show::time(Some(&key.created_at))) }
            td data-label="Last used" { (time_or(key.last_used_at.as_deref(), "Never")) }
            td data-label="Valid until" { (time_or(key.expiry_date.as_deref(), "No expiry")) }
            td.act {
                form method="post" action=(place) hx-post=(place) hx-target="#key-result" hx-sync="this:drop" {
                    button.small.danger type="submit" { "Delete" span.hidden { " the key " (name) } }
                }
            }
        }
    }
}

/// Shows a time, or a text if there is none.
fn time_or(at: Option<&str>, otherwise: &str) -> Markup {
    match at {
        Some(_) => show::time(at),
        None => html! { (otherwise) },
    }
}

/// Says what keys of a scope may do, for people.
fn may(scope: Option<&str>) -> &str {
    match scope {
        None => "Everything you may do",
        Some("read") => "Read only",
        Some("deploy") => "Read and deploy",
        Some("device") => "Read and change devices",
        Some("fleet") => "Read, deploy, and change fleets and devices",
        Some(other) => other,
    }
}

/// The form that creates a key.
pub(super) fn new(user: &SessionUser) -> Markup {
    let place = format!("{ACCOUNT}/keys");
    html! {
        form.card.stack method="post" action=(place) hx-post=(place) hx-target="find .answer" hx-sync="this:drop"
            data-reset {
            h3 { "New key" }
            div.line {
                label { "What it is for" input name="name" required maxlength="50" autocomplete="off"; }
                label { "What it may do"
                    select name="scope" {
                        option value="" { (may(None)) }
                        @for scope in KeyScope::VARIANTS {
                            option value=(scope) { (may(Some(scope))) }
                        }
                    }
                }
                label { "Valid until (optional)" input type="date" name="expires"; }
            }
            @if !user.claims.fresh() {
                div {
                    label { "Your password"
                        input type="password" name="password" required maxlength="1000" autocomplete="current-password"
                            aria-describedby="password-hint";
                    }
                    small id="password-hint" { "You entered it some time ago. Creating a key requires it again." }
                }
            }
            div.answer id="key-result" role="status" {}
            div.buttons { button type="submit" { "Create key" } }
        }
    }
}

/// `POST /dashboard/account/keys`: creates a key, which is shown only now.
pub(super) async fn make(
    ConnectInfo(from): ConnectInfo<SocketAddr>,
    user: SessionUser,
    form: Form,
) -> PageResult {
    let name = form.text("name");
    if name.is_empty() {
        return Err(PageError::wrong("Enter what the key is for."));
    }
    let identity = with_password(&user, &form, from).await?;
    let actor =
        keys::require_user(&identity).map_err(|error| explained(error, "for the new key"))?;
    let description = KeyDescription {
        name: Some(name.to_owned()),
        description: None,
        expiry_date: form.end_of_day("expires").map(Value::String),
        limits: KeyLimits {
            scope: match form.filled("scope") {
                None => None,
                Some(word) => Some(
                    word.parse()
                        .map_err(|_| PageError::wrong("Unknown scope."))?,
                ),
            },
            fleet: None,
        },
    };
    let back = (ACCOUNT, "Back to your account");
    user.make_key(actor, Role::UserKey, description, back).await
}

pub(super) async fn delete(user: SessionUser, Number(id): Number) -> PageResult {
    user.delete(&format!("/api_key({id})")).await?;
    Ok(user.done("The key was deleted.", ACCOUNT))
}
