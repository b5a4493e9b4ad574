//! The user's own account.

use reqwest::{Method, StatusCode};

use super::{ann, sign_in, with_browser};
use crate::harness::{EMAIL, PASSWORD};

#[tokio::test]
async fn a_key_is_made_used_and_deleted() {
    with_browser(async |cloud, chromium| {
        let ann = ann(chromium, &cloud).await;
        ann.press("Account").await;
        ann.see("No keys.").await;
        ann.fill("What it is for", "nightly builds").await;
        ann.press("Create key").await;
        ann.see("shown this once").await;
        let key = ann
            .script("document.querySelector('.once code').innerText")
            .await;
        let key = key.as_str().expect("a key").to_owned();
        let ask = || async {
            let by = cloud.by(key.clone());
            let request = by.ask(Method::GET, "/user/v1/whoami");
            request.send().await.expect("an answer").status()
        };
        assert_eq!(ask().await, StatusCode::OK);
        ann.within("Your API keys").see("nightly builds").await;
        ann.looks_well("account").await;
        ann.press("Delete the key nightly builds").await;
        ann.see("No keys.").await;
        assert_eq!(ask().await, StatusCode::UNAUTHORIZED);
        ann.leave().await;
    })
    .await;
}

#[tokio::test]
async fn a_new_password_keeps_this_session_and_ends_the_others() {
    with_browser(async |cloud, chromium| {
        let here = ann(chromium, &cloud).await;
        let there = ann(chromium, &cloud).await;
        here.press("Account").await;
        here.fill("Current password", "wrong horse").await;
        here.fill("New password", "another horse").await;
        here.press("Change the password").await;
        here.see("The current password is incorrect.").await;
        here.fill("Current password", PASSWORD).await;
        here.press("Change the password").await;
        here.not_see("The current password is incorrect.").await;
        here.see("Signed in as").await;
        there.reload().await;
        there.see("Sign in").await;
        there.leave().await;
        let again = sign_in(chromium, &cloud, EMAIL, "another horse").await;
        again.leave().await;
        here.press("Sign out").await;
        here.see("Sign in").await;
        here.open("/dashboard/account").await;
        here.see("Sign in").await;
        here.leave().await;
    })
    .await;
}
