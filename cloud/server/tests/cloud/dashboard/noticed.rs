//! Checks that the browser detects what the page tests rely on: otherwise, they could pass without testing anything.

use axum::Router;
use axum::response::Html;
use axum::routing::get;

use super::browser::Chromium;

const POLICY: &str = "default-src 'self'; script-src 'self'; style-src 'unsafe-inline'";

/// Serves a page with this body, and returns its address.
async fn site(body: &'static str) -> String {
    let page = move || async move {
        let page = format!(
            "<!doctype html><html lang=en><title>t</title>\
             <meta name=viewport content='width=device-width, initial-scale=1'><body>{body}"
        );
        ([("content-security-policy", POLICY)], Html(page))
    };
    let script = || async { ([("content-type", "text/javascript")], SCRIPT) };
    let router = Router::new()
        .route("/", get(page))
        .route("/s.js", get(script));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0")
        .await
        .expect("a port");
    let address = listener.local_addr().expect("an address");
    tokio::spawn(async move { axum::serve(listener, router).await });
    format!("http://{address}")
}

const SCRIPT: &str = "
    let times = 0;
    document.querySelector('button')?.addEventListener('click', () =>
        document.querySelector('output').textContent = `pressed ${++times}`);
    if (document.querySelector('.broken')) throw new Error('broken');
";

#[tokio::test]
async fn a_page_is_used_by_names_and_roles() {
    let Some(chromium) = Chromium::start().await else {
        return;
    };
    let site = site(
        "<label>Name <input></label> <section aria-label=Deeds><button>Do</button></section>
         <ul><li><b>one</b> first</li><li><b>two</b> second</li></ul>
         <label>Kind <select><option>a<option>b</select></label>
         <label>On <input type=checkbox></label> <a href='/?next'>Next</a>
         <output></output><script src=/s.js></script>",
    )
    .await;
    let ann = chromium.somebody(&site).await;
    ann.open("/").await;
    ann.fill("Name", "Grüße").await;
    ann.fill("Name", "Ann").await;
    assert_eq!(ann.value("Name").await, "Ann");
    ann.choose("Kind", "b").await;
    assert_eq!(ann.value("Kind").await, "b");
    ann.within("Deeds").press("Do").await;
    ann.see("pressed 1").await;
    ann.within("Deeds").press_twice("Do").await;
    ann.see("pressed 3").await;
    ann.within("two").see("second").await;
    assert!(!ann.within("two").text().await.contains("first"));
    ann.cannot_press("Name").await;
    ann.is_on("On", false).await;
    ann.tab_to("On").await;
    ann.key("Space").await;
    ann.is_on("On", true).await;
    ann.can_press("Next").await;
    ann.tab_to("Next").await;
    ann.key("Enter").await;
    ann.at("/?next").await;
    ann.back().await;
    ann.at("/").await;
    ann.reload().await;
    ann.not_see("pressed").await;
    ann.tab_to("Name").await;
    ann.write("Bob").await;
    assert_eq!(ann.value("Name").await, "Bob");
    ann.looks_well("harness").await;
    ann.leave().await;
}

#[tokio::test]
async fn the_browser_tests_notice_errors_of_a_page() {
    let Some(chromium) = Chromium::start().await else {
        return;
    };
    for (body, complaint) in [
        ("<script>1</script>", "policy: script-src"),
        ("<img src=https://elsewhere.invalid/x>", "policy: img-src"),
        ("<p class=broken></p><script src=/s.js></script>", "broken"),
    ] {
        let site = site(body).await;
        let ann = chromium.somebody(&site).await;
        ann.open("/").await;
        let begun = std::time::Instant::now();
        while !ann.complaints().await.concat().contains(complaint) {
            assert!(begun.elapsed().as_secs() < 30, "not noticed: {body}");
        }
    }
    for body in [
        "<p style='color: #999'>pale</p>",
        "<div style='background: #222'><p style='color: #333'>dark</p></div>",
        "<p style='opacity: 0.99; color: oklch(0.7 0.1 200)'>modern</p>",
    ] {
        let site = site(body).await;
        let ann = chromium.somebody(&site).await;
        ann.open("/").await;
        let looking = tokio::spawn(async move { ann.is_readable().await });
        assert!(looking.await.is_err(), "readable: {body}");
    }
    let site = site("<p style='width: 500px'>wide").await;
    let ann = chromium.somebody(&site).await;
    ann.on_phone().await;
    ann.open("/").await;
    let looking = tokio::spawn(async move { ann.fits_a_phone().await });
    assert!(looking.await.is_err(), "it fits");
}
