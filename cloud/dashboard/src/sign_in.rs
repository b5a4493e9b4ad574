//! Signing in and out.

use std::net::SocketAddr;

use axum::extract::{ConnectInfo, State};
use axum::response::{IntoResponse, Redirect};
use axum::routing::{get, post};
use cloud_core::accounts::sessions::{self, SessionOrigin, SignInKind};
use cloud_core::answer::Refusal;
use cloud_core::cloud::SharedCloud;
use http::{HeaderMap, StatusCode, header};
use maud::{Markup, html};

use super::form::{Form, Search};
use super::page;
use super::page_error::{PageError, PageResult, notice};
use super::session_user::{self, local};
use super::state::Routes;

/// The page after signing in if no other one was requested.
const FIRST: &str = "/dashboard";

pub(super) fn routes() -> Routes {
    Routes::new()
        .route("/sign-in", get(ask).post(sign_in))
        .route("/sign-out", post(sign_out))
}

async fn ask(
    State(cloud): State<SharedCloud>,
    headers: HeaderMap,
    Search(search): Search,
) -> PageResult {
    let next = local(search.text("next")).unwrap_or(FIRST);
    if session_user::find_user(&cloud, &headers).await?.is_some() {
        return Ok(Redirect::to(next).into_response());
    }
    Ok(form(next, "", None).into_response())
}

async fn sign_in(
    State(cloud): State<SharedCloud>,
    ConnectInfo(from): ConnectInfo<SocketAddr>,
    headers: HeaderMap,
    form_data: Form,
) -> PageResult {
    let next = local(form_data.text("next")).unwrap_or(FIRST);
    let name = form_data.text("username");
    let password = form_data.exact("password").to_owned();
    let beginning = SessionOrigin::new(&headers, from, SignInKind::Dashboard);
    match sessions::signed_in(&cloud, name, password, from, beginning).await {
        Ok(token) => {
            let cookie = session_user::session_cookie(&cloud, &token)?;
            Ok(([(header::SET_COOKIE, cookie)], Redirect::to(next)).into_response())
        }
        Err(Refusal::Unauthorized) => {
            let why = "The name or the password is incorrect.";
            Ok((StatusCode::UNAUTHORIZED, form(next, name, Some(why))).into_response())
        }
        Err(Refusal::TooMany(seconds)) => {
            let why = match seconds {
                0..60 => {
                    format!("Too many people are signing in at once. Try again in {seconds} s.")
                }
                _ => format!(
                    "Too many failed sign-ins. Try again in {} min.",
                    seconds.div_ceil(60)
                ),
            };
            let page = form(next, name, Some(&why));
            let after = [(header::RETRY_AFTER, seconds.to_string())];
            Ok((StatusCode::TOO_MANY_REQUESTS, after, page).into_response())
        }
        Err(error) => Err(PageError(error)),
    }
}

fn form(next: &str, name: &str, wrong: Option<&str>) -> Markup {
    page::bare(
        "Sign in",
        html! {
            h1 { "Sign in" }
            form.card.stack method="post" action="/dashboard/sign-in" {
                input type="hidden" name="next" value=(next);
                label { "Name or e-mail address"
                    input name="username" value=(name) autocomplete="username" autocapitalize="none"
                        spellcheck="false" required maxlength="300" autofocus[name.is_empty()];
                }
                label { "Password"
                    input type="password" name="password" autocomplete="current-password" required
                        maxlength="1000" autofocus[!name.is_empty()];
                }
                div.answer role="alert" { @if let Some(wrong) = wrong { (notice(wrong)) } }
                button.primary type="submit" { "Sign in" }
            }
        },
    )
}

/// Ends the session, also for anybody who has a copy of its cookie.
async fn sign_out(State(cloud): State<SharedCloud>, headers: HeaderMap) -> PageResult {
    if let Some(user) = session_user::find_user(&cloud, &headers).await? {
        sessions::end(&cloud, &user.claims).await?;
    }
    let cookie = session_user::expired_cookie(&cloud);
    let to = Redirect::to("/dashboard/sign-in");
    Ok(([(header::SET_COOKIE, cookie)], to).into_response())
}
