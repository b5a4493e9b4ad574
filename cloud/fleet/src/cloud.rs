//! The cloud's HTTP API: requests with the session's credential, bounded in time and size, and repeated if the cloud
//! asks to retry later.

mod answer;

use std::io::IsTerminal as _;
use std::time::Duration;

use reqwest::header::CONTENT_TYPE;
use reqwest::{Client, Method, RequestBuilder, Response, StatusCode};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::failure::{Failure, Result};
use crate::odata;
use crate::session::{self, Session};
use crate::words::in_words;
pub(crate) use answer::message_in;
use answer::{bounded, requested_wait};

const CONNECT: Duration = Duration::from_secs(10);
/// The time limit from a request to the end of its answer; devices may take 50 s for theirs.
const WHOLE: Duration = Duration::from_secs(90);
/// The maximum length in bytes of an answer that is read.
const MOST: usize = 256 << 20;
/// The longest delay that is waited for before a retry.
const LONGEST_WAIT: Duration = Duration::from_secs(120);
/// The maximum number of times that a request is sent.
const TRIES: u32 = 5;

/// A client of one cloud.
#[derive(Clone)]
pub(crate) struct Cloud {
    pub(crate) url: String,
    token: Option<String>,
    http: Client,
}

impl Cloud {
    /// Returns the client of the session's cloud.
    ///
    /// # Errors
    /// If nobody is signed in.
    pub(crate) async fn from_session() -> Result<Self> {
        let session = Session::current()?;
        let mut cloud = Cloud::at(&session.url, Some(session.token))?;
        if session.kept {
            cloud.renew().await;
        }
        Ok(cloud)
    }

    /// Returns the client of a cloud by its address.
    ///
    /// # Errors
    /// If TLS cannot be set up.
    pub(crate) fn at(url: &str, token: Option<String>) -> Result<Self> {
        Ok(Cloud {
            url: url.to_owned(),
            token,
            http: client()?,
        })
    }

    /// Returns whether a credential is sent.
    pub(crate) fn is_signed_in(&self) -> bool {
        self.token.is_some()
    }

    /// Returns whether the credential is a session token rather than a key.
    pub(crate) fn has_session(&self) -> bool {
        self.token.as_deref().is_some_and(session::is_session)
    }

    /// Renews the session: it is valid for a week, and people who keep using it stay signed in. If this fails, the
    /// following request reports the error.
    async fn renew(&mut self) {
        let now = jiff::Timestamp::now().as_second();
        let token = self.token.as_deref();
        if !token.is_some_and(|token| session::is_old(token, now)) {
            return;
        }
        let renewed = self
            .answer(Method::GET, "/user/v1/refresh-token", None)
            .await;
        if let Ok(token) = renewed
            && let Ok(token) = String::from_utf8(token)
            && session::keep(&self.url, &token).is_ok()
        {
            self.token = Some(token);
        }
    }

    /// Returns rows of the data API.
    pub(crate) async fn rows<T: DeserializeOwned>(
        &self,
        path: &str,
        query: &str,
    ) -> Result<Vec<T>> {
        #[derive(serde::Deserialize)]
        struct Rows<T> {
            d: Vec<T>,
        }
        let rows: Rows<T> = self.get(&odata::address(path, query)).await?;
        Ok(rows.d)
    }

    /// Returns the row of a key.
    pub(crate) async fn row<T: DeserializeOwned>(
        &self,
        path: &str,
        query: &str,
    ) -> Result<Option<T>> {
        Ok(self.rows(path, query).await?.into_iter().next())
    }

    /// Returns the JSON at an address.
    pub(crate) async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T> {
        let bytes = self.answer(Method::GET, path, None).await?;
        self.parsed(path, &bytes)
    }

    /// Creates a row and returns its id.
    pub(crate) async fn create(&self, resource: &str, body: &Value) -> Result<i64> {
        #[derive(serde::Deserialize)]
        struct CreatedRow {
            id: i64,
        }
        let path = format!("/v7/{resource}?returnResource=false");
        let bytes = self.answer(Method::POST, &path, Some(body)).await?;
        Ok(self.parsed::<CreatedRow>(&path, &bytes)?.id)
    }

    /// Changes the row of a key.
    pub(crate) async fn change(&self, path: &str, body: &Value) -> Result<()> {
        self.write(Method::PATCH, path, Some(body)).await
    }

    /// Creates or changes the row of a key.
    pub(crate) async fn put(&self, path: &str, body: &Value) -> Result<()> {
        self.write(Method::PUT, path, Some(body)).await
    }

    /// Deletes the row of a key.
    pub(crate) async fn delete(&self, path: &str) -> Result<()> {
        self.write(Method::DELETE, path, None).await
    }

    async fn write(&self, method: Method, path: &str, body: Option<&Value>) -> Result<()> {
        let path = format!("/v7/{path}");
        self.answer(method, &path, body).await.map(drop)
    }

    /// Sends a POST request, and parses the JSON of its answer.
    pub(crate) async fn post<T: DeserializeOwned>(&self, path: &str, body: &Value) -> Result<T> {
        let bytes = self.answer(Method::POST, path, Some(body)).await?;
        self.parsed(path, &bytes)
    }

