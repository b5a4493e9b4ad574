//! The error that a handler answers with.

use std::borrow::Cow;
use std::fmt;

/// A failure that the caller receives as `{"status":"failed","message":...}`.
///
/// The constructors are named after their HTTP status. `message` is for the caller: say which input was wrong,
/// and in what way; secrets and causes inside the plugin belong in [`crate::log`].
///
/// A family of endpoints with its own error format uses another type for it: its handlers return a `Result`
/// whose error implements [`crate::Answer`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    status: u16,
    code: Cow<'static, str>,
    message: String,
}

macro_rules! constructors {
    ($($(#[doc = $doc:literal])+ $name:ident = $status:literal $code:literal;)*) => {
        $($(#[doc = $doc])+
        #[must_use]
        pub fn $name(message: impl fmt::Display) -> Self {
            Self::new($status, $code, message)
        })*
    };
}

impl Error {
    /// Creates an error with any status from 400 to 599 (the host treats any other as 500). `code` is a short
    /// word for logs and tests, which the caller does not see.
    #[must_use]
    pub fn new(
        status: u16,
        code: impl Into<Cow<'static, str>>,
        message: impl fmt::Display,
    ) -> Self {
        Self {
            status,
            code: code.into(),
            message: message.to_string(),
        }
    }

    constructors! {
        /// 400: the request does not have the form that the route expects.
        bad_request = 400 "bad-request";
        /// 401: the caller's key does not give access to this. (The host has already checked that there is one.)
        unauthorized = 401 "unauthorized";
        /// 403: the caller is known, but not allowed to do this.
        forbidden = 403 "forbidden";
        /// 404: what the request names does not exist.
        not_found = 404 "not-found";
        /// 409: the request conflicts with the current state.
        conflict = 409 "conflict";
        /// 413: the request, or what it asks to store, is too large.
        too_large = 413 "too-large";
        /// 415: a body of a type that the route does not accept.
        unsupported_type = 415 "unsupported-type";
        /// 423: an update lock is held.
        locked = 423 "locked";
        /// 429: too many requests.
        too_many = 429 "too-many";
        /// 500: the plugin failed.
        internal = 500 "internal";
        /// 502: something that the plugin queried gave no usable answer.
        bad_gateway = 502 "bad-gateway";
        /// 503: not now; the same request may work later.
        unavailable = 503 "unavailable";
    }

    /// Returns the HTTP status.
    #[must_use]
    pub fn status(&self) -> u16 {
        self.status
    }

    /// Returns the short word for logs.
    #[must_use]
    pub fn code(&self) -> &str {
        &self.code
    }

    /// Returns the message for the caller.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}

/// 500 with the error's message, so that `?` suffices after a function of `std::fs`. The message does not contain the
/// path.
impl From<std::io::Error> for Error {
    fn from(error: std::io::Error) -> Self {
        Self::internal(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_of_a_file_is_an_error_of_the_plugin() {
        fn read() -> Result<Vec<u8>, Error> {
            Ok(std::fs::read("/there/is/no/such/file")?)
        }
        let error = read().unwrap_err();
        assert_eq!((error.status(), error.code()), (500, "internal"));
        assert!(error.message().contains("No such file"), "{error}");
    }
}
