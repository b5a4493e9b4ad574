//! One repository of a registry: its manifests and blobs.

use std::io;
use std::time::Duration;

use futures::TryStreamExt as _;
use registry_protocol::{RepositoryName, is_digest};
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_LENGTH, CONTENT_TYPE, LOCATION};
use reqwest::{Body, Client, ClientBuilder, Method, RequestBuilder, Response, StatusCode, Url};
use tokio::sync::Mutex;

use crate::access::{Access, Account};
use crate::checked_blob::CheckedBlob;
use crate::credentials;
use crate::error::{RegistryError, Result};
use crate::manifest::{Blob, MAX_MANIFEST, Manifest};
use crate::upload;

const CONNECT: Duration = Duration::from_secs(15);
/// The longest pause before and in the middle of an answer.
const SILENCE: Duration = Duration::from_secs(60);
/// The time limit of a request that carries no blob.
pub(crate) const SHORT: Duration = Duration::from_secs(60);

const MANIFEST_TYPES: &str = "application/vnd.oci.image.manifest.v1+json, \
    application/vnd.oci.image.index.v1+json, \
    application/vnd.docker.distribution.manifest.v2+json, \
    application/vnd.docker.distribution.manifest.list.v2+json";

/// The HTTP clients for all registries.
pub struct Registries {
    plain: Clients,
    tls: Clients,
}

/// The HTTP clients for registries with or without TLS.
#[derive(Clone)]
pub(crate) struct Clients {
    pub(crate) short: Client,
    /// Without a limit on the time until the answer, which in reqwest begins with the request.
    uploads: Client,
}

/// One repository.
pub struct Repository<'a> {
    pub(crate) place: RepositoryName,
    pub(crate) clients: Clients,
    pub(crate) access: Access<'a>,
    /// The credential that `docker login` has stored, as the value of a header, if the account is that one.
    pub(crate) credential: Option<String>,
    /// The last `Authorization` header that the registry accepted.
    granted: Mutex<Option<String>>,
}

impl Registries {
    /// Creates the clients without sending anything. `user_agent` is the program, by name and version.
    ///
    /// # Errors
    /// TLS cannot be set up.
    pub fn new(user_agent: &str) -> Result<Self> {
        Registries::with_silence(user_agent, SILENCE)
    }

    fn with_silence(user_agent: &str, silence: Duration) -> Result<Self> {
        let clients = |restrict: fn(ClientBuilder) -> ClientBuilder| {
            let builder = || {
                let builder = Client::builder()
                    .connect_timeout(CONNECT)
                    .user_agent(user_agent);
                restrict(builder)
            };
            Ok(Clients {
                short: builder().read_timeout(silence).build()?,
                uploads: builder().build()?,
            })
        };
        let failed =
            |error: reqwest::Error| RegistryError::failed("TLS cannot be set up").because(error);
        Ok(Registries {
            plain: clients(ClientBuilder::no_proxy).map_err(failed)?,
            // Also if a registry redirects to another place for a blob.
            tls: clients(|builder| builder.https_only(true)).map_err(failed)?,
        })
    }

    /// Returns a repository without sending anything.
    #[must_use]
    pub fn repository<'a>(&self, place: &RepositoryName, access: Access<'a>) -> Repository<'a> {
        let clients = if place.is_loopback() {
            &self.plain
        } else {
            &self.tls
        };
        Repository {
            place: place.clone(),
            clients: clients.clone(),
            credential: match access.account {
                Account::Stored(_) => credentials::load(&place.host),
                Account::Tokens(_) => None,
            },
            access,
            granted: Mutex::default(),
        }
    }
}

