//! Who is asking a registry: what it requires, and the token that a service gives for that.

use registry_protocol::Challenge;
use reqwest::header::{AUTHORIZATION, WWW_AUTHENTICATE};
use reqwest::{Response, Url};
use serde::Deserialize;

use super::{MAX_ANSWER, Repository, SHORT};
use crate::cloud::Cloud;
use crate::failure::Result;
use crate::odata::encoded;

/// Who is told to be asking.
pub(super) enum Access<'a> {
    /// Somebody of that registry, or nobody: the value of a header. Where the registry turns out to be the
    /// cloud's, whoever is signed in there.
    Kept(Option<String>, &'a Cloud),
    /// Who is signed in at the cloud, whose tokens its registry takes; with these repositories to be read as
    /// well.
    Session(&'a Cloud, Vec<String>),
}

impl Repository<'_> {
    /// The header that a refusal asks for; `None` where there is nothing to offer.
    pub(super) async fn authorize(&self, refusal: &Response) -> Result<Option<String>> {
        let challenge = refusal
            .headers()
            .get_all(WWW_AUTHENTICATE)
            .iter()
            .find_map(|header| Challenge::parse(header.to_str().ok()?));
        match (challenge, &self.access) {
            (None, _) | (Some(Challenge::Basic), Access::Session(..)) => Ok(None),
            (Some(Challenge::Basic), Access::Kept(credential, _)) => Ok(credential.clone()),
            (Some(Challenge::Bearer { realm, service }), access) => self
                .token(&realm, service.as_deref(), access)
                .await
                .map(Some),
        }
    }

    async fn token(
        &self,
        realm: &str,
        service: Option<&str>,
        access: &Access<'_>,
    ) -> Result<String> {
        let own = format!("repository:{}:pull", self.place.repository);
        let token: Token = match access {
            // Of the cloud that is signed in at, whatever the registry calls it: the session's credential goes
            // nowhere else.
            Access::Session(cloud, others) => {
                let others = others
                    .iter()
                    .map(|other| format!("repository:{other}:pull"));
                let scopes: Vec<String> =
                    [format!("{own},push")].into_iter().chain(others).collect();
                cloud.get(&of_cloud(&scopes, service)).await?
            }
            Access::Kept(_, cloud) if is_token_service(realm, &cloud.url) => {
                cloud.get(&of_cloud(&[own], service)).await?
            }
            Access::Kept(credential, _) => {
                let mut url = Url::parse(realm)
                    .map_err(|error| self.failed("names no usable token service").because(error))?;
                if url.scheme() != "https" && !self.place.is_loopback() {
                    return Err(self.failed("names a token service without TLS"));
                }
                url.query_pairs_mut().append_pair("scope", &own);
                if let Some(service) = service {
                    url.query_pairs_mut().append_pair("service", service);
                }
                let mut request = self.client.get(url).timeout(SHORT);
                if let Some(credential) = credential {
                    request = request.header(AUTHORIZATION, credential);
                }
                let answer = request.send().await;
                let answer = answer.map_err(|error| self.unreachable(error))?;
                let answer = self.good(answer, "a token").await?;
                serde_json::from_slice(&self.bounded(answer, MAX_ANSWER).await?)
                    .map_err(|error| self.failed("gave no token").because(error))?
            }
        };
        token
            .token
            .or(token.access_token)
            .map(|token| format!("Bearer {token}"))
            .ok_or_else(|| self.failed("gave no token"))
    }
}

/// `token` and `access_token` are the same thing; services give one or both.
#[derive(Deserialize)]
struct Token {
    token: Option<String>,
    access_token: Option<String>,
}

/// Where the cloud gives tokens.
const TOKENS: &str = "/auth/v1/token";

/// The cloud's address of a token for these scopes.
fn of_cloud(scopes: &[String], service: Option<&str>) -> String {
    let service = service.map(|service| ("service", service));
    let scopes = scopes.iter().map(|scope| ("scope", scope.as_str()));
    let parameters: Vec<String> = scopes
        .chain(service)
        .map(|(name, value)| format!("{name}={}", encoded(value)))
        .collect();
    format!("{TOKENS}?{}", parameters.join("&"))
}

/// Whether a realm is the one of the cloud at this address.
fn is_token_service(realm: &str, cloud: &str) -> bool {
    match (Url::parse(realm), Url::parse(&format!("{cloud}{TOKENS}"))) {
        (Ok(realm), Ok(own)) => realm.origin() == own.origin() && realm.path() == own.path(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_of_the_cloud_are_asked_of_the_cloud_alone() {
        for (realm, is) in [
            ("https://c.example/auth/v1/token", true),
            ("https://c.example:443/auth/v1/token?x", true),
            ("http://c.example/auth/v1/token", false),
            ("https://c.example/other", false),
            ("https://c.example.org/auth/v1/token", false),
            ("nonsense", false),
        ] {
            assert_eq!(is_token_service(realm, "https://c.example"), is, "{realm}");
        }
        let scopes = ["repository:v2/a:pull,push".to_owned()];
        assert_eq!(
            of_cloud(&scopes, Some("r.io")),
            "/auth/v1/token?scope=repository%3Av2%2Fa%3Apull%2Cpush&service=r.io"
        );
    }
}
