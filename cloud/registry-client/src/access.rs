//! Authentication with a registry: the account that requests are made with, and the tokens of token services.

use std::error::Error;

use futures::future::BoxFuture;
use registry_protocol::Challenge;
use reqwest::header::{AUTHORIZATION, WWW_AUTHENTICATE};
use reqwest::{Response, Url};
use serde::Deserialize;

use crate::error::{ErrorKind, RegistryError, Result};
use crate::repository::{MAX_ANSWER, Repository, SHORT};

/// The account that a repository is used with, and what for.
pub struct Access<'a> {
    pub(crate) account: Account<'a>,
    /// The scopes that a token must cover, as registries write them.
    scopes: Scopes,
}

/// The account that requests are made with.
#[derive(Clone, Copy)]
pub enum Account<'a> {
    /// The account of that registry whose credential `docker login` has stored, or none. If the registry names the
    /// source as its token service, the source's own account.
    Stored(Option<&'a dyn TokenSource>),
    /// The source's own account, whatever service the registry names: the source's credential goes nowhere else.
    Tokens(&'a dyn TokenSource),
}

enum Scopes {
    Pull,
    /// The repositories of which blobs may be taken over, to be read.
    Push(Vec<String>),
}

/// Issues tokens for registries to an account that it knows.
pub trait TokenSource: Send + Sync {
    /// Returns whether this address, which a registry names as its token service, is this source.
    fn is_at(&self, realm: &str) -> bool;

    /// Returns a token for all of the scopes.
    fn token<'a>(
        &'a self,
        scopes: &'a [String],
        service: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Token, Box<dyn Error + Send + Sync>>>;
}

/// The answer of a token service. `token` and `access_token` are the same thing; services send one or both.
#[derive(Deserialize)]
pub struct Token {
    token: Option<String>,
    access_token: Option<String>,
}

impl<'a> Access<'a> {
    /// Returns access for reading.
    #[must_use]
    pub fn pull(account: Account<'a>) -> Self {
        Access {
            account,
            scopes: Scopes::Pull,
        }
    }

    /// Returns access for writing, and for taking blobs over from the repositories `beside` it in the same registry.
    #[must_use]
    pub fn push(account: Account<'a>, beside: Vec<String>) -> Self {
        Access {
            account,
            scopes: Scopes::Push(beside),
        }
    }

    fn scopes(&self, repository: &str) -> Vec<String> {
        match &self.scopes {
            Scopes::Pull => vec![format!("repository:{repository}:pull")],
            Scopes::Push(beside) => {
                let own = format!("repository:{repository}:pull,push");
                let others = beside
                    .iter()
                    .map(|other| format!("repository:{other}:pull"));
                std::iter::once(own).chain(others).collect()
            }
        }
    }
}

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
                let token = token.token.or(token.access_token);
                let token = token.ok_or_else(|| self.failed("gave no token"))?;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_for_what_is_done_and_no_more() {
        let stored = Account::Stored(None);
        assert_eq!(Access::pull(stored).scopes("a/b"), ["repository:a/b:pull"]);
        assert_eq!(
            Access::push(stored, vec!["c".to_owned()]).scopes("a/b"),
            ["repository:a/b:pull,push", "repository:c:pull"]
        );
    }
}
