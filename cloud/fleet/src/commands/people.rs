//! `login`, `logout` and `whoami`.

use reqwest::Method;
use serde_json::{Value, json};

use crate::arguments::Login;
use crate::ask;
use crate::cloud::Cloud;
use crate::failure::{Failure, Kind, Result};
use crate::output::Output;
use crate::session;

pub(crate) async fn login(login: Login, output: &Output) -> Result<()> {
    let url = address(login.url, "fleet login")?;
    warn_of_readers(&url, output);
    let token = match login.token {
        Some(token) => token,
        None => {
            let instead = "`--email` (or sign in with `--token`)";
            let email = ask::line(login.email, "E-mail address or name", instead)?;
            let instead = "`--password`, or in FLEET_PASSWORD";
            let password = ask::given_secret(login.password, "Password", instead)?;
            session_token(&url, &email, &password).await?
        }
    };
    let cloud = Cloud::at(&url, Some(token.clone()))?;
    let who: Value = cloud
        .get("/actor/v1/whoami")
        .await
        .map_err(|failure| match failure.kind {
            Kind::NotAllowed => Failure::not_allowed(format!("{url} does not know that key")),
            _ => failure,
        })?;
    let file = session::keep(&url, &token)?;
    output.done(
        format!(
            "signed in at {url} as {}; saved in {}",
            name(&who),
            file.display()
        ),
        &json!({ "url": url, "as": who }),
    );
    Ok(())
}

/// Returns the cloud to use: the last one if none is given.
pub(super) fn address(url: Option<String>, command: &str) -> Result<String> {
    match url {
        Some(url) => session::checked_url(&url),
        None => session::known_url()?.ok_or_else(|| {
            Failure::usage("the address of the cloud is missing").hint(format!(
                "give it once: `{command} https://cloud.example.com`"
            ))
        }),
    }
}

/// Warns if others can read what is sent.
pub(super) fn warn_of_readers(url: &str, output: &Output) {
    if is_readable_on_the_way(url) {
        output.note(format!(
            "warning: {url} is not encrypted; anybody on the network can read the credential"
        ));
    }
}

/// Returns a session token for a name and a password.
pub(super) async fn session_token(url: &str, username: &str, password: &str) -> Result<String> {
    let body = json!({ "username": username, "password": password });
    let no_cloud =
        || Failure::failed(format!("{url} is not a fleet cloud")).hint("check the address");
    let cloud = Cloud::at(url, None)?;
    let token = cloud.answer(Method::POST, "/login_", Some(&body)).await;
    let token = token.map_err(|failure| match failure.kind {
        Kind::NotAllowed => Failure::not_allowed("wrong password, or no such user"),
        Kind::NotFound => no_cloud(),
        _ => failure,
    })?;
    let token = String::from_utf8(token).unwrap_or_default();
    // The stored token is put into headers unchanged.
    if token.len() > 20 && token.bytes().all(|byte| byte.is_ascii_graphic()) {
        Ok(token)
    } else {
        Err(no_cloud())
    }
}

/// Also ends the session at its cloud if that can be reached, so copies of the token are worthless.
pub(crate) async fn logout(output: &Output) -> Result<()> {
    if let Some((url, token)) = session::kept_token()? {
        let cloud = Cloud::at(&url, Some(token))?;
        let ended = cloud.answer(Method::POST, "/user/v1/sign-out", None).await;
        if let Err(failure) = ended
            && !matches!(failure.kind, Kind::NotAllowed | Kind::NotFound)
        {
            output.note(format!(
                "warning: the session was deleted here, but not at {url}: {failure}"
            ));
        }
    }
    let was = session::forget()?;
    let sentence = if was {
        "signed out"
    } else {
        "you were not signed in"
    };
    output.done(sentence, &json!({ "signed_out": was }));
    Ok(())
}

pub(crate) async fn whoami(cloud: &Cloud, output: &Output) -> Result<()> {
    let who: Value = cloud.get("/actor/v1/whoami").await?;
    let mut json = who.clone();
    if let Some(object) = json.as_object_mut() {
        object.insert("url".to_owned(), json!(cloud.url));
    }
    let property = |name: &str| who[name].as_str().map(str::to_owned);
    output.details(
        &json,
        &[
            ("cloud", Some(cloud.url.clone())),
            ("kind", property("actorType")),
            ("name", property("username")),
            ("e-mail", property("email")),
            ("fleet", property("slug")),
            ("device", property("uuid")),
        ],
    );
    Ok(())
}

fn name(who: &Value) -> String {
    let property = |name: &str| who[name].as_str();
    property("username")
        .or(property("slug"))
        .or(property("uuid"))
        .unwrap_or("somebody")
        .to_owned()
}

/// Returns whether an address is plain HTTP to another machine.
fn is_readable_on_the_way(url: &str) -> bool {
    let Ok(url) = reqwest::Url::parse(url) else {
        return false;
    };
    let host = url.host_str().unwrap_or_default();
    let here = host == "localhost"
        || host
            .trim_matches(['[', ']'])
            .parse::<std::net::IpAddr>()
            .is_ok_and(|address| address.is_loopback());
    url.scheme() == "http" && !here
}
