//! The dashboard: its pages in a headless Chromium, used in the way a person uses them.
//!
//! They need the Chromium named in `SUPERVISOR_TEST_CHROMIUM` (`cargo xtask test` sets it) and are skipped without one.
//! `SUPERVISOR_TEST_PICTURES` names a folder for pictures of the pages.

mod account;
mod browser;
mod device;
mod fleet;
mod fleets;
mod noticed;
mod readme;
mod releases;
pub(crate) mod session;
mod sign_in;
mod story;

use crate::harness::{Cloud, EMAIL, PASSWORD};
use browser::{Chromium, Visitor};

/// Runs a test with a cloud on SQLite and a browser, if there is one.
async fn with_browser(test: impl AsyncFn(Cloud, &Chromium)) {
    let Some(chromium) = Chromium::start().await else {
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("test.sqlite");
    let cloud = Cloud::start(&format!("sqlite:{}", file.display())).await;
    test(cloud, &chromium).await;
}

/// Returns the administrator, who has just signed in.
async fn ann(chromium: &Chromium, cloud: &Cloud) -> Visitor {
    sign_in(chromium, cloud, EMAIL, PASSWORD).await
}

/// Signs a person in, who is then on the page of fleets.
async fn sign_in(chromium: &Chromium, cloud: &Cloud, name: &str, password: &str) -> Visitor {
    let somebody = chromium.somebody(&cloud.url).await;
    somebody.open("/").await;
    somebody.fill("Name or e-mail address", name).await;
    somebody.fill("Password", password).await;
    somebody.press("Sign in").await;
    somebody.at("/dashboard").await;
    somebody
}
