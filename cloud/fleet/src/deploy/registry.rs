//! The registries that a deployment reads and writes: it reads from any, and writes to the cloud's with the session's
//! tokens.

use std::error::Error;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use registry_client::{Access, Account, Repository, Token, TokenSource};
use registry_protocol::RepositoryName;
use reqwest::Url;

use crate::cloud::Cloud;
use crate::failure::Result;
use crate::odata::encoded;

/// The registries of a deployment.
pub(super) struct Registries<'a> {
    cloud: &'a Cloud,
    all: registry_client::Registries,
}

impl<'a> Registries<'a> {
    /// Creates the clients without sending anything.
    ///
    /// # Errors
    /// TLS cannot be set up.
    pub(super) fn new(cloud: &'a Cloud) -> Result<Self> {
        let user_agent = concat!("fleet/", env!("CARGO_PKG_VERSION"));
        Ok(Registries {
            cloud,
            all: registry_client::Registries::new(user_agent)?,
        })
    }

    /// Returns a repository to read from.
    pub(super) fn other(&self, place: &RepositoryName) -> Repository<'a> {
        let access = Access::pull(Account::Stored(Some(self.cloud)));
        self.all.repository(place, access)
    }

    /// Returns a repository of the cloud to write to, with access to others of the same registry whose blobs may be
    /// taken over.
    pub(super) fn own(&self, place: &RepositoryName, beside: &[RepositoryName]) -> Repository<'a> {
        let beside = beside
            .iter()
            .map(|other| other.repository.clone())
            .collect();
        let access = Access::push(Account::Tokens(self.cloud), beside);
        self.all.repository(place, access)
    }
}

/// The session's credential is sent only to the cloud, which issues a token for it.
impl TokenSource for Cloud {
    fn is_at(&self, realm: &str) -> bool {
        is_token_service(realm, &self.url)
    }

    fn token<'a>(
        &'a self,
        scopes: &'a [String],
        service: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Token, Box<dyn Error + Send + Sync>>> {
        let token = async move { Ok(self.get(&token_address(scopes, service)).await?) };
        token.boxed()
    }
}

/// The path of the cloud's token service.
const TOKENS: &str = "/auth/v1/token";

/// Returns the cloud's address of a token for these scopes.
fn token_address(scopes: &[String], service: Option<&str>) -> String {
    let service = service.map(|service| ("service", service));
    let scopes = scopes.iter().map(|scope| ("scope", scope.as_str()));
    let parameters: Vec<String> = scopes
        .chain(service)
        .map(|(name, value)| format!("{name}={}", encoded(value)))
        .collect();
    format!("{TOKENS}?{}", parameters.join("&"))
}

/// Returns whether a realm is the token service of the cloud at this address.
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
    fn tokens_of_the_cloud_are_requested_only_from_the_cloud() {
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
            token_address(&scopes, Some("r.io")),
            "/auth/v1/token?scope=repository%3Av2%2Fa%3Apull%2Cpush&service=r.io"
        );
    }
}
