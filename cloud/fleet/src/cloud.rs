//! The cloud's HTTP API: requests with the session's credential, bounded in time and size, asked again
//! when the cloud says later.

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
use answer::{asked_to_wait, bounded};

const CONNECT: Duration = Duration::from_secs(10);
/// From a request to the end of its answer; devices may take 50 s for theirs.
const WHOLE: Duration = Duration::from_secs(90);
/// The longest answer that is read.
const MOST: usize = 256 << 20;
/// The longest wait that is done without asking.
const LONGEST_WAIT: Duration = Duration::from_secs(120);
/// How often a request is sent.
const TRIES: u32 = 5;

/// A cloud that is asked.
#[derive(Clone)]
pub(crate) struct Cloud {
    pub(crate) url: String,
    token: Option<String>,
    http: Client,
}

impl Cloud {
    /// The one of the session.
    ///
    /// # Errors
    /// Where nobody is signed in.
    pub(crate) async fn of_session() -> Result<Self> {
        let session = Session::current()?;
        let mut cloud = Cloud::at(&session.url, Some(session.token))?;
        if session.kept {
            cloud.renew().await;
        }
        Ok(cloud)
    }

    /// One by its address.
    ///
    /// # Errors
    /// Where there is no TLS to be had.
    pub(crate) fn at(url: &str, token: Option<String>) -> Result<Self> {
        Ok(Cloud {
            url: url.to_owned(),
            token,
            http: client()?,
        })
    }

    /// Whether a credential is sent.
    pub(crate) fn is_signed_in(&self) -> bool {
        self.token.is_some()
    }

    /// Whether that is a session's, and no key.
    pub(crate) fn has_session(&self) -> bool {
        self.token.as_deref().is_some_and(session::is_session)
    }

    /// A session is good for a week; who works on with it stays signed in. That it fails is told by the
    /// request that follows.
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

    /// Rows of the data API.
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

    /// The row of a key.
    pub(crate) async fn row<T: DeserializeOwned>(
        &self,
        path: &str,
        query: &str,
    ) -> Result<Option<T>> {
        Ok(self.rows(path, query).await?.into_iter().next())
    }

    /// JSON of an address.
    pub(crate) async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T> {
        let bytes = self.answer(Method::GET, path, None).await?;
        self.parsed(path, &bytes)
    }

    /// Makes a row; its id.
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

    /// Makes or changes the row of a key.
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

    /// Posts, and reads JSON.
    pub(crate) async fn post<T: DeserializeOwned>(&self, path: &str, body: &Value) -> Result<T> {
        let bytes = self.answer(Method::POST, path, Some(body)).await?;
        self.parsed(path, &bytes)
    }

    /// The whole of a good answer.
    ///
    /// # Errors
    /// What the cloud says of any other.
    pub(crate) async fn answer(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Vec<u8>> {
        let answer = self.send(method, path, body, Some(WHOLE)).await?;
        let answer = self.good(answer).await?;
        self.read(answer).await
    }

    /// The answer, where it is a good one.
    ///
    /// # Errors
    /// What the cloud says of any other.
    pub(crate) async fn good(&self, answer: Response) -> Result<Response> {
        if answer.status().is_success() {
            Ok(answer)
        } else {
            Err(self.refused(answer).await?)
        }
    }

    /// What an answer says that is not good.
    ///
    /// # Errors
    /// Where it cannot be read.
    pub(crate) async fn refused(&self, answer: Response) -> Result<Failure> {
        let status = answer.status();
        let body = self.read(answer).await?;
        Ok(self.refusal(status, &body))
    }

    /// The bytes of an answer, bounded.
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

    /// Any answer, once the cloud does not say later any more.
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
            let Some(wait) = asked_to_wait(&answer) else {
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

    /// Sends bytes of some kind; any answer.
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
        // The address is in the sentence already.
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

    /// What an answer that is not good says.
    pub(crate) fn refusal(&self, status: StatusCode, body: &[u8]) -> Failure {
        let message = message_in(body).map(|message| in_words(&message));
        let with = |sentence: &str| match &message {
            Some(message) => format!("{sentence}: {message}"),
            None => sentence.to_owned(),
        };
        match status {
            StatusCode::UNAUTHORIZED => Failure::not_allowed(with("not signed in, or not allowed"))
                .hint(match std::env::var_os("FLEET_TOKEN") {
                    // It goes before whatever a sign-in keeps.
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
                    Some(message) => format!("the cloud refused it: {message}"),
                    None => format!("the cloud refused it ({status})"),
                })
            }
            status => Failure::failed(with(&format!("the cloud answered {status}"))),
        }
    }
}

fn client() -> Result<Client> {
    // A second installation is refused, and the first one serves.
    let _ = rustls::crypto::ring::default_provider().install_default();
    Client::builder()
        .connect_timeout(CONNECT)
        .read_timeout(WHOLE)
        // A credential follows no redirection to who knows where.
        .redirect(reqwest::redirect::Policy::none())
        .user_agent(concat!("fleet/", env!("CARGO_PKG_VERSION")))
        .build()
        .map_err(|error| Failure::failed("TLS cannot be set up").because(error))
}
