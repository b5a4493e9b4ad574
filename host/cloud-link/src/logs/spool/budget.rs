//! How much may be written to the disk.
//!
//! The disk of a device wears out, so that a service that floods while the cloud is away costs it no more than
//! one that talks.

use std::time::Instant;

/// Lines that are taken at once after some silence, and each second for ever, in bytes before packing.
const BURST: f64 = 1_048_576.0;
const RATE: f64 = 65_536.0;

/// What is left of it.
pub(super) struct Budget {
    left: f64,
    at: Instant,
}

impl Budget {
    /// After a long silence.
    pub(super) fn whole() -> Self {
        Budget {
            left: BURST,
            at: Instant::now(),
        }
    }

    /// Whether so many bytes may be written now.
    pub(super) fn takes(&mut self, bytes: usize) -> bool {
        let now = Instant::now();
        let since = now.duration_since(self.at).as_secs_f64();
        self.at = now;
        self.left = (self.left + since * RATE).min(BURST);
        #[expect(clippy::cast_precision_loss, reason = "a line is no exabyte")]
        let bytes = bytes as f64;
        let takes = self.left >= bytes;
        if takes {
            self.left -= bytes;
        }
        takes
    }
}
