//! Authentication with a registry: with the stored credential, or with a token of the service that the registry names.

use registry_protocol::Challenge;
use reqwest::header::{AUTHORIZATION, WWW_AUTHENTICATE};
use reqwest::{Response, Url};

use crate::access::{Account, Token};
use crate::answer::MAX_ANSWER;
use crate::error::{ErrorKind, RegistryError, Result};
use crate::repository::{Repository, SHORT};

impl Repository<'_> {
    /// Returns the `Authorization` header that a refusal asks for, or `None` if there is nothing to offer.
    pub(crate) async fn authorize(&self, refusal: &Response) -> Result<Option<String>> {
        let challenge = refusal
            .headers()
            .get_all(WWW_AUTHENTICATE)
            .iter()
            .find_map(|header| Challenge::parse(header.to_str().ok()?));
        match (challenge, self.access.account) {
            (None, _) | (Some(Challenge::Basic), Account::Tokens(_)) => Ok(None),
            (Some(Challenge::Basic), Account::Stored(_)) => Ok(self.credential.clone()),
            (Some(Challenge::Bearer { realm, service }), account) => {
                let token = self.token(&realm, service.as_deref(), account).await?;
                let token = token
                    .into_text()
                    .ok_or_else(|| self.failed("gave no token"))?;
                Ok(Some(format!("Bearer {token}")))
            }
        }
    }

    async fn token(
        &self,
        realm: &str,
        service: Option<&str>,
        account: Account<'_>,
    ) -> Result<Token> {
        let scopes = self.access.scopes(&self.place.repository);
        let source = match account {
            Account::Tokens(source) => Some(source),
            Account::Stored(source) => source.filter(|source| source.is_at(realm)),
        };
        if let Some(source) = source {
            let token = source.token(&scopes, service).await;
            return token.map_err(|error| {
                RegistryError::new(ErrorKind::TokenSource, "no token was given").because(error)
            });
        }
        let mut url = Url::parse(realm)
            .map_err(|error| self.failed("names no usable token service").because(error))?;
        if url.scheme() != "https" && !self.place.is_loopback() {
            return Err(self.failed("names a token service without TLS"));
        }
        for scope in &scopes {
            url.query_pairs_mut().append_pair("scope", scope);
        }
        if let Some(service) = service {
            url.query_pairs_mut().append_pair("service", service);
        }
        let mut request = self.clients.short.get(url).timeout(SHORT);
        if let Some(credential) = &self.credential {
            request = request.header(AUTHORIZATION, credential);
        }
        let answer = request.send().await;
        let answer = answer.map_err(|error| self.unreachable(error))?;
        let answer = self.require_success(answer, "a token").await?;
        serde_json::from_slice(&self.bounded(answer, MAX_ANSWER).await?)
            .map_err(|error| self.failed("gave no token").because(error))
    }
}
