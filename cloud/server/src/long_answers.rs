//! Long answers, which are held until their clients have read them.
//!
//! Most answers are small, and written to the socket at once. For the others, the number of bytes held is limited for
//! one caller and for all callers together; and only a few answers may be streamed from an open database statement.

use axum::body::Bytes;
use cloud_core::answer::Refusal;
use cloud_core::limits::RateLimitKey;

use crate::bounds::{LONG_ANSWER, UNREAD_BYTES};
use cloud_core::concurrency::{ConcurrencyLimit, Permit};

/// After this many seconds, a caller that holds too much may retry.
const AGAIN: u64 = 5;

/// Answers held for clients that have not read them.
pub(crate) struct LongAnswers {
    bytes: ConcurrencyLimit<RateLimitKey>,
    streams: ConcurrencyLimit<RateLimitKey>,
}

/// Bytes, with the permit to hold them.
struct UnreadAnswer {
    text: Vec<u8>,
    _permit: Permit<RateLimitKey>,
}

impl AsRef<[u8]> for UnreadAnswer {
    fn as_ref(&self) -> &[u8] {
        &self.text
    }
}

impl LongAnswers {
    /// Limits the answers that are streamed at the same time: of one caller, and of all.
    pub(crate) fn new(streamed: (usize, usize)) -> Self {
        LongAnswers {
            bytes: ConcurrencyLimit::new(UNREAD_BYTES),
            streams: ConcurrencyLimit::new(streamed),
        }
    }

    /// Returns the text as an answer, which counts until it is sent.
    ///
    /// # Errors
    /// 429 if too much is held already.
    pub(crate) fn hold(&self, payer: &RateLimitKey, text: Vec<u8>) -> Result<Bytes, Refusal> {
        if text.len() <= LONG_ANSWER {
            return Ok(text.into());
        }
        let permit = self.bytes.enter(payer, text.len());
        let permit = permit.ok_or(Refusal::TooMany(AGAIN))?;
        Ok(Bytes::from_owner(UnreadAnswer {
            text,
            _permit: permit,
        }))
    }

    /// Returns a permit for an answer that is streamed from an open statement.
    ///
    /// # Errors
    /// 429 if there are too many of them.
    pub(crate) fn stream(&self, payer: &RateLimitKey) -> Result<Permit<RateLimitKey>, Refusal> {
        let permit = self.streams.enter(payer, 1);
        permit.ok_or(Refusal::TooMany(AGAIN))
    }
}
