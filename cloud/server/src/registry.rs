//! Tokens for the registry that images are kept in (docs/spec/cloud.md#registry-tokens): the registry trusts a
//! certificate, and this is who signs with its key.
//!
//! `registry` is a program of others (Docker's, `auth: token`). Its `issuer` is [`ISSUER`], its `service` the
//! host that the cloud was given as `--registry`, its `realm` `/auth/v1/token` of the cloud, and its
//! `rootcertbundle` what `fleet-cloud registry-certificate` prints.

pub(crate) mod garbage;
pub(crate) mod garbage_signal;
mod scope;
pub(crate) mod token;

use std::time::Duration;

use anyhow::{Context as _, Result};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cloud_core::random::random_text;
use data::{Database, Keyring, setting};
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair};
use serde::{Deserialize, Serialize};

/// Who the tokens are from.
pub(crate) const ISSUER: &str = "fleet-cloud";
/// How long a token is good for. A registry asks at the beginning of each request, not during it.
const LIFE: Duration = Duration::from_secs(300);
/// Clocks of the cloud and the registry may differ by so many seconds.
const SKEW: i64 = 30;
/// Under this name the key is kept, the same for every replica.
pub(crate) const KEPT: &str = "registry-signing-key";

/// Who signs tokens for the registry.
pub(crate) struct Registry {
    sign: EncodingKey,
    /// In PEM.
    certificate: String,
    /// As the header of a token carries it.
    chain: Vec<String>,
}

/// What the database keeps.
#[derive(Serialize, Deserialize)]
struct StoredSigningKey {
    /// PKCS #8, in base64.
    key: String,
    /// In PEM.
    certificate: String,
}

/// What a token allows with one repository.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Access {
    #[serde(rename = "type")]
    pub(crate) kind: &'static str,
    pub(crate) name: String,
    pub(crate) actions: Vec<&'static str>,
}

#[derive(Serialize)]
struct RegistryClaims<'a> {
    iss: &'a str,
    sub: &'a str,
    aud: &'a str,
    exp: i64,
    nbf: i64,
    iat: i64,
    jti: String,
    access: &'a [Access],
}

impl Registry {
    /// With the key of this database, which is made where there is none.
    ///
    /// # Errors
    /// Where the database fails, or what it keeps is no key.
    pub(crate) async fn of(database: &Database, keyring: &Keyring) -> Result<Self> {
        // Of several replicas that start at once, one's is kept, and all take it.
        let made = serde_json::to_string(&made()?)?;
        let stored = setting::read_or_write_secret(database, keyring, KEPT, &made).await?;
        Self::with(serde_json::from_str(&stored)?)
    }

    fn with(stored: StoredSigningKey) -> Result<Self> {
        let key = STANDARD
            .decode(stored.key)
            .context("the registry's key is not readable")?;
        let lines = stored.certificate.lines();
        let chain = lines
            .filter(|line| !line.starts_with('-'))
            .collect::<String>();
        Ok(Registry {
            sign: EncodingKey::from_ec_der(&key),
            certificate: stored.certificate,
            chain: vec![chain],
        })
    }

    /// What a registry checks tokens by, in PEM.
    pub(crate) fn certificate(&self) -> &str {
        &self.certificate
    }

    /// A token for `subject` to do this at the registry `service`, made at `now` (seconds).
    ///
    /// # Errors
    /// Where it cannot be signed.
    fn token(&self, subject: &str, service: &str, access: &[Access], now: i64) -> Result<String> {
        let header = Header {
            x5c: Some(self.chain.clone()),
            ..Header::new(Algorithm::ES256)
        };
        let claims = RegistryClaims {
            iss: ISSUER,
            sub: subject,
            aud: service,
            exp: now + LIFE.as_secs().cast_signed(),
            nbf: now - SKEW,
            iat: now,
            jti: random_text(16)?,
            access,
        };
        encode(&header, &claims, &self.sign).context("a token for the registry cannot be signed")
    }
}

fn made() -> Result<StoredSigningKey> {
    let key = KeyPair::generate().context("failed to create a key for the registry")?;
    let mut parameters = CertificateParams::new(Vec::new())?;
    let mut name = DistinguishedName::new();
    name.push(DnType::CommonName, ISSUER);
    parameters.distinguished_name = name;
    let certificate = parameters.self_signed(&key)?;
    Ok(StoredSigningKey {
        key: STANDARD.encode(key.serialize_der()),
        certificate: certificate.pem(),
    })
}

#[cfg(test)]
mod tests;
