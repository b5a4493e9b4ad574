//! Sessions of the dashboard, and the headers of its answers for browsers; requested like a browser, without one.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use data::Database;
use jsonwebtoken::{EncodingKey, Header, encode};
use reqwest::header::{COOKIE, HeaderMap, LOCATION, ORIGIN, SET_COOKIE};
use reqwest::{Method, RequestBuilder, Response, StatusCode};
use serde_json::{Value, json};

use crate::harness::{Cloud, EMAIL, PASSWORD, PATIENCE, on_both};

/// Sends a request like a page of the dashboard.
fn ask(cloud: &Cloud, method: Method, path: &str) -> RequestBuilder {
    let client = crate::harness::plain_http()
        .redirect(reqwest::redirect::Policy::none())
        .build()
        .expect("a client");
    let request = client.request(method.clone(), format!("{}{path}", cloud.url));
    match method {
        Method::GET => request,
        _ => request.header("sec-fetch-site", "same-origin"),
    }
}

async fn sign_in(cloud: &Cloud, password: &str, next: &str) -> Response {
    sign_in_as(cloud, EMAIL, password, next).await
}

async fn sign_in_as(cloud: &Cloud, name: &str, password: &str, next: &str) -> Response {
    let form = form(&[("username", name), ("password", password), ("next", next)]);
    send(ask(cloud, Method::POST, "/dashboard/sign-in"), form).await
}

fn form(fields: &[(&str, &str)]) -> String {
    let fields = fields.iter().map(|(name, value)| {
        let value: String = form_urlencoded::byte_serialize(value.as_bytes()).collect();
        format!("{name}={value}")
    });
    fields.collect::<Vec<_>>().join("&")
}

async fn send(request: RequestBuilder, form: String) -> Response {
    request
        .header("content-type", "application/x-www-form-urlencoded")
        .body(form)
        .send()
        .await
        .expect("an answer")
}

fn header(headers: &HeaderMap, name: impl reqwest::header::AsHeaderName) -> String {
    let value = headers.get(name).map(|value| value.to_str().expect("text"));
    value.unwrap_or_default().to_owned()
}

/// Returns the cookie of a session, in the form that a browser sends back.
pub(crate) async fn cookie(cloud: &Cloud) -> String {
    cookie_of(cloud, EMAIL).await
}

/// Sends a form like a page of the dashboard.
pub(crate) async fn post(
    cloud: &Cloud,
    cookie: &str,
    path: &str,
    fields: &[(&str, &str)],
) -> (StatusCode, String) {
    let request = ask(cloud, Method::POST, path).header(COOKIE, cookie);
    let answer = send(request, form(fields)).await;
    (answer.status(), answer.text().await.expect("a page"))
}

/// Returns the cookie of a session of a user with the password common to these tests.
pub(crate) async fn cookie_of(cloud: &Cloud, name: &str) -> String {
    let answer = sign_in_as(cloud, name, PASSWORD, "").await;
    assert_eq!(answer.status(), StatusCode::SEE_OTHER);
    let set = header(answer.headers(), SET_COOKIE);
    set.split(';').next().expect("a pair").to_owned()
}

pub(crate) async fn page(cloud: &Cloud, cookie: &str, path: &str) -> (StatusCode, String) {
    let answer = ask(cloud, Method::GET, path)
        .header(COOKIE, cookie)
        .send()
        .await
        .expect("an answer");
    let status = answer.status();
    (status, answer.text().await.expect("a page"))
}

