//! Requests to other machines, or to other programs of the device. Capability `http`: the policy names the hosts and
//! ports that the plugin may reach.
//!
//! The device resolves the name, checks certificates, and follows no redirect. A request has a body of at most 512 KiB
//! and at most 64 header fields; an answer has at most 1 MiB. The whole exchange takes at most 60 s, and counts as wall
//! time of the call.
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

/// A request that has not been sent yet.
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
    /// The status, such as 200.
    pub status: u16,
    /// The header fields; the names are in lower case.
    pub headers: Vec<(String, Vec<u8>)>,
    /// The whole body.
    pub body: Vec<u8>,
}

impl Request {
    /// Creates a request with any of the methods GET, HEAD, POST, PUT, PATCH, DELETE and OPTIONS.
    pub fn new(method: impl Into<String>, url: impl Into<String>) -> Request {
        Request {
            method: method.into(),
            url: url.into(),
            headers: Vec::new(),
            body: Vec::new(),
        }
    }

    /// Creates a GET request.
    pub fn get(url: impl Into<String>) -> Request {
        Request::new("GET", url)
    }

    /// Creates a POST request.
    pub fn post(url: impl Into<String>) -> Request {
        Request::new("POST", url)
    }

    /// Adds a header field. The device itself writes `host`, `content-length` and the fields about the connection.
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

    /// Sets a JSON body and its type.
    ///
    /// # Errors
    /// 500 if the value cannot be written as JSON.
    pub fn json(self, value: &impl Serialize) -> Result<Request, crate::Error> {
        let body = serde_json::to_vec(value).map_err(crate::Error::internal)?;
        Ok(self.header("content-type", "application/json").body(body))
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

    /// Returns the first value of a header field, if it is text. The name must be in lower case.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut fields = self.headers.iter();
        let (_, value) = fields.find(|(field, _)| field == name)?;
        std::str::from_utf8(value).ok()
    }

    /// Reads the body as JSON.
    ///
    /// # Errors
    /// 502 if the status is not 200 to 299, or the body does not fit `T`.
    pub fn json<T: DeserializeOwned>(&self) -> Result<T, crate::Error> {
        whole_answer::json("the other host", self.status, &self.body)
    }
}

mirror! { one way struct Request, wit::Request { method, url, headers, body } }
mirror! { one way struct wit::Response, Response { status, headers, body } }

capability_error! {
    /// The reason why there is no answer.
    ///
    /// As a [`crate::Error`]: 502 if the other host is the reason, else 500.
    wit::HttpError {
        /// The policy does not grant this host and port.
        NotGranted from NotGranted answers internal,
        /// The request is not valid.
        Invalid from Invalid answers internal,
        /// The name does not exist, the connection failed, the certificate is not valid, or time ran out.
        Unreachable from Unreachable answers bad_gateway,
        /// The answer is too long.
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
