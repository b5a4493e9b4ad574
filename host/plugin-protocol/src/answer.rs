//! Checks a plugin's answer on its way to HTTP, since the plugin cannot be trusted.

use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};

use crate::Failure;

/// The most headers of an answer.
pub const HEADERS: usize = 64;
/// The most bytes of header names and values together.
pub const HEADER_BYTES: usize = 16 << 10;

/// Hop-by-hop headers: they are the host's business, not a plugin's.
const HOP_BY_HOP: [HeaderName; 7] = [
    header::CONNECTION,
    header::PROXY_AUTHENTICATE,
    header::PROXY_AUTHORIZATION,
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
];

/// Status and headers.
#[derive(Debug, Clone)]
pub struct AnswerHead {
    /// The status, 200 to 599.
    pub status: StatusCode,
    /// The headers that a plugin may set.
    pub headers: HeaderMap,
}

impl AnswerHead {
    /// Checks the status and headers that a plugin set.
    ///
    /// # Errors
    /// [`Failure::BadAnswer`].
    pub fn new(status: u16, headers: &[(String, Vec<u8>)]) -> Result<AnswerHead, Failure> {
        let sizes = headers.iter().map(|(name, value)| name.len() + value.len());
        let size = (headers.len(), sizes.sum());
        let fields = headers.iter().map(|(name, value)| field(name, value));
        AnswerHead::from_fields(status, size, fields)
    }

    /// Checks the status and headers that a component set through `wasi:http`.
    ///
    /// # Errors
    /// [`Failure::BadAnswer`].
    pub fn from_http(status: StatusCode, headers: &HeaderMap) -> Result<AnswerHead, Failure> {
        let sizes = headers
            .iter()
            .map(|(name, value)| name.as_str().len() + value.len());
        let size = (headers.len(), sizes.sum());
        let fields = headers
            .iter()
            .map(|(name, value)| Ok((name.clone(), value.clone())));
        AnswerHead::from_fields(status.as_u16(), size, fields)
    }

    /// `size` is the number of the fields, and their bytes.
    fn from_fields(
        status: u16,
        size: (usize, usize),
        fields: impl Iterator<Item = Result<(HeaderName, HeaderValue), Failure>>,
    ) -> Result<AnswerHead, Failure> {
        let status = StatusCode::from_u16(status)
            .ok()
            .filter(|status| (200..600).contains(&status.as_u16()))
            .ok_or_else(|| bad(format!("the status {status} is not between 200 and 599")))?;
        let (number, bytes) = size;
        if number > HEADERS {
            return Err(bad(format!("{number} headers, more than {HEADERS}")));
        }
        if bytes > HEADER_BYTES {
            return Err(bad(format!(
                "{bytes} bytes of headers, more than {HEADER_BYTES}"
            )));
        }
        let mut headers = HeaderMap::with_capacity(number);
        for field in fields {
            let (name, value) = field?;
            if HOP_BY_HOP.contains(&name) || name.as_str() == "keep-alive" {
                return Err(bad(format!("plugins may not set the header `{name}`")));
            }
            // The host sets the length itself.
            if name != header::CONTENT_LENGTH {
                headers.append(name, value);
            }
        }
        Ok(AnswerHead { status, headers })
    }
}

fn field(name: &str, value: &[u8]) -> Result<(HeaderName, HeaderValue), Failure> {
    let excerpt = || name.escape_default().take(100).collect::<String>();
    let key = HeaderName::from_bytes(name.as_bytes())
        .map_err(|_| bad(format!("`{}` is not a valid header name", excerpt())))?;
    let value = HeaderValue::from_bytes(value).map_err(|_| {
        bad(format!(
            "the header `{}` has a value that HTTP does not allow",
            excerpt()
        ))
    })?;
    Ok((key, value))
}

fn bad(what: String) -> Failure {
    Failure::BadAnswer(what)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(status: u16, headers: &[(&str, &str)]) -> String {
        let headers: Vec<_> = headers
            .iter()
            .map(|(name, value)| ((*name).to_owned(), value.as_bytes().to_vec()))
            .collect();
        match AnswerHead::new(status, &headers) {
            Ok(head) => format!("{} {:?}", head.status.as_u16(), head.headers),
            Err(Failure::BadAnswer(what)) => what,
            Err(other) => panic!("{other:?}"),
        }
    }

    #[test]
    fn an_answer_through_wasi_http_is_checked_by_the_same_rules() {
        let from_http = |status: u16, name: HeaderName| {
            let headers = HeaderMap::from_iter([(name, HeaderValue::from_static("7"))]);
            let status = StatusCode::from_u16(status).unwrap();
            match AnswerHead::from_http(status, &headers) {
                Ok(head) => format!("{} {:?}", head.status.as_u16(), head.headers),
                Err(failure) => format!("{failure:?}"),
            }
        };
        assert_eq!(from_http(200, header::AGE), "200 {\"age\": \"7\"}");
        assert_eq!(from_http(200, header::CONTENT_LENGTH), "200 {}");
        assert!(from_http(101, header::AGE).contains("the status 101 is not between"));
        assert!(from_http(200, header::UPGRADE).contains("may not set the header `upgrade`"));
        let long = HeaderValue::from_str(&"b".repeat(16 << 10)).unwrap();
        let long = HeaderMap::from_iter([(header::AGE, long)]);
        let refused = AnswerHead::from_http(StatusCode::OK, &long).unwrap_err();
        assert!(matches!(refused, Failure::BadAnswer(what) if what.starts_with("16387 bytes")));
    }

    #[test]
    fn an_answer_is_checked() {
        assert_eq!(
            refusal(200, &[("X-A", "1"), ("x-a", "2")]),
            "200 {\"x-a\": \"1\", \"x-a\": \"2\"}"
        );
        assert_eq!(refusal(200, &[("content-length", "7")]), "200 {}");
        for status in [0, 99, 100, 199, 600, 65535] {
            assert_eq!(
                refusal(status, &[]),
                format!("the status {status} is not between 200 and 599")
            );
        }
        assert_eq!(
            refusal(200, &[("a b", "")]),
            "`a b` is not a valid header name"
        );
        assert_eq!(
            refusal(200, &[("a", "x\r\ny")]),
            "the header `a` has a value that HTTP does not allow"
        );
        assert_eq!(
            refusal(200, &[("Connection", "x")]),
            "plugins may not set the header `connection`"
        );
        assert_eq!(refusal(200, &[("a", "b"); 65]), "65 headers, more than 64");
        assert_eq!(
            refusal(200, &[("a", &"b".repeat(16 << 10))]),
            "16385 bytes of headers, more than 16384"
        );
    }
}
