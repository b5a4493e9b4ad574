//! The handshake of the WebSocket (RFC 6455, 4), as headers.

use http::header::{
    CONNECTION, HeaderName, HeaderValue, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY,
    SEC_WEBSOCKET_PROTOCOL, SEC_WEBSOCKET_VERSION, UPGRADE,
};
use http::{HeaderMap, StatusCode};
use tokio_tungstenite::tungstenite::handshake::client::generate_key;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;

const WEBSOCKET: HeaderValue = HeaderValue::from_static("websocket");
const VERSION: HeaderValue = HeaderValue::from_static("13");

/// Why a tunnel was not opened.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HandshakeError {
    /// The peer did not switch protocols.
    #[error("it answered the request to open a tunnel with {0}")]
    Status(StatusCode),
    /// A header of the handshake is missing, or has the wrong value.
    #[error("the header `{0}` of the tunnel's handshake has a wrong value")]
    Header(HeaderName),
}

/// What the device sends to open a tunnel.
#[derive(Debug, Clone)]
pub struct Offer {
    key: String,
    protocol: HeaderValue,
}

impl Offer {
    /// Creates an offer with its own key. `protocol` is the WebSocket subprotocol, such as `h2.platform`.
    ///
    /// # Errors
    /// `protocol` cannot be a header.
    pub fn new(protocol: &str) -> Result<Offer, HandshakeError> {
        let protocol = HeaderValue::from_str(protocol);
        Ok(Offer {
            key: generate_key(),
            protocol: protocol.map_err(|_| HandshakeError::Header(SEC_WEBSOCKET_PROTOCOL))?,
        })
    }

    /// Returns the headers of the request.
    #[must_use]
    pub fn headers(&self) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(CONNECTION, UPGRADE.into());
        headers.insert(UPGRADE, WEBSOCKET);
        headers.insert(SEC_WEBSOCKET_VERSION, VERSION);
        headers.insert(SEC_WEBSOCKET_PROTOCOL, self.protocol.clone());
        if let Ok(key) = HeaderValue::from_str(&self.key) {
            headers.insert(SEC_WEBSOCKET_KEY, key);
        }
        headers
    }

    /// Checks whether this answer opens the tunnel.
    ///
    /// # Errors
    /// [`HandshakeError`] if it does not.
    pub fn is_taken(&self, status: StatusCode, headers: &HeaderMap) -> Result<(), HandshakeError> {
        if status != StatusCode::SWITCHING_PROTOCOLS {
            return Err(HandshakeError::Status(status));
        }
        is(headers, UPGRADE, WEBSOCKET.as_bytes())?;
        let accept = derive_accept_key(self.key.as_bytes());
        if headers
            .get(SEC_WEBSOCKET_ACCEPT)
            .is_none_or(|found| found.as_bytes() != accept.as_bytes())
        {
            return Err(HandshakeError::Header(SEC_WEBSOCKET_ACCEPT));
        }
        is(headers, SEC_WEBSOCKET_PROTOCOL, self.protocol.as_bytes())
    }
}

/// Returns the headers of the cloud's 101 answer to a request with these headers.
///
/// # Errors
/// [`HandshakeError::Header`] if the request does not open a tunnel of this protocol: 400 or 426.
pub fn accept(headers: &HeaderMap, protocol: &str) -> Result<HeaderMap, HandshakeError> {
    is(headers, UPGRADE, WEBSOCKET.as_bytes())?;
    is(headers, SEC_WEBSOCKET_VERSION, VERSION.as_bytes())?;
    let refused = |name: HeaderName| HandshakeError::Header(name);
    let offered = headers.get_all(SEC_WEBSOCKET_PROTOCOL).iter();
    let mut offered = offered
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','));
    if !offered.any(|offered| offered.trim() == protocol) {
        return Err(refused(SEC_WEBSOCKET_PROTOCOL));
    }
    let key = headers.get(SEC_WEBSOCKET_KEY);
    // 16 bytes in base64.
    let key = key.filter(|key| key.len() == 24);
    let key = key.ok_or_else(|| refused(SEC_WEBSOCKET_KEY))?;
    let mut answer = HeaderMap::new();
    answer.insert(CONNECTION, UPGRADE.into());
    answer.insert(UPGRADE, WEBSOCKET);
    let accept = HeaderValue::from_str(&derive_accept_key(key.as_bytes()));
    let protocol = HeaderValue::from_str(protocol);
    answer.insert(
        SEC_WEBSOCKET_ACCEPT,
        accept.map_err(|_| refused(SEC_WEBSOCKET_KEY))?,
    );
    answer.insert(
        SEC_WEBSOCKET_PROTOCOL,
        protocol.map_err(|_| refused(SEC_WEBSOCKET_PROTOCOL))?,
    );
    Ok(answer)
}

fn is(headers: &HeaderMap, name: HeaderName, value: &[u8]) -> Result<(), HandshakeError> {
    match headers.get(&name) {
        Some(found) if found.as_bytes().eq_ignore_ascii_case(value) => Ok(()),
        _ => Err(HandshakeError::Header(name)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROTOCOL: &str = "h2.platform";

    #[test]
    fn an_end_accepts_the_offer_of_the_other() {
        let offer = Offer::new(PROTOCOL).unwrap();
        let answer = accept(&offer.headers(), PROTOCOL).unwrap();
        let status = StatusCode::SWITCHING_PROTOCOLS;
        assert_eq!(offer.is_taken(status, &answer), Ok(()));
        let other = Offer::new(PROTOCOL).unwrap();
        assert_eq!(
            other.is_taken(status, &answer),
            Err(HandshakeError::Header(SEC_WEBSOCKET_ACCEPT)),
            "the answer to another request"
        );
        assert_eq!(
            offer.is_taken(StatusCode::OK, &answer),
            Err(HandshakeError::Status(StatusCode::OK))
        );
        assert!(Offer::new("a\nb").is_err());
    }

    #[test]
    fn both_ends_check_each_header() {
        let offer = Offer::new(PROTOCOL).unwrap();
        let request = offer.headers();
        let answer = accept(&request, PROTOCOL).unwrap();
        for name in [
            UPGRADE,
            SEC_WEBSOCKET_VERSION,
            SEC_WEBSOCKET_PROTOCOL,
            SEC_WEBSOCKET_KEY,
        ] {
            for value in [None, Some("x")] {
                let found = accept(&changed(&request, &name, value), PROTOCOL);
                assert_eq!(
                    found,
                    Err(HandshakeError::Header(name.clone())),
                    "{value:?}"
                );
            }
        }
        for name in [UPGRADE, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_PROTOCOL] {
            for value in [None, Some("x")] {
                let answer = changed(&answer, &name, value);
                let found = offer.is_taken(StatusCode::SWITCHING_PROTOCOLS, &answer);
                assert_eq!(
                    found,
                    Err(HandshakeError::Header(name.clone())),
                    "{value:?}"
                );
            }
        }
        let several = changed(&request, &SEC_WEBSOCKET_PROTOCOL, Some("mqtt, h2.platform"));
        assert!(accept(&several, PROTOCOL).is_ok());
    }

    fn changed(headers: &HeaderMap, name: &HeaderName, value: Option<&'static str>) -> HeaderMap {
        let mut headers = headers.clone();
        headers.remove(name);
        if let Some(value) = value {
            headers.insert(name, HeaderValue::from_static(value));
        }
        headers
    }
}
