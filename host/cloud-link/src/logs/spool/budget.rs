//! How much may be written to the disk.
//!
//! The device's disk wears out. The limit keeps a service that floods while the cloud is away from wearing it out
//! faster than a talkative one.

use std::time::Instant;

/// How much is accepted at once after some silence, and each second in the long run, in bytes before packing.
const BURST: f64 = 1_048_576.0;
const RATE: f64 = 65_536.0;

/// The remaining budget.
pub(super) struct Budget {
    left: f64,
    at: Instant,
}

impl Budget {
    /// The budget after a long silence.
    pub(super) fn whole() -> Self {
        Budget {
            left: BURST,
            at: Instant::now(),
        }
    }

    /// Returns whether this many bytes may be written now, and deducts them.
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
