//! Requests to other machines, or to other programs of the device. Capability `http`: the policy names the hosts and ports
//! that the plugin may reach.
//!
//! The device resolves the name, checks certificates, and follows no redirect. A request has at most 512 KiB of body and
//! 64 header fields, an answer at most 1 MiB; all of it takes at most 60 s, and counts as wall time of the call.
//!
//! ```no_run
//! # async fn handler() -> Result<(), supervisor_sdk::Error> {
//! use supervisor_sdk::http::Request;
//!
//! let answer = Request::get("https://api.weather.example/now").send().await?;
//! let celsius: f64 = answer.json()?;
//! # Ok(())
//! # }
//! ```

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::bindings::capabilities::platform::supervisor::http as wit;
use crate::capability_error::capability_error;
use crate::whole_answer;

/// A request that is not sent yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    method: String,
    url: String,
    headers: Vec<(String, Vec<u8>)>,
    body: Vec<u8>,
}

/// The answer to a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Response {
    /// Such as 200.
    pub status: u16,
    /// The header fields; the names are in lower case.
    pub headers: Vec<(String, Vec<u8>)>,
    /// The whole body.
    pub body: Vec<u8>,
}

impl Request {
    /// A request with any of the methods GET, HEAD, POST, PUT, PATCH, DELETE and OPTIONS.
    pub fn new(method: impl Into<String>, url: impl Into<String>) -> Request {
        Request {
            method: method.into(),
            url: url.into(),
            headers: Vec::new(),
            body: Vec::new(),
        }
    }

    /// A GET request.
    pub fn get(url: impl Into<String>) -> Request {
        Request::new("GET", url)
    }

    /// A POST request.
    pub fn post(url: impl Into<String>) -> Request {
        Request::new("POST", url)
    }

    /// Adds a header field. The device itself writes `host`, `content-length` and those about the connection.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: impl Into<Vec<u8>>) -> Request {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Sets the body.
    #[must_use]
    pub fn body(mut self, body: impl Into<Vec<u8>>) -> Request {
        self.body = body.into();
        self
    }

    /// Sets a body of JSON, and its type.
    ///
    /// # Errors
    /// 500 if the value cannot be written as JSON.
    pub fn json(self, value: &impl Serialize) -> Result<Request, crate::Error> {
        let body = serde_json::to_vec(value).map_err(crate::Error::internal)?;
        Ok(self.header("content-type", "application/json").body(body))
    }

    /// Sends it, and waits for the whole answer. An answer of any status is no error.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn send(self) -> Result<Response, Error> {
        Ok(wit::send(self.into()).await?.into())
    }
}

impl Response {
    /// Whether the status is 200 to 299.
    #[must_use]
    pub fn is_success(&self) -> bool {
        whole_answer::is_success(self.status)
    }

    /// The first value of a header field, whose name is in lower case, if it is text.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut fields = self.headers.iter();
        let (_, value) = fields.find(|(field, _)| field == name)?;
        std::str::from_utf8(value).ok()
    }

    /// Reads the body as JSON.
    ///
    /// # Errors
    /// 502 if the status is not 200 to 299, or the body is another one.
    pub fn json<T: DeserializeOwned>(&self) -> Result<T, crate::Error> {
        whole_answer::json("the other host", self.status, &self.body)
    }
}

mirror! { one way struct Request, wit::Request { method, url, headers, body } }
mirror! { one way struct wit::Response, Response { status, headers, body } }

capability_error! {
    /// Why there is no answer.
    ///
    /// As a [`crate::Error`]: 502 if the other host is the reason, else 500.
    wit::HttpError {
        /// The policy does not name this host and port.
        NotGranted from NotGranted answers internal,
        /// It is no request that can be sent.
        Invalid from Invalid answers internal,
        /// No such name, no connection, no valid certificate, no time left.
        Unreachable from Unreachable answers bad_gateway,
        /// The answer is longer than it may be.
        TooLarge from TooLarge answers bad_gateway,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_read_as_json_if_it_is_a_success() {
        let answer = |status, body: &str| Response {
            status,
            headers: vec![("etag".to_owned(), b"x".to_vec())],
            body: body.as_bytes().to_vec(),
        };
        assert_eq!(answer(200, "[1]").json::<Vec<u8>>().unwrap(), [1]);
        assert_eq!(
            answer(404, "[1]").json::<Vec<u8>>().unwrap_err().status(),
            502
        );
        assert_eq!(
            answer(200, "<p>").json::<Vec<u8>>().unwrap_err().status(),
            502
        );
        assert_eq!(answer(200, "").header("etag"), Some("x"));
    }
}
