//! The account that requests are made with, what it may do, and where its tokens come from.

use std::error::Error;

use futures::future::BoxFuture;
use serde::Deserialize;

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

impl Token {
    pub(crate) fn into_text(self) -> Option<String> {
        self.token.or(self.access_token)
    }
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

    /// Returns the scopes that a token for this repository must cover.
    pub(crate) fn scopes(&self, repository: &str) -> Vec<String> {
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
