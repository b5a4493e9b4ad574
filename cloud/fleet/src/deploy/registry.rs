//! Registries of images, over the OCI distribution protocol: reading from any, writing to the cloud's.
//!
//! Every answer is bounded. Credentials are sent where they belong and never over plain HTTP but to this
//! machine: the session's to the cloud alone, others to the registry that they are kept for.

use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt as _;
use futures::stream::BoxStream;
use registry_protocol::{Challenge, Place, is_digest};
use reqwest::header::{
    ACCEPT, AUTHORIZATION, CONTENT_LENGTH, CONTENT_TYPE, LOCATION, WWW_AUTHENTICATE,
};
use reqwest::{Body, Client, Method, Response, StatusCode, Url};
use serde::Deserialize;
use tokio::sync::Mutex;

use super::credentials;
use super::manifest::{Blob, MAX_MANIFEST, Manifest};
use crate::cloud::{Cloud, message_in};
use crate::failure::{Failure, Result};
use crate::odata::encoded;

const CONNECT: Duration = Duration::from_secs(15);
/// Silence in the middle of an answer.
const SILENCE: Duration = Duration::from_secs(60);
/// Of a request that carries no blob.
const SHORT: Duration = Duration::from_secs(60);
/// The longest answer that is no manifest and no blob, in bytes.
const MAX_ANSWER: usize = 64 << 10;

const MANIFEST_TYPES: &str = "application/vnd.oci.image.manifest.v1+json, \
    application/vnd.oci.image.index.v1+json, \
    application/vnd.docker.distribution.manifest.v2+json, \
    application/vnd.docker.distribution.manifest.list.v2+json";

/// All registries, as far as a deployment reaches them.
pub(super) struct Registries<'a> {
    cloud: &'a Cloud,
    plain: Client,
    tls: Client,
}

/// Who is told to be asking.
enum Access<'a> {
    /// Somebody of that registry, or nobody: the value of a header. Where the registry turns out to be the
    /// cloud's, whoever is signed in there.
    Kept(Option<String>, &'a Cloud),
    /// Who is signed in at the cloud, whose tokens its registry takes; with these repositories to be read as
    /// well.
    Session(&'a Cloud, Vec<String>),
}

/// One repository.
pub(super) struct Repository<'a> {
    pub(super) place: Place,
    client: Client,
    access: Access<'a>,
    /// The `Authorization` header that the registry accepted last.
    granted: Mutex<Option<String>>,
}

impl<'a> Registries<'a> {
    /// Sends nothing yet.
    ///
    /// # Errors
    /// Where there is no TLS to be had.
    pub(super) fn new(cloud: &'a Cloud) -> Result<Self> {
        let builder = || {
            Client::builder()
                .connect_timeout(CONNECT)
                .read_timeout(SILENCE)
                .user_agent(concat!("fleet/", env!("CARGO_PKG_VERSION")))
        };
        let failed = |error| Failure::failed("TLS cannot be set up").because(error);
        Ok(Registries {
            cloud,
            plain: builder().no_proxy().build().map_err(failed)?,
            // Also where a registry sends us elsewhere for a blob.
            tls: builder().https_only(true).build().map_err(failed)?,
        })
    }

    /// One that is read.
    pub(super) fn other(&self, place: &Place) -> Repository<'a> {
        self.repository(
            place,
            Access::Kept(credentials::of(&place.host), self.cloud),
        )
    }

    /// One of the cloud's, to be written; and others of the same registry whose blobs may be taken over.
    pub(super) fn own(&self, place: &Place, beside: &[Place]) -> Repository<'a> {
        let others = beside
            .iter()
            .map(|other| other.repository.clone())
            .collect();
        self.repository(place, Access::Session(self.cloud, others))
    }

    fn repository(&self, place: &Place, access: Access<'a>) -> Repository<'a> {
        let client = if place.is_loopback() {
            &self.plain
        } else {
            &self.tls
        };
        Repository {
            place: place.clone(),
            client: client.clone(),
            access,
            granted: Mutex::default(),
        }
    }
}

