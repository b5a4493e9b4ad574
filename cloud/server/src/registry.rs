//! Tokens for the registry that stores images (docs/spec/cloud.md#registry-tokens): the registry trusts a certificate,
//! and the cloud signs with its key.
//!
//! `registry` is third-party software (Docker's, `auth: token`). Its `issuer` is [`ISSUER`], its `service` the host in
//! the cloud's `--registry`, its `realm` `/auth/v1/token` of the cloud, and its `rootcertbundle` the output of
//! `fleet-cloud registry-certificate`.

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

/// The issuer of tokens.
pub(crate) const ISSUER: &str = "fleet-cloud";
/// How long a token is valid. A registry checks it at the beginning of each request, not during the request.
const LIFE: Duration = Duration::from_secs(300);
/// How many seconds the clocks of the cloud and the registry may differ.
const SKEW: i64 = 30;
/// The name under which the key is stored; all replicas share it.
pub(crate) const KEPT: &str = "registry-signing-key";

/// Signs tokens for the registry.
pub(crate) struct Registry {
    sign: EncodingKey,
    /// In PEM.
    certificate: String,
    /// In the format of a token's header.
    chain: Vec<String>,
}

/// The stored form in the database.
#[derive(Serialize, Deserialize)]
struct StoredSigningKey {
    /// PKCS #8, in base64.
    key: String,
    /// In PEM.
    certificate: String,
}

/// The actions that a token permits on one repository.
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
    /// Uses the key of this database, which is created if there is none.
    ///
    /// # Errors
    /// If the database fails, or the stored value is not a key.
    pub(crate) async fn load(database: &Database, keyring: &Keyring) -> Result<Self> {
        // If several replicas start at once, the key of one is stored, and all use it.
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

    /// Returns the certificate with which a registry checks tokens, in PEM.
    pub(crate) fn certificate(&self) -> &str {
        &self.certificate
    }

    /// Creates a token that permits `subject` these actions at the registry `service`, as of `now` (seconds).
    ///
    /// # Errors
    /// If it cannot be signed.
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
