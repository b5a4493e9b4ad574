//! The common parts of the answers of `http` and `api`, which are received as a whole.

use serde::de::DeserializeOwned;

use crate::Error;

pub(crate) fn is_success(status: u16) -> bool {
    (200..300).contains(&status)
}

/// Reads the body of a successful answer as JSON; `answerer` is who sent the answer.
pub(crate) fn json<T: DeserializeOwned>(
    answerer: &str,
    status: u16,
    body: &[u8],
) -> Result<T, Error> {
    if !is_success(status) {
        return Err(Error::bad_gateway(format!("{answerer} answered {status}")));
    }
    serde_json::from_slice(body)
        .map_err(|error| Error::bad_gateway(format!("an unexpected answer: {error}")))
}