impl Repository<'_> {
    /// Fetches a manifest by tag or digest; bytes requested by digest are checked against it.
    ///
    /// # Errors
    /// It does not exist, the registry refuses it, or it is not a manifest.
    pub async fn manifest(&self, reference: &str) -> Result<Manifest> {
        let url = self.url(&format!("manifests/{reference}"))?;
        let answer = self
            .send(Method::GET, &url, |request| {
                request.header(ACCEPT, MANIFEST_TYPES).timeout(SHORT)
            })
            .await?;
        let kind = answer.headers().get(CONTENT_TYPE);
        let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        let kind = kind.split(';').next().unwrap_or_default().trim().to_owned();
        let answer = self.require_success(answer, "the image").await?;
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

    /// Fetches a blob, whose bytes are checked as they arrive.
    ///
    /// # Errors
    /// The registry does not return it.
    pub async fn blob(&self, blob: &Blob) -> Result<CheckedBlob> {
        let url = self.url(&format!("blobs/{}", blob.digest))?;
        let answer = self.send(Method::GET, &url, |request| request).await?;
        let answer = self.require_success(answer, "a part of the image").await?;
        let pieces = answer.bytes_stream().map_err(io::Error::other);
        Ok(CheckedBlob::new(pieces, blob))
    }

    /// Checks whether the registry has a blob already.
    ///
    /// # Errors
    /// The registry cannot be reached.
    pub async fn has(&self, digest: &str) -> Result<bool> {
        let url = self.url(&format!("blobs/{digest}"))?;
        let answer = self
            .send(Method::HEAD, &url, |request| request.timeout(SHORT))
            .await?;
        match answer.status() {
            StatusCode::NOT_FOUND => Ok(false),
            status if status.is_success() => Ok(true),
            _ => self
                .require_success(answer, "a part of the image")
                .await
                .map(|_| true),
        }
    }

    /// Has the registry take a blob over from another of its repositories; returns `false` if it does not.
    ///
    /// # Errors
    /// The registry cannot be reached.
    pub async fn take_over(&self, digest: &str, from: &RepositoryName) -> Result<bool> {
        let mut url = self.url("blobs/uploads/")?;
        url.query_pairs_mut()
            .append_pair("mount", digest)
            .append_pair("from", &from.repository);
        let answer = self
            .send(Method::POST, &url, |request| {
                request.header(CONTENT_LENGTH, 0).timeout(SHORT)
            })
            .await?;
        if answer.status() == StatusCode::ACCEPTED
            && let Some(begun) = self.place_of_upload(&url, &answer)
        {
            // The registry has begun an upload instead, which nobody will continue.
            let _ = self
                .send(Method::DELETE, &begun, |request| request.timeout(SHORT))
                .await;
        }
        Ok(answer.status() == StatusCode::CREATED)
    }

    /// Uploads a blob, for as long as the registry takes pieces of it.
    ///
    /// # Errors
    /// The registry does not accept it, for example because it does not match its digest, or takes no more of it.
    pub async fn put(&self, blob: &Blob, body: Body) -> Result<()> {
        let url = self.url("blobs/uploads/")?;
        let answer = self
            .send(Method::POST, &url, |request| {
                request.header(CONTENT_LENGTH, 0).timeout(SHORT)
            })
            .await?;
        let answer = self.require_success(answer, "an upload").await?;
        let mut place = self
            .place_of_upload(&url, &answer)
            .ok_or_else(|| self.failed("does not say where to upload"))?;
        place.query_pairs_mut().append_pair("digest", &blob.digest);
        let granted = self.granted.lock().await.clone();
        let (body, progress) = upload::in_pieces(body);
        let request = self
            .request(&self.clients.uploads, Method::PUT, &place, granted)
            .header(CONTENT_TYPE, "application/octet-stream")
            .header(CONTENT_LENGTH, blob.size);
        let answer = upload::answer_to(request.body(body).send(), progress).await;
        let answer = answer.map_err(|pause| self.failed("stopped the upload").because(pause))?;
        let answer = answer.map_err(|error| self.unreachable(error))?;
        self.require_success(answer, "the upload").await.map(drop)
    }

    /// Uploads a manifest under its digest or a tag.
    ///
    /// # Errors
    /// The registry does not accept it, or stores another one.
    pub async fn put_manifest(&self, manifest: &Manifest, reference: &str) -> Result<()> {
        self.store_manifest(manifest, reference).await.map(drop)
    }

    /// Uploads a manifest and returns the registry's answer.
    pub(crate) async fn store_manifest(
        &self,
        manifest: &Manifest,
        reference: &str,
    ) -> Result<Response> {
        let url = self.url(&format!("manifests/{reference}"))?;
        let answer = self
            .send(Method::PUT, &url, |request| {
                request
                    .header(CONTENT_TYPE, &manifest.media_type)
                    .timeout(SHORT)
                    .body(manifest.bytes.clone())
            })
            .await?;
        let answer = self.require_success(answer, "the manifest").await?;
        match header(&answer, "docker-content-digest") {
            Some(digest) if digest != manifest.digest => {
                Err(self.failed("stored the manifest under another digest"))
            }
            _ => Ok(answer),
        }
    }

    /// Sends a request with the authentication that the registry requires.
    pub(crate) async fn send(
        &self,
        method: Method,
        url: &Url,
        described: impl Fn(RequestBuilder) -> RequestBuilder,
    ) -> Result<Response> {
        let ask = async |granted: Option<String>| {
            let request = self.request(&self.clients.short, method.clone(), url, granted);
            let request = described(request);
            let answer = request.send().await;
            answer.map_err(|error| self.unreachable(error))
        };
        let granted = self.granted.lock().await.clone();
        let answer = ask(granted).await?;
        if answer.status() != StatusCode::UNAUTHORIZED {
            return Ok(answer);
        }
        // No authorization was sent, or it has expired.
        let Some(authorization) = self.authorize(&answer).await? else {
            return Ok(answer);
        };
        *self.granted.lock().await = Some(authorization.clone());
        ask(Some(authorization)).await
    }

    /// Builds a request with the `granted` authorization, if the address is the registry's own.
    fn request(
        &self,
        client: &Client,
        method: Method,
        url: &Url,
        granted: Option<String>,
    ) -> RequestBuilder {
        let request = client.request(method, url.clone());
        match granted {
            Some(granted) if self.is_ours(url) => request.header(AUTHORIZATION, granted),
            _ => request,
        }
    }

    /// Returns whether an address is the registry's own: credentials are sent to no other.
    fn is_ours(&self, url: &Url) -> bool {
        Url::parse(&self.place.url("")).is_ok_and(|own| own.origin() == url.origin())
    }

    fn place_of_upload(&self, url: &Url, answer: &Response) -> Option<Url> {
        let place = answer.headers().get(LOCATION)?.to_str().ok()?;
        url.join(place).ok()
    }

    pub(crate) fn url(&self, path: &str) -> Result<Url> {
        Url::parse(&self.place.url(path))
            .map_err(|error| self.failed("has no usable address").because(error))
    }

    pub(crate) fn failed(&self, what: &str) -> RegistryError {
        RegistryError::failed(format!("the registry {} {what}", self.place.host))
    }

    pub(crate) fn unreachable(&self, error: reqwest::Error) -> RegistryError {
        self.failed("cannot be reached")
            .because(error.without_url())
    }
}

