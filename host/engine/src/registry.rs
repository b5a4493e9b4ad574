//! Fetches manifests and blobs from an image's registry, over the OCI distribution protocol.
//!
//! Called for images that no container engine fetches for us: by `image_kind` and by the wasm engine. Every answer is
//! bounded in size and time. Credentials are sent only if the registry requests them, and only to the hosts of the
//! registry and of the cloud. They are sent over plain HTTP only to this machine and to a cloud that the owner has
//! allowed to be without TLS. It keeps nothing and pushes nothing.

mod manifest;
mod realm;

use std::error::Error;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures::StreamExt;
use futures::stream::BoxStream;
use http::StatusCode;
use http::header::{ACCEPT, AUTHORIZATION, WWW_AUTHENTICATE};
use model::ImageRef;
use registry_protocol::{Challenge, ImageName};
use reqwest::{Client, Response};
use serde::Deserialize;
use sha2::{Digest, Sha256};

use crate::{EngineError, RegistryAuth};

pub(crate) use manifest::{Descriptor, IndexEntry, Manifest};

/// The longest manifest that is read, in bytes: the limit of registries themselves.
pub const MAX_MANIFEST: usize = 4 << 20;
/// The longest answer of a token service, in bytes.
const MAX_TOKEN_ANSWER: usize = 64 << 10;
/// From the request for a manifest to its last byte.
const MANIFEST_TIMEOUT: Duration = Duration::from_secs(60);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(15);
/// The longest silence in the middle of an answer.
const READ_TIMEOUT: Duration = Duration::from_secs(60);

const MANIFEST_TYPES: &str = "application/vnd.oci.image.manifest.v1+json, \
    application/vnd.oci.image.index.v1+json, \
    application/vnd.docker.distribution.manifest.v2+json, \
    application/vnd.docker.distribution.manifest.list.v2+json";

/// Checks that `image` can be in a registry at all, and can be requested without reaching anything
/// else.
///
/// # Errors
/// [`EngineError::Invalid`] if it cannot.
pub fn check_reference(image: &ImageRef) -> Result<(), EngineError> {
    name_of(image).map(|_| ())
}

fn name_of(image: &ImageRef) -> Result<ImageName, EngineError> {
    image
        .as_str()
        .parse()
        .map_err(|error: registry_protocol::ImageNameError| EngineError::Invalid(error.to_string()))
}

/// Returns whether `image` is at this registry.
pub(crate) fn is_at(image: &ImageRef, host: &str) -> bool {
    name_of(image).is_ok_and(|name| name.place.host.eq_ignore_ascii_case(host))
}

/// One image's repository in its registry.
pub struct Repository {
    image: ImageRef,
    name: ImageName,
    auth: Option<RegistryAuth>,
    client: Client,
    /// The `Authorization` header that the registry accepted last.
    granted: tokio::sync::Mutex<Option<String>>,
}

impl Repository {
    /// Prepares the access to the repository of `image`. Sends nothing yet.
    ///
    /// # Errors
    /// [`EngineError::Invalid`] if the reference does not name an image of a registry.
    pub fn new(image: &ImageRef, auth: Option<&RegistryAuth>) -> Result<Self, EngineError> {
        let name = name_of(image)?;
        let client = client(name.place.is_loopback())?;
        Ok(Repository {
            image: image.clone(),
            name,
            auth: auth.cloned(),
            client,
            granted: tokio::sync::Mutex::default(),
        })
    }

    /// Returns the bytes of the image's manifest, or of the one with `digest` in the same
    /// repository. Bytes that were requested by digest are checked against it.
    ///
    /// # Errors
    /// [`EngineError::NotFound`] if the registry has no such image, else [`EngineError::Failed`].
    pub async fn manifest(&self, digest: Option<&str>) -> Result<Vec<u8>, EngineError> {
        let reference = digest.unwrap_or(&self.name.reference);
        let fetch = async {
            let answer = self.get(&format!("manifests/{reference}")).await?;
            let manifest = bounded(answer, MAX_MANIFEST).await;
            manifest.map_err(|error| self.failed(error))
        };
        let manifest = tokio::time::timeout(MANIFEST_TIMEOUT, fetch)
            .await
            .map_err(|_| self.failed("its registry took too long to answer"))??;
        if reference.contains(':') && sha256_digest(&manifest) != reference {
            return Err(self.failed(format!("the manifest does not match `{reference}`")));
        }
        Ok(manifest)
    }

    /// Returns the parsed [`Self::manifest`].
    pub(crate) async fn parsed_manifest(
        &self,
        digest: Option<&str>,
    ) -> Result<Manifest, EngineError> {
        Manifest::parse(&self.image, &self.manifest(digest).await?)
    }

