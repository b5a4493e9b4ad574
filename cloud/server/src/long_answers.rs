//! Answers that are long, and held until their clients have read them.
//!
//! Most answers are small, and gone into the socket at once. Of the others one caller may hold so many bytes, and all
//! callers together so many; and few may be streamed from an open statement of the database.

use axum::body::Bytes;
use cloud_core::answer::Refusal;
use cloud_core::limits::Payer;

use crate::bounds::{LONG_ANSWER, UNREAD_BYTES};
use cloud_core::concurrency::{ConcurrencyLimit, Permit};

/// After so many seconds whoever holds too much may ask again.
const AGAIN: u64 = 5;

/// What is held for clients that have not read it.
pub(crate) struct LongAnswers {
    bytes: ConcurrencyLimit<Payer>,
    streams: ConcurrencyLimit<Payer>,
}

/// Bytes, and the permit to hold them.
struct UnreadAnswer {
    text: Vec<u8>,
    _permit: Permit<Payer>,
}

impl AsRef<[u8]> for UnreadAnswer {
    fn as_ref(&self) -> &[u8] {
        &self.text
    }
}

impl LongAnswers {
    /// So many answers are streamed at a time: of one caller, and of all.
    pub(crate) fn new(streamed: (usize, usize)) -> Self {
        LongAnswers {
            bytes: ConcurrencyLimit::new(UNREAD_BYTES),
            streams: ConcurrencyLimit::new(streamed),
        }
    }

    /// The text as an answer, which counts until it is sent.
    ///
    /// # Errors
    /// 429 where too much is held already.
    pub(crate) fn hold(&self, payer: &Payer, text: Vec<u8>) -> Result<Bytes, Refusal> {
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

    /// For an answer that is streamed from an open statement.
    ///
    /// # Errors
    /// 429 where there are too many of them.
    pub(crate) fn stream(&self, payer: &Payer) -> Result<Permit<Payer>, Refusal> {
        let permit = self.streams.enter(payer, 1);
        permit.ok_or(Refusal::TooMany(AGAIN))
    }
}
