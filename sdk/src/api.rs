//! Requests to the device's own API: routes of the supervisor, and of other plugins. Capability `api`: the policy names
//! the methods and routes.
//!
//! A request has the rights of the caller that the plugin is called for: of a service's key, or of the device for an
//! event. The body of a request is at most 512 KiB long, an answer at most 1 MiB; the whole exchange takes at most 60
//! s, and counts as wall time of the call.
//!
//! ```no_run
//! # async fn handler() -> Result<(), supervisor_sdk::Error> {
//! use supervisor_sdk::api::Request;
//!
//! let state: serde_json::Value = Request::get("/v2/state/status").send().await?.json()?;
//! # Ok(())
//! # }
//! ```

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::bindings::capabilities::platform::supervisor::api as wit;
use crate::capability_error::capability_error;
use crate::whole_answer;

/// A request that has not been sent yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    method: String,
    path: String,
    content_type: Option<String>,
    body: Vec<u8>,
}

/// The answer to a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Response {
    /// The status, such as 200.
    pub status: u16,
    /// The type of the body.
    pub content_type: Option<String>,
    /// The whole body.
    pub body: Vec<u8>,
}

impl Request {
    /// Creates a request with any of the methods GET, HEAD, POST, PUT, PATCH and DELETE. The path may have a query.
    pub fn new(method: impl Into<String>, path: impl Into<String>) -> Request {
        Request {
            method: method.into(),
            path: path.into(),
            content_type: None,
            body: Vec::new(),
        }
    }

    /// Creates a GET request.
    pub fn get(path: impl Into<String>) -> Request {
        Request::new("GET", path)
    }

    /// Creates a POST request.
    pub fn post(path: impl Into<String>) -> Request {
        Request::new("POST", path)
    }

    /// Sets the body and its type.
    #[must_use]
    pub fn body(mut self, content_type: impl Into<String>, body: impl Into<Vec<u8>>) -> Request {
        self.content_type = Some(content_type.into());
        self.body = body.into();
        self
    }

    /// Sets a JSON body.
    ///
    /// # Errors
    /// 500 if the value cannot be written as JSON.
    pub fn json(self, value: &impl Serialize) -> Result<Request, crate::Error> {
        let body = serde_json::to_vec(value).map_err(crate::Error::internal)?;
        Ok(self.body("application/json", body))
    }

    /// Sends the request and waits for the whole answer. An answer is not an error, whatever its status.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn send(self) -> Result<Response, Error> {
        Ok(wit::send(self.into()).await?.into())
    }
}

impl Response {
    /// Returns whether the status is 200 to 299.
    #[must_use]
    pub fn is_success(&self) -> bool {
        whole_answer::is_success(self.status)
    }

    /// Reads the body as JSON.
    ///
    /// # Errors
    /// 502 if the status is not 200 to 299, or the body does not fit `T`.
    pub fn json<T: DeserializeOwned>(&self) -> Result<T, crate::Error> {
        whole_answer::json("the device's own API", self.status, &self.body)
    }
}

mirror! { one way struct Request, wit::Request { method, path, content_type, body } }
mirror! { one way struct wit::Response, Response { status, content_type, body } }

capability_error! {
    /// The reason why there is no answer.
    ///
    /// As a [`crate::Error`]: 503 if the request was not answered, else 500.
    wit::ApiError {
        /// The policy does not grant this method and route.
        NotGranted from NotGranted answers internal,
        /// The request is not valid.
        Invalid from Invalid answers internal,
        /// It was not answered in time, there are too many other requests, or the chain of plugins that wait for each
        /// other is too long.
        Unavailable from Unavailable answers unavailable,
        /// The answer is too long, or has no end.
        TooLarge from TooLarge answers internal,
    }
}
