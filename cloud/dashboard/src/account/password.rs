//! The user's password.

use std::net::SocketAddr;

use axum::extract::ConnectInfo;
use axum::response::{IntoResponse, Redirect};
use cloud_core::accounts::sessions::{SessionOrigin, SignInKind};
use cloud_core::accounts::users::{self, PasswordChange};
use cloud_core::answer::Refusal;
use http::{HeaderMap, header};
use maud::{Markup, html};

use crate::form::Form;
use crate::page::ACCOUNT;
use crate::page_error::PageResult;
use crate::session_user::{self, SessionUser, leave_for};

/// The form that changes it.
pub(super) fn form(user: &SessionUser) -> Markup {
    let place = format!("{ACCOUNT}/password");
    html! {
        form.card.stack method="post" action=(place) hx-post=(place) hx-target="find .answer" hx-sync="this:drop"
            aria-labelledby="password" {
            h2 id="password" { "Password" }
            p.faint { "A new password ends all your other sessions." }
            input type="hidden" name="username" value=(user.name) autocomplete="username";
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

/// `POST /dashboard/account/password`
pub(super) async fn change(
    ConnectInfo(from): ConnectInfo<SocketAddr>,
    headers: HeaderMap,
    user: SessionUser,
    form: Form,
) -> PageResult {
    let change = PasswordChange {
        current: form.exact("current").to_owned(),
        new: form.exact("new").to_owned(),
        end_keys: form.text("end_keys") == "true",
    };
    let beginning = SessionOrigin::new(&headers, from, SignInKind::Dashboard);
    let changed =
        users::password_changed(&user.cloud, user.claims.id, change, from, beginning).await;
    let token = changed.map_err(|error| match error {
        Refusal::Unauthorized => {
            Refusal::Forbidden("The current password is incorrect.".to_owned())
        }
        error => error,
    })?;
    let cookie = session_user::session_cookie(&user.cloud, &token)?;
    let cookie = [(header::SET_COOKIE, cookie)];
    Ok(if user.in_place {
        (cookie, leave_for(ACCOUNT)).into_response()
    } else {
        (cookie, Redirect::to(ACCOUNT)).into_response()
    })
}