    /// Returns the bytes of a blob as they arrive. The caller counts them, and checks them against
    /// `digest`.
    ///
    /// # Errors
    /// [`EngineError::NotFound`] if the repository has no such blob, else [`EngineError::Failed`].
    pub async fn blob(
        &self,
        digest: &str,
    ) -> Result<BoxStream<'static, Result<bytes::Bytes, EngineError>>, EngineError> {
        let answer = self.get(&format!("blobs/{digest}")).await?;
        let action = self.action();
        Ok(answer
            .bytes_stream()
            .map(move |piece| piece.map_err(|error| EngineError::failed(&action, error)))
            .boxed())
    }

    /// Sends a GET request below this repository, with as much authentication as the registry
    /// requires.
    async fn get(&self, path: &str) -> Result<Response, EngineError> {
        let url = self.name.place.url(path);
        let granted = self.granted.lock().await.clone();
        let mut answer = self.send(&url, granted.as_deref()).await?;
        if answer.status() == StatusCode::UNAUTHORIZED
            && let Some(authorization) = self.authorize(&answer).await?
        {
            answer = self.send(&url, Some(&authorization)).await?;
            if answer.status().is_success() {
                *self.granted.lock().await = Some(authorization);
            }
        }
        match answer.status() {
            status if status.is_success() => Ok(answer),
            StatusCode::NOT_FOUND => Err(EngineError::not_found(format!("`{}`", self.image))),
            status => Err(self.failed(format!(
                "the registry `{}` answered {status}",
                self.name.place.host
            ))),
        }
    }

    async fn send(&self, url: &str, authorization: Option<&str>) -> Result<Response, EngineError> {
        let mut request = self.client.get(url).header(ACCEPT, MANIFEST_TYPES);
        if let Some(authorization) = authorization {
            request = request.header(AUTHORIZATION, authorization);
        }
        request.send().await.map_err(|error| self.failed(error))
    }

    /// Returns the header that answers the refusal; `None` if we have no suitable credentials.
    async fn authorize(&self, refusal: &Response) -> Result<Option<String>, EngineError> {
        let mut challenges = refusal.headers().get_all(WWW_AUTHENTICATE).iter();
        match challenges.find_map(|header| Challenge::parse(header.to_str().ok()?)) {
            Some(Challenge::Basic) => Ok(self.auth.as_ref().map(RegistryAuth::basic)),
            Some(Challenge::Bearer { realm, service }) => {
                self.token(&realm, service.as_deref()).await.map(Some)
            }
            None => Ok(None),
        }
    }

    async fn token(&self, realm: &str, service: Option<&str>) -> Result<String, EngineError> {
        let mut url = realm::checked(realm, &self.name.place, self.auth.as_ref())
            .map_err(|error| self.failed(error))?;
        let scope = format!("repository:{}:pull", self.name.place.repository);
        url.query_pairs_mut().append_pair("scope", &scope);
        if let Some(service) = service {
            url.query_pairs_mut().append_pair("service", service);
        }
        let client = client(url.scheme() == "http")?;
        let mut request = client.get(url).timeout(MANIFEST_TIMEOUT);
        if let Some(auth) = &self.auth {
            request = request.header(AUTHORIZATION, auth.basic());
        }
        let answer = request.send().await.map_err(|error| self.failed(error))?;
        if !answer.status().is_success() {
            return Err(self.failed(format!(
                "the token service of `{}` answered {}",
                self.name.place.host,
                answer.status()
            )));
        }
        let answer = bounded(answer, MAX_TOKEN_ANSWER)
            .await
            .map_err(|error| self.failed(error))?;
        let token = serde_json::from_slice(&answer).ok();
        let token = token.and_then(|answer: TokenAnswer| answer.token.or(answer.access_token));
        token
            .map(|token| format!("Bearer {token}"))
            .ok_or_else(|| self.failed("the token service's answer contains no token"))
    }

    fn action(&self) -> String {
        format!("ask the registry for `{}`", self.image)
    }

    fn failed(&self, source: impl Into<Box<dyn Error + Send + Sync>>) -> EngineError {
        EngineError::failed(self.action(), source)
    }
}

/// The answer of a token service. `token` and `access_token` are the same thing; services send one
/// or both.
#[derive(Deserialize)]
struct TokenAnswer {
    token: Option<String>,
    access_token: Option<String>,
}

impl RegistryAuth {
    /// Returns the value of an `Authorization` header.
    fn basic(&self) -> String {
        use base64::Engine as _;
        let pair = format!("{}:{}", self.user, self.password);
        let encoded = base64::engine::general_purpose::STANDARD.encode(pair);
        format!("Basic {encoded}")
    }
}

/// Returns `sha256:` and the digest in hexadecimal, as manifests name blobs.
#[must_use]
pub fn sha256_digest(bytes: &[u8]) -> String {
    format!("sha256:{}", hex::encode(Sha256::digest(bytes)))
}

/// Returns the whole body, if it is at most `limit` bytes long.
async fn bounded(
    mut answer: Response,
    limit: usize,
) -> Result<Vec<u8>, Box<dyn Error + Send + Sync>> {
    let mut body = Vec::new();
    while let Some(piece) = answer.chunk().await? {
        if body.len() + piece.len() > limit {
            return Err(format!("the answer is longer than {limit} bytes").into());
        }
        body.extend_from_slice(&piece);
    }
    Ok(body)
}

/// Returns one client for each of the two protocols, kept for the lifetime of the process to reuse
/// connections.
fn client(plain: bool) -> Result<Client, EngineError> {
    static PLAIN: OnceLock<Client> = OnceLock::new();
    static TLS: OnceLock<Client> = OnceLock::new();
    let shared = if plain { &PLAIN } else { &TLS };
    if let Some(client) = shared.get() {
        return Ok(client.clone());
    }
    // A second installation is refused, and the first one stays in use.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut builder = Client::builder()
        .connect_timeout(CONNECT_TIMEOUT)
        .read_timeout(READ_TIMEOUT)
        .dns_resolver(Arc::new(names::system()))
        .user_agent(concat!("supervisor/", env!("CARGO_PKG_VERSION")));
    if plain {
        // Skips the machine's certificates: a device without any can still use its own registry.
        builder = builder.tls_certs_only([]).no_proxy();
    } else {
        // Applies also if a registry redirects us for a blob.
        builder = builder.https_only(true);
    }
    let client = builder
        .build()
        .map_err(|error| EngineError::failed("set up TLS for image registries", error))?;
    Ok(shared.get_or_init(|| client).clone())
}

#[cfg(test)]
pub(crate) mod tests;