#[tokio::test]
async fn a_guest_signs_in_and_gets_the_requested_page() {
    on_both(async |cloud| {
        let address = "/dashboard/fleets/7?search=a%20b";
        let answer = ask(&cloud, Method::GET, address)
            .send()
            .await
            .expect("an answer");
        assert_eq!(answer.status(), StatusCode::SEE_OTHER);
        let place = header(answer.headers(), LOCATION);
        assert_eq!(
            place,
            "/dashboard/sign-in?next=%2Fdashboard%2Ffleets%2F7%3Fsearch%3Da%2520b"
        );
        let (status, shown) = page(&cloud, "", &place).await;
        assert_eq!(status, StatusCode::OK);
        assert!(shown.contains(r#"name="next" value="/dashboard/fleets/7?search=a%20b""#));

        let answer = sign_in(&cloud, PASSWORD, address).await;
        assert_eq!(answer.status(), StatusCode::SEE_OTHER);
        assert_eq!(header(answer.headers(), LOCATION), address);
        let set = header(answer.headers(), SET_COOKIE);
        for attribute in [
            "; Path=/",
            "; HttpOnly",
            "; SameSite=Lax",
            "; Max-Age=604800",
        ] {
            assert!(set.contains(attribute), "{set}");
        }
        assert!(!set.contains("Secure"), "it is served over HTTP: {set}");
    })
    .await;
}

/// Returns the claims of the session in a cookie.
fn claims(cookie: &str) -> Value {
    let payload = cookie.split('.').nth(1).expect("a payload");
    let payload = URL_SAFE_NO_PAD.decode(payload).expect("base64");
    serde_json::from_slice(&payload).expect("JSON")
}

/// Returns the cookie that this session would have this many days later.
pub(crate) async fn aged(cloud: &Cloud, cookie: &str, days: i64) -> String {
    let mut claims = claims(cookie);
    for name in ["iat", "exp"] {
        claims[name] = json!(claims[name].as_i64().expect("seconds") - days * 24 * 3600);
    }
    claims["authTime"] =
        json!(claims["authTime"].as_i64().expect("milliseconds") - days * 24 * 3600 * 1000);
    let database = Database::open(&cloud.database, &data::Options::default()).await;
    let database = database.expect("the database");
    let mut transaction = database.begin().await.expect("a transaction");
    let secret = data::setting::read(&mut transaction, "session-signing-secret").await;
    let secret = secret.expect("settings").expect("a secret");
    drop(transaction);
    database.close().await;
    let key = EncodingKey::from_secret(secret.as_bytes());
    let token = encode(&Header::default(), &claims, &key).expect("a token");
    format!("fleet_session={token}")
}

#[tokio::test]
async fn a_session_that_is_used_lasts_and_one_that_is_ended_does_not() {
    on_both(async |cloud| {
        let cookie = cookie(&cloud).await;
        let given = async |cookie: &str| {
            let request = ask(&cloud, Method::GET, "/dashboard").header(COOKIE, cookie);
            let answer = request.send().await.expect("an answer");
            let set = header(answer.headers(), SET_COOKIE);
            (answer.status(), set)
        };
        assert_eq!(given(&cookie).await, (StatusCode::OK, String::new()));
        let older = aged(&cloud, &cookie, 2).await;
        let (status, set) = given(&older).await;
        assert_eq!(status, StatusCode::OK);
        assert!(set.contains("; Max-Age=604800"), "{set}");
        let renewed = set.split(';').next().expect("a pair");
        let (before, after) = (claims(&older), claims(renewed));
        assert!(after["exp"].as_i64() > before["exp"].as_i64(), "{after}");
        assert_eq!(after["authTime"], before["authTime"], "no new password");
        assert_eq!(given(renewed).await, (StatusCode::OK, String::new()));

        let over = aged(&cloud, &cookie, 8).await;
        assert_eq!(given(&over).await, (StatusCode::SEE_OTHER, String::new()));
        let ann = cloud.sign_in().await;
        let passwords = json!({ "currentPassword": PASSWORD, "newPassword": "another horse" });
        let path = "/user/v1/change-password";
        let (status, _) = ann.send(Method::POST, path, passwords).await;
        assert_eq!(status, StatusCode::OK);
        assert_eq!(given(&older).await, (StatusCode::SEE_OTHER, String::new()));
    })
    .await;
}

#[tokio::test]
async fn nobody_is_led_elsewhere_by_signing_in() {
    let cloud = fresh().await;
    for next in [
        "https://evil.example/",
        "//evil.example",
        "/v7/device",
        "/dashboard//evil.example",
    ] {
        let answer = sign_in(&cloud, PASSWORD, next).await;
        assert_eq!(header(answer.headers(), LOCATION), "/dashboard", "{next}");
    }
}

#[tokio::test]
async fn a_wrong_password_is_reported_and_the_number_of_attempts_is_limited() {
    let cloud = fresh().await;
    for _ in 0..10 {
        let answer = sign_in(&cloud, "wrong", "").await;
        assert_eq!(answer.status(), StatusCode::UNAUTHORIZED);
        assert!(!answer.headers().contains_key(SET_COOKIE));
        let shown = answer.text().await.expect("a page");
        assert!(shown.contains("The name or the password is incorrect."));
        assert!(shown.contains(EMAIL), "the name is still there");
    }
    // It shares the counter of the API.
    let answer = sign_in(&cloud, PASSWORD, "").await;
    assert_eq!(answer.status(), StatusCode::TOO_MANY_REQUESTS);
    let login = json!({ "username": EMAIL, "password": PASSWORD });
    let request = cloud.ask(Method::POST, "/login_").json(&login);
    let answer = request.send().await.expect("an answer");
    assert_eq!(answer.status(), StatusCode::TOO_MANY_REQUESTS);
}

#[tokio::test]
async fn the_cookie_is_no_credential_of_the_api_and_a_key_is_none_of_the_dashboard() {
    let cloud = fresh().await;
    let cookie = cookie(&cloud).await;
    for (method, path) in [
        (Method::GET, "/user/v1/whoami"),
        (Method::GET, "/v7/user?$select=id"),
        (Method::POST, "/supervisor/v1/blink"),
        (Method::POST, "/v7/application"),
    ] {
        let request = cloud.ask(method, path).header(COOKIE, &cookie);
        let answer = request.json(&json!({})).send().await.expect("an answer");
        let status = answer.status();
        let body = answer.text().await.expect("a body");
        let nothing = status == StatusCode::UNAUTHORIZED || body == r#"{"d":[]}"#;
        assert!(nothing, "{path}: {status} {body}");
    }
    let ann = cloud.sign_in().await;
    let named = json!({ "name": "a key" });
    let (_, key) = ann.send(Method::POST, "/api-key/user/full", named).await;
    let key = format!("fleet_session={}", key.as_str().expect("a key"));
    assert_eq!(
        page(&cloud, &key, "/dashboard").await.0,
        StatusCode::SEE_OTHER
    );
}

#[tokio::test]
async fn other_sites_change_nothing() {
    let cloud = fresh().await;
    let cookie = cookie(&cloud).await;
    let ours = cloud.url.clone();
    let tries: [(&str, &str, bool); 7] = [
        ("sec-fetch-site", "cross-site", false),
        ("sec-fetch-site", "same-site", false),
        ("sec-fetch-site", "none", false),
        ("origin", "https://evil.example", false),
        ("origin", "null", false),
        ("accept", "text/html", false),
        ("origin", &ours, true),
    ];
    for (name, value, is_accepted) in tries {
        let client = crate::harness::plain_http()
            .redirect(reqwest::redirect::Policy::none())
            .build()
            .expect("a client");
        let request = client
            .post(format!("{ours}/dashboard/sign-out"))
            .header(COOKIE, &cookie)
            .header(name, value);
        let status = send(request, String::new()).await.status();
        let expected = if is_accepted {
            StatusCode::SEE_OTHER
        } else {
            StatusCode::FORBIDDEN
        };
        assert_eq!(status, expected, "{name}: {value}");
    }
}

#[tokio::test]
async fn forms_come_from_the_public_address_as_well() {
    let cloud = fresh_with("public_url = 'https://fleet.example/'").await;
    for (origin, expected) in [
        ("https://fleet.example", StatusCode::SEE_OTHER),
        ("https://fleet.example:8443", StatusCode::FORBIDDEN),
        ("https://evil.fleet.example", StatusCode::FORBIDDEN),
        ("https://fleet.example.evil.example", StatusCode::FORBIDDEN),
    ] {
        let client = crate::harness::plain_http()
            .redirect(reqwest::redirect::Policy::none())
            .build()
            .expect("a client");
        let request = client
            .post(format!("{}/dashboard/sign-out", cloud.url))
            .header(ORIGIN, origin);
        assert_eq!(
            send(request, String::new()).await.status(),
            expected,
            "{origin}"
        );
    }
}

#[tokio::test]
async fn a_session_that_is_due_for_renewal_does_not_outlive_its_end_or_the_next_sign_in() {
    let cloud = fresh_with("registration = 'open'").await;
    cloud.register("bob").await;
    let ann = aged(&cloud, &cookie(&cloud).await, 2).await;
    let fields = form(&[("username", "bob"), ("password", PASSWORD)]);
    let request = ask(&cloud, Method::POST, "/dashboard/sign-in").header(COOKIE, &ann);
    let answer = send(request, fields).await;
    assert_eq!(answer.status(), StatusCode::SEE_OTHER);
    let set = header(answer.headers(), SET_COOKIE);
    let bob = set.split(';').next().expect("a pair");
    assert_ne!(claims(bob)["id"], claims(&ann)["id"], "{set}");
    let request = ask(&cloud, Method::POST, "/dashboard/sign-out").header(COOKIE, &ann);
    let answer = send(request, String::new()).await;
    let set = header(answer.headers(), SET_COOKIE);
    assert!(set.starts_with("fleet_session=; Max-Age=0;"), "{set}");
}

#[tokio::test]
async fn requests_of_the_dashboard_are_counted_like_those_of_the_api() {
    let cloud = fresh_with("[limits]\nrequests_per_minute = 3").await;
    let cookie = cookie(&cloud).await;
    let mut statuses = Vec::new();
    for _ in 0..20 {
        statuses.push(page(&cloud, &cookie, "/dashboard").await.0);
    }
    assert_eq!(statuses[0], StatusCode::OK);
    let refused = StatusCode::TOO_MANY_REQUESTS;
    assert!(statuses.contains(&refused), "{statuses:?}");
}

#[tokio::test]
async fn an_open_page_receives_nothing_after_its_session_has_ended() {
    on_both(async |cloud| {
        let cookie = cookie(&cloud).await;
        let path = "/dashboard/fleets/live";
        let request = ask(&cloud, Method::GET, path).header(COOKIE, &cookie);
        let mut events = request.send().await.expect("an answer");
        assert_eq!(events.status(), StatusCode::OK);
        let ann = cloud.sign_in().await;
        let passwords = json!({ "currentPassword": PASSWORD, "newPassword": "another horse" });
        let change = "/user/v1/change-password";
        let (status, _) = ann.send(Method::POST, change, passwords).await;
        assert_eq!(status, StatusCode::OK);
        let mut shown = String::new();
        let reading = async {
            while let Some(piece) = events.chunk().await.expect("events") {
                shown.push_str(&String::from_utf8_lossy(&piece));
            }
        };
        let read = tokio::time::timeout(PATIENCE, reading).await;
        assert!(read.is_ok(), "it goes on: {shown}");
        assert!(shown.contains("event: left"), "{shown}");
    })
    .await;
}

#[tokio::test]
async fn sign_in_does_not_lead_back_to_the_events_of_a_page() {
    let cloud = fresh().await;
    let path = "/dashboard/fleets/7/live";
    let answer = ask(&cloud, Method::GET, path).send().await;
    let answer = answer.expect("an answer");
    assert_eq!(answer.status(), StatusCode::SEE_OTHER);
    assert_eq!(header(answer.headers(), LOCATION), "/dashboard/sign-in");
    // A browser would follow a redirect without a word to the page's script.
    let request = ask(&cloud, Method::GET, path).header("accept", "text/event-stream");
    let answer = request.send().await.expect("an answer");
    assert_eq!(answer.status(), StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn a_form_is_as_long_as_it_may_be_and_no_longer() {
    let cloud = fresh_with("[limits]\nbody = 4000").await;
    let sign_in = async |next: usize| {
        let next = "x".repeat(next);
        let fields = [
            ("username", EMAIL),
            ("password", PASSWORD),
            ("next", &next[..]),
        ];
        let request = ask(&cloud, Method::POST, "/dashboard/sign-in");
        send(request, form(&fields)).await.status()
    };
    assert_eq!(sign_in(3900).await, StatusCode::SEE_OTHER);
    assert_eq!(sign_in(4000).await, StatusCode::PAYLOAD_TOO_LARGE);
}

#[tokio::test]
async fn nothing_is_deleted_without_its_name() {
    let cloud = fresh().await;
    let ann = cloud.sign_in().await;
    let cookie = cookie(&cloud).await;
    let fleet = ann.fleet("valves", "raspberrypi4-64").await;
    let path = format!("/dashboard/fleets/{fleet}/delete");
    let count = async || ann.rows("/v7/application?$select=id").await.len();
    for fields in [&[][..], &[("confirm", "")], &[("confirm", "pumps")]] {
        let (status, shown) = post(&cloud, &cookie, &path, fields).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{shown}");
        assert!(shown.contains("Nothing was deleted"), "{shown}");
        assert_eq!(count().await, 1);
    }
    let (status, _) = post(&cloud, &cookie, &path, &[("confirm", "valves")]).await;
    assert_eq!(status, StatusCode::SEE_OTHER);
    assert_eq!(count().await, 0);
}

#[tokio::test]
async fn a_new_key_is_shown_once_and_cannot_be_guessed() {
    let cloud = fresh().await;
    let cookie = cookie(&cloud).await;
    let keys = "/dashboard/account/keys";
    let create = async |cookie: &str, more: &[(&str, &str)]| {
        let fields: Vec<_> = [("name", "ci")].iter().chain(more).copied().collect();
        post(&cloud, cookie, keys, &fields).await
    };
    let (status, shown) = create(&cookie, &[]).await;
    assert_eq!(status, StatusCode::OK, "{shown}");
    let key = shown.split("<code>").nth(1).expect("a key");
    let key = key.split('<').next().expect("its end");
    assert_eq!(key.len(), 32, "{key}");
    let (status, _) = cloud.by(key.to_owned()).get("/user/v1/whoami").await;
    assert_eq!(status, StatusCode::OK);
    let (_, shown) = page(&cloud, &cookie, "/dashboard/account").await;
    assert!(shown.contains("ci") && !shown.contains(key), "{shown}");

    // Later, the password is needed again.
    let older = aged(&cloud, &cookie, 2).await;
    for more in [&[][..], &[("password", "not it at all")]] {
        let (status, shown) = create(&older, more).await;
        assert_eq!(status, StatusCode::FORBIDDEN, "{shown}");
        assert!(!shown.contains("<code>"), "{shown}");
    }
    let (status, shown) = create(&older, &[("password", PASSWORD)]).await;
    assert_eq!(status, StatusCode::OK, "{shown}");
    assert!(shown.contains("<code>"), "{shown}");
}

#[tokio::test]
async fn pages_say_to_browsers_what_may_happen_in_them() {
    let cloud = fresh().await;
    let cookie = cookie(&cloud).await;
    for path in [
        "/dashboard",
        "/dashboard/sign-in",
        "/dashboard/nothing/there",
    ] {
        let answer = ask(&cloud, Method::GET, path)
            .header(COOKIE, &cookie)
            .header(ORIGIN, "https://evil.example")
            .header("user-agent", "Mozilla/5.0")
            .send()
            .await
            .expect("an answer");
        let headers = answer.headers();
        let policy = header(headers, "content-security-policy");
        for part in [
            "default-src 'none'",
            "script-src 'self'",
            "frame-ancestors 'none'",
        ] {
            assert!(policy.contains(part), "{path}: {policy}");
        }
        assert!(!policy.contains("unsafe"), "{policy}");
        assert_eq!(header(headers, "cache-control"), "no-store", "{path}");
        assert_eq!(header(headers, "x-content-type-options"), "nosniff");
        assert_eq!(header(headers, "referrer-policy"), "same-origin");
        for part in ["form-action 'self'", "base-uri 'none'"] {
            assert!(policy.contains(part), "{path}: {policy}");
        }
        for (name, value) in [
            ("x-frame-options", "DENY"),
            ("cross-origin-opener-policy", "same-origin"),
            ("cross-origin-resource-policy", "same-origin"),
            (
                "permissions-policy",
                "camera=(), geolocation=(), microphone=()",
            ),
        ] {
            assert_eq!(header(headers, name), value, "{path}: {name}");
        }
        assert!(
            !headers.contains_key("access-control-allow-origin"),
            "{path}"
        );
        assert!(!headers.contains_key("access-control-allow-credentials"));
    }
}

#[tokio::test]
async fn style_and_scripts_are_kept_for_ever_under_the_name_of_what_they_hold() {
    let cloud = fresh().await;
    let (_, shown) = page(&cloud, "", "/dashboard/sign-in").await;
    let assets: Vec<&str> = shown
        .split(['"'])
        .filter(|part| part.starts_with("/dashboard/assets/"))
        .collect();
    assert!(assets.len() >= 6, "{assets:?}");
    for asset in assets {
        let answer = ask(&cloud, Method::GET, asset)
            .send()
            .await
            .expect("an answer");
        assert_eq!(answer.status(), StatusCode::OK, "{asset}");
        assert!(header(answer.headers(), "cache-control").contains("immutable"));
        let tag = header(answer.headers(), "etag");
        let again = ask(&cloud, Method::GET, asset).header("if-none-match", tag);
        let answer = again.send().await.expect("an answer");
        assert_eq!(answer.status(), StatusCode::NOT_MODIFIED);
    }
    let (status, _) = page(
        &cloud,
        "",
        "/dashboard/assets/0000000000000000/dashboard.css",
    )
    .await;
    assert_eq!(status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn names_that_are_markup_are_shown_as_text() {
    on_both(async |cloud| {
        let ann = cloud.sign_in().await;
        let cookie = cookie(&cloud).await;
        let fleet = ann.fleet("pumps", "raspberrypi4-64").await;
        let types = ann.rows("/v7/device_type?$filter=slug eq 'raspberrypi4-64'&$select=id").await;
        let hostile = "<script>alert(1)</script>\"'&<img src=x onerror=alert(2)>";
        let device = json!({
            "belongs_to__application": fleet, "is_of__device_type": types[0]["id"], "device_name": hostile,
        });
        let device = ann.create("device", device).await;
        let tag = json!({ "device": device, "tag_key": "t", "value": hostile });
        ann.create("device_tag", tag).await;
        let place = format!("/dashboard/fleets/{fleet}");
        let search: String = form_urlencoded::byte_serialize(hostile.as_bytes()).collect();
        for path in [place.clone(), format!("{place}?search={search}&tag={search}&sort={search}")] {
            let (status, shown) = page(&cloud, &cookie, &path).await;
            assert_eq!(status, StatusCode::OK, "{shown}");
            assert!(shown.contains("&lt;script&gt;alert(1)"), "{shown}");
            assert!(!shown.contains("<script>alert"), "{shown}");
            assert!(!shown.contains("<img src=x"), "{shown}");
        }
    })
    .await;
}

#[tokio::test]
async fn rows_that_a_caller_may_not_see_are_missing() {
    on_both(async |cloud| {
        let ann = cloud.sign_in().await;
        let fleet = ann.fleet("pumps", "raspberrypi4-64").await;
        let bob =
            json!({ "username": "bob", "email": "bob@b.example", "password": "battery horse" });
        let (status, why) = ann.send(Method::POST, "/user/register", bob).await;
        assert_eq!(status, StatusCode::CREATED, "{why}");
        let fields = form(&[("username", "bob"), ("password", "battery horse")]);
        let answer = send(ask(&cloud, Method::POST, "/dashboard/sign-in"), fields).await;
        let bob = header(answer.headers(), SET_COOKIE);
        let bob = bob.split(';').next().expect("a pair");
        for path in [
            format!("/dashboard/fleets/{fleet}"),
            format!("/dashboard/fleets/{fleet}/live"),
            "/dashboard/fleets/0".to_owned(),
            "/dashboard/fleets/x".to_owned(),
        ] {
            let (status, shown) = page(&cloud, bob, &path).await;
            assert_eq!(status, StatusCode::NOT_FOUND, "{path}: {shown}");
            assert!(!shown.contains("pumps"));
        }
        assert!(!page(&cloud, bob, "/dashboard").await.1.contains("pumps"));
        assert!(
            page(&cloud, &cookie(&cloud).await, "/dashboard")
                .await
                .1
                .contains("pumps")
        );
    })
    .await;
}

#[tokio::test]
async fn forms_work_without_a_script() {
    on_both(async |cloud| {
        let ann = cloud.sign_in().await;
        let cookie = cookie(&cloud).await;
        let types = ann
            .rows("/v7/device_type?$filter=slug eq 'raspberrypi4-64'&$select=id")
            .await;
        let organizations = ann.rows("/v7/organization?$select=id").await;
        let post = async |path: &str, fields: &[(&str, &str)]| {
            let request = ask(&cloud, Method::POST, path).header(COOKIE, &cookie);
            send(request, form(fields)).await
        };
        let new = [
            ("name", "pumps"),
            ("device type", &types[0]["id"].to_string()),
            ("organization", &organizations[0]["id"].to_string()),
        ];
        let answer = post("/dashboard/fleets", &new).await;
        assert_eq!(answer.status(), StatusCode::SEE_OTHER);
        let place = header(answer.headers(), LOCATION);
        assert!(place.starts_with("/dashboard/fleets/"), "{place}");
        let (status, shown) = page(&cloud, &cookie, &place).await;
        assert_eq!(status, StatusCode::OK);
        assert!(shown.contains("pumps"));

        // A repetition is refused by the API, and a page says so.
        let answer = post("/dashboard/fleets", &new).await;
        assert_eq!(answer.status(), StatusCode::CONFLICT);
        assert!(header(answer.headers(), "content-type").starts_with("text/html"));

        let expected = [("deviceType", "raspberrypi4-64"), ("wifiSsid", "")];
        let answer = post(&format!("{place}/config.json"), &expected).await;
        assert_eq!(answer.status(), StatusCode::OK);
        assert!(header(answer.headers(), "content-disposition").contains("config.json"));
        let text = answer.text().await.expect("a file");
        let config: Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!(config["apiEndpoint"], cloud.url);
        let key = config["apiKey"].as_str().expect("a key").to_owned();
        let device = json!({
            "application": config["applicationId"], "device_type": config["deviceType"],
            "uuid": "ab".repeat(16),
        });
        let (status, made) = cloud
            .by(key)
            .send(Method::POST, "/device/register", device)
            .await;
        assert_eq!(status, StatusCode::CREATED, "{made}");
    })
    .await;
}

#[tokio::test]
async fn a_new_password_ends_the_sessions_of_the_dashboard() {
    let cloud = fresh().await;
    let old = cookie(&cloud).await;
    assert_eq!(page(&cloud, &old, "/dashboard").await.0, StatusCode::OK);
    let ann = cloud.sign_in().await;
    let change = json!({ "currentPassword": PASSWORD, "newPassword": "another horse" });
    let (status, _) = ann
        .send(Method::POST, "/user/v1/change-password", change)
        .await;
    assert_eq!(status, StatusCode::OK);
    assert_eq!(
        page(&cloud, &old, "/dashboard").await.0,
        StatusCode::SEE_OTHER
    );
}

/// Starts a cloud on SQLite.
async fn fresh() -> FreshCloud {
    fresh_with("").await
}

/// Starts a cloud on SQLite, with a configuration file.
async fn fresh_with(configuration: &str) -> FreshCloud {
    let folder = tempfile::tempdir().expect("a folder");
    let database = format!("sqlite:{}", folder.path().join("cloud.sqlite").display());
    FreshCloud {
        cloud: Cloud::start_with(&database, configuration).await,
        _folder: folder,
    }
}

/// A cloud, and the location of its database.
struct FreshCloud {
    cloud: Cloud,
    _folder: tempfile::TempDir,
}

impl std::ops::Deref for FreshCloud {
    type Target = Cloud;

    fn deref(&self) -> &Cloud {
        &self.cloud
    }
}