impl Repository<'_> {
    /// A manifest, by tag or digest; bytes that were asked for by digest are checked against it.
    ///
    /// # Errors
    /// Where there is none, the registry refuses it or it is no manifest.
    pub(super) async fn manifest(&self, reference: &str) -> Result<Manifest> {
        let url = self.url(&format!("manifests/{reference}"))?;
        let answer = self
            .send(Method::GET, &url, |request| {
                request.header(ACCEPT, MANIFEST_TYPES).timeout(SHORT)
            })
            .await?;
        let kind = answer.headers().get(CONTENT_TYPE);
        let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        let kind = kind.split(';').next().unwrap_or_default().trim().to_owned();
        let answer = self.good(answer, "the image").await?;
        let stored = header(&answer, "docker-content-digest");
        let manifest = Manifest::parse(self.bounded(answer, MAX_MANIFEST).await?, &kind)?;
        let wrong = if is_digest(reference) {
            manifest.digest != reference
        } else {
            stored.is_some_and(|stored| is_digest(&stored) && stored != manifest.digest)
        };
        if wrong {
            Err(self.failed("sent bytes that do not match the digest"))
        } else {
            Ok(manifest)
        }
    }

    /// The bytes of a blob as they come. Who takes them checks them.
    ///
    /// # Errors
    /// Where the registry does not give it.
    pub(super) async fn blob(
        &self,
        digest: &str,
    ) -> Result<BoxStream<'static, reqwest::Result<Bytes>>> {
        let url = self.url(&format!("blobs/{digest}"))?;
        let answer = self.send(Method::GET, &url, |request| request).await?;
        let answer = self.good(answer, "a part of the image").await?;
        Ok(answer.bytes_stream().boxed())
    }

    /// Whether a blob is there already.
    ///
    /// # Errors
    /// Where the registry cannot be asked.
    pub(super) async fn has(&self, digest: &str) -> Result<bool> {
        let url = self.url(&format!("blobs/{digest}"))?;
        let answer = self
            .send(Method::HEAD, &url, |request| request.timeout(SHORT))
            .await?;
        match answer.status() {
            StatusCode::NOT_FOUND => Ok(false),
            status if status.is_success() => Ok(true),
            _ => self.good(answer, "a part of the image").await.map(|_| true),
        }
    }

    /// Has the registry take a blob over from another of its repositories; `false` where it does not.
    ///
    /// # Errors
    /// Where the registry cannot be asked.
    pub(super) async fn take_over(&self, digest: &str, from: &Place) -> Result<bool> {
        let path = format!(
            "blobs/uploads/?mount={digest}&from={}",
            encoded(&from.repository)
        );
        let url = self.url(&path)?;
        let answer = self
            .send(Method::POST, &url, |request| {
                request.header(CONTENT_LENGTH, 0).timeout(SHORT)
            })
            .await?;
        if answer.status() == StatusCode::ACCEPTED
            && let Some(begun) = self.place_of_upload(&url, &answer)
        {
            // An upload was begun instead; nobody will go on with it.
            let _ = self
                .send(Method::DELETE, &begun, |request| request.timeout(SHORT))
                .await;
        }
        Ok(answer.status() == StatusCode::CREATED)
    }

    /// Puts a blob there.
    ///
    /// # Errors
    /// Where the registry does not take it, as where it is another than its digest says.
    pub(super) async fn put(&self, blob: &Blob, body: Body) -> Result<()> {
        let url = self.url("blobs/uploads/")?;
        let answer = self
            .send(Method::POST, &url, |request| {
                request.header(CONTENT_LENGTH, 0).timeout(SHORT)
            })
            .await?;
        let answer = self.good(answer, "an upload").await?;
        let mut place = self
            .place_of_upload(&url, &answer)
            .ok_or_else(|| self.failed("does not say where to upload"))?;
        place.query_pairs_mut().append_pair("digest", &blob.digest);
        let mut request = self
            .client
            .request(Method::PUT, place.clone())
            .header(CONTENT_TYPE, "application/octet-stream")
            .header(CONTENT_LENGTH, blob.size);
        if let Some(granted) = self.granted.lock().await.clone()
            && self.is_ours(&place)
        {
            request = request.header(AUTHORIZATION, granted);
        }
        let answer = request.body(body).send().await;
        let answer = answer.map_err(|error| self.unreachable(error))?;
        self.good(answer, "the upload").await.map(drop)
    }

    /// Puts a manifest there, under its digest or a tag.
    ///
    /// # Errors
    /// Where the registry does not take it, or understood another one.
    pub(super) async fn put_manifest(&self, manifest: &Manifest, reference: &str) -> Result<()> {
        let url = self.url(&format!("manifests/{reference}"))?;
        let answer = self
            .send(Method::PUT, &url, |request| {
                request
                    .header(CONTENT_TYPE, &manifest.media_type)
                    .timeout(SHORT)
                    .body(manifest.bytes.clone())
            })
            .await?;
        let answer = self.good(answer, "the manifest").await?;
        match header(&answer, "docker-content-digest") {
            Some(digest) if digest != manifest.digest => {
                Err(self.failed("stored the manifest under another digest"))
            }
            _ => Ok(()),
        }
    }

    /// A request with as much proof of who asks as the registry wants.
    async fn send(
        &self,
        method: Method,
        url: &Url,
        described: impl Fn(reqwest::RequestBuilder) -> reqwest::RequestBuilder,
    ) -> Result<Response> {
        let ask = async |granted: Option<String>| {
            let mut request = described(self.client.request(method.clone(), url.clone()));
            if let Some(granted) = granted
                && self.is_ours(url)
            {
                request = request.header(AUTHORIZATION, granted);
            }
            let answer = request.send().await;
            answer.map_err(|error| self.unreachable(error))
        };
        let granted = self.granted.lock().await.clone();
        let answer = ask(granted).await?;
        if answer.status() != StatusCode::UNAUTHORIZED {
            return Ok(answer);
        }
        // None was there, or its time is over.
        let Some(authorization) = self.authorize(&answer).await? else {
            return Ok(answer);
        };
        *self.granted.lock().await = Some(authorization.clone());
        ask(Some(authorization)).await
    }

    /// The header that a refusal asks for; `None` where there is nothing to offer.
    async fn authorize(&self, refusal: &Response) -> Result<Option<String>> {
        let challenge = refusal
            .headers()
            .get_all(WWW_AUTHENTICATE)
            .iter()
            .find_map(|header| Challenge::parse(header.to_str().ok()?));
        match (challenge, &self.access) {
            (None, _) | (Some(Challenge::Basic), Access::Session(..)) => Ok(None),
            (Some(Challenge::Basic), Access::Kept(kept, _)) => Ok(kept.clone()),
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
            Access::Kept(kept, _) => {
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
                if let Some(kept) = kept {
                    request = request.header(AUTHORIZATION, kept);
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

    /// Whether an address is the registry's own: a credential goes to no other.
    fn is_ours(&self, url: &Url) -> bool {
        Url::parse(&self.place.url("")).is_ok_and(|own| own.origin() == url.origin())
    }

    fn place_of_upload(&self, asked: &Url, answer: &Response) -> Option<Url> {
        let place = answer.headers().get(LOCATION)?.to_str().ok()?;
        asked.join(place).ok()
    }

    fn url(&self, path: &str) -> Result<Url> {
        Url::parse(&self.place.url(path))
            .map_err(|error| self.failed("has no usable address").because(error))
    }

    async fn good(&self, answer: Response, what: &str) -> Result<Response> {
        let status = answer.status();
        if status.is_success() {
            return Ok(answer);
        }
        let host = &self.place.host;
        let body = self.bounded(answer, MAX_ANSWER).await.unwrap_or_default();
        let words = told(&body)
            .map(|words| format!(": {words}"))
            .unwrap_or_default();
        Err(match status {
            StatusCode::NOT_FOUND => Failure::not_found(format!(
                "the registry {host} does not have {what}, in {}",
                self.place.repository
            )),
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
                let failure = Failure::not_allowed(format!(
                    "the registry {host} denied access to {what} of {}{words}",
                    self.place.repository
                ));
                match self.access {
                    Access::Kept(..) => failure.hint(format!(
                        "check the name; `docker login {host}` stores a credential for it"
                    )),
                    Access::Session(..) => failure,
                }
            }
            status => Failure::failed(format!("the registry {host} answered {status}{words}")),
        })
    }

    async fn bounded(&self, mut answer: Response, most: usize) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        while let Some(piece) = answer
            .chunk()
            .await
            .map_err(|error| self.unreachable(error))?
        {
            if bytes.len() + piece.len() > most {
                return Err(self.failed("sent an answer that is too large"));
            }
            bytes.extend_from_slice(&piece);
        }
        Ok(bytes)
    }

    pub(super) fn failed(&self, what: &str) -> Failure {
        Failure::failed(format!("the registry {} {what}", self.place.host))
    }

    pub(super) fn unreachable(&self, error: reqwest::Error) -> Failure {
        self.failed("cannot be reached")
            .because(error.without_url())
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
    let asked: Vec<String> = scopes
        .chain(service)
        .map(|(name, value)| format!("{name}={}", encoded(value)))
        .collect();
    format!("{TOKENS}?{}", asked.join("&"))
}

/// Whether a realm is the one of the cloud at this address.
fn is_token_service(realm: &str, cloud: &str) -> bool {
    match (Url::parse(realm), Url::parse(&format!("{cloud}{TOKENS}"))) {
        (Ok(realm), Ok(own)) => realm.origin() == own.origin() && realm.path() == own.path(),
        _ => false,
    }
}

/// What a registry says of a refusal.
fn told(body: &[u8]) -> Option<String> {
    #[derive(Deserialize)]
    struct ErrorBody {
        errors: Vec<ErrorEntry>,
    }
    #[derive(Deserialize)]
    struct ErrorEntry {
        message: Option<String>,
    }
    match serde_json::from_slice::<ErrorBody>(body) {
        Ok(body) => body.errors.into_iter().find_map(|one| one.message),
        Err(_) => message_in(body),
    }
}

fn header(answer: &Response, name: &str) -> Option<String> {
    Some(answer.headers().get(name)?.to_str().ok()?.to_owned())
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
