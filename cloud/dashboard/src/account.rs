//! The user's own account: keys for programs, sessions, and the password.

mod keys;
mod password;
mod sessions;

use axum::routing::post;
use cloud_core::accounts::cloud_administrators::is_one;
use maud::html;

use super::live::{LiveFragment, LivePage, live_page};
use super::page::{ACCOUNT, Page, Section};
use super::page_error::PageResult;
use super::session_user::SessionUser;
use super::state::Routes;

pub(super) fn routes() -> Routes {
    live_page::<AccountPage>("/account")
        .route("/account/keys", post(keys::make))
        .route("/account/keys/{id}/delete", post(keys::delete))
        .route("/account/sessions/{id}/end", post(sessions::end))
        .route("/account/password", post(password::change))
}

struct AccountPage;

impl LivePage for AccountPage {
    type Address = ();
    type Parts = [LiveFragment; 2];

    async fn load(_: &SessionUser, (): ()) -> PageResult<Self> {
        Ok(AccountPage)
    }

    async fn parts(&self, user: &SessionUser) -> PageResult<Self::Parts> {
        Ok([keys::part(user).await?, sessions::part(user).await?])
    }

    async fn page(&self, user: &SessionUser, parts: Self::Parts) -> PageResult<Page> {
        let [keys, sessions] = parts;
        let administers_cloud = is_one(&user.cloud, &user.identity).await?;
        let main = html! {
            h1 { "Account" }
            p {
                "Signed in as " strong { (user.name) } ". " a href="/dashboard/audit" { "Audit log" }
                @if administers_cloud { ". " a href="/dashboard/organizations" { "Organizations and their quotas" } }
            }
            section.stack aria-labelledby="keys" {
                h2 id="keys" { "API keys" }
                p.faint { "For programs: a key may do what you may do, or less, until you delete it. It can never change people, organizations or keys." }
                (keys.placed())
                (keys::new(user))
            }
            section.stack aria-labelledby="sessions-title" {
                h2 id="sessions-title" { "Sessions" }
                p.faint { "Where you are signed in. End any session that you do not recognize, and then change your password." }
                (sessions.placed())
                div.answer id="sessions-result" role="status" {}
            }
            (password::form(user))
        };
        Ok(Page::first(
            Section::Account,
            format!("{ACCOUNT}/live"),
            main,
        ))
    }
}