    /// Returns the whole body of a successful answer.
    ///
    /// # Errors
    /// What the cloud says if the answer is not successful.
    pub(crate) async fn answer(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Vec<u8>> {
        let answer = self.send(method, path, body, Some(WHOLE)).await?;
        let answer = self.require_success(answer).await?;
        self.read(answer).await
    }

    /// Returns the answer if it is successful.
    ///
    /// # Errors
    /// What the cloud says if it is not.
    pub(crate) async fn require_success(&self, answer: Response) -> Result<Response> {
        if answer.status().is_success() {
            Ok(answer)
        } else {
            Err(self.refused(answer).await?)
        }
    }

    /// Reads the error in an unsuccessful answer.
    ///
    /// # Errors
    /// If it cannot be read.
    pub(crate) async fn refused(&self, answer: Response) -> Result<Failure> {
        let status = answer.status();
        let body = self.read(answer).await?;
        Ok(self.refusal(status, &body))
    }

    /// Returns the bytes of an answer, bounded.
    pub(crate) async fn read(&self, answer: Response) -> Result<Vec<u8>> {
        let bytes = bounded(answer, MOST).await;
        bytes
            .map_err(|error| self.unreachable(error))?
            .ok_or_else(|| {
                Failure::failed(format!(
                    "the cloud's answer has more than {} MiB",
                    MOST >> 20
                ))
            })
    }

    /// Returns any answer, once the cloud no longer asks to retry later.
    pub(crate) async fn send(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
        time: Option<Duration>,
    ) -> Result<Response> {
        let mut tries = 0;
        loop {
            tries += 1;
            let mut request = self.request(method.clone(), path);
            if let Some(time) = time {
                request = request.timeout(time);
            }
            if let Some(body) = body {
                request = request.json(body);
            }
            let answer = request
                .send()
                .await
                .map_err(|error| self.unreachable(error))?;
            let Some(wait) = requested_wait(&answer) else {
                return Ok(answer);
            };
            if wait > LONGEST_WAIT || tries == TRIES {
                return Err(Failure::failed(format!(
                    "{} is overloaded ({})",
                    self.url,
                    answer.status()
                ))
                .hint(format!("try again in {} s", wait.as_secs())));
            }
            if std::io::stderr().is_terminal() {
                eprintln!(
                    "{} is overloaded; trying again in {} s",
                    self.url,
                    wait.as_secs()
                );
            }
            tokio::time::sleep(wait).await;
        }
    }

    /// Sends bytes of some media type, and returns any answer.
    pub(crate) async fn send_bytes(
        &self,
        method: Method,
        path: &str,
        kind: &str,
        bytes: bytes::Bytes,
        time: Duration,
    ) -> Result<Response> {
        let request = self.request(method, path).timeout(time);
        let request = request.header(CONTENT_TYPE, kind).body(bytes);
        let answer = request.send().await;
        answer.map_err(|error| self.unreachable(error))
    }

    fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let request = self.http.request(method, format!("{}{path}", self.url));
        match &self.token {
            Some(token) => request.bearer_auth(token),
            None => request,
        }
    }

    pub(crate) fn unreachable(&self, error: reqwest::Error) -> Failure {
        let sentence = if error.is_timeout() {
            "did not answer in time"
        } else {
            "cannot be reached"
        };
        // The message already contains the address.
        Failure::failed(format!("{} {sentence}", self.url))
            .because(error.without_url())
            .hint("check the address, and whether the cloud is running")
    }

    fn parsed<T: DeserializeOwned>(&self, path: &str, bytes: &[u8]) -> Result<T> {
        serde_json::from_slice(bytes).map_err(|error| {
            Failure::failed(format!(
                "the answer of {} at {} is not the expected one",
                self.url,
                path.split('?').next().unwrap_or(path)
            ))
            .because(error)
            .hint("check whether that is the address of a fleet cloud")
        })
    }

    /// Parses the error in an unsuccessful answer.
    pub(crate) fn refusal(&self, status: StatusCode, body: &[u8]) -> Failure {
        let message = message_in(body).map(|message| in_words(&message));
        let with = |sentence: &str| match &message {
            Some(message) => format!("{sentence}: {message}"),
            None => sentence.to_owned(),
        };
        match status {
            StatusCode::UNAUTHORIZED => Failure::not_allowed(with("not signed in, or not allowed"))
                .hint(match std::env::var_os("FLEET_TOKEN") {
                    // It takes precedence over the stored session.
                    Some(_) => "FLEET_TOKEN is set; check whether it is a key that is still valid, or unset it".to_owned(),
                    None => format!(
                        "`fleet whoami` shows who you are; `fleet login {}` signs in again",
                        self.url
                    ),
                }),
            StatusCode::FORBIDDEN => Failure::not_allowed(with("not allowed")),
            StatusCode::NOT_FOUND => match message {
                Some(message) => Failure::not_found(message),
                None => Failure::not_found(format!("{} does not have what was requested", self.url))
                    .hint("check that it is a fleet cloud, and not older than this program"),
            },
            StatusCode::BAD_REQUEST | StatusCode::CONFLICT | StatusCode::PAYLOAD_TOO_LARGE => {
                Failure::failed(match message {
                    Some(message) => format!("the cloud refused the request: {message}"),
                    None => format!("the cloud refused the request ({status})"),
                })
            }
            status => Failure::failed(with(&format!("the cloud answered {status}"))),
        }
    }
}

fn client() -> Result<Client> {
    // A second installation is refused, and the first one stays in use.
    let _ = rustls::crypto::ring::default_provider().install_default();
    Client::builder()
        .connect_timeout(CONNECT)
        .read_timeout(WHOLE)
        // The credential must not be sent to wherever a redirect leads.
        .redirect(reqwest::redirect::Policy::none())
        .user_agent(concat!("fleet/", env!("CARGO_PKG_VERSION")))
        .build()
        .map_err(|error| Failure::failed("TLS cannot be set up").because(error))
}
