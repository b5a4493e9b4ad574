//! Signing in and out.

use super::{ann, with_browser};
use crate::harness::{EMAIL, PASSWORD};

#[tokio::test]
async fn a_user_signs_in_gets_the_requested_page_and_signs_out() {
    with_browser(async |cloud, chromium| {
        let ann = chromium.somebody(&cloud.url).await;
        ann.open("/dashboard/account").await;
        ann.see("Sign in").await;
        ann.looks_well("sign-in").await;
        ann.fill("Name or e-mail address", EMAIL).await;
        ann.fill("Password", "not the password").await;
        ann.press("Sign in").await;
        ann.see("The name or the password is incorrect.").await;
        assert_eq!(ann.value("Name or e-mail address").await, EMAIL);
        ann.fill("Password", PASSWORD).await;
        ann.press("Sign in").await;
        ann.at("/dashboard/account").await;
        ann.press("Sign out").await;
        ann.at("/dashboard/sign-in").await;
        ann.open("/dashboard/account").await;
        ann.see("Password").await;
        ann.leave().await;
    })
    .await;
}

#[tokio::test]
async fn light_and_dark_are_chosen_and_kept() {
    with_browser(async |cloud, chromium| {
        let ann = ann(chromium, &cloud).await;
        let ground = async || {
            let shown = "getComputedStyle(document.body).backgroundColor";
            ann.script(shown).await
        };
        ann.prefers_dark(false).await;
        let light = ground().await;
        ann.press("Dark").await;
        ann.can_press("Light").await;
        let dark = ground().await;
        assert_ne!(light, dark);
        ann.reload().await;
        ann.can_press("Light").await;
        assert_eq!(ground().await, dark, "it is kept");
        ann.press("Light").await;
        ann.can_press("Dark").await;
        assert_eq!(ground().await, light);
        // The user's choice takes precedence over the system's preference.
        ann.prefers_dark(true).await;
        ann.reload().await;
        ann.can_press("Dark").await;
        assert_eq!(ground().await, light);
        ann.leave().await;
    })
    .await;
}

#[tokio::test]
async fn a_keyboard_is_enough_to_sign_in() {
    with_browser(async |cloud, chromium| {
        let ann = chromium.somebody(&cloud.url).await;
        ann.open("/").await;
        assert_eq!(ann.focused().await, "Name or e-mail address");
        ann.write(EMAIL).await;
        ann.tab_to("Password").await;
        ann.write(PASSWORD).await;
        ann.key("Enter").await;
        ann.at("/dashboard").await;
        ann.tab_to("Skip to content").await;
        ann.leave().await;
    })
    .await;
}

#[tokio::test]
async fn two_users_at_once_see_what_each_may_see() {
    with_browser(async |cloud, chromium| {
        let admin = cloud.sign_in().await;
        admin.fleet("pumps", "raspberrypi4-64").await;
        let bob = serde_json::json!({
            "username": "bob", "email": "bob@other.example", "password": "battery horse",
        });
        let (status, row) = admin
            .send(reqwest::Method::POST, "/user/register", bob)
            .await;
        assert!(status.is_success(), "{row}");
        let ann = ann(chromium, &cloud).await;
        let bob = super::sign_in(chromium, &cloud, "bob", "battery horse").await;
        ann.see("pumps").await;
        bob.see("No fleets yet").await;
        bob.not_see("pumps").await;
        admin.fleet("valves", "raspberrypi4-64").await;
        ann.see("valves").await;
        bob.not_see("valves").await;
        bob.leave().await;
        ann.leave().await;
    })
    .await;
}
