//! Changes that are only possible shortly after entering the password.

use std::net::SocketAddr;

use cloud_core::accounts::verification::{Claim, verified};
use cloud_core::answer::Refusal;
use cloud_core::clock::now;
use cloud_core::credential::{Credential, Identity};

use super::form::Form;
use super::page_error::PageResult;
use super::session_user::SessionUser;

/// Returns the user as if they had just signed in, if the form contains their password.
///
/// # Errors
/// 403 if the password is wrong.
pub(crate) async fn with_password(
    user: &SessionUser,
    form: &Form,
    from: SocketAddr,
) -> PageResult<Identity> {
    let mut identity = user.identity.clone();
    if !form.exact("password").is_empty() {
        let password = form.exact("password").to_owned();
        let verified = verified(
            &user.cloud,
            Claim::User(user.claims.id),
            password,
            from.ip(),
        )
        .await;
        verified.map_err(|error| match error {
            Refusal::Unauthorized => Refusal::Forbidden("The password is incorrect.".to_owned()),
            error => error,
        })?;
        let mut claims = user.claims.clone();
        claims.auth_time = now();
        identity.credential = Credential::Session(claims);
    }
    Ok(identity)
}

/// Rewords a refusal for people: if they signed in too long ago, it says what to enter the password for.
pub(crate) fn explained(refusal: Refusal, purpose: &str) -> Refusal {
    match refusal {
        Refusal::UnauthorizedSaying(_) => Refusal::Forbidden(format!(
            "You signed in some time ago. Reload this page and enter your password {purpose}."
        )),
        refusal => refusal,
    }
}