pub(crate) fn header(answer: &Response, name: &str) -> Option<String> {
    Some(answer.headers().get(name)?.to_str().ok()?.to_owned())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use axum::Router;
    use axum::body::Bytes;
    use axum::routing::{get, post, put};
    use tokio::net::TcpListener;
    use tokio::sync::Notify;

    use super::*;

    /// Reqwest's time limit for reading begins with the request, and would end an upload that takes longer.
    #[tokio::test]
    async fn the_time_limit_of_answers_does_not_end_an_upload() {
        let (received, limit_has_passed) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let handlers = (received.clone(), limit_has_passed.clone());
        let store = move |body: Bytes| async move {
            assert_eq!(body, "layer");
            handlers.0.notify_one();
            handlers.1.notified().await;
            StatusCode::CREATED
        };
        let begin = async || (StatusCode::ACCEPTED, [(LOCATION, "/uploads/1")]);
        let registry = Router::new()
            .route("/v2/app/blobs/uploads/", post(begin))
            .route("/uploads/1", put(store))
            .route("/v2/app/blobs/{digest}", get(std::future::pending::<()>));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let host = listener.local_addr().unwrap().to_string();
        tokio::spawn(async move { axum::serve(listener, registry).await });

        // Programs choose the provider of TLS; a second choice is refused.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let registries = Registries::with_silence("test", Duration::from_secs(3)).unwrap();
        let place = RepositoryName::from_location(&format!("{host}/app")).unwrap();
        let access = Access::push(Account::Stored(None), Vec::new());
        let repository = registries.repository(&place, access);
        let blob = serde_json::json!({ "digest": format!("sha256:{:064}", 1), "size": 5 });
        let blob: Blob = serde_json::from_value(blob).unwrap();
        let begun_later = async {
            received.notified().await;
            assert!(repository.blob(&blob).await.is_err(), "nothing answers it");
            limit_has_passed.notify_one();
        };
        let (stored, ()) = tokio::join!(repository.put(&blob, Body::from("layer")), begun_later);
        stored.unwrap();
    }
}
